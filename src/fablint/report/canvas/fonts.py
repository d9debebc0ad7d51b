"""The font of the PDF and of pictures, which reportlab contains: each reader shows the same."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import reportlab
from PIL import ImageFont
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont

from fablint.text import units

REGULAR, BOLD = "Vera", "VeraBd"


@cache
def register() -> None:
    """Make the fonts known to reportlab."""
    for name in (REGULAR, BOLD):
        pdfmetrics.registerFont(TTFont(name, f"{name}.ttf"))
    pdfmetrics.registerFontFamily(REGULAR, normal=REGULAR, bold=BOLD, italic=REGULAR, boldItalic=BOLD)


def font(size: int) -> ImageFont.FreeTypeFont:
    """Return the font of pictures; `size` in pixels."""
    return ImageFont.truetype(str(Path(reportlab.__file__).parent / "fonts" / f"{REGULAR}.ttf"), size)


def printable(text: object) -> str:
    """Return text as one line of characters that the fonts have."""
    line = units.printable(str(text))
    return line.encode("latin-1", "replace").decode("latin-1")


def width_of(text: str, size: float, name: str = REGULAR) -> float:
    """Return the width of a text in points."""
    register()
    return float(pdfmetrics.stringWidth(text, name, size))


def fitted(text: str, width: float, size: float, name: str = REGULAR) -> str:
    """Return text shortened in its middle to a width in points; the ends of names of hosts tell them apart."""
    text = printable(text)
    if width_of(text, size, name) <= width:
        return text
    kept = len(text) - 1
    while kept > 1 and width_of(_cut(text, kept), size, name) > width:
        kept -= 1
    return _cut(text, kept)


def _cut(text: str, kept: int) -> str:
    head = kept // 3
    return f"{text[:head]}..{text[len(text) - (kept - head) :]}"
