"""Drawings hold numbers and names of colours; each canvas draws the same ones."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import fablint.report
from fablint.report.canvas.figures import PlotFrame, draw_layers, draw_plot, draw_topology
from fablint.report.canvas.interface import Ink
from fablint.report.canvas.pdf import PdfCanvas
from fablint.report.canvas.png import PngCanvas
from fablint.report.canvas.svg import SvgCanvas, svg
from fablint.report.drawings.palette import PAGE, PAPER, colour, css_variables
from fablint.report.drawings.plots import HEIGHT, WIDTH, Plot, PlotLayer, band, dots
from fablint.report.drawings.topology_drawing import Dot, Drawing, GroupBox, NamedLine, NameTag

REPORT = Path(fablint.report.__file__).parent
X = np.array([0, 500, 1000])
PLOT = Plot(
    "title",
    "words",
    ("high", "low"),
    ("first", "last"),
    (
        band(X, low=np.array([240, 200, 240]), high=np.array([10, 20, 30])),
        PlotLayer("line", "quiet", ((0, 120), (1000, 60))),
        dots("fault-mark", X, X // 5),
        PlotLayer("medium", "medium-1", ()),
    ),
)
TOPOLOGY = Drawing(
    100.0,
    "words",
    [GroupBox(1.4, 2.6, 50.0, 60.0, "<g0>")],
    [((1.2, 2.7), (3.5, 4.4))],
    [NamedLine(((0.0, 0.0), (9.6, 9.4)), "suspect", "a>b")],
    [NamedLine(((0.0, 0.0), (5.0, 5.0), (9.0, 0.0)), "fault", "h0>h1")],
    [Dot(20.0, 20.0, 8.0, "switch", "fault", "s0", "s0", "h[0-1]")],
    [NameTag(20.0, 40.0, "s0", "fault")],
)


def modules(*folders: str) -> Iterator[tuple[Path, ast.Module]]:
    for folder in folders:
        for path in sorted((REPORT / folder).rglob("*.py")):
            yield path.relative_to(REPORT), ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{name.name}" for name in node.names)


def test_no_regular_expression_reads_a_drawing_or_a_style_sheet() -> None:
    users = [path.as_posix() for path, tree in modules(".") if {"re"} & {*imported(tree)}]
    assert [path for path in users if path.startswith(("drawings", "canvas", "pdf"))] == []
    readers = [path.as_posix() for path, tree in modules(".") if "report.css" in ast.unparse(tree)]
    assert not {*users} & {*readers}
    assert sorted(readers) == ["changes/changes_page.py", "html/page.py"]  # which write it into a page


def test_drawings_hold_numbers_and_know_no_canvas() -> None:
    names = [(path, name) for path, tree in modules("drawings") for name in imported(tree)]
    assert [named for named in names if named[1].startswith(("fablint.report.canvas", "reportlab", "PIL"))] == []
    assert [field.name for field in fields(PlotLayer)] == ["kind", "colour", "points", "label"]
    assert all(isinstance(place, int) for layer in PLOT.layers for point in layer.points for place in point)


def test_the_page_needs_no_library_of_the_pdf() -> None:
    program = "import sys, fablint.report.html.page; print(sorted({'reportlab', 'PIL'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"


def is_colour(text: str) -> bool:
    return len(text) in (3, 6, 8) and set(text) <= set("0123456789abcdefABCDEF")


def test_colours_stand_in_the_palette_only() -> None:
    """Scripts of the page draw on its canvas in colours of their own."""
    for path, tree in modules("."):
        texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        coloured = [text for text in texts if isinstance(text, str) and text[:1] == "#" and is_colour(text[1:])]
        assert not coloured, (path, coloured)
    sheets = "".join(path.read_text(encoding="utf-8") for path in REPORT.rglob("*.css"))
    assert not any(is_colour(part.partition(";")[0].partition(" ")[0]) for part in sheets.split("#")[1:])
    named = {part.partition(")")[0] for part in sheets.split("var(--")[1:]}
    assert named - {"medium"} <= PAGE.keys()


def test_the_style_sheet_has_the_colours_of_the_palette() -> None:
    light, dark, paper = css_variables().splitlines()
    assert "--ground: #ffffff;" in light and "--ground: #14171a;" in dark and "--quiet: #444444;" in paper
    assert all(f"--{name}: {shades[0]};" in light for name, shades in PAGE.items())
    assert not PAGE.keys() & PAPER.keys()


def test_the_page_has_paths_with_classes_and_no_colours() -> None:
    elements = svg(lambda canvas: draw_layers(canvas, PLOT))
    assert '<path class="rules" d="M0 0L1000 0M0 240L1000 240"></path>' in elements
    assert '<path class="band" d="M0 10L500 20L1000 30L1000 240L500 200L0 240Z"></path>' in elements
    assert '<path class="line quiet" d="M0 120L1000 60"></path>' in elements
    assert '<path class="dots fault-mark" d="M0 0h0M500 100h0M1000 200h0"></path>' in elements
    assert '<path class="medium medium-1" d=""></path>' in elements
    assert "#" not in elements


def test_the_topology_of_the_page_has_names_that_are_text() -> None:
    elements = svg(lambda canvas: draw_topology(canvas, TOPOLOGY))
    assert (
        '<rect class="group" x="1" y="3" width="50" height="60" rx="4"></rect><text x="7" y="17">&lt;g0&gt;</text>'
        in elements
    )
    assert '<path class="cable few" d="M1 3L4 4"></path>' in elements
    assert '<path class="link suspect" d="M0 0L10 9"><title>a&gt;b</title></path>' in elements
    assert '<path class="link route fault" d="M0 0L5 5L9 0"><title>h0&gt;h1</title></path>' in elements
    assert '<rect class="switch fault" x="16.0" y="16.0" width="8.0" height="8.0"><title>s0: h[0-1]</title>' in elements
    assert '<text class="named fault" text-anchor="middle" x="20" y="40">s0</text>' in elements


def test_a_picture_has_the_colours_of_the_palette_at_the_places_of_the_plot() -> None:
    canvas = PngCanvas(WIDTH + 20, HEIGHT + 20)
    draw_plot(canvas, PLOT, PlotFrame(10, 10, WIDTH, HEIGHT, letter=10, gaps=(2, 2)))
    image = Image.open(BytesIO(canvas.content()))
    places = {"fault-mark": (510, 110), "band": (300, 150), "ground": (5, 5)}
    shown = {name: "#{:02x}{:02x}{:02x}".format(*image.getpixel(place)) for name, place in places.items()}
    assert shown == {name: colour(name) for name in places}


class FakePage:
    """Keeps what a canvas of reportlab is asked to draw."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[object, ...]]] = []

    def __getattr__(self, name: str):
        return lambda *given, **_: self.calls.append((name, given))


def test_in_a_pdf_y_grows_upwards() -> None:
    page = FakePage()
    canvas = PdfCanvas(page, height=100.0)
    canvas.dots([(10.0, 20.0)], Ink("quiet", 4.0))
    canvas.box(1.0, 2.0, 3.0, 4.0, Ink("quiet"))
    canvas.text(5.0, 6.0, "words", 10.0, Ink("print"), "rm")
    calls = dict(page.calls)
    assert calls["ellipse"] == (8.0, 78.0, 12.0, 82.0)
    assert calls["rect"] == (1.0, 94.0, 3.0, 4.0)
    assert calls["drawRightString"] == (5.0, pytest.approx(90.5), "words")


def test_each_canvas_draws_a_plot_without_points() -> None:
    empty = Plot("", "", ("a", "b"), (), (band(X[:0], X[:0], X[:0]), PlotLayer("line", "quiet", ())))
    for canvas in (SvgCanvas(), PngCanvas(50, 50)):
        draw_layers(canvas, empty)
