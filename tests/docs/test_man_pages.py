"""The man pages: written from the help texts, and read by a real man."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess

import pytest
from documented_commands import ROOT

from fablint.cli import cli

FOLDER = ROOT / "share" / "man"
PAGES = sorted(FOLDER.glob("man*/*"))
MESSAGE = re.compile(r"\bsee man ([\w-]+)")


def test_the_man_pages_are_fresh() -> None:
    rendered = runpy.run_path(str(ROOT / "docs" / "man_pages.py"))["render"]()
    assert {str(path.relative_to(FOLDER)): path.read_text() for path in PAGES} == rendered, "run make reference"


def test_every_verb_has_a_page() -> None:
    verbs = {"fablint.1", *(f"fablint-{verb}.1" for verb in cli.commands)}
    assert {path.name for path in PAGES if path.parent.name == "man1"} == verbs


def test_pages_that_messages_name_exist_and_no_message_names_a_file_that_a_wheel_lacks() -> None:
    sources = [path.read_text() for path in (ROOT / "src").rglob("*.py")]
    named = {name for text in sources for name in MESSAGE.findall(text)}
    assert named == {"fablint-site", "fablint-checks", "fablint-topology"}
    assert named <= {path.stem for path in PAGES}
    assert [text for text in sources if re.search(r'"[^"\n]*\bdocs/[\w/-]+\.md[^"\n]*"(?!"")', _code(text))] == []


def _code(source: str) -> str:
    """The lines of a module without comments and docstrings."""
    without = re.sub(r'^ *r?"""[\s\S]*?"""$', "", source, flags=re.M)
    return re.sub(r"#.*$", "", without, flags=re.M)


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
def test_mandoc_has_no_objections() -> None:
    """A page has no date, because fablint has none: a page must not differ from one day to the next."""
    words = ["mandoc", "-T", "lint", "-W", "warning", *map(str, PAGES)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert [line for line in done.stdout.splitlines() if "missing date" not in line] == []
    assert done.stdout.count("missing date") == len(PAGES)


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
def test_a_page_shows_what_the_help_shows() -> None:
    words = ["mandoc", "-T", "ascii", "-O", "width=200", FOLDER / "man1" / "fablint-history.1"]
    page = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    plain = re.sub(".\b", "", page)  # bold letters are printed twice
    for text in ("--last N", "fablint history add night.run && fablint history trend", "FABLINT HISTORY BASELINE"):
        assert text in plain


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
@pytest.mark.parametrize("page", ["topology.5", "site.5", "run.5", "checks.7"])
def test_a_page_of_a_file_has_the_text_of_its_reference(page: str) -> None:
    words = ["mandoc", "-T", "ascii", "-O", "width=200", FOLDER / f"man{page[-1]}" / f"fablint-{page}"]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    plain = re.sub(".\b", "", text)
    expected = {
        "topology.5": "h[16-31,40]: s2",
        "site.5": "[[suppress]]",
        "run.5": "zarr.json",
        "checks.7": "net.link.mtu",
    }
    assert expected[page] in plain and "](" not in plain
