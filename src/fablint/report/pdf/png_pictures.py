"""All pictures of a run by name, as PNG files for slides and tickets."""

from __future__ import annotations

from PIL import Image, ImageDraw

from fablint.errors import UsageError
from fablint.model import Diagnosis, Row, Run
from fablint.report import finding_order, run_facts
from fablint.report.drawings import finding_charts
from fablint.report.drawings.curves import curve
from fablint.report.drawings.strips import timeline
from fablint.report.drawings.topology_drawing import drawing
from fablint.report.drawings.transport_curves import transport_curves
from fablint.report.pdf.page_layout import printable, styles
from fablint.report.pdf.pdf_figures import (
    BAR_COLOUR,
    NAMED_COLOUR,
    AxisLabel,
    ColourScale,
    Histograms,
    axis_labels,
    colour_scales,
)
from fablint.report.pdf.pdf_report import drawn_rows
from fablint.report.pdf.plot_pictures import LETTER, font, plot_picture, png, topology_picture
from fablint.report.survey.drawn_matrix import drawn_matrix, ramp_pixels
from fablint.report.survey.path_lengths import deviations
from fablint.report.survey.report_source import ReportSource
from fablint.report.survey.row_survey import survey
from fablint.report.transport_comparison import transport_comparisons
from fablint.text import units
from fablint.text.suggestions import alternatives, did_you_mean

