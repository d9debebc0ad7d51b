"""Words of the code: variables are nouns, and docstrings say what is returned or done."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NO_NAMES = {"every", "found", "known", "mine", "of", "one", "own", "some"}  # of variables and parameters
SHORT = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)  # where a name of one line may stand
NAMED = ("src", "tools", "docs", "benchmarks")
DESCRIBED = ("src", "tools")
PARAMETERS = re.compile(r"^Parameters\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", re.DOTALL | re.MULTILINE)
NAMES = re.compile(r"^(\S[^:\n]*)", re.MULTILINE)
CLAUSE = re.compile(r"(?:The same|What|Whether|How|Why|Which|Where|When|Those|As|For|In|Of)\b")


def python_files(folders: Iterable[str]) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z", *folders], cwd=ROOT, capture_output=True, check=True).stdout
    return [ROOT / name for name in listed.decode().split("\0") if name.endswith(".py") and (ROOT / name).exists()]


def bound_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and name of variables and parameters, but for those of comprehensions and lambdas of one line.

    Fields of classes are not among them: they are read behind the name of an object.
    """
    short = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, SHORT) and node.lineno == node.end_lineno
        for inner in ast.walk(node)
    }
    fields = {id(item.target) for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
              for item in node.body if isinstance(item, ast.AnnAssign)}  # fmt: skip
    for node in ast.walk(tree):
        if id(node) in short or id(node) in fields:
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg


def pronouns(tree: ast.AST) -> list[str]:
    """Return variables that have no noun as their name, with their lines."""
    return [f"{line}: {name}" for line, name in bound_names(tree) if name in NO_NAMES]


def wrong_docstrings(tree: ast.AST) -> list[str]:
    """Return docstrings that ask, or that begin neither with a verb nor with a noun."""
    wrong = []
    for node in ast.walk(tree):
        text = ast.get_docstring(node) if isinstance(node, ast.FunctionDef | ast.ClassDef) else None
        first = re.sub(r"`[^`]*`", "", (text or "").partition("\n\n")[0])
        begins_wrong = CLAUSE.match(first) if isinstance(node, ast.FunctionDef) else first.startswith("The same")
        if "?" in first or begins_wrong:
            wrong.append(f"{node.lineno}: {first}")  # type: ignore[attr-defined]
    return wrong


def unknown_parameters(tree: ast.AST) -> list[str]:
    """Return parameters that a docstring describes and the function does not have, with its line."""
    unknown = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and (section := PARAMETERS.search(ast.get_docstring(node) or "")):
            names = {name.strip(" *") for line in NAMES.findall(section[1]) for name in line.split(",")}
            given = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
            unknown += [f"{node.lineno}: {name}" for name in sorted(names - given)]
    return unknown


def test_described_parameters_exist() -> None:
    names = {path: unknown_parameters(ast.parse(path.read_text(encoding="utf-8"))) for path in python_files(NAMED)}
    assert [f"{path.relative_to(ROOT)}:{name}" for path, lines in names.items() for name in lines] == []


@pytest.mark.parametrize(("parameters", "unknown"), [("host, seed", []), ("host", []), ("hosts, seed", ["1: hosts"])])
def test_a_described_parameter_that_does_not_exist_is_refused(parameters: str, unknown: list[str]) -> None:
    lines = ["Return.", "", "Parameters", "----------", parameters, "    Text.", "", "Returns", "-------", "Host"]
    text = "\n    ".join(lines)
    assert unknown_parameters(ast.parse(f'def f(host, *, seed):\n    """{text}"""')) == unknown


def test_variables_are_nouns() -> None:
    names = {path: pronouns(ast.parse(path.read_text(encoding="utf-8"))) for path in python_files(NAMED)}
    assert [f"{path.relative_to(ROOT)}:{name}" for path, lines in names.items() for name in lines] == []


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    texts = {path: wrong_docstrings(ast.parse(path.read_text(encoding="utf-8"))) for path in python_files(DESCRIBED)}
    assert [f"{path.relative_to(ROOT)}:{text}" for path, lines in texts.items() for text in lines] == []


@pytest.mark.parametrize(
    ("source", "refused"),
    [
        ("for one in hosts: pass", ["1: one"]),
        ("def f(found): pass", ["1: found"]),
        ("known = own = 1", ["1: known", "1: own"]),
        ("with open(x) as mine, open(y) as (some, every): pass", ["1: mine", "1: some", "1: every"]),
        ("if (of := 3): pass", ["1: of"]),
        ("x = [one\n for one in y]", ["2: one"]),
        ("x = [one for one in y]", []),
        ("x = sorted(y, key=lambda one: one.name)", []),
        ("class A:\n    own: int", []),
        ("known_hosts = 1", []),
    ],
)
def test_names_that_are_refused(source: str, refused: list[str]) -> None:
    assert pronouns(ast.parse(source)) == refused


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("Return the host.", True),
        ("Host of a rank.", True),
        ("Tell whether `a?b` matches.", True),
        ("Is it a host?", False),
        ("The same for hosts.", False),
        ("Whether it is a host.", False),
        ("What a host has.", False),
        ("As the tool prints it.", False),
    ],
)
def test_docstrings_that_are_refused(text: str, is_right: bool) -> None:
    assert (wrong_docstrings(ast.parse(f'def f():\n    """{text}"""')) == []) == is_right
    assert (wrong_docstrings(ast.parse(f'class A:\n    """{text}"""')) == []) >= is_right
