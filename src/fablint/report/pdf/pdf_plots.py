"""Plots of the page as vectors in the PDF."""

from __future__ import annotations

from reportlab.lib import colors
from reportlab.lib.units import mm
from reportlab.platypus import Flowable

from fablint.report.drawings import plots
from fablint.report.drawings.plots import Plot, PlotLayer
from fablint.report.pdf.page_layout import REGULAR, WIDTH, fitted, printable
from fablint.report.pdf.plot_pictures import layer_colour, points_of, style_colours

_LETTER = 6.5  # points
_DOT = 1.2  # half of its width
_LABELS = 34.0  # width of the labels on the left
_ABOVE, _BELOW = 14.0, 14.0  # heights of the words and of the labels


class PlotFigure(Flowable):  # type: ignore[misc]
    """A plot with what it shows above, and labels at its axes."""

    def __init__(self, plot: Plot) -> None:
        super().__init__()
        self._plot = plot
        self.width, self.height = WIDTH, 30 * mm

    def wrap(self, *_: float) -> tuple[float, float]:
        """Size in points."""
        return self.width, self.height

    def draw(self) -> None:
        """Draw at the origin of the flowable."""
        canvas, plot = self.canv, self._plot
        canvas.setFont(REGULAR, _LETTER)
        canvas.setFillColor(colors.black)
        canvas.drawString(0, self.height - 8, fitted(printable(plot.words), WIDTH, _LETTER))
        steps = max(1, len(plot.y_labels) - 1)
        canvas.setStrokeColor(colors.HexColor(style_colours()["rule"]))
        canvas.setLineWidth(0.4)
        for index, label in enumerate(plot.y_labels):
            (left, y), (right, _) = (self._place(x, plots.HEIGHT * index / steps) for x in (0, plots.WIDTH))
            canvas.line(left, y, right, y)
            canvas.drawRightString(left - 4, y - 0.35 * _LETTER, label)
        for layer in plot.layers:
            self._draw_layer(layer)
        canvas.setFillColor(colors.black)
        steps = max(1, len(plot.x_labels) - 1)
        for index, label in enumerate(plot.x_labels):
            x, _ = self._place(plots.WIDTH * index / steps, 0)
            draw = (
                canvas.drawRightString if index == steps else canvas.drawCentredString if index else canvas.drawString
            )
            draw(x, 3, label)

    def _place(self, x: float, y: float) -> tuple[float, float]:
        """Points of the page for a point of the drawing, whose y grows downwards."""
        across, down = (WIDTH - _LABELS) / plots.WIDTH, (self.height - _ABOVE - _BELOW) / plots.HEIGHT
        return _LABELS + x * across, _BELOW + (plots.HEIGHT - y) * down

    def _draw_layer(self, layer: PlotLayer) -> None:
        canvas, kind = self.canv, layer.style.split()[0]
        colour = colors.HexColor(layer_colour(layer.style))
        canvas.setStrokeColor(colour)
        canvas.setFillColor(colour)
        canvas.setLineWidth(1.0)
        for points in points_of(layer.path):
            placed = [self._place(*point) for point in points]
            if kind in ("dots", "points"):
                x, y = placed[0]
                canvas.ellipse(x - _DOT, y - _DOT, x + _DOT, y + _DOT, stroke=0, fill=1)
                continue
            path = canvas.beginPath()
            path.moveTo(*placed[0])
            for point in placed[1:]:
                path.lineTo(*point)
            canvas.drawPath(path, stroke=int(kind != "band"), fill=int(kind == "band"))
