"""The layout of the package: which modules a folder holds, and that each name stands once."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "fablint"
TABLES = (  # folders whose modules are entries of one table: named after the entry, and as many as there are entries
    "cli",
    "cluster/schedulers",
    "discover/sources",
    "measure/launchers",
    "preflight/checks",
    "report/tables",
    "simulate/fabrics",
    "snapshot/parsers",
    "store/export",
    "store/importing",
)
MOST_MODULES = 15
MOST_LINES = 400


def modules() -> list[Path]:
    """Return all modules but `__init__` and `__main__`."""
    return [path for path in sorted(PACKAGE.rglob("*.py")) if not path.stem.startswith("__")]


def is_in_table(path: Path) -> bool:
    folder = path.parent.relative_to(PACKAGE).as_posix()
    return any(folder == table or folder.startswith(f"{table}/") for table in TABLES)


def test_the_top_level_holds_the_package_three_modules_and_rooms():
    assert {path.stem for path in PACKAGE.glob("*.py")} == {"__init__", "errors", "version", "system"}


def test_no_folder_holds_more_than_fifteen_modules():
    counts: dict[str, int] = defaultdict(int)
    for path in modules():
        if not is_in_table(path):
            counts[path.parent.relative_to(PACKAGE).as_posix()] += 1
    assert {folder: count for folder, count in counts.items() if count > MOST_MODULES} == {}


def test_no_module_name_stands_twice():
    places: dict[str, list[str]] = defaultdict(list)
    for path in modules():
        if not is_in_table(path):
            places[path.stem].append(path.relative_to(PACKAGE).as_posix())
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_no_class_name_stands_twice():
    places: dict[str, list[str]] = defaultdict(list)
    for path in modules():
        if not is_in_table(path):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(path.relative_to(PACKAGE).as_posix())
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


@pytest.mark.parametrize("folder", ["src", "engine", "tests", "benchmarks"])
def test_every_file_has_fewer_than_four_hundred_lines(folder: str):
    root = PACKAGE.parents[1] / folder
    suffixes = (".py",) if folder != "engine" else (".cpp", ".hpp")
    lengths = {
        path.relative_to(root).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in root.rglob("*")
        if path.suffix in suffixes and "fixtures" not in path.parts
    }
    assert {path: count for path, count in lengths.items() if count > MOST_LINES} == {}
