"""Curves of a row against the message size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fablint.report.drawings.plots import HEIGHT, WIDTH, Plot, PlotLayer, band, dots, points
from fablint.report.group_rates import group_rates
from fablint.report.survey.row_survey import SizeSurvey
from fablint.text import units

FEWEST_SIZES = 3
_LABELS = 8
_SLACK = 0.02  # decades beyond the ends of the axis that a value may lie


def curve(surveys: Sequence[SizeSurvey]) -> Plot | None:
    """Median, and the middle 98 % of the pairs, against the size; None for fewer sizes than a curve needs."""
    measured_surveys = [one for one in sorted(surveys, key=lambda one: one.size) if one.distribution.pairs()]
    if len(measured_surveys) < FEWEST_SIZES:
        return None
    row = measured_surveys[0].row
    quantiles = np.array(
        [[survey.distribution.quantile(share) for share in (0.01, 0.5, 0.99)] for survey in measured_surveys]
    )
    value = np.log10(quantiles)
    name, factor = next(iter(group_rates(row).items()), (row.quantity, row.counted_bytes(1)))
    quantity = "bandwidth" if name != row.quantity else name
    if units.is_rate(quantity):
        value = np.log10([factor * one.size for one in measured_surveys])[:, None] - value
    ends = decades(value)
    x = np.rint(np.linspace(0, WIDTH, len(measured_surveys))).astype(int)
    y = height(value, ends)
    median = PlotLayer("line", "quiet", points(x, y[:, 1]))
    layers = band(x, low=y[:, 2], high=y[:, 0]), median, dots("quiet", x, y[:, 1])
    title = f"{name} against message size"
    if max(one.distribution.pairs() for one in measured_surveys) > 1:
        title += ": median over pairs, and 98 % of them"
    return size_plot(title, quantity, ends, [one.size for one in measured_surveys], layers)


def size_plot(
    title: str, quantity: str, ends: tuple[float, float], sizes: Sequence[int], layers: Sequence[PlotLayer]
) -> Plot:
    """Return a plot of a quantity against the message size.

    Parameters
    ----------
    title
        What it shows.
    quantity
        As in `Row`.
    ends
        Logarithms to base 10 of the ends of the axis.
    sizes
        The sizes, at equal distances.
    layers
        The series.
    """
    words = units.rate if units.is_rate(quantity) else units.duration
    steps = np.linspace(ends[1], ends[0], int(ends[1] - ends[0]) + 1)
    return Plot(title, title, tuple(words(10.0 ** float(one)) for one in steps), size_labels(sizes), tuple(layers))


def decades(value: np.ndarray) -> tuple[float, float]:
    """Return the ends of an axis of whole decades for logarithms to base 10."""
    low, high = float(np.floor(value.min() + _SLACK)), float(np.ceil(value.max() - _SLACK))
    return low, max(high, low + 1)


def height(value: np.ndarray, ends: tuple[float, float]) -> np.ndarray:
    """Return the pixels of values from the top, those beyond the axis at its ends."""
    share = np.clip((value - ends[0]) / (ends[1] - ends[0]), 0, 1)
    return np.asarray(HEIGHT - np.rint(share * HEIGHT).astype(int))


def size_labels(sizes: Sequence[int]) -> tuple[str, ...]:
    """Return the names of sizes at equal distances, as many as there is space for."""
    last = len(sizes) - 1
    steps = (step for step in range(1, last + 1) if last % step == 0 and last // step < _LABELS)
    return tuple(units.size(size) for size in sizes[:: next(steps, max(last, 1))])
