"""Curves of several transports against the message size, in one plot."""

from __future__ import annotations

import numpy as np

from fablint.report.drawings.curves import FEWEST_SIZES, decades, height, size_plot
from fablint.report.drawings.palette import MEDIA
from fablint.report.drawings.plots import WIDTH, Plot, PlotLayer, points
from fablint.report.transport_comparison import TransportComparison


def transport_curves(comparison: TransportComparison) -> Plot | None:
    """Return a curve for each medium; None for fewer sizes than a curve needs."""
    figures = np.array([one.figures for one in comparison.media], dtype=float)
    is_drawn = np.isfinite(figures) & (figures > 0)
    used = is_drawn.any(axis=0)
    if np.count_nonzero(used) < FEWEST_SIZES:
        return None
    value = np.log10(np.where(is_drawn, figures, np.nan))[:, used]
    ends = decades(value[np.isfinite(value)])
    x = np.rint(np.linspace(0, WIDTH, value.shape[1])).astype(int)
    layers: list[PlotLayer] = []
    for number, (item, log_figures) in enumerate(zip(comparison.media, value, strict=True)):
        measured = np.isfinite(log_figures)
        places, colour = points(x[measured], height(log_figures[measured], ends)), f"medium-{number % MEDIA}"
        layers.append(PlotLayer("medium", colour, places, item.medium.label))
        layers.append(PlotLayer("points", colour, places))
    sizes = [size for size, is_used in zip(comparison.sizes, used.tolist(), strict=True) if is_used]
    title = f"{comparison.quantity} against message size over each transport"
    return size_plot(title, comparison.quantity, ends, sizes, layers)
