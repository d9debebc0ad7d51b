"""All pictures of a run by name, as PNG files for slides and tickets."""

from __future__ import annotations

from collections.abc import Sequence

from fablint.errors import UsageError
from fablint.model import Diagnosis, Row, Run
from fablint.report import finding_order, run_facts
from fablint.report.canvas.figures import Frame, PlotFrame, draw_histogram, draw_plot, draw_topology
from fablint.report.canvas.interface import Ink
from fablint.report.canvas.matrix_figure import MatrixFrame, draw_matrix
from fablint.report.canvas.png import LETTER, PngCanvas
from fablint.report.drawings import finding_charts, topology_drawing
from fablint.report.drawings.curves import curve
from fablint.report.drawings.histograms import Histogram, histograms
from fablint.report.drawings.matrix_drawing import AxisLabel, ColourScale, axis_labels, colour_scales
from fablint.report.drawings.plots import HEIGHT, WIDTH, Plot
from fablint.report.drawings.strips import timeline
from fablint.report.drawings.topology_drawing import Drawing, drawing
from fablint.report.drawings.transport_curves import transport_curves
from fablint.report.survey.drawn_matrix import drawn_matrix
from fablint.report.survey.path_lengths import deviations
from fablint.report.survey.report_source import ReportSource, drawn_rows
from fablint.report.survey.row_survey import survey
from fablint.report.transport_comparison import transport_comparisons
from fablint.text import units
from fablint.text.suggestions import alternatives, did_you_mean

_EDGE = 960  # pixels of the matrix
_PANEL = 200  # pixels of the height of a histogram
_TITLE = 40  # pixels of a line of words
_SMOOTH = 3  # times as large as shown: smooth lines
_MATRIX = MatrixFrame(170, 200, _EDGE, _EDGE, LETTER, (8, 6), _EDGE - 1, 0, (14, 14), _EDGE, (36, LETTER, "t"))
_PLOT_TOP = 2 * _TITLE + 10
_PLOT = PlotFrame(100, _PLOT_TOP, WIDTH, HEIGHT, LETTER, (8, 8))
_TOPOLOGY = 1.6  # pixels of a unit of the topology
FINDING, DISTRIBUTION = "finding", "distribution"
MATRICES = ("deviation", "measured")
CURVE, TIME, STRIP, TOPOLOGY, TRANSPORTS = "curve", "time", "strip", "topology", "transports"
_NEEDS = {
    CURVE: "a curve needs three message sizes",
    TIME: "a time line needs several pairs at each of several times",
    STRIP: "the finding has no pairs that were measured over time",
    TRANSPORTS: "it needs rows that measured three message sizes over several transports",
}


def picture(run: Run, diagnosis: Diagnosis, name: str) -> bytes:
    """Return a picture as the bytes of a PNG file.

    Parameters
    ----------
    run, diagnosis
        What was measured, and what follows from it.
    name
        `finding`: the matrix of the row in which the gravest finding is seen, against healthy pairs if they are known.
        `deviation:ROW`, `measured:ROW`: the matrix of a row. `distribution:ROW`: its histograms. `curve:ROW`: its
        figures against the message size. `time:ROW`: all of its pairs over time. `strip:N`: the pairs of finding N
        over time. `topology`: the drawing of the topology. `transports`: figures over each transport.

    Raises
    ------
    UsageError
        The run has no row of pairs, or no such picture.
    """
    rows = {row.name: row for row in drawn_rows(run)}
    if not rows:
        raise UsageError("the run has no row of pairs to draw", "fablint show lists its rows")
    count = len(finding_order.faulty(finding_order.ordered(diagnosis.verdict)))
    names = [FINDING, *(f"{kind}:{row}" for row in rows for kind in (*MATRICES, DISTRIBUTION))]
    names += [TOPOLOGY, TRANSPORTS, *(f"{kind}:{row}" for row in rows for kind in (CURVE, TIME))]
    names += [f"{STRIP}:{number}" for number in range(1, count + 1)]
    if name not in names:
        raise UsageError(f"the run has no picture '{name}'", did_you_mean(name, names, f"choose {alternatives(names)}"))
    kind, _, row_or_number = name.partition(":")
    word = f"{finding_order.word(diagnosis.verdict)}: {finding_order.headline(diagnosis.verdict)}"
    source = ReportSource(run, diagnosis)
    if kind in (TOPOLOGY, TRANSPORTS, CURVE, TIME, STRIP):
        return _drawing(source, kind, row_or_number, f"{run_facts.title(run)}. {word}")
    row = rows[row_or_number] if row_or_number else _row_of_finding(diagnosis, list(rows.values()))
    size, placement, order = run_facts.informative_size(row), source.placement, source.order
    fit = source.fit_of(row, size)
    title = f"{run_facts.title(run)}, {row.name} {units.size(size)}. {word}"
    if kind == DISTRIBUTION:
        surveys = survey(row, {size: fit} if fit else {}, placement, order)
        shown = next(one for one in surveys if one.size == size)
        return _histograms(histograms(shown), title)
    matrix = drawn_matrix(row, size, fit, placement, order)
    scales = colour_scales(row, size, fit, matrix)
    if kind == "deviation" and not scales[-1].is_diverging:
        raise UsageError(f"{row.name}: nothing is known about healthy pairs", f"choose measured:{row.name}")
    return _matrix(
        scales[0 if kind == "measured" else -1],
        axis_labels(placement, matrix, finding_order.faulty_hosts(diagnosis.verdict)),
        title,
    )