_EDGE = 960  # pixels of the matrix
_MARGIN = 170  # of names, above and on the left
_BELOW = 70  # of the scale
_PANEL = 200  # pixels of the height of a histogram
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
    found = len(finding_order.faulty(finding_order.ordered(diagnosis.verdict)))
    names = [FINDING, *(f"{kind}:{row}" for row in rows for kind in (*MATRICES, DISTRIBUTION))]
    names += [TOPOLOGY, TRANSPORTS, *(f"{kind}:{row}" for row in rows for kind in (CURVE, TIME))]
    names += [f"{STRIP}:{number}" for number in range(1, found + 1)]
    if name not in names:
        raise UsageError(f"the run has no picture '{name}'", did_you_mean(name, names, f"choose {alternatives(names)}"))
    styles()  # registers the font that labels are measured with
    kind, _, of = name.partition(":")
    word = f"{finding_order.word(diagnosis.verdict)}: {finding_order.headline(diagnosis.verdict)}"
    source = ReportSource(run, diagnosis)
    if kind in (TOPOLOGY, TRANSPORTS, CURVE, TIME, STRIP):
        return _drawing(source, kind, of, f"{run_facts.title(run)}. {word}")
    row = rows[of] if of else _row_of_finding(diagnosis, list(rows.values()))
    size, placement, order = run_facts.informative_size(row), source.placement, source.order
    fit = source.fit_of(row, size)
    title = f"{run_facts.title(run)}, {row.name} {units.size(size)}. {word}"
    if kind == DISTRIBUTION:
        surveys = survey(row, {size: fit} if fit else {}, placement, order, max(1, run.ranks // 64))
        return _histogram(Histograms.of(next(one for one in surveys if one.size == size)), title)
    matrix = drawn_matrix(row, size, fit, placement, order)
    scales = colour_scales(row, size, fit, matrix)
    if kind == "deviation" and not scales[-1].is_diverging:
        raise UsageError(f"{row.name}: nothing is known about healthy pairs", f"choose measured:{row.name}")
    return _matrix(
        scales[0 if kind == "measured" else -1],
        axis_labels(placement, matrix, finding_order.faulty_hosts(diagnosis.verdict)),
        title,
    )


def _drawing(source: ReportSource, kind: str, of: str, title: str) -> bytes:
    """Draw what the page has as a drawing."""
    if kind == TOPOLOGY:
        drawn = drawing(source)
        if drawn is None:
            raise UsageError("no topology to draw: unknown, of one switch or of too many", "name it with --topology")
        return topology_picture(drawn, title)
    if kind == STRIP:
        finding = finding_order.faulty(source.found)[int(of) - 1]
        plot = finding_charts.strips(source).get(int(of) - 1)
        title = f"{run_facts.title(source.run)}. {finding.state} {finding_order.subject(finding)}"
    elif kind == TIME:
        own = source.cells[of]
        plot = timeline(own.row, own.size, own.cells, deviations(own, source))
    elif kind == CURVE:
        plot = curve(source.surveys[of])
    else:
        plot = next(filter(None, map(transport_curves, transport_comparisons(source.run.rows))), None)
    if plot is None:
        raise UsageError(f"the run has nothing to draw for '{kind}{of and f':{of}'}'", _NEEDS[kind])
    return plot_picture(plot, title)


def _row_of_finding(diagnosis: Diagnosis, rows: list[Row]) -> Row:
    """Return the first row with the quantity of the gravest finding."""
    found = finding_order.faulty(finding_order.ordered(diagnosis.verdict))
    quantity = next((finding.quantity for finding in found), None)
    return next((row for row in rows if row.quantity == quantity), rows[0])


def _histogram(histograms: Histograms, title: str) -> bytes:
    """Draw the histograms below each other."""
    letters, panel = font(), _PANEL + 70
    canvas = Image.new("RGB", (_EDGE + 60, 40 + panel * len(histograms.panels)), "white")
    pen = ImageDraw.Draw(canvas)
    pen.text((10, 8), printable(units.shorten(title, 95)), "black", letters)
    for number, (words, counts) in enumerate(histograms.panels):
        top, bar = 40 + panel * number, _EDGE / len(counts)
        bottom = top + 24 + _PANEL
        pen.text((30, top), printable(words), "black", letters)
        for index, share in enumerate(Histograms.heights(counts)):
            if share > 0:
                left = 30 + index * bar
                pen.rectangle((left, bottom - max(1.0, share * _PANEL), left + 0.9 * bar, bottom), fill=BAR_COLOUR)
        pen.line((30, bottom, 30 + _EDGE, bottom), "#666666")
        pen.text((30, bottom + 6), histograms.ends[0], "black", letters)
        pen.text((30 + _EDGE, bottom + 6), histograms.ends[1], "black", letters, anchor="ra")
    return png(canvas)


def _matrix(scale: ColourScale, labels: list[AxisLabel], title: str) -> bytes:
    letters = font()
    left, top = _MARGIN, _MARGIN + 30
    canvas = Image.new("RGB", (left + _EDGE + 30, top + _EDGE + _BELOW), "white")
    canvas.paste(Image.fromarray(scale.pixels, "RGB").resize((_EDGE, _EDGE), Image.Resampling.NEAREST), (left, top))
    pen = ImageDraw.Draw(canvas)
    pen.text((10, 8), printable(units.shorten(title, 110)), "black", letters)
    for place, name, is_named in labels:
        colour = NAMED_COLOUR if is_named else "black"
        pen.text((left - 8, top + place * _EDGE), name, colour, letters, anchor="rm")
        tile = Image.new("L", (_MARGIN, LETTER + 6), 0)
        ImageDraw.Draw(tile).text((0, (LETTER + 6) / 2), name, 255, letters, anchor="lm")
        tile = tile.transpose(Image.Transpose.ROTATE_90)
        canvas.paste(colour, (int(left + place * _EDGE - (LETTER + 6) / 2), top - 6 - _MARGIN), tile)
    pen.rectangle((left, top, left + _EDGE - 1, top + _EDGE - 1), outline="#666666")
    ramp = Image.fromarray(ramp_pixels(_EDGE, is_diverging=scale.is_diverging), "RGB").resize((_EDGE, 14))
    canvas.paste(ramp, (left, top + _EDGE + 14))
    for words, place, anchor in zip(scale.ends, (0.0, 0.5, 1.0), ("lt", "mt", "rt"), strict=True):
        pen.text((left + place * _EDGE, top + _EDGE + 36), words, "black", letters, anchor=anchor)
    return png(canvas)
