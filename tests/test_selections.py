"""`make test` and `make test-long` together run every test once: those of the front end and those of the engine."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
TARGETS = ("test", "test-long")
LIBRARIES = ("openmpi", "mpich")


def commands(target: str) -> list[list[str]]:
    """The commands of a make target, as words; none of them is run."""
    argv = ["make", "--dry-run", "--no-print-directory", target]
    printed = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [words for line in printed.splitlines() if (words := shlex.split(line))]


class Selection(NamedTuple):
    """The marker expression with which a target starts pytest, and the folders behind it; without any, all."""

    expression: str
    folders: tuple[str, ...]

    def selects(self, test: str, marks: set[str]) -> bool:
        """Does it select a test with this id and these marks? A marker expression is one of Python too."""
        known = {name: name in marks for name in ("long", "alone")}
        inside = not self.folders or test.startswith(tuple(f"{folder}/" for folder in self.folders))
        return inside and bool(eval(self.expression, {"__builtins__": {}}, known))


def selections() -> list[Selection]:
    """Those of the two targets."""
    started = [words for target in TARGETS for words in commands(target) if words[0].endswith("/pytest")]
    assert all(words[1:].count("-m") == 1 for words in started), started
    behind = [words[words.index("-m") + 1 :] for words in started]
    return [Selection(expression, tuple(folders)) for expression, *folders in behind]


def test_every_test_is_selected_exactly_once(request, collected):
    """Of the tests that this session has collected: all, in CI."""
    assert request.node.nodeid in collected
    made = selections()
    selected = {test: [one for one in made if one.selects(test, marks)] for test, marks in collected.items()}
    assert {test: found for test, found in selected.items() if len(found) != 1} == {}


def engine_programs(target: str) -> list[str]:
    """What the engine's tests of a target start: library, build, program, ranks, cases."""
    started = [words for words in commands(target) if "engine/tests/run.sh" in words]
    selected = [words[words.index("engine/tests/run.sh") + 1] for words in started]
    return [program for selection in selected for program in programs_of(selection)]


def programs_of(selection: str) -> list[str]:
    argv = ["engine/tests/run.sh", selection, "--list"]
    environ = os.environ | {"FABLINT_TEST_MPI": " ".join(LIBRARIES)}
    return subprocess.run(argv, cwd=ROOT, env=environ, capture_output=True, text=True, check=True).stdout.splitlines()


def test_the_engine_s_tests_run_in_each_build_and_what_needs_no_second_library_runs_once():
    quick, long = (engine_programs(target) for target in TARGETS)
    shared = [("unit_tests", 1), *(("mpi_tests", ranks) for ranks in (1, 2, 3, 5))]
    assert quick == [f"{LIBRARIES[0]} plain {program} {ranks} all but long" for program, ranks in shared]
    every = [f"{LIBRARIES[0]} sanitized {program} {ranks} all" for program, ranks in (*shared, ("mpi_tests", 8))]
    every += [f"{LIBRARIES[1]} sanitized {program} {ranks} all but long" for program, ranks in shared[1:]]
    assert long == every


def test_the_unit_tests_of_the_engine_run_alone_after_a_change():
    assert programs_of("unit") == programs_of("quick")[:1]
