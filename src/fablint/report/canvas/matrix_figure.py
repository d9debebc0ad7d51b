"""How a matrix is drawn in the PDF and in pictures: pixels, names of hosts at its axes, a scale of colours below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reportlab.lib.units import mm

from fablint.report.canvas.figures import Frame
from fablint.report.canvas.fonts import fitted
from fablint.report.canvas.interface import Ink
from fablint.report.canvas.pdf import PdfCanvas
from fablint.report.canvas.png import PngCanvas
from fablint.report.drawings.matrix_drawing import AxisLabel, ColourScale, ramp_pixels

LABEL = 5.5  # points of a name beside an axis
_LONGEST = 20 * mm


@dataclass(frozen=True)
class MatrixFrame(Frame):
    """The place of a matrix with names of hosts on the left and above, and the sizes of what is around it."""

    outline: float  # edge of the frame around the matrix
    tick: float  # length of the lines beside names; 0: none
    scale: tuple[float, float]  # from the matrix to the scale of colours, and its height
    steps: int  # of colours
    words: tuple[float, float, str]  # from the matrix to the words below the scale, their letters and anchor


def axis_name(label: AxisLabel) -> str:
    """Return the name of a host, shortened to the space beside an axis."""
    return fitted(label.name, _LONGEST, LABEL)


def draw_matrix(
    canvas: PdfCanvas | PngCanvas, scale: ColourScale, labels: Sequence[AxisLabel], frame: MatrixFrame
) -> None:
    """Draw a matrix with names at its axes and its scale of colours."""
    left, top, edge = frame.left, frame.top, frame.width
    canvas.image(left, top, edge, edge, scale.pixels)
    canvas.box(left, top, frame.outline, frame.outline, Ink("frame", 0.4), is_filled=False)
    for label in labels:
        name, at, ink = axis_name(label), label.place * edge, Ink("named" if label.is_named else "print")
        canvas.text(left - frame.gaps[0], top + at, name, frame.letter, ink, "rm")
        canvas.text(left + at, top - frame.gaps[1], name, frame.letter, ink, "lmv")
        if frame.tick:
            ticks = [(left - frame.tick, top + at), (left, top + at)], [(left + at, top), (left + at, top - frame.tick)]
            canvas.lines(ticks, Ink("named", 1.5) if label.is_named else Ink("frame", 0.4))
    ramp = ramp_pixels(frame.steps, is_diverging=scale.is_diverging)
    canvas.image(left, top + edge + frame.scale[0], edge, frame.scale[1], ramp)
    below, letter, foot = frame.words
    for words, share, side in zip(scale.ends, (0.0, 0.5, 1.0), "lmr", strict=True):
        canvas.text(left + share * edge, top + edge + below, words, letter, Ink("print"), side + foot)
