"""The man pages: written from the help texts, and read by a real man."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess

import pytest
from documented_commands import ROOT

from fablint.cli import cli

FOLDER = ROOT / "share" / "man" / "man1"


def test_the_man_pages_are_fresh() -> None:
    rendered = runpy.run_path(str(ROOT / "docs" / "man_pages.py"))["render"]()
    assert {path.name: path.read_text() for path in FOLDER.iterdir()} == rendered, "run make reference"


def test_every_verb_has_a_page() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {"fablint.1", *(f"fablint-{verb}.1" for verb in cli.commands)}


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
def test_mandoc_has_no_objections() -> None:
    """A page has no date, because fablint has none: a page must not differ from one day to the next."""
    words = ["mandoc", "-T", "lint", "-W", "warning", *map(str, sorted(FOLDER.iterdir()))]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert [line for line in done.stdout.splitlines() if "missing date" not in line] == []
    assert done.stdout.count("missing date") == len(cli.commands) + 1


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
def test_a_page_shows_what_the_help_shows() -> None:
    words = ["mandoc", "-T", "ascii", "-O", "width=200", FOLDER / "fablint-history.1"]
    page = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    plain = re.sub(".\b", "", page)  # bold letters are printed twice
    for text in ("--last N", "fablint history add night.run && fablint history trend", "FABLINT HISTORY BASELINE"):
        assert text in plain
