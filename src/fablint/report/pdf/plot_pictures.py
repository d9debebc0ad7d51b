"""The plots and the topology of the page as pictures: the same drawings, in the colours of its style sheet."""

from __future__ import annotations

import re
from functools import cache
from io import BytesIO
from pathlib import Path

import reportlab
from PIL import Image, ImageDraw, ImageFont

from fablint.report.drawings.plots import HEIGHT, WIDTH, Plot
from fablint.report.drawings.topology_drawing import Drawing
from fablint.report.pdf.page_layout import REGULAR, printable
from fablint.report.self_contained import asset
from fablint.text import units

LETTER = 15
MARGIN = 30
_TITLE = 40  # pixels
_LABELS = 100  # of the labels on the left
_SMOOTH = 3  # times as large as shown, for smooth lines
_TOPOLOGY = 1.6  # pixels of a unit of a drawing
_SWITCH_LETTER = 12

Points = list[tuple[float, float]]


def font(size: int = LETTER) -> ImageFont.FreeTypeFont:
    """Return the font of all pictures."""
    return ImageFont.truetype(str(Path(reportlab.__file__).parent / "fonts" / f"{REGULAR}.ttf"), size)


def png(canvas: Image.Image) -> bytes:
    """Return the bytes of a PNG file."""
    buffer = BytesIO()
    canvas.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


@cache
def style_colours() -> dict[str, str]:
    """Return the variables of the style sheet, light; `medium-0` and so on are those of the transports."""
    sheet = asset("report.css").replace(": #fff;", ": #ffffff;")
    media = dict(re.findall(r"\.(medium-\d) \{ --medium: (#[0-9a-f]{6})", sheet))
    states = dict(re.findall(r"\.topology \.(\w+) \{ fill: (#[0-9a-f]{6})", sheet))
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", sheet.partition("@media")[0])) | media | states


def points_of(path: str) -> list[Points]:
    """Return the points of each part of a path."""
    parts = (re.findall(r"(-?[\d.]+) (-?[\d.]+)", part) for part in path.split("M"))
    return [[(float(x), float(y)) for x, y in part] for part in parts if part]


