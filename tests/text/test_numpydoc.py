"""Functions that other packages import describe their parameters, and each value of a tuple that they return."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest
from test_code_words import ROOT, python_files

PACKAGE = ROOT / "src" / "fablint"
MOST_UNDESCRIBED = 2  # parameters: their names and the first sentence say what they are

Trees = Mapping[str, ast.Module]  # by path below src/fablint


def imported_names(trees: Trees) -> set[tuple[str, str]]:
    """Return packages and names that other packages import from them."""
    names = set()
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fablint."):
                package = str(node.module).split(".")[1]
                if package != Path(path).parts[0]:
                    names |= {(package, alias.name) for alias in node.names}
    return names


def interface(trees: Trees) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield the functions that other packages import, with their paths; commands are described by their options."""
    names = imported_names(trees)
    for path, tree in trees.items():
        for node in tree.body:
            if not isinstance(node, ast.FunctionDef) or (Path(path).parts[0], node.name) not in names:
                continue
            if not any("command" in ast.unparse(decorator) for decorator in node.decorator_list):
                yield path, node


def lacks(function: ast.FunctionDef) -> list[str]:
    """Return the sections of numpydoc that a function needs and does not have."""
    needed = []
    arguments = function.args
    if len([*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]) > MOST_UNDESCRIBED:
        needed.append("Parameters")
    returned = ast.unparse(function.returns) if function.returns else ""
    if returned.startswith("tuple[") and "..." not in returned:
        needed.append("Returns")
    text = ast.get_docstring(function) or ""
    return [name for name in needed if not re.search(rf"^{name}\n-+$", text, re.MULTILINE)]


def undescribed(trees: Trees) -> Iterable[str]:
    """Return functions with the sections that they lack."""
    return [f"{path}: {node.name}: {', '.join(lacks(node))}" for path, node in interface(trees) if lacks(node)]


def test_functions_that_other_packages_import_are_described() -> None:
    files = [path for path in python_files(["src"]) if path.is_relative_to(PACKAGE)]
    trees = {str(path.relative_to(PACKAGE)): ast.parse(path.read_text(encoding="utf-8")) for path in files}
    assert len(list(interface(trees))) > 200
    assert undescribed(trees) == []


@pytest.mark.parametrize(
    ("signature", "sections", "missing"),
    [
        ("(a, b, c) -> int", (), "Parameters"),
        ("(a, *, b, c) -> int", ("Parameters",), ""),
        ("(a, b) -> int", (), ""),
        ("(a) -> tuple[int, str]", (), "Returns"),
        ("(a, b, c) -> tuple[int, str]", ("Parameters",), "Returns"),
        ("(a) -> tuple[int, str]", ("Returns",), ""),
        ("(a) -> tuple[int, ...]", (), ""),
    ],
)
def test_functions_that_are_refused(signature: str, sections: tuple[str, ...], missing: str) -> None:
    text = "\n\n    ".join(["Return it.", *(f"{name}\n    {'-' * len(name)}\n    text" for name in sections)])
    trees = {
        "plan/rounds.py": ast.parse(f'def f{signature}:\n    """{text}\n    """\n'),
        "cli/check.py": ast.parse("from fablint.plan import f"),
    }
    assert undescribed(trees) == ([f"plan/rounds.py: f: {missing}"] if missing else [])
    assert undescribed({**trees, "cli/check.py": ast.parse("from fablint.store import f")}) == []
