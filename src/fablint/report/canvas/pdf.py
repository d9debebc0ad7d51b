"""Drawings on a page of the PDF, as vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from PIL import Image
from reportlab.lib.colors import HexColor
from reportlab.lib.utils import ImageReader
from reportlab.platypus import Flowable

from fablint.report.canvas.fonts import REGULAR, printable
from fablint.report.canvas.interface import Ink, Points
from fablint.report.drawings.palette import colour

_LIFT = {"a": 1.0, "t": 1.0, "m": 0.35, "s": 0.0}  # from the anchor to the foot of letters, by their height


class PdfCanvas:
    """Draws on a canvas of reportlab, whose y grows upwards; places are points below the top of `height`."""

    def __init__(self, canvas: Any, height: float) -> None:
        self._canvas, self._height = canvas, height

    def _place(self, points: Points) -> list[tuple[float, float]]:
        return [(x, self._height - y) for x, y in points]

    def _dip(self, ink: Ink) -> None:
        """Set colours and width."""
        self._canvas.setStrokeColor(HexColor(colour(ink.colour)))
        self._canvas.setFillColor(HexColor(colour(ink.colour)))
        self._canvas.setLineWidth(ink.width)

    def _path(self, parts: Sequence[Points], ink: Ink, *, is_filled: bool) -> None:
        self._dip(ink)
        path = self._canvas.beginPath()
        for first, *others in map(self._place, filter(len, parts)):
            path.moveTo(*first)
            for point in others:
                path.lineTo(*point)
        self._canvas.drawPath(path, stroke=int(not is_filled), fill=int(is_filled))

    def lines(self, parts: Sequence[Points], ink: Ink) -> None:
        self._path(parts, ink, is_filled=False)

    def area(self, points: Points, ink: Ink) -> None:
        self._path([points], ink, is_filled=True)

    def dots(self, points: Points, ink: Ink) -> None:
        self._dip(ink)
        half = ink.width / 2
        for x, y in self._place(points):
            self._canvas.ellipse(x - half, y - half, x + half, y + half, stroke=0, fill=1)

    def box(self, left: float, top: float, width: float, height: float, ink: Ink, *, is_filled: bool = True) -> None:
        self._dip(ink)
        bottom = self._height - top - height
        self._canvas.rect(left, bottom, width, height, stroke=int(not is_filled), fill=int(is_filled))

    def text(self, x: float, y: float, words: str, letter: float, ink: Ink, anchor: str = "ls") -> None:
        canvas, foot = self._canvas, -_LIFT[anchor[1]] * letter
        self._dip(ink)
        canvas.setFont(REGULAR, letter)
        draw = {"l": canvas.drawString, "m": canvas.drawCentredString, "r": canvas.drawRightString}[anchor[0]]
        if anchor[2:] != "v":
            draw(x, self._height - y + foot, printable(words))
            return
        canvas.saveState()
        canvas.translate(x - foot, self._height - y)
        canvas.rotate(90)
        draw(0, 0, printable(words))
        canvas.restoreState()

    def image(self, left: float, top: float, width: float, height: float, pixels: np.ndarray) -> None:
        """Draw pixels, (n, m, 3) uint8, of small images enlarged: some readers blur the edges of cells."""
        factor = max(1, 256 // max(pixels.shape[:2]))
        size = pixels.shape[1] * factor, pixels.shape[0] * factor
        image = Image.fromarray(pixels, "RGB").resize(size, Image.Resampling.NEAREST)
        self._canvas.drawImage(ImageReader(image), left, self._height - top - height, width, height)


class PdfFigure(Flowable):  # type: ignore[misc]
    """A drawing between the paragraphs of a PDF; sizes in points, `scale` points for each unit of the drawing."""

    def __init__(self, width: float, height: float, draw_on: Callable[[PdfCanvas], None], scale: float = 1.0) -> None:
        super().__init__()
        self.width, self.height, self._draw_on, self._scale = width, height, draw_on, scale

    def wrap(self, *_: float) -> tuple[float, float]:
        """Return the size in points."""
        return self.width, self.height

    def draw(self) -> None:
        """Draw at the origin of the flowable."""
        self.canv.saveState()
        self.canv.scale(self._scale, self._scale)
        self._draw_on(PdfCanvas(self.canv, self.height / self._scale))
        self.canv.restoreState()
