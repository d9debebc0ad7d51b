"""Curves of a row against the message size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fablint.report.html.drawings.plots import HEIGHT, WIDTH, Plot, PlotLayer, dots, line
from fablint.report.survey.row_survey import SizeSurvey
from fablint.text import units

FEWEST_SIZES = 3
_LABELS = 8
_SLACK = 0.02  # decades beyond the ends of the axis that a value may lie


def curve(surveys: Sequence[SizeSurvey]) -> Plot | None:
    """Median, and the middle 98 % of the pairs, against the size; None for fewer sizes than a curve needs."""
    known = [one for one in sorted(surveys, key=lambda one: one.size) if one.distribution.pairs()]
    if len(known) < FEWEST_SIZES:
        return None
    row = known[0].row
    rate = units.is_rate(row.quantity)
    quantiles = np.array([[one.distribution.quantile(share) for share in (0.01, 0.5, 0.99)] for one in known])
    value = np.log10([one.size for one in known])[:, None] - np.log10(quantiles) if rate else np.log10(quantiles)
    low, high = float(np.floor(value.min() + _SLACK)), float(np.ceil(value.max() - _SLACK))
    high = max(high, low + 1)
    x = np.rint(np.linspace(0, WIDTH, len(known))).astype(int)
    y = HEIGHT - np.rint(np.clip((value - low) / (high - low), 0, 1) * HEIGHT).astype(int)
    layers = (
        PlotLayer("band", line(x, y[:, 0]) + "L" + line(x[::-1], y[::-1, 2])[1:] + "Z"),
        PlotLayer("line", line(x, y[:, 1])),
        PlotLayer("dots small", dots(x, y[:, 1])),
    )
    words = units.rate if rate else units.duration
    steps = np.linspace(high, low, int(high - low) + 1)
    labels = [units.size(one.size) for one in known]
    if len(labels) > _LABELS:
        step = next(
            (
                one
                for one in range(2, len(labels))
                if (len(labels) - 1) % one == 0 and (len(labels) - 1) // one < _LABELS
            ),
            len(labels) - 1,
        )
        labels = labels[::step]
    title = f"{row.quantity} against message size"
    if max(one.distribution.pairs() for one in known) > 1:
        title += ": median over pairs, and 98 % of them"
    return Plot(title, title, tuple(words(10.0 ** float(one)) for one in steps), tuple(labels), layers)
