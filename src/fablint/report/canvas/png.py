"""Drawings as PNG pictures, by Pillow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from io import BytesIO
from math import ceil

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from fablint.report.canvas.fonts import font, printable
from fablint.report.canvas.interface import Ink, Points
from fablint.report.drawings.palette import colour

LETTER = 15  # pixels
_EDGE = 3  # pixels around letters with a role


class PngCanvas:
    """Draws in units of a drawing; shapes are drawn larger by `smooth` and reduced, texts follow.

    A unit has `scale` pixels, and the origin of the drawing is at the pixel `origin`.
    """

    def __init__(
        self, width: int, height: int, *, scale: float = 1.0, origin: tuple[float, float] = (0, 0), smooth: int = 1
    ) -> None:
        self._size, self._scale, self._origin, self._smooth = (width, height), scale, origin, smooth
        self._image = Image.new("RGB", (width * smooth, height * smooth), colour("ground"))
        self._draw = ImageDraw.Draw(self._image)
        self._texts: list[Callable[[], None]] = []

    def _pixels(self, points: Points) -> list[tuple[float, float]]:
        return [(self._origin[0] + x * self._scale, self._origin[1] + y * self._scale) for x, y in points]

    def _large(self, points: Points) -> list[tuple[float, float]]:
        return [(x * self._smooth, y * self._smooth) for x, y in self._pixels(points)]

    def lines(self, parts: Sequence[Points], ink: Ink) -> None:
        width = max(1, round(ink.width * self._smooth))
        for points in filter(len, parts):
            self._draw.line(self._large(points), colour(ink.colour), width, joint="curve")

    def area(self, points: Points, ink: Ink) -> None:
        if len(points):
            self._draw.polygon(self._large(points), colour(ink.colour))

    def dots(self, points: Points, ink: Ink) -> None:
        half = ink.width * self._smooth / 2
        for x, y in self._large(points):
            self._draw.ellipse((x - half, y - half, x + half, y + half), colour(ink.colour))

    def box(self, left: float, top: float, width: float, height: float, ink: Ink, *, is_filled: bool = True) -> None:
        corners, shade = self._large([(left, top), (left + width, top + height)]), colour(ink.colour)
        self._draw.rectangle(corners, shade if is_filled else None, shade)

    def text(self, x: float, y: float, words: str, letter: float, ink: Ink, anchor: str = "ls") -> None:
        ((across, down),) = self._pixels([(x, y)])
        self._texts.append(partial(self._write, across, down, printable(words), font(round(letter)), ink, anchor))

    def caption(self, y: int, words: str, colour_name: str = "ink") -> None:
        """Write a line at the left edge of the picture; `y` in pixels."""
        self._texts.append(partial(self._write, 10, y, printable(words), font(LETTER), Ink(colour_name), "la"))

    def _write(self, x: float, y: float, words: str, letters: ImageFont.FreeTypeFont, ink: Ink, anchor: str) -> None:
        if anchor[2:] != "v":
            edge = _EDGE if ink.role else 0
            shade, ground = colour(ink.colour), colour("ground")
            self._draw.text((x, y), words, shade, letters, anchor, stroke_width=edge, stroke_fill=ground)
            return
        tile = Image.new("L", (ceil(letters.getlength(words)), round(letters.size) + 6), 0)
        ImageDraw.Draw(tile).text((0, tile.height / 2), words, 255, letters, "lm")
        tile = tile.transpose(Image.Transpose.ROTATE_90)
        self._image.paste(colour(ink.colour), (int(x - tile.width / 2), int(y) - tile.height), tile)

    def image(self, left: float, top: float, width: float, height: float, pixels: np.ndarray) -> None:
        """Draw pixels, (n, m, 3) uint8."""
        size = round(width), round(height)
        image = Image.fromarray(pixels, "RGB").resize(size, Image.Resampling.NEAREST)
        self._image.paste(image, (round(left), round(top)))

    def content(self) -> bytes:
        """Return the bytes of the PNG file."""
        if self._smooth > 1:
            self._image = self._image.resize(self._size, Image.Resampling.LANCZOS)
            self._draw = ImageDraw.Draw(self._image)
        for write in self._texts:
            write()
        buffer = BytesIO()
        self._image.save(buffer, "PNG", optimize=True)
        return buffer.getvalue()
