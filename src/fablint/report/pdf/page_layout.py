"""Fonts, styles, tables and page margins of the PDF."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from typing import Any

from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.platypus import Paragraph, Table

from fablint.text import units

MARGIN = 16 * mm
WIDTH = A4[0] - 2 * MARGIN  # of the text
REGULAR, BOLD = "Vera", "VeraBd"  # fonts that reportlab contains: embedded, so that every reader shows the same
SMALL = 7.5  # points
_PAGE_LINES = 60  # of small text, of which a page holds more
STATE_COLOURS = {
    "FAULT": "#b2182b",
    "SUSPECT": "#b35806",
    "CONFOUNDED": "#762a83",
    "SUPPRESSED": "#0b57d0",
    "NOT JUDGED": "#2166ac",
    "INCOMPLETE": "#b35806",
    "OK": "#1b7837",
    "PASS": "#1b7837",
    "LOCAL OK": "#1b7837",
}
_GRID = colors.HexColor("#bbbbbb")
_HEAD = colors.HexColor("#eeeeee")


@cache
def styles() -> dict[str, ParagraphStyle]:
    """Register the fonts and return the paragraph styles by name."""
    for name in (REGULAR, BOLD):
        pdfmetrics.registerFont(TTFont(name, f"{name}.ttf"))
    pdfmetrics.registerFontFamily(REGULAR, normal=REGULAR, bold=BOLD, italic=REGULAR, boldItalic=BOLD)
    common = {"splitLongWords": 1, "wordWrap": "LTR", "bulletFontName": REGULAR}
    return {
        "title": ParagraphStyle("title", fontName=BOLD, fontSize=15, leading=19, **common),
        "heading": ParagraphStyle(
            "heading", fontName=BOLD, fontSize=11, leading=14, spaceBefore=9, spaceAfter=4, **common
        ),
        "verdict": ParagraphStyle("verdict", fontName=BOLD, fontSize=13, leading=17, textColor=colors.white, **common),
        "text": ParagraphStyle("text", fontName=REGULAR, fontSize=8.5, leading=11, **common),
        "cell": ParagraphStyle("cell", fontName=REGULAR, fontSize=SMALL, leading=9.2, **common),
        "head": ParagraphStyle("head", fontName=BOLD, fontSize=SMALL, leading=9.2, **common),
    }


def printable(text: object) -> str:
    """Return text as one line of characters that the fonts have."""
    line = units.printable(str(text))
    return line.encode("latin-1", "replace").decode("latin-1")


def paragraph(text: object, style: str = "text", colour: str = "") -> Paragraph:
    """Text that is wrapped; nothing in it is markup."""
    words = escape(printable(text))
    return Paragraph(f'<font color="{colour}">{words}</font>' if colour else words, styles()[style])


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], shares: Sequence[float]) -> Table:
    """A table over the width of the page, with its head on every page; cells are wrapped.

    Parameters
    ----------
    head
        Titles of the columns; empty: no head.
    rows
        Texts, or finished paragraphs.
    shares
        Widths of the columns relative to each other.
    """
    widths = [WIDTH * share / sum(shares) for share in shares]
    lines = [[paragraph(cell, "head") for cell in head]] if head else []
    lines += [[_cell(cell, width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    commands: list[tuple[Any, ...]] = [
        ("FONTNAME", (0, 0), (-1, -1), REGULAR),
        ("VALIGN", (0, 0), (-1, -1), "TOP"),
        ("LINEBELOW", (0, 0), (-1, -1), 0.25, _GRID),
        ("TOPPADDING", (0, 0), (-1, -1), 1.6),
        ("BOTTOMPADDING", (0, 0), (-1, -1), 1.6),
        ("LEFTPADDING", (0, 0), (-1, -1), 2.5),
        ("RIGHTPADDING", (0, 0), (-1, -1), 2.5),
    ]
    commands += [("BACKGROUND", (0, 0), (-1, 0), _HEAD)] if head else []
    return Table(lines, widths, repeatRows=1 if head else 0, style=commands, hAlign="LEFT")


def _cell(content: Any, width: float) -> Paragraph:
    """Return a paragraph of at most a page: what is longer cannot be printed in a row."""
    if isinstance(content, Paragraph):
        return content
    return paragraph(units.shorten(str(content), int(_PAGE_LINES * width / SMALL)), "cell")


def banner(word: str, headline: str) -> Table:
    """The verdict in its colour over the width of the page."""
    cell = paragraph(f"{word}: {headline}", "verdict")
    colour = colors.HexColor(STATE_COLOURS.get(word, "#444444"))
    commands = [("FONTNAME", (0, 0), (-1, -1), REGULAR), ("BACKGROUND", (0, 0), (-1, -1), colour)]
    commands += [("TOPPADDING", (0, 0), (-1, -1), 5), ("BOTTOMPADDING", (0, 0), (-1, -1), 7)]
    return Table([[cell]], [WIDTH], style=commands, hAlign="LEFT")


def fitted(text: str, width: float, size: float, font: str = REGULAR) -> str:
    """Return text shortened in its middle to a width in points; the ends of names of hosts tell them apart."""
    text = printable(text)
    if pdfmetrics.stringWidth(text, font, size) <= width:
        return text
    kept = len(text) - 1
    while kept > 1 and pdfmetrics.stringWidth(_cut(text, kept), font, size) > width:
        kept -= 1
    return _cut(text, kept)


def _cut(text: str, kept: int) -> str:
    head = kept // 3
    return f"{text[:head]}..{text[len(text) - (kept - head) :]}"
