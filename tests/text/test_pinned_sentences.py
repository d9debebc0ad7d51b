"""tests/pinned.py: long sentences of assertions are in tests/sentences, every one is used, and all can be renewed."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from renew_sentences import renew

from pinned import FOLDER, placed, successors

TESTS = Path(__file__).parents[1]
LONGEST = 40  # letters of a sentence that stands in an assertion
FEWEST_WORDS = 3
GROUPS = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.BoolOp, ast.ListComp, ast.SetComp, ast.IfExp, ast.Starred)


def is_long(text: str) -> bool:
    """Return whether a text is a sentence for tests/sentences: markup is not."""
    return len(text) > LONGEST and len(text.split()) >= FEWEST_WORDS and not text.startswith("<")


def constants(node: ast.AST) -> Iterator[str]:
    """Yield the texts of what an assertion expects; arguments of the function under test are not among them."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(part.value for part in node.values if isinstance(part, ast.Constant))
    elif isinstance(node, ast.Compare) and all(isinstance(op, ast.Eq | ast.In) for op in node.ops):
        for side in (node.left, *node.comparators):
            yield from constants(side)
    elif isinstance(node, GROUPS):
        for part in ast.iter_child_nodes(node):
            yield from constants(part)
    elif isinstance(node, ast.Call):
        name = ast.unparse(node.func).rpartition(".")[2]
        is_value = name[0].isupper()  # an object of what the function returns
        for argument in (*node.args, *(word.value for word in node.keywords)):
            if is_value or name in ("startswith", "endswith"):
                yield from constants(argument)


def long_sentences(source: str) -> list[str]:
    """Return the long sentences in the assertions of a file."""
    asserts = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert)]
    return [text for node in asserts for text in constants(node.test) if is_long(text)]


def used_keys(source: str) -> set[str]:
    """Return the names of sentences that a file uses."""
    return {
        str(node.slice.value)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Subscript)
        and ast.unparse(node.value) == "PINNED"
        and isinstance(node.slice, ast.Constant)
    }


def test_no_assertion_has_a_long_sentence() -> None:
    files = {path: long_sentences(path.read_text(encoding="utf-8")) for path in TESTS.rglob("*.py")}
    assert {str(path.relative_to(TESTS)): texts for path, texts in files.items() if texts} == {}


def test_every_sentence_is_used_and_every_used_one_is_there() -> None:
    sentences = {
        (path.stem, section): set(texts)
        for path in FOLDER.glob("*.toml")
        for section, texts in tomllib.loads(path.read_text(encoding="utf-8")).items()
    }
    files = [path for path in TESTS.rglob("test_*.py") if path.parent != TESTS]
    used = {
        (path.relative_to(TESTS).parts[0], path.stem): keys
        for path in files
        if (keys := used_keys(path.read_text(encoding="utf-8")))
    }
    assert used == sentences


@pytest.mark.parametrize(
    ("source", "number"),
    [
        ("assert text == 'a sentence of more than forty letters, whole'", 1),
        ("assert 'a sentence of more than forty letters, whole' in text", 1),
        ("assert a and f'a sentence of more than forty {letters}, or whole one' in text", 1),
        ("assert text.startswith('a sentence of more than forty letters, whole')", 1),
        ("assert found == [(1, 'a sentence of more than forty letters, whole')]", 1),
        ("assert found == {'a': Outcome('a sentence of more than forty letters, whole')}", 1),
        ("assert parsed('a sentence of more than forty letters, whole') == 3", 0),
        ("assert 'a sentence of more than forty letters, whole' not in text", 0),
        ("assert text == 'a short sentence'", 0),
        ("text = 'a sentence of more than forty letters, whole'", 0),
    ],
)
def test_sentences_that_are_refused(source: str, number: int) -> None:
    assert len(long_sentences(source)) == number


SENTENCES = """
[test_words]
whole = "host h1 is slow"
"part of" = "host h1 is slow, cable c1 as well"
begin = "host {name} is"
end = "slow, cable c1 as well"
member = "host h1 is slow"
"""

WORDS = """
from pinned import pinned_by

PINNED = pinned_by("words.toml", __file__)
SAID = "HOST h1 is slower than others"

def test_words():
    assert SAID == PINNED["whole"]
    assert PINNED["part of"] in "note: host h1 was slow, the cable c1 as well; look there"
    assert PINNED["begin"].filled(name="h1").begins("host h1 was slow")
    assert PINNED["end"].ends("it was slow, cables c1 and c2 too")
    assert {"other": 1, "a": ("x", PINNED["member"])} == {"other": 1, "a": ("x", "host h2 is slow")}
    assert "short" == "short"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with one test of sentences, all of which have changed."""
    tests = tmp_path / "tests"
    (tests / "sentences").mkdir(parents=True)
    shutil.copy(TESTS / "pinned.py", tests)
    hooks = "pytest_addoption, pytest_assertrepr_compare, pytest_configure"
    (tests / "conftest.py").write_text(f"from pinned import {hooks}\n")
    (tests / "sentences" / "words.toml").write_text(SENTENCES)
    (tests / "test_words.py").write_text(textwrap.dedent(WORDS))
    return tmp_path


def pytest_status(project: Path) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "tests"]
    return subprocess.run(command, cwd=project, capture_output=True, check=False).returncode


def test_a_changed_sentence_fails_until_it_is_renewed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = project / "tests" / "sentences" / "words.toml"
    assert pytest_status(project) == 1
    assert file.read_text() == SENTENCES
    monkeypatch.chdir(project)
    assert renew(["-q", "tests"], file.parent) == 0
    assert tomllib.loads(file.read_text())["test_words"] == {
        "whole": "HOST h1 is slower than others",
        "part of": "host h1 was slow, the cable c1 as well;",
        "begin": "host {name} was",
        "end": "slow, cables c1 and c2 too",
        "member": "host h2 is slow",
    }
    assert pytest_status(project) == 0


def test_what_fails_for_another_reason_stays_a_failure(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = project / "tests" / "test_words.py"
    words.write_text(words.read_text().replace('"short" == "short"', '"short" == "long"'))
    monkeypatch.chdir(project)
    assert renew(["-q", "tests"], project / "tests" / "sentences") == 1


def test_a_text_without_anything_similar_changes_no_sentence() -> None:
    pinned = placed("host h1 is slow", FOLDER / "text.toml", "test_words", "whole", {})
    assert list(successors(pinned, "12 of 13", True)) == [(pinned, None)]
    assert list(successors([1, pinned], [1, 3], False)) == [(pinned, None)]
