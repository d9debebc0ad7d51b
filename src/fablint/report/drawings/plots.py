"""A plot as numbers: axes with ticks at equal distances, and layers of points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

WIDTH, HEIGHT = 1000, 240  # of the plot, whose units are stretched to the page's

PlotPoints = tuple[tuple[int, int], ...]  # x from the left, y from the top


@dataclass(frozen=True)
class PlotLayer:
    """A series: an area (`band`), a line, or dots; `medium` and `points` are the line and the dots of a transport."""

    kind: Literal["band", "line", "dots", "medium", "points"]
    colour: str  # of the palette
    points: PlotPoints  # of a band its upper edge, then its lower edge backwards
    label: str = ""

    @property
    def role(self) -> str:
        """Classes of the style sheet."""
        return self.kind if self.kind == self.colour else f"{self.kind} {self.colour}"


@dataclass(frozen=True)
class Plot:
    """What page, PDF and pictures draw. Labels are at equal distances: of y from the top, of x from the left."""

    title: str
    words: str  # above the plot: what it shows
    y_labels: tuple[str, ...]
    x_labels: tuple[str, ...]
    layers: tuple[PlotLayer, ...]


def points(x: np.ndarray, y: np.ndarray) -> PlotPoints:
    """Return points as pairs of numbers."""
    return tuple(zip(x.tolist(), y.tolist(), strict=True))


def dots(colour: str, x: np.ndarray, y: np.ndarray) -> PlotLayer:
    """Return round dots, each place once."""
    return PlotLayer("dots", colour, tuple(dict.fromkeys(points(x, y))))


def band(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> PlotLayer:
    """Return the area between two lines."""
    return PlotLayer("band", "band", points(x, high) + points(x[::-1], low[::-1]))