class _Pen:
    """Draws in units of a drawing, enlarged; `smooth` shrinks the canvas to its size."""

    def __init__(self, size: tuple[int, int], scale: float, origin: tuple[int, int]) -> None:
        self.size, self._scale, self._origin = size, scale, origin
        self._canvas = Image.new("RGB", (size[0] * _SMOOTH, size[1] * _SMOOTH), style_colours()["ground"])
        self._draw = ImageDraw.Draw(self._canvas)

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Pixels of a point on the smooth canvas."""
        return self._origin[0] + x * self._scale, self._origin[1] + y * self._scale

    def _large(self, points: Points) -> Points:
        return [(x * _SMOOTH, y * _SMOOTH) for x, y in (self.place(*point) for point in points)]

    def line(self, points: Points, colour: str, width: float) -> None:
        self._draw.line(self._large(points), colour, max(1, round(width * _SMOOTH)), joint="curve")

    def area(self, points: Points, colour: str) -> None:
        self._draw.polygon(self._large(points), colour)

    def dot(self, point: tuple[float, float], colour: str, width: float) -> None:
        ((x, y),), half = self._large([point]), width * _SMOOTH / 2
        self._draw.ellipse((x - half, y - half, x + half, y + half), colour)

    def box(self, left: float, top: float, right: float, bottom: float, colour: str, *, is_filled: bool) -> None:
        corners = self._large([(left, top), (right, bottom)])
        self._draw.rectangle(corners, colour if is_filled else None, colour, max(1, _SMOOTH // 2))

    def smooth(self) -> tuple[Image.Image, ImageDraw.ImageDraw]:
        """Return the canvas in its size, to write on."""
        canvas = self._canvas.resize(self.size, Image.Resampling.LANCZOS)
        return canvas, ImageDraw.Draw(canvas)


def plot_picture(plot: Plot, title: str) -> bytes:
    """Draw a plot of the page as the bytes of a PNG file."""
    colours, top = style_colours(), 2 * _TITLE + 10
    legend = [(layer.label, layer_colour(layer.style)) for layer in plot.layers if layer.label]
    below = 40 + 24 * bool(legend)
    pen = _Pen((_LABELS + WIDTH + 2 * MARGIN, top + HEIGHT + below), 1.0, (_LABELS, top))
    steps = max(1, len(plot.y_labels) - 1)
    for index in range(steps + 1):
        pen.line([(0, HEIGHT * index / steps), (WIDTH, HEIGHT * index / steps)], colours["rule"], 1)
    for layer in plot.layers:
        colour, kind = layer_colour(layer.style), layer.style.split()[0]
        for points in points_of(layer.path):
            if kind == "band":
                pen.area(points, colour)
            elif kind in ("dots", "points"):
                pen.dot(points[0], colour, 6 if kind == "points" else 5)
            else:
                pen.line(points, colour, 2)
    canvas, text = pen.smooth()
    for row, words in enumerate((title, plot.words)):
        text.text((10, 8 + row * _TITLE), printable(units.shorten(words, 140)), colours["ink"], font())
    for index, label in enumerate(plot.y_labels):
        text.text((_LABELS - 8, pen.place(0, HEIGHT * index / steps)[1]), label, colours["quiet"], font(), anchor="rm")
    last = max(1, len(plot.x_labels) - 1)
    for index, label in enumerate(plot.x_labels):
        text.text(
            (pen.place(WIDTH * index / last, 0)[0], top + HEIGHT + 8), label, colours["quiet"], font(), anchor="ma"
        )
    for index, (label, colour) in enumerate(legend):
        text.text((_LABELS + index * WIDTH / len(legend), top + HEIGHT + 34), printable(label), colour, font())
    return png(canvas)


def layer_colour(style: str) -> str:
    """Return the colour of a layer by its classes."""
    colours, classes = style_colours(), style.split()
    named = {"band": "band", "line": "quiet", "dots": "quiet" if "small" in classes else "dot"}
    return colours[next((one for one in classes if one in colours and one != "band"), named.get(classes[0], "quiet"))]


def topology_picture(drawing: Drawing, title: str) -> bytes:
    """Draw the topology of the page as the bytes of a PNG file."""
    colours = style_colours()
    size = round(WIDTH * _TOPOLOGY), round(drawing.height * _TOPOLOGY) + 2 * _TITLE
    pen = _Pen(size, _TOPOLOGY, (0, _TITLE))
    for x, y, width, height, _ in drawing.boxes:
        pen.box(x, y, x + width, y + height, colours["rule"], is_filled=False)
    for points in points_of(drawing.cables):
        pen.line(points, colours["rule"], 0.4)
    for lines, width in ((drawing.links, 4), (drawing.routes, 1.5)):
        for path, style, _ in lines:
            for points in points_of(path):
                pen.line(points, colours[_state_of(style)], width)
    for dot in drawing.dots:
        half = dot.size / 2
        plain = "quiet" if dot.style.startswith("switch") else "band"
        pen.box(
            dot.x - half,
            dot.y - half,
            dot.x + half,
            dot.y + half,
            colours[_state_of(dot.style) or plain],
            is_filled=True,
        )
    (canvas, text), ground = pen.smooth(), colours["ground"]
    for x, y, _, _, name in drawing.boxes:
        text.text(pen.place(x + 6, y + 3), printable(name), colours["quiet"], font())
    for x, y, name, style in drawing.names:
        state = style.removeprefix("named ")  # else the name of a switch without a finding
        colour, letters = colours.get(state, colours["quiet"]), font(LETTER if state in colours else _SWITCH_LETTER)
        text.text(pen.place(x, y), printable(name), colour, letters, "ms", stroke_width=3, stroke_fill=ground)
    text.text((10, 8), printable(units.shorten(title, 160)), colours["ink"], font())
    text.text((10, size[1] - _TITLE + 8), printable(drawing.words), colours["quiet"], font())
    return png(canvas)


def _state_of(style: str) -> str:
    """Return the variable of the style sheet for the state in a style; empty without one."""
    state = style.split()[-1]
    return {"fault": "dot"}.get(state, state if state in ("suspect", "confounded", "suppressed") else "")