def _drawing(source: ReportSource, kind: str, row_or_number: str, title: str) -> bytes:
    """Draw what the page has as a drawing."""
    if kind == TOPOLOGY:
        drawn = drawing(source)
        if drawn is None:
            raise UsageError("no topology to draw: unknown, of one switch or of too many", "name it with --topology")
        return _topology(drawn, title)
    if kind == STRIP:
        finding = finding_order.faulty(source.found)[int(row_or_number) - 1]
        plot = finding_charts.strips(source).get(int(row_or_number) - 1)
        title = f"{run_facts.title(source.run)}. {finding.state} {finding_order.subject(finding)}"
    elif kind == TIME:
        cell_set = source.cells[row_or_number]
        plot = timeline(cell_set.row, cell_set.size, cell_set.cells, deviations(cell_set, source))
    elif kind == CURVE:
        plot = curve(source.surveys[row_or_number])
    else:
        plot = next(filter(None, map(transport_curves, transport_comparisons(source.run.rows))), None)
    if plot is None:
        raise UsageError(
            f"the run has nothing to draw for '{kind}{row_or_number and f':{row_or_number}'}'", _NEEDS[kind]
        )
    return _plot(plot, title)


def _row_of_finding(diagnosis: Diagnosis, rows: list[Row]) -> Row:
    """Return the first row with the quantity of the gravest finding."""
    findings = finding_order.faulty(finding_order.ordered(diagnosis.verdict))
    quantity = next((finding.quantity for finding in findings), None)
    return next((row for row in rows if row.quantity == quantity), rows[0])


def _histograms(drawn: Sequence[Histogram], title: str) -> bytes:
    """Draw histograms below each other."""
    panel = _PANEL + 70
    canvas = PngCanvas(_EDGE + 60, 40 + panel * len(drawn))
    canvas.caption(8, units.shorten(title, 95), "print")
    for number, histogram in enumerate(drawn):
        frame = Frame(30, 64 + panel * number, _EDGE, _PANEL, LETTER, (24, 6))
        draw_histogram(canvas, histogram, histogram.title, frame)
    return canvas.content()


def _matrix(scale: ColourScale, labels: Sequence[AxisLabel], title: str) -> bytes:
    canvas = PngCanvas(_EDGE + 200, _EDGE + 270)
    canvas.caption(8, units.shorten(title, 110), "print")
    draw_matrix(canvas, scale, labels, _MATRIX)
    return canvas.content()


def _plot(plot: Plot, title: str) -> bytes:
    """Draw a plot with its title, and the names of its series below."""
    series = [layer for layer in plot.layers if layer.label]
    below = _PLOT_TOP + HEIGHT
    canvas = PngCanvas(160 + WIDTH, below + 40 + 24 * bool(series), smooth=_SMOOTH)
    for row, words in enumerate((title, plot.words)):
        canvas.caption(8 + row * _TITLE, units.shorten(words, 140))
    draw_plot(canvas, plot, _PLOT)
    for index, layer in enumerate(series):
        place = _PLOT.left + index * WIDTH / len(series)
        canvas.text(place, below + 34, layer.label, LETTER, Ink(layer.colour), "la")
    return canvas.content()


def _topology(drawn: Drawing, title: str) -> bytes:
    height = round(drawn.height * _TOPOLOGY) + 2 * _TITLE
    width = round(topology_drawing.WIDTH * _TOPOLOGY)
    canvas = PngCanvas(width, height, scale=_TOPOLOGY, origin=(0, _TITLE), smooth=_SMOOTH)
    draw_topology(canvas, drawn)
    canvas.caption(8, units.shorten(title, 160))
    canvas.caption(height - _TITLE + 8, drawn.words, "quiet")
    return canvas.content()
