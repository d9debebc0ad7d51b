"""fablint status RUN and fablint wait RUN: a run that is measured, has ended, was interrupted or was left behind."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fablint.errors import IncompleteError
from fablint.simulate import SimulatedFabric, SimulatedRow, fat_tree
from fablint.store import set_state, write_run
from fablint.store.checksums import ROOT, remove_checksums
from fablint.store.metadata import change_attributes
from fablint.system import System
from fablint.workflows import analysis, run_formats
from fablint.workflows.check.check_record import CheckRecord, save_check
from fablint.workflows.check.request import CheckRequest
from fablint.workflows.run_progress import SILENCE_S, await_run, progress_of
from fablint_command import Fablint
from pinned import pinned_by

PINNED = pinned_by("cli.toml", __file__)


@pytest.fixture
def fablint(fablint_in_process: Fablint) -> Fablint:
    return fablint_in_process


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "night.run"
    write_run(path, SimulatedFabric(fat_tree(4, 2), seed=3).measure(None, [SimulatedRow("latency", (8,))]))
    return path


def set_measuring(run: Path) -> None:
    """As the engine has it while it measures."""
    remove_checksums(run, ROOT)
    change_attributes(run, state="measuring")


def age(run: Path, seconds: float) -> None:
    then = time.time() - seconds
    for path in [run, *run.rglob("*")]:
        os.utime(path, (then, then))


def write_report(run: Path) -> int:
    made = run_formats.read(run)
    diagnosis = analysis.diagnose(made)
    analysis.write_report(made, diagnosis, analysis.page_of(run))
    return diagnosis.verdict.exit_code


def test_a_run_that_has_ended(fablint: Fablint, run: Path) -> None:
    done = fablint("status", "night.run", FABLINT_HOME="home")
    assert (done.returncode, done.stdout) == (0, PINNED["night.run complete 16 hosts"])
    assert fablint("wait", run, FABLINT_HOME="home").returncode == 0
    code = write_report(run)
    done = fablint("wait", "--json", "./night.run", FABLINT_HOME="home")
    facts = json.loads(done.stdout)
    assert (facts["word"], facts["exit_code"], done.returncode) == ("complete", code, code)


def test_a_run_that_was_interrupted(fablint: Fablint, run: Path) -> None:
    set_state(run, "interrupted")
    assert fablint("status", run, FABLINT_HOME="home").stdout.split()[1] == "interrupted"
    assert fablint("wait", run, FABLINT_HOME="home").returncode == 3


def test_a_run_that_is_measured_is_waited_for(run: Path) -> None:
    set_measuring(run)
    said: list[str] = []
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            set_state(run, "complete")

    progress = await_run(System(), said.append, run, pause)
    assert (progress.word, len(pauses) >= 2) == ("complete", True)
    assert said == [f"{run} measuring: 1 of 1 rows"]


def test_a_check_is_over_with_its_verdict(run: Path) -> None:
    """Each of its launches leaves a complete run behind."""
    save_check(CheckRecord(CheckRequest()), run)
    assert progress_of(System(), run).word == "measuring"
    code = write_report(run)
    progress = progress_of(System(), run)
    assert (progress.word, progress.exit_code) == ("complete", code)
    os.utime(run / "zarr.json", (time.time() + 5, time.time() + 5))  # it is resumed
    assert progress_of(System(), run).word == "measuring"


def test_a_check_before_its_first_launch(fablint: Fablint, tmp_path: Path) -> None:
    run = tmp_path / "new.run"
    run.mkdir()
    save_check(CheckRecord(CheckRequest()), run)
    assert fablint("status", run, FABLINT_HOME="home").stdout.split()[1:5] == ["measuring", "0", "hosts", "no"]


def test_a_run_that_was_left_behind(fablint: Fablint, run: Path) -> None:
    set_measuring(run)
    age(run, SILENCE_S + 60)
    assert fablint("status", run, FABLINT_HOME="home").stdout.split()[1] == "abandoned"
    done = fablint("wait", run, FABLINT_HOME="home")
    assert done.returncode == 3
    assert PINNED["nothing measures into"].filled(run=run).ends(done.stderr)
    with pytest.raises(IncompleteError):
        await_run(System(), print, run, time.sleep)


@pytest.mark.parametrize("verb", ["status", "wait"])
@pytest.mark.parametrize(
    ("make", "name", "why"),
    [
        (lambda _: None, "no.run", "does not exist"),
        (lambda path: path.mkdir(), "empty", "is no run directory"),
        (lambda path: path.write_text("x"), "file.run", "is no run directory"),
    ],
)
def test_what_is_no_run(
    fablint: Fablint, tmp_path: Path, make: Callable[[Path], object], name: str, why: str, verb: str
) -> None:
    make(tmp_path / name)
    done = fablint(verb, name, FABLINT_HOME="home")
    assert (done.returncode, done.stdout) == (2, "")
    said = f"{name}: {why}, and no job for it was submitted from here: give a run, or the id of a job"
    assert done.stderr == f"fablint: {said}\n"
