"""The pages for contributors name files, folders and commits that are there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from documented_commands import ROOT

PAGES = sorted((ROOT / "docs" / "developing").glob("*.md"))
HOMES = (
    ROOT,
    ROOT / "src/fablint",
    ROOT / "src/fablint/analyse",
    ROOT / "engine",
    ROOT / "tests",
    ROOT / "benchmarks/held_out",
)
NAMED = re.compile(r"`((?:[\w.-]+/)+(?:[\w.-]+\.\w+)?)`|`(\w+\.(?:py|cpp|inc|hpp))`")
PLACEHOLDER = re.compile(r"TOOL|NAME|SUBJECT")


def named_files(page: Path) -> list[str]:
    """Return the files and folders that a page names."""
    names = [path or name for path, name in NAMED.findall(page.read_text())]
    return [name for name in names if not PLACEHOLDER.search(name)]


def is_there(name: str) -> bool:
    """Return whether a file is in the repository: below one of the homes, or anywhere if it is a name alone."""
    if "/" in name:
        return any((home / name).exists() for home in HOMES)
    return any(
        path.name == name for folder in ("src", "engine", "benchmarks", "tests") for path in (ROOT / folder).rglob(name)
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_that_a_recipe_names_exist(page: Path) -> None:
    assert [name for name in named_files(page) if not is_there(name)] == []


def test_pages_are_examined() -> None:
    assert len(PAGES) >= 5
    assert all(named_files(page) for page in PAGES)
    assert not is_there("analyse/no_such_file.py")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commits_of_examples_exist(page: Path) -> None:
    shallow = ["git", "-C", str(ROOT), "rev-parse", "--is-shallow-repository"]
    if subprocess.run(shallow, capture_output=True, text=True).stdout.strip() != "false":
        pytest.skip("no checkout with its history")
    for words in re.findall(r"git log -1 [^`]*--grep '([^']+)'", page.read_text()):
        command = ["git", "-C", str(ROOT), "log", "-1", "--format=%h", "--grep", words]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip(), words
