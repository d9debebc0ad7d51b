"""The texts of other tools that the importers are tested on."""

from __future__ import annotations

from pathlib import Path

FIXTURES = Path(__file__).parents[1] / "fixtures"


def text_of(family: str, name: str) -> str:
    return (FIXTURES / family / name).read_text()


def texts(family: str) -> list[str]:
    """Names of all files of a family."""
    return sorted(path.name for path in (FIXTURES / family).iterdir() if path.name != "README.md")
