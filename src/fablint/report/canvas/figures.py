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
class PlotFrame:
    """Where a plot is on its canvas, and the sizes of what it is made of."""

    left: float = 0.0
    top: float = 0.0
    width: float = plots.WIDTH
    height: float = plots.HEIGHT
    rule: float = 1.0  # width of the horizontal lines at the ticks
    line: float = 2.0
    dot: float = 5.0
    letter: float = 15.0
    gaps: tuple[float, float] = (8.0, 8.0)  # from the plot to its labels: to the left, below
    colour: str = "quiet"  # of the labels
    is_within: bool = False  # do the labels of x end where the plot ends?

    def placed(self, points: Points) -> Points:
        """Return the places of points of the plot."""
        across, down = self.width / plots.WIDTH, self.height / plots.HEIGHT
        return [(self.left + x * across, self.top + y * down) for x, y in points]


def draw_layers(canvas: Canvas, plot: Plot, frame: PlotFrame = PlotFrame()) -> None:
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


@dataclass(frozen=True)
class Panel:
    """Where a histogram is on its canvas: the place of its title, and of its bars."""

    left: float
    top: float
    width: float
    height: float  # of the bars
    above: float  # from the top of the title to the bars
    below: float  # from the bars to the labels of the axis
    letter: float
    least: float  # height of a bar


def draw_histogram(canvas: Canvas, histogram: Histogram, title: str, panel: Panel) -> None:
    """Draw a histogram with its title and the labels at the ends of its axis."""
    canvas.text(panel.left, panel.top, title, panel.letter, _PRINT, "la")
    bottom, bar = panel.top + panel.above + panel.height, panel.width / len(histogram.heights)
    for index, share in enumerate(histogram.heights):
        if share > 0:
            height = max(panel.least, share * panel.height)
            canvas.box(panel.left + index * bar, bottom - height, 0.9 * bar, height, Ink("bar"))
    right = panel.left + panel.width
    canvas.lines([[(panel.left, bottom), (right, bottom)]], Ink("frame", 0.4))
    canvas.text(panel.left, bottom + panel.below, histogram.labels[0], panel.letter, _PRINT, "la")
    last = f"{histogram.labels[-1]} and beyond" if histogram.is_clipped else histogram.labels[-1]
    canvas.text(right, bottom + panel.below, last, panel.letter, _PRINT, "ra")


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
