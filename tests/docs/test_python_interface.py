"""The Python interface: the page is that of the docstrings, and their examples run."""

from __future__ import annotations

import doctest
import inspect
import runpy
import types
from pathlib import Path

import pytest
from documented_commands import ROOT

import fablint
from fablint.workflows.interface import python_interface

REFERENCE = runpy.run_path(str(ROOT / "docs" / "python_reference.py"))
FUNCTIONS = [name for name in fablint.__all__ if name not in ("__version__", "open_run")]


def test_the_page_is_that_of_the_docstrings() -> None:
    assert REFERENCE["PAGE"].read_text() == REFERENCE["render"](), "run docs/python_reference.py"


def test_every_function_of_the_interface_is_public_and_no_other() -> None:
    functions = inspect.getmembers(python_interface, inspect.isfunction)
    defined = {name for name, function in functions if function.__module__ == python_interface.__name__}
    assert defined == set(FUNCTIONS)
    assert all(">>> " in (inspect.getdoc(getattr(fablint, name)) or "") for name in FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_examples_of_functions_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType(name, inspect.getdoc(getattr(fablint, name)))
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 1) == (0, True)


def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(types.ModuleType("page", REFERENCE["HEAD"].replace("```\n", "\n")))
    assert (result.failed, result.attempted > 3) == (0, True)
