"""Kinds of evidence and of notes: each has typed fields and a sentence that uses them, and is made in one way only."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, Unpack, get_args, get_origin, get_type_hints

import pytest

from fablint.model import EvidenceRecord, Note
from fablint.text import evidence as seen, notes as noted
from fablint.text.evidence_sentences import sentence
from fablint.text.notes import note_text
from fablint.text.sentence_kind import StatementKind
from pinned import pinned_by

PINNED = pinned_by("text.toml", __file__)

SOURCE = Path(__file__).parents[2] / "src" / "fablint"
TEXT = SOURCE / "text"
FAMILIES = [*TEXT.glob("evidence/*_evidence.py"), *TEXT.glob("notes/*_notes.py")]
KINDS: dict[str, StatementKind[...]] = {f"seen.{name}": kind for name, kind in seen.KINDS.items()}
KINDS |= {f"noted.{name}": kind for name, kind in noted.KINDS.items()}
KIND_CLASSES = ("EvidenceRecord", "Note")
FOR_PROGRAMS = {"seen.check": {"value", "expected", "unit"}, "seen.alpha_beta": {"beta_s"}}  # that no sentence has


def example(hint: Any) -> Any:
    """Value of a type."""
    if get_origin(hint) is NotRequired:
        return example(get_args(hint)[0])
    if get_origin(hint) is Literal:
        return get_args(hint)[-1]
    if isinstance(hint, UnionType) or str(hint).startswith("typing.Optional"):
        return example(next(kind for kind in get_args(hint) if kind is not NoneType))
    if get_origin(hint) is not None:  # tuples and sequences
        return tuple(example(part) for part in get_args(hint) if part is not Ellipsis)
    return {int: 3, float: 0.25, str: "s1", bool: True}[hint]


def types_of(kind: StatementKind[...]) -> dict[str, Any]:
    """Types of the fields of a kind by their names."""
    if isinstance(kind.words, str):
        return dict(zip(kind.template_fields, get_args(kind.__orig_class__)[0], strict=True))  # type: ignore[attr-defined]
    found: dict[str, Any] = {}
    for name, hint in get_type_hints(kind.words).items():
        if name != "return":
            found |= get_type_hints(get_args(hint)[0]) if get_origin(hint) is Unpack else {name: hint}
    return found


def record_of(kind: Any) -> EvidenceRecord | Note:
    """Record of a kind with values of the types of its fields."""
    values = {name: example(hint) for name, hint in types_of(kind).items()}
    return kind(*values.values()) if isinstance(kind.words, str) else kind(**values)


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_has_a_sentence_of_its_fields_and_can_be_read_back(name: str) -> None:
    record = record_of(KINDS[name])
    assert record.kind == name.partition(".")[2] and record.values.keys() == types_of(KINDS[name]).keys()
    again = type(record).model_validate_json(record.model_dump_json())
    assert again == record
    assert words_of(again) == words_of(record) != ""


def words_of(record: EvidenceRecord | Note) -> str:
    return sentence(record) if isinstance(record, EvidenceRecord) else note_text(record)


@pytest.mark.parametrize("name", [name for name in KINDS if not isinstance(KINDS[name].words, str)])
def test_each_field_of_a_function_is_in_its_sentence(name: str) -> None:
    (function,) = ast.parse(inspect.getsource(KINDS[name].words)).body  # type: ignore[arg-type]
    assert isinstance(function, ast.FunctionDef)
    parameters = [*function.args.kwonlyargs, *filter(None, [function.args.kwarg])]
    used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    assert {parameter.arg for parameter in parameters} - used == FOR_PROGRAMS.get(name, set())
    assert not function.args.args, "fields of a function are passed by name"


def test_each_kind_is_in_one_family() -> None:
    for folder, kinds in (("evidence", seen.KINDS), ("notes", noted.KINDS)):
        names = [
            name
            for path in FAMILIES
            if path.parent.name == folder
            for node in ast.parse(path.read_text()).body
            for name in assigned(node)
            if name in kinds
        ]
        assert sorted(names) == sorted(kinds)


def assigned(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [node.name] if isinstance(node, ast.FunctionDef) else []


@cache
def other_modules() -> dict[str, list[ast.AST]]:
    """The nodes of all modules but those of the families, by path."""
    return {
        path.relative_to(SOURCE).as_posix(): list(ast.walk(ast.parse(path.read_text())))
        for path in SOURCE.rglob("*.py")
        if path.parent not in (TEXT / "evidence", TEXT / "notes")
    }


def test_only_kinds_make_evidence_and_notes_and_all_are_made() -> None:
    made, used = set(), set()
    for path, nodes in other_modules().items():
        for node in nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in KIND_CLASSES:
                made.add(path)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used.add(f"{node.value.id}.{node.attr}")
    assert made == {"text/sentence_kind.py"}
    assert used >= KINDS.keys()


def _is_of_a_kind(function: ast.expr) -> bool:
    """Is it `seen.x` or `noted.x`?"""
    return isinstance(function, ast.Attribute) and ast.unparse(function.value).partition(".")[0] in ("seen", "noted")


def unpacked(nodes: list[ast.AST]) -> Iterator[tuple[ast.Call, str]]:
    """Calls of kinds in which a mapping is unpacked, with its name, or that of the function that returns it."""
    for node in nodes:
        if isinstance(node, ast.Call) and _is_of_a_kind(node.func):
            for keyword in node.keywords:
                if keyword.arg is None:
                    value = keyword.value
                    yield node, f"{ast.unparse(value.func)}()" if isinstance(value, ast.Call) else ast.unparse(value)


def test_no_mapping_hides_a_missing_field() -> None:
    """A mapping that is unpacked into a call is a TypedDict, of which mypy knows the fields."""
    for path, nodes in other_modules().items():
        calls = list(unpacked(nodes))
        if not calls:
            continue
        names = {
            ast.unparse(node.target): ast.unparse(node.annotation) for node in nodes if isinstance(node, ast.AnnAssign)
        }
        names |= {
            f"{node.name}()": ast.unparse(node.returns)
            for node in nodes
            if isinstance(node, ast.FunctionDef) and node.returns
        }
        for call, name in calls:
            assert names.get(name, "").endswith("Fields"), (path, ast.unparse(call))


def test_a_kind_has_the_number_of_values_of_its_template() -> None:
    with pytest.raises(ValueError, match="longer"):
        seen.few_hosts(3, 4)  # type: ignore[call-arg]


def test_numbers_of_evidence_are_numbers() -> None:
    record = seen.populations(counts=(3,), names=("n[1-3]",), effects=(-0.25,), others=9, usual="n[4-12]")
    assert json.loads(record.model_dump_json())["values"]["effects"] == [-0.25]
    assert sentence(record) == PINNED["3 hosts (n 1-3 ) -25.0%"]


def test_values_that_are_none_are_left_out() -> None:
    record = seen.check(message="no answer").measured_in("latency", 8)
    assert dict(record.values) == {"message": "no answer"}
    assert sentence(record) == "latency 8 B: no answer"


def test_a_note_has_its_measurement_before_its_sentence() -> None:
    note = noted.contention(low=1.5, high=12.0).measured_in("bandwidth", 1 << 20)
    assert PINNED["bandwidth 1 MiB: pairs"].begins(note_text(note))


def test_a_note_of_an_earlier_format_is_a_message() -> None:
    assert Note.model_validate("the run was interrupted") == noted.message("the run was interrupted")
