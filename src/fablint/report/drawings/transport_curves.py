"""Curves of several transports against the message size, in one plot."""

from __future__ import annotations

import numpy as np

from fablint.report.drawings.curves import FEWEST_SIZES, decades, height, size_labels
from fablint.report.drawings.plots import WIDTH, Plot, PlotLayer, dots, line
from fablint.report.transport_comparison import TransportComparison
from fablint.text import units

STYLES = 6  # of the style sheet: further media repeat them


def transport_curves(comparison: TransportComparison) -> Plot | None:
    """Return a curve for each medium; None for fewer sizes than a curve needs."""
    figures = np.array([one.figures for one in comparison.media], dtype=float)
    known = np.isfinite(figures) & (figures > 0)
    used = known.any(axis=0)
    if np.count_nonzero(used) < FEWEST_SIZES:
        return None
    value = np.log10(np.where(known, figures, np.nan))[:, used]
    ends = decades(value[np.isfinite(value)])
    x = np.rint(np.linspace(0, WIDTH, value.shape[1])).astype(int)
    layers: list[PlotLayer] = []
    for number, (one, own) in enumerate(zip(comparison.media, value, strict=True)):
        measured = np.isfinite(own)
        points = x[measured], height(own[measured], ends)
        style = f"medium-{number % STYLES}"
        layers += [PlotLayer(f"medium {style}", line(*points), one.medium.label)]
        layers += [PlotLayer(f"points {style}", dots(*points))]
    words = units.rate if units.is_rate(comparison.quantity) else units.duration
    steps = np.linspace(ends[1], ends[0], int(ends[1] - ends[0]) + 1)
    sizes = [size for size, is_used in zip(comparison.sizes, used.tolist(), strict=True) if is_used]
    title = f"{comparison.quantity} against message size over each transport"
    return Plot(title, title, tuple(words(10.0 ** float(one)) for one in steps), size_labels(sizes), tuple(layers))
