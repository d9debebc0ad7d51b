"""Figures of the PDF: matrices of pairs, histograms, plots. Text and axes are vectors, cells an image."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from reportlab.lib.units import mm

from fablint.report.canvas.figures import Frame, PlotFrame, draw_histogram, draw_plot, draw_topology
from fablint.report.canvas.fonts import fitted, width_of
from fablint.report.canvas.interface import Ink
from fablint.report.canvas.matrix_figure import LABEL, MatrixFrame, axis_name, draw_matrix
from fablint.report.canvas.pdf import PdfCanvas, PdfFigure
from fablint.report.drawings import topology_drawing
from fablint.report.drawings.histograms import Histogram
from fablint.report.drawings.matrix_drawing import AxisLabel, ColourScale
from fablint.report.drawings.plots import Plot
from fablint.report.drawings.topology_drawing import Drawing
from fablint.report.pdf.page_layout import WIDTH

_LETTER = 6.5  # points
_GAP = 6 * mm
_PANEL_HEIGHT, _PLOT_HEIGHT = 34 * mm, 30 * mm


def matrix_figure(scales: Sequence[ColourScale], labels: Sequence[AxisLabel]) -> PdfFigure:
    """Return one or two matrices side by side, with names of hosts on the axes and colour scales below."""
    margin = max((width_of(axis_name(label), LABEL) for label in labels), default=0.0) + 8
    edge = (WIDTH - _GAP * (len(scales) - 1)) / max(2, len(scales)) - margin

    def draw(canvas: PdfCanvas) -> None:
        for number, scale in enumerate(scales):
            left = number * (margin + edge + _GAP) + margin
            words = 13.5, _LETTER, "a"
            frame = MatrixFrame(left, margin + 10, edge, edge, LABEL, (3, 3), edge, 2, (6, 6), 128, words)
            draw_matrix(canvas, scale, labels, frame)

    return PdfFigure(WIDTH, edge + margin + 34, draw)


def topology_figure(drawing: Drawing) -> PdfFigure:
    """Return the topology, as wide as the text."""
    scale = WIDTH / topology_drawing.WIDTH
    return PdfFigure(WIDTH, scale * drawing.height, partial(draw_topology, drawing=drawing), scale)


def histogram_figure(histograms: Sequence[Histogram]) -> PdfFigure:
    """Return histograms side by side."""
    width = (WIDTH - _GAP * (len(histograms) - 1)) / max(1, len(histograms))

    def draw(canvas: PdfCanvas) -> None:
        for number, histogram in enumerate(histograms):
            frame = Frame(number * (width + _GAP), 12, width, _PANEL_HEIGHT - 24, _LETTER, (10.5, 1.5))
            draw_histogram(canvas, histogram, fitted(histogram.title, width, _LETTER), frame)

    return PdfFigure(WIDTH, _PANEL_HEIGHT, draw)


def plot_figure(plot: Plot) -> PdfFigure:
    """Return a plot with what it shows above, and labels at its axes."""
    labels, above, below = 34.0, 14.0, 14.0  # on the left, of the words, of the labels
    height = _PLOT_HEIGHT - above - below
    gaps = 4.0, below - 3 - _LETTER
    frame = PlotFrame(labels, above, WIDTH - labels, height, _LETTER, gaps, 0.4, 1.0, 2.4, "print", is_within=True)

    def draw(canvas: PdfCanvas) -> None:
        canvas.text(0, 8, fitted(plot.words, WIDTH, _LETTER), _LETTER, Ink("print"))
        draw_plot(canvas, plot, frame)

    return PdfFigure(WIDTH, _PLOT_HEIGHT, draw)
