"""Fonts, styles, tables and page margins of the PDF."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from typing import Any

from reportlab.lib.colors import HexColor, white
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.platypus import Paragraph, Table

from fablint.report.canvas.fonts import BOLD, REGULAR, printable, register
from fablint.report.drawings.palette import colour
from fablint.text import units

MARGIN = 16 * mm
WIDTH = A4[0] - 2 * MARGIN  # of the text
SMALL = 7.5  # points
_PAGE_LINES = 60  # of small text, of which a page holds more


@cache
def styles() -> dict[str, ParagraphStyle]:
    """Register the fonts and return the paragraph styles by name."""
    register()
    common = {"splitLongWords": 1, "wordWrap": "LTR", "bulletFontName": REGULAR}
    return {
        "title": ParagraphStyle("title", fontName=BOLD, fontSize=15, leading=19, **common),
        "heading": ParagraphStyle(
            "heading", fontName=BOLD, fontSize=11, leading=14, spaceBefore=9, spaceAfter=4, **common
        ),
        "verdict": ParagraphStyle("verdict", fontName=BOLD, fontSize=13, leading=17, textColor=white, **common),
        "text": ParagraphStyle("text", fontName=REGULAR, fontSize=8.5, leading=11, **common),
        "cell": ParagraphStyle("cell", fontName=REGULAR, fontSize=SMALL, leading=9.2, **common),
        "head": ParagraphStyle("head", fontName=BOLD, fontSize=SMALL, leading=9.2, **common),
    }


def paragraph(text: object, style: str = "text", colour_name: str = "") -> Paragraph:
    """Text that is wrapped; nothing in it is markup."""
    words = escape(printable(text))
    markup = f'<font color="{colour(colour_name)}">{words}</font>' if colour_name else words
    return Paragraph(markup, styles()[style])


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
        ("LINEBELOW", (0, 0), (-1, -1), 0.25, HexColor(colour("grid"))),
        ("TOPPADDING", (0, 0), (-1, -1), 1.6),
        ("BOTTOMPADDING", (0, 0), (-1, -1), 1.6),
        ("LEFTPADDING", (0, 0), (-1, -1), 2.5),
        ("RIGHTPADDING", (0, 0), (-1, -1), 2.5),
    ]
    commands += [("BACKGROUND", (0, 0), (-1, 0), HexColor(colour("head")))] if head else []
    return Table(lines, widths, repeatRows=1 if head else 0, style=commands, hAlign="LEFT")


def _cell(content: Any, width: float) -> Paragraph:
    """Return a paragraph of at most a page: what is longer cannot be printed in a row."""
    if isinstance(content, Paragraph):
        return content
    return paragraph(units.shorten(str(content), int(_PAGE_LINES * width / SMALL)), "cell")


def banner(word: str, headline: str) -> Table:
    """The verdict in its colour over the width of the page."""
    cell = paragraph(f"{word}: {headline}", "verdict")
    ground = HexColor(colour(word))
    commands = [("FONTNAME", (0, 0), (-1, -1), REGULAR), ("BACKGROUND", (0, 0), (-1, -1), ground)]
    commands += [("TOPPADDING", (0, 0), (-1, -1), 5), ("BOTTOMPADDING", (0, 0), (-1, -1), 7)]
    return Table([[cell]], [WIDTH], style=commands, hAlign="LEFT")
