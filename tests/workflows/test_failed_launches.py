"""Launches that fail although earlier ones of the same verb worked, with a launcher that is real until then."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from test_measured_stages import FIRST, NEXT, stage

from fablint.errors import NotStartedError
from fablint.measure import Choice, Mpiexec, NoProgress, find_mpiexec
from fablint.store import missing_rounds, read_run
from fablint.system import System
from fablint.workflows import measurement
from fablint.workflows.context import Context
from fablint_command import Fablint
from tested_mpis import built_engine, tested_mpis as installed_mpis

# A launcher that fails while the file FAILS is beside it, as the shell commands in that file do.
SCRIPT = """#!/bin/sh
echo launch >>"$0.log"
case "$*" in *--version*) ;; *) if [ -e "${0%/*}/FAILS" ]; then . "${0%/*}/FAILS"; fi;; esac
exec LAUNCHER "$@"
"""
ENDS = {
    "exit 0": "it started no rank and printed no message",
    "echo out of resource >&2; exit 1": "out of resource",
    "kill -9 $$": r"it was ended by signal 9 \(Killed\)",
}


def failing(folder: Path, real: Path) -> Path:
    folder.mkdir()
    program = folder / real.name
    program.write_text(SCRIPT.replace("LAUNCHER", str(real)))
    program.chmod(0o755)
    return program


@pytest.fixture
def real() -> Mpiexec:
    """The launcher of the first MPI library."""
    return find_mpiexec(System(), built_engine(installed_mpis()[0]).mpicxx)


@pytest.mark.parametrize("end", ENDS)
def test_a_later_launch_that_starts_no_rank_is_an_error_and_leaves_the_run(
    tmp_path: Path, real: Mpiexec, end: str
) -> None:
    launcher = failing(tmp_path / "bin", real.path)
    context = Context(System(), NoProgress(), built_engine(installed_mpis()[0]).mpicxx, str(launcher))
    path = tmp_path / "a.run"
    first = measurement.measure_stage(context, stage(FIRST, "rounds/stratified.txt"), path)
    (launcher.parent / "FAILS").write_text(end)
    with pytest.raises(NotStartedError, match=f"{launcher} failed: {ENDS[end]}: this launch measured nothing"):
        measurement.measure_stage(context, stage(NEXT, "rounds/more.txt"), path, first.run)
    assert [row.name for row in read_run(path).rows] == ["latency"]
    (launcher.parent / "FAILS").unlink()
    measurement.measure_stage(context, stage(NEXT, "rounds/more.txt"), path, first.run)
    assert [missing_rounds(row) for row in read_run(path).rows] == [[], []]


def test_the_launcher_that_worked_is_tried_first_and_another_one_where_it_fails(
    tmp_path: Path, real: Mpiexec, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = built_engine(installed_mpis()[0])
    launchers = [replace(real, path=failing(tmp_path / name, real.path)) for name in ("a", "b")]
    chosen = (engine, Choice(tuple(launchers)))
    monkeypatch.setattr(measurement, "_engine_and_launchers", lambda context, plan: chosen)
    fails = [one.path.parent / "FAILS" for one in launchers]
    context, path = Context(System(), NoProgress()), tmp_path / "x.run"

    def launched() -> list[int]:
        logs = (one.path.with_name(f"{one.path.name}.log") for one in launchers)
        return [len(log.read_text().split()) if log.exists() else 0 for log in logs]

    fails[0].write_text("exit 0")
    run = measurement.measure_stage(context, stage(FIRST, "rounds/stratified.txt"), path).run
    assert launched() == [1, 1]
    fails[0].unlink()
    measurement.measure_stage(context, stage(FIRST, "rounds/stratified.txt"), tmp_path / "y.run")
    assert launched() == [1, 2]
    fails[1].write_text("exit 1")
    measurement.measure_stage(context, stage(NEXT, "rounds/more.txt"), path, run)
    assert launched() == [2, 3]


@pytest.mark.parametrize("end", ENDS)
def test_a_check_of_this_machine_whose_launcher_fails_gives_its_reason(
    fablint: Fablint, tmp_path: Path, real: Mpiexec, end: str
) -> None:
    launcher = failing(tmp_path / "bin", real.path)
    (launcher.parent / "FAILS").write_text(end)
    mpicxx = built_engine(installed_mpis()[0]).mpicxx or os.devnull
    done = fablint("-q", "check", "--local", "2", "--launcher", launcher, "--mpicxx", mpicxx, "-o", "x.run")
    assert done.returncode == 3
    assert done.stderr.startswith(f"fablint: {launcher} failed: {ENDS[end]}".replace("\\", ""))
    assert not (tmp_path / "x.run").exists()
