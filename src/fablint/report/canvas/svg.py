"""Drawings inside the page, as SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from markupsafe import Markup, escape

from fablint.report.canvas.interface import Canvas, Ink, Points

_ANCHORS = {"l": "", "m": ' text-anchor="middle"', "r": ' text-anchor="end"'}
_ASCENT = 11  # from the top of the letters to their foot


def svg(draw: Callable[[Canvas], None]) -> Markup:
    """Return the elements of a drawing."""
    canvas = SvgCanvas()
    draw(canvas)
    return Markup("").join(canvas.elements)


class SvgCanvas:
    """Collects elements, whose looks are in the style sheet: of colours and widths it writes nothing."""

    def __init__(self) -> None:
        self.elements: list[Markup] = []

    def _add(self, name: str, attributes: str, ink: Ink, inside: str = "") -> None:
        content = Markup("<title>{}</title>").format(ink.title) if ink.title else escape(inside)
        role = f' class="{ink.role}"' if ink.role else ""
        self.elements.append(Markup(f"<{name}{role}{attributes}>{content}</{name}>"))

    def _add_path(self, path: str, ink: Ink) -> None:
        self._add("path", f' d="{path}"', ink)

    def lines(self, parts: Sequence[Points], ink: Ink) -> None:
        self._add_path("".join(map(_path, parts)), ink)

    def area(self, points: Points, ink: Ink) -> None:
        self._add_path(f"{_path(points)}Z" if len(points) else "", ink)

    def dots(self, points: Points, ink: Ink) -> None:
        self._add_path("".join(f"M{x:.0f} {y:.0f}h0" for x, y in points), ink)

    def box(self, left: float, top: float, width: float, height: float, ink: Ink, *, is_filled: bool = True) -> None:
        sides = zip(("x", "y", "width", "height"), (left, top, width, height), strict=True)
        attributes = "".join(f' {name}="{value:.{int(is_filled)}f}"' for name, value in sides)
        self._add("rect", attributes if is_filled else f'{attributes} rx="4"', ink)

    def text(self, x: float, y: float, words: str, letter: float, ink: Ink, anchor: str = "ls") -> None:
        foot = y + _ASCENT if anchor[1] == "a" else y
        self._add("text", f'{_ANCHORS[anchor[0]]} x="{x:.0f}" y="{foot:.0f}"', ink, words)


def _path(points: Points) -> str:
    return "M" + "L".join(f"{x:.0f} {y:.0f}" for x, y in points) if len(points) else ""
