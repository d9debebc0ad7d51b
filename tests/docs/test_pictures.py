"""The pictures of docs/images show what fablint prints and writes now."""

from __future__ import annotations

import html
import re
from pathlib import Path

import decision_figures
import pictures
import pytest
from documented_commands import ROOT
from page_blocks import blocks

REDRAW = "run .venv/bin/python docs/pictures.py, and look at the pictures"
PHOTOGRAPHS = {name: one for name, one in pictures.PICTURES.items() if isinstance(one, pictures.PagePicture)}
TERMINALS = {name: one for name, one in pictures.PICTURES.items() if isinstance(one, pictures.TerminalPicture)}
RUNS = [pytest.param(run, marks=() if "--full" in words else pytest.mark.long) for run, words in pictures.RUNS.items()]
EXAMPLE_PAGE = ROOT / "docs" / "explanation" / "how-it-decides.md"
EXAMPLE = (
    *("--fabric", "mesh", "--shape", "8x8", "--fault", "cable:s2=s5:-20%", "--fault", "host:h12:tx:-30%"),
    *("--seed", "7"),
)
_TEXT = re.compile(r"<text [^>]*>([^<]*)</text>")


def shown_text(svg: Path) -> str:
    """Texts of the picture of a terminal, without blanks; the first is the title of the window."""
    return "".join("".join(html.unescape(text).split()) for text in _TEXT.findall(svg.read_text())[1:])


@pytest.mark.parametrize("run", RUNS)
def test_the_photographs_show_the_page_of_today(run: str, fablint_in_process, tmp_path: Path) -> None:
    fablint_in_process("-q", "simulate", *pictures.RUNS[run], "-o", run)
    fablint_in_process("-q", "report", run)
    digest = pictures.page_digest((tmp_path / run / "report" / "index.html").read_text())
    shown = {name: pictures.read_digests()[name] for name, picture in PHOTOGRAPHS.items() if picture.run == run}
    assert shown == dict.fromkeys(shown, digest), REDRAW
    for name, picture in TERMINALS.items():
        if picture.run == run:
            printed = fablint_in_process(*picture.words, COLUMNS=str(pictures.COLUMNS)).stdout
            command = f"$ fablint {' '.join(picture.words)}"
            assert shown_text(pictures.IMAGES / name) == "".join((command + printed).split()), REDRAW


def test_every_photograph_has_a_digest() -> None:
    assert set(pictures.read_digests()) == set(PHOTOGRAPHS)


PAGE = "<style>p{}</style><p class=a>3.5 us</p><script id=data>{1}</script>"


@pytest.mark.parametrize("other", ["<p class=a>3.7 us</p>" + PAGE, PAGE.replace("{1}", "{2}")])
def test_a_digest_does_not_depend_on_measurements(other: str) -> None:
    assert pictures.page_digest(other) == pictures.page_digest(PAGE)


@pytest.mark.parametrize(
    "change", [("p{}", "p{top:0}"), ("class=a", "class=b"), (" us", " ms"), ("</p>", "</p><b>x</b>")]
)
def test_a_digest_depends_on_style_elements_and_words(change: tuple[str, str]) -> None:
    assert pictures.page_digest(PAGE.replace(*change)) != pictures.page_digest(PAGE)


@pytest.mark.long
def test_the_worked_example_of_how_it_decides_is_that_of_today(
    fablint_in_process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its figures, and what its command prints; the script of the figures computes the other numbers of the page."""
    fablint_in_process("-q", "simulate", *EXAMPLE, "-o", "example.run")
    printed = " ".join(fablint_in_process("analyse", "example.run").stdout.split())
    block = next(block for block in blocks(EXAMPLE_PAGE) if block.lines[0].startswith("FAULT"))
    for finding in "\n".join(block.lines).split("FAULT")[1:]:
        assert " ".join(finding.split()) in printed
    drawn = tmp_path / "drawn"
    monkeypatch.setattr(decision_figures, "IMAGES", drawn)
    decision_figures.main(str(tmp_path / "example.run"))
    texts = {path.name: path.read_text() for path in drawn.iterdir()}
    kept = {path.name: path.read_text() for path in pictures.IMAGES.glob("decide-*")}
    assert texts == kept, "run .venv/bin/python docs/decision_figures.py example.run, as its first lines say"
