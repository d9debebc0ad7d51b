"""A plot as inline SVG: axes with ticks at equal distances, and layers of paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

WIDTH, HEIGHT = 1000, 240  # of the drawing, whose pixels are stretched to the page's


@dataclass(frozen=True)
class PlotLayer:
    """A path with a class of the style sheet: `band`, `line`, `dots`; `colour` adds one of several."""

    style: str
    path: str
    label: str = ""


@dataclass(frozen=True)
class Plot:
    """What page, PDF and pictures draw. Labels are at equal distances: of y from the top, of x from the left."""

    title: str
    words: str  # above the plot: what it shows
    y_labels: tuple[str, ...]
    x_labels: tuple[str, ...]
    layers: tuple[PlotLayer, ...]
    hint: str = ""

    @property
    def rules(self) -> str:
        """Path of the horizontal lines at the ticks."""
        steps = max(1, len(self.y_labels) - 1)
        return "".join(f"M0 {round(HEIGHT * index / steps)}H{WIDTH}" for index in range(steps + 1))


def dots(x: np.ndarray, y: np.ndarray) -> str:
    """Path of round dots."""
    points = dict.fromkeys(zip(x.tolist(), y.tolist(), strict=True))
    return "".join(f"M{a} {b}h0" for a, b in points)


def line(x: Sequence[int] | np.ndarray, y: Sequence[int] | np.ndarray) -> str:
    """Path of a line through points."""
    return "M" + "L".join(f"{a} {b}" for a, b in zip(x, y, strict=True)) if len(x) else ""


def band(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> str:
    """Path of the area between two lines."""
    if not len(x):
        return ""
    return line(x, high) + "L" + line(x[::-1], low[::-1])[1:] + "Z"
