"""Figures of the PDF: matrices of pairs with host names, and histograms. Text and axes are vectors, cells an image."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from PIL import Image
from reportlab.lib import colors
from reportlab.lib.units import mm
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase import pdfmetrics
from reportlab.platypus import Flowable

from fablint.model import Fit, Placement, Row
from fablint.report.pdf.page_layout import REGULAR, WIDTH, fitted
from fablint.report.scopes import HEADINGS
from fablint.report.survey.drawn_matrix import DrawnMatrix, diverging_pixels, ramp_pixels, sequential_pixels
from fablint.report.survey.row_survey import SizeSurvey, counted
from fablint.text import units

_LABEL = 5.5  # points
_MOST_LABELS = 32
_LONGEST = 20 * mm  # of a name beside an axis
_BARS = 48
BAR_COLOUR = "#4575b4"
NAMED_COLOUR = "#b2182b"  # of hosts that findings name
_BEYOND = 3.0  # the axis of a histogram ends at so many medians
_GAP = 6 * mm


@dataclass(frozen=True)
class ColourScale:
    """Pixels of a matrix, (n, n, 3) uint8, and the words at the ends and the middle of its scale."""

    pixels: np.ndarray
    ends: tuple[str, str, str]
    is_diverging: bool


def colour_scales(row: Row, size: int, fit: Fit | None, matrix: DrawnMatrix) -> list[ColourScale]:
    """The matrix as measured and, with a model, as deviation from it."""
    quantity = row.quantity
    pixels, (low, high) = sequential_pixels(matrix.log_time)
    words = (units.figure(quantity, size, low), "as measured", units.figure(quantity, size, high))
    scales = [ColourScale(pixels, words, False)]
    if matrix.deviation is not None and np.isfinite(matrix.deviation).any():
        noise = fit.noise if fit is not None and np.isfinite(fit.noise) else 0.05
        scale = float(max(0.02, min(1.0, 8 * noise)))
        faster, slower = (units.percent(units.change(quantity, sign * scale)) for sign in (-1, 1))
        words = (f"{quantity} {faster}", "against healthy pairs", f"{quantity} {slower}")
        scales.append(ColourScale(diverging_pixels(matrix.deviation, scale), words, True))
    return scales


class AxisLabel(NamedTuple):
    """Name of a host at a place (0..1) of an axis, and whether a finding names it."""

    place: float
    name: str
    is_named: bool


class MatrixFigure(Flowable):  # type: ignore[misc]
    """One or two matrices side by side, with names of hosts on the axes and colour scales below."""

    def __init__(self, scales: list[ColourScale], labels: list[AxisLabel]) -> None:
        super().__init__()
        self._scales, self._labels = scales, labels
        widest = max((pdfmetrics.stringWidth(label.name, REGULAR, _LABEL) for label in labels), default=0.0)
        self._margin = widest + 8
        room = (WIDTH - _GAP * (len(scales) - 1)) / max(2, len(scales))
        self._edge = room - self._margin
        self.width, self.height = WIDTH, self._edge + self._margin + 34

    def wrap(self, *_: float) -> tuple[float, float]:
        """Size in points."""
        return self.width, self.height

    def draw(self) -> None:
        """Draw at the origin of the flowable."""
        for number, scale in enumerate(self._scales):
            self._draw_one(scale, number * (self._margin + self._edge + _GAP) + self._margin)

    def _draw_one(self, scale: ColourScale, left: float) -> None:
        canvas, edge = self.canv, self._edge
        bottom, top = 24.0, 24.0 + edge
        canvas.drawImage(_image(scale.pixels), left, bottom, edge, edge)
        canvas.setStrokeColor(colors.HexColor("#666666"))
        canvas.setLineWidth(0.4)
        canvas.rect(left, bottom, edge, edge)
        canvas.setFont(REGULAR, _LABEL)
        for place, name, is_named in self._labels:
            canvas.setFillColor(colors.HexColor(NAMED_COLOUR if is_named else "#000000"))
            canvas.setStrokeColor(colors.HexColor(NAMED_COLOUR if is_named else "#666666"))
            canvas.setLineWidth(1.5 if is_named else 0.4)
            canvas.drawRightString(left - 3, top - place * edge - 0.35 * _LABEL, name)
            canvas.line(left - 2, top - place * edge, left, top - place * edge)
            canvas.saveState()
            canvas.translate(left + place * edge + 0.35 * _LABEL, top + 3)
            canvas.rotate(90)
            canvas.drawString(0, 0, name)
            canvas.restoreState()
            canvas.line(left + place * edge, top, left + place * edge, top + 2)
        canvas.setFillColor(colors.black)
        canvas.drawImage(_image(ramp_pixels(128, is_diverging=scale.is_diverging)), left, 12, edge, 6)
        canvas.setFont(REGULAR, 6.5)
        canvas.drawString(left, 4, scale.ends[0])
        canvas.drawCentredString(left + edge / 2, 4, scale.ends[1])
        canvas.drawRightString(left + edge, 4, scale.ends[2])


def axis_labels(placement: Placement, matrix: DrawnMatrix, named: Collection[str]) -> list[AxisLabel]:
    """Labels of hosts beside an axis: those `named` by findings, then as many others as have room."""
    names = [placement.hosts[host] for host in placement.host[matrix.order]]
    starts = [at for at, name in enumerate(names) if not at or names[at - 1] != name]
    step = -(-len(starts) // _MOST_LABELS)
    last = [*starts[1:], len(names)]
    found = [index for index, at in enumerate(starts) if names[at] in named]
    labels: list[AxisLabel] = []
    for index in [*found, *range(0, len(starts), step)]:
        middle = (starts[index] + last[index]) / 2 if step == 1 else starts[index] + 0.5
        place = middle / (matrix.side * len(matrix.log_time))
        if all(abs(place - other.place) > 0.7 / _MOST_LABELS for other in labels):
            name = names[starts[index]]
            labels.append(AxisLabel(place, fitted(name, _LONGEST, _LABEL), name in named))
    return labels


def _image(pixels: np.ndarray) -> Any:
    return ImageReader(Image.fromarray(pixels, "RGB").resize(_enlarged(pixels.shape), Image.Resampling.NEAREST))


def _enlarged(shape: tuple[int, ...]) -> tuple[int, int]:
    """Small matrices are enlarged: some readers blur the edges of cells."""
    factor = max(1, 256 // max(shape[:2]))
    return shape[1] * factor, shape[0] * factor


@dataclass(frozen=True)
class Histograms:
    """Numbers of pairs of a row and size in bins, one histogram for each scope."""

    panels: list[tuple[str, np.ndarray]]  # title, numbers
    ends: tuple[str, str]  # words at the ends of the axis

    @classmethod
    def of(cls, one: SizeSurvey) -> Histograms:
        """Count the pairs of a row and size."""
        distribution = one.distribution
        low, middle, high = (distribution.quantile(share) for share in (0.0, 0.5, 1.0))
        end = min(high * 1.001, max(_BEYOND * middle, distribution.quantile(0.9)))
        edges = np.geomspace(low * 0.999, max(end, low * 1.01), _BARS + 1)
        panels, unit = [], counted(one.row)
        for scope in distribution.scopes():
            counts = distribution.histogram(scope, edges)
            pairs = units.plural(distribution.pairs(scope), unit)
            title = f"{HEADINGS.get(scope, scope)}: {pairs}, highest bar {int(counts.max()):,} (log)"
            panels.append((title, counts))
        first, last = (units.figure(one.row.quantity, one.size, float(edge)) for edge in edges[[0, -1]])
        return cls(panels, (first, f"{last} and beyond" if high > edges[-1] else last))

    @staticmethod
    def heights(counts: np.ndarray) -> np.ndarray:
        """Return the heights of bars, 0..1: logarithms of the numbers."""
        return np.asarray(np.log1p(counts) / max(float(np.log1p(counts.max())), 1e-9))


class HistogramFigure(Flowable):  # type: ignore[misc]
    """Histograms of the pairs of a row and size, one panel for each scope."""

    def __init__(self, one: SizeSurvey) -> None:
        super().__init__()
        self._histograms = Histograms.of(one)
        self.width, self.height = WIDTH, 34 * mm

    def wrap(self, *_: float) -> tuple[float, float]:
        """Size in points."""
        return self.width, self.height

    def draw(self) -> None:
        """Draw at the origin of the flowable."""
        panels = self._histograms.panels
        width = (WIDTH - _GAP * (len(panels) - 1)) / max(1, len(panels))
        for number, (title, counts) in enumerate(panels):
            self._draw_panel(number * (width + _GAP), width, counts, title)

    def _draw_panel(self, left: float, width: float, counts: np.ndarray, title: str) -> None:
        canvas, bottom = self.canv, 12.0
        height = self.height - bottom - 12
        canvas.setFillColor(colors.HexColor(BAR_COLOUR))
        bar = width / len(counts)
        for index, share in enumerate(Histograms.heights(counts)):
            if share > 0:
                canvas.rect(left + index * bar, bottom, bar * 0.9, max(0.6, share * height), stroke=0, fill=1)
        canvas.setStrokeColor(colors.HexColor("#666666"))
        canvas.setLineWidth(0.4)
        canvas.line(left, bottom, left + width, bottom)
        canvas.setFillColor(colors.black)
        canvas.setFont(REGULAR, 6.5)
        canvas.drawString(left, 4, self._histograms.ends[0])
        canvas.drawRightString(left + width, 4, self._histograms.ends[1])
        canvas.drawString(left, self.height - 8, fitted(title, width, 6.5))
