"""docs/reference/benchmarks.md: made from the registry, and every command on it is one."""

from __future__ import annotations

import importlib.util
import shlex
from pathlib import Path

import pytest
from test_bench_options import bench  # noqa: F401  (a fixture)

ROOT = Path(__file__).parents[3]
HOW_TO = ROOT / "docs/how-to/reference-benchmarks.md"


def page():
    spec = importlib.util.spec_from_file_location("benchmarks_reference", ROOT / "docs" / "benchmarks_reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGE = page()


def test_the_page_is_fresh():
    assert PAGE.PAGE.read_text() == PAGE.render(), "run docs/benchmarks_reference.py"


def test_nothing_is_planned():
    assert "planned" not in PAGE.render().lower()


@pytest.mark.parametrize("command", [program[2] for program in PAGE.PROGRAMS])
def test_every_program_of_the_references_has_a_command_that_works(bench, command):  # noqa: F811
    verb, *words = shlex.split(command)
    assert verb == "bench"
    assert bench(" ".join(words)).plan.predicted_s > 0


def test_every_reference_is_there():
    assert len({program[0] for program in PAGE.PROGRAMS}) == 5


def commands(text: str) -> list[str]:
    """What follows `fablint bench` in the indented lines of a page."""
    found = (line.partition("#")[0].strip() for line in text.splitlines() if line.startswith("    fablint bench "))
    return [" ".join(shlex.split(line)[2:]) for line in found]


@pytest.mark.parametrize("command", commands(HOW_TO.read_text()))
def test_the_commands_of_the_how_to_work(bench, command):  # noqa: F811
    if command != "--list" and not command.endswith("--help"):
        assert bench(command.partition(" -o ")[0]).rows
