"""The layout of preflight: rooms above each other, checks that are rows, facts that are parsed below it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from fablint.preflight import CHECKS
from fablint.preflight.check import Check

SOURCE = Path(__file__).parents[2] / "src"
FOLDER = SOURCE / "fablint" / "preflight"
PACKAGE = "fablint.preflight"
MOST_FLOORS = 8


def modules() -> dict[str, ast.Module]:
    """Syntax trees of all modules, by name."""
    paths = {".".join(path.relative_to(SOURCE).with_suffix("").parts): path for path in FOLDER.rglob("*.py")}
    return {name.removesuffix(".__init__"): ast.parse(path.read_text()) for name, path in paths.items()}


def imported(tree: ast.Module, names: Mapping[str, object]) -> Iterator[str]:
    """Modules of preflight that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for item in node.names:
                whole = f"{node.module}.{item.name}"
                yield from (name for name in (whole, node.module) if name in names)


def room_of(name: str) -> str:
    """A module of preflight itself, or a folder below it: what `farm-studio look` draws as a box."""
    folder = name.rpartition(".")[0]
    is_folder = (SOURCE / Path(*name.split("."))).is_dir()
    return name if is_folder or folder == PACKAGE else folder


def test_preflight_has_at_most_eight_floors() -> None:
    trees = modules()
    below: dict[str, set[str]] = {room_of(name): set() for name in trees}
    for name, tree in trees.items():
        below[room_of(name)] |= {room_of(other) for other in imported(tree, trees)} - {room_of(name), PACKAGE}

    @cache
    def floor(room: str) -> int:
        return 1 + max(map(floor, below[room]), default=0)

    floors = {room: floor(room) for room in below}
    assert max(floors.values()) <= MOST_FLOORS, floors


def test_no_check_takes_facts_from_another_module_of_checks() -> None:
    trees = {name: tree for name, tree in modules().items() if name.startswith(f"{PACKAGE}.checks.")}
    assert {name: [*found] for name, tree in trees.items() if any(found := [*imported(tree, trees)])} == {}


def test_texts_are_parsed_in_snapshot() -> None:
    """No module of preflight has a regular expression; patterns of log lines are texts in tables."""
    found = [name for name, tree in modules().items() for node in ast.walk(tree) if isinstance(node, ast.Import)
             for item in node.names if item.name == "re"]  # fmt: skip
    assert found == []


def test_every_check_is_a_row() -> None:
    assert all(type(check) is Check for check in CHECKS)
    assert Check.__subclasses__() == []


def test_fleets_and_checks_stand_below_the_pings() -> None:
    trees = modules()
    for name in ("host", "fleet", "check"):
        assert [other for other in imported(trees[f"{PACKAGE}.{name}"], trees) if ".pings" in other] == []
