"""The matrix of one row as a PNG picture with names of hosts, for slides and tickets."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import reportlab
from PIL import Image, ImageDraw, ImageFont

from fablint.errors import UsageError
from fablint.model import Diagnosis, Placement, Run
from fablint.report import finding_order, run_facts
from fablint.report.pdf.page_layout import REGULAR, printable, styles
from fablint.report.pdf.pdf_figures import ColourScale, axis_labels, colour_scales
from fablint.report.pdf.pdf_report import drawn_rows
from fablint.report.survey.drawn_matrix import drawn_matrix, ramp_pixels
from fablint.report.survey.heatmap import topological_order
from fablint.text import units

_EDGE = 960  # pixels of the matrix
_MARGIN = 170  # of names, above and on the left
_BELOW = 70  # of the scale
_LETTER = 15


def matrix_png(run: Run, diagnosis: Diagnosis) -> bytes:
    """Return the matrix of the row in which the gravest finding is seen: against healthy pairs if that is known.

    Raises
    ------
    UsageError
        The run has no row of pairs.
    """
    rows = drawn_rows(run)
    if not rows:
        raise UsageError("the run has no row of pairs to draw", "fablint show lists its rows")
    found = finding_order.faulty(finding_order.ordered(diagnosis.verdict))
    quantity = next((finding.quantity for finding in found), None)
    row = next((row for row in rows if row.quantity == quantity), rows[0])
    size, placement = run_facts.informative_size(row), Placement.of(run, diagnosis.topology)
    fit = run_facts.fit_of(diagnosis, row, size)
    matrix = drawn_matrix(row, size, fit, placement, topological_order(placement))
    styles()  # registers the font that labels are measured with
    labels = axis_labels(placement, matrix)
    word = f"{finding_order.word(diagnosis.verdict)}: {finding_order.headline(diagnosis.verdict)}"
    name = run.path.name if run.path else "a run in memory"
    return _picture(colour_scales(row, size, fit, matrix)[-1], labels, f"{name}, {row.name} {units.size(size)}. {word}")


def _picture(scale: ColourScale, labels: list[tuple[float, str]], title: str) -> bytes:
    font = ImageFont.truetype(str(Path(reportlab.__file__).parent / "fonts" / f"{REGULAR}.ttf"), _LETTER)
    left, top = _MARGIN, _MARGIN + 30
    canvas = Image.new("RGB", (left + _EDGE + 30, top + _EDGE + _BELOW), "white")
    canvas.paste(Image.fromarray(scale.pixels, "RGB").resize((_EDGE, _EDGE), Image.Resampling.NEAREST), (left, top))
    pen = ImageDraw.Draw(canvas)
    pen.text((10, 8), printable(units.shorten(title, 110)), "black", font)
    for place, name in labels:
        pen.text((left - 8, top + place * _EDGE), name, "black", font, anchor="rm")
        tile = Image.new("L", (_MARGIN, _LETTER + 6), 0)
        ImageDraw.Draw(tile).text((0, (_LETTER + 6) / 2), name, 255, font, anchor="lm")
        tile = tile.transpose(Image.Transpose.ROTATE_90)
        canvas.paste("black", (int(left + place * _EDGE - (_LETTER + 6) / 2), top - 6 - _MARGIN), tile)
    pen.rectangle((left, top, left + _EDGE - 1, top + _EDGE - 1), outline="#666666")
    ramp = Image.fromarray(ramp_pixels(_EDGE, is_diverging=scale.is_diverging), "RGB").resize((_EDGE, 14))
    canvas.paste(ramp, (left, top + _EDGE + 14))
    for words, place, anchor in zip(scale.ends, (0.0, 0.5, 1.0), ("lt", "mt", "rt"), strict=True):
        pen.text((left + place * _EDGE, top + _EDGE + 36), words, "black", font, anchor=anchor)
    buffer = BytesIO()
    canvas.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()
