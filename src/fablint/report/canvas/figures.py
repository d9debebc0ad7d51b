"""How drawings are drawn on any canvas: plots, histograms, the topology."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fablint.report.canvas.interface import Canvas, Ink, Points
from fablint.report.drawings import plots
from fablint.report.drawings.histograms import Histogram
from fablint.report.drawings.plots import Plot
from fablint.report.drawings.topology_drawing import Drawing

STATE_LETTER, SWITCH_LETTER = 15, 12  # pixels of names in the topology
_PRINT = Ink("print")


@dataclass(frozen=True)
class Frame:
    """A place on a canvas, and the letters beside it."""

    left: float
    top: float
    width: float
    height: float
    letter: float
    gaps: tuple[float, float]  # to the letters: horizontally or above, and below


@dataclass(frozen=True)
class PlotFrame(Frame):
    """The place of a plot, and the widths of what it is made of."""

    rule: float = 1.0  # horizontal lines at the ticks
    line: float = 2.0
    dot: float = 5.0
    colour: str = "quiet"  # of the labels
    is_within: bool = False  # do the labels of x end where the plot ends?

    def placed(self, points: Points) -> Points:
        """Return the places of points of the plot."""
        across, down = self.width / plots.WIDTH, self.height / plots.HEIGHT
        return [(self.left + x * across, self.top + y * down) for x, y in points]


WHOLE = PlotFrame(0, 0, plots.WIDTH, plots.HEIGHT, letter=0, gaps=(0, 0))  # in units of the plot


def draw_layers(canvas: Canvas, plot: Plot, frame: PlotFrame = WHOLE) -> None:
    """Draw what a plot shows, without its labels."""
    rules = [[(0, y), (plots.WIDTH, y)] for y, _ in _spread(plot.y_labels, plots.HEIGHT)]
    canvas.lines(list(map(frame.placed, rules)), Ink("rule", frame.rule, "rules"))
    for layer in plot.layers:
        points = frame.placed(layer.points)
        if layer.kind == "band":
            canvas.area(points, Ink(layer.colour, role=layer.role))
        elif layer.kind in ("dots", "points"):
            width = frame.dot if layer.kind == "dots" else 1.2 * frame.dot
            canvas.dots(points, Ink(layer.colour, width, layer.role))
        else:
            canvas.lines([points], Ink(layer.colour, frame.line, layer.role))


def draw_plot(canvas: Canvas, plot: Plot, frame: PlotFrame) -> None:
    """Draw a plot with its labels."""
    draw_layers(canvas, plot, frame)
    left, bottom = frame.left - frame.gaps[0], frame.top + frame.height + frame.gaps[1]
    for y, label in _spread(plot.y_labels, frame.height):
        canvas.text(left, frame.top + y, label, frame.letter, Ink(frame.colour), "rm")
    for x, label in _spread(plot.x_labels, frame.width):
        side = ("l" if x == 0 else "r" if x == frame.width else "m") if frame.is_within else "m"
        canvas.text(frame.left + x, bottom, label, frame.letter, Ink(frame.colour), f"{side}a")


def _spread(labels: Sequence[str], length: float) -> list[tuple[float, str]]:
    """Return labels with their places at equal distances."""
    steps = max(1, len(labels) - 1)
    return [(length * index / steps, label) for index, label in enumerate(labels)]


def draw_histogram(canvas: Canvas, histogram: Histogram, title: str, frame: Frame) -> None:
    """Draw the bars of a histogram in a frame, its title above, and the labels at the ends of its axis below."""
    bottom, bar = frame.top + frame.height, frame.width / len(histogram.heights)
    for index, share in enumerate(histogram.heights):
        if share > 0:
            height = share * frame.height
            canvas.box(frame.left + index * bar, bottom - height, 0.9 * bar, height, Ink("bar"))
    right, below = frame.left + frame.width, bottom + frame.gaps[1]
    canvas.lines([[(frame.left, bottom), (right, bottom)]], Ink("frame", 0.4))
    canvas.text(frame.left, frame.top - frame.gaps[0], title, frame.letter, _PRINT, "la")
    canvas.text(frame.left, below, histogram.labels[0], frame.letter, _PRINT, "la")
    last = f"{histogram.labels[-1]} and beyond" if histogram.is_clipped else histogram.labels[-1]
    canvas.text(right, below, last, frame.letter, _PRINT, "ra")


def draw_topology(canvas: Canvas, drawing: Drawing) -> None:
    """Draw the topology, in its units; lines end at whole units."""
    for left, top, width, height, name in drawing.boxes:
        canvas.box(left, top, width, height, Ink("rule", role="group"), is_filled=False)
        canvas.text(left + 6, top + 3, name, STATE_LETTER, Ink("quiet"), "la")
    few = " few" if drawing.has_few_cables else ""
    canvas.lines(list(map(_whole, drawing.cables)), Ink("rule", 0.4, f"cable{few}"))
    for lines, width, role in ((drawing.links, 4.0, "link"), (drawing.routes, 1.5, "link route")):
        for points, state, name in lines:
            canvas.lines([_whole(points)], Ink(f"{state}-mark", width, f"{role} {state}", name))
    for dot in drawing.dots:
        plain = "quiet" if dot.kind == "switch" else "band"
        ink = Ink(f"{dot.state}-mark" if dot.state else plain, 1.0, f"{dot.kind} {dot.state}".strip(), dot.title)
        canvas.box(dot.x - dot.size / 2, dot.y - dot.size / 2, dot.size, dot.size, ink)
    for x, y, name, state in drawing.names:
        letter = STATE_LETTER if state else SWITCH_LETTER
        canvas.text(x, y, name, letter, Ink(state or "quiet", role=f"named {state}" if state else "switch-name"), "ms")


def _whole(points: Points) -> Points:
    return [(round(x), round(y)) for x, y in points]
