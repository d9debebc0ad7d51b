"""The site of the documentation: `make docs` builds it; here is what needs no Sphinx."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from documented_commands import ROOT, documents

DOCS = ROOT / "docs"
IMAGES = DOCS / "images"
LARGEST = 200_000  # bytes of a picture
_SHOWN = re.compile(r"!\[[^\]]+\]\(([^)]+)\)")


def test_the_sidebar_has_every_page_once() -> None:
    contents = runpy.run_path(str(DOCS / "conf.py"))["CONTENTS"]
    listed = [page for pages in contents.values() for page in pages]
    pages = [str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.rglob("*.md")]
    assert sorted(["index", *listed]) == sorted(pages)


def shown_pictures() -> set[Path]:
    """Pictures that a page shows, as absolute paths."""
    return {(page.parent / name).resolve() for page in documents() for name in _SHOWN.findall(page.read_text())}


def test_every_picture_is_shown_and_every_shown_picture_exists() -> None:
    assert shown_pictures() == {*IMAGES.iterdir()}


@pytest.mark.parametrize("picture", sorted(IMAGES.iterdir()), ids=lambda path: path.name)
def test_a_picture_is_small_and_reaches_no_server(picture: Path) -> None:
    content = picture.read_bytes()
    assert len(content) < LARGEST
    addresses = {*re.findall(rb"https?://[^\"' )]+", content)} if picture.suffix == ".svg" else set()
    assert addresses <= {b"http://www.w3.org/2000/svg"}


def test_every_picture_of_a_script_is_there() -> None:
    drawn = set(runpy.run_path(str(DOCS / "pictures.py"))["PICTURES"])
    assert drawn == {path.name for path in IMAGES.iterdir() if not path.name.startswith("decide-")}
