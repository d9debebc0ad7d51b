"""Launches without a message of the engine: whatever their exit status, they have measured nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from test_session import FAKE, PLAN, FakeLauncher, Recorded

from fablint.measure import Engine, EngineOutcome, Mpiexec, run_engine, run_on_first
from pinned import pinned_by

PINNED = pinned_by("measure.toml", __file__)

ENGINE = Engine("key", FAKE, Path("mpicxx"), "", (), "", "")


@pytest.fixture
def play(staged, tmp_path):
    """Run the fake engine through a script; returns the outcome."""

    def run(*script: str) -> tuple[EngineOutcome, Recorded]:
        staged.variables["FAKE_ENGINE_SCRIPT"] = "\n".join(script)
        mpiexec, shown = Mpiexec(Path(sys.executable), FakeLauncher(), "fake"), Recorded()
        return run_engine(staged, shown, mpiexec, ENGINE, PLAN, tmp_path / "x.run"), shown

    return run


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (["exit 0"], "it started no rank and printed no message"),
        (["exit 1"], "exit status 1"),
        (["exit 3"], "exit status 3"),
        (["launcher-says no plugin", "exit 1"], "no plugin"),
        (["launcher-says no plugin", "exit 0"], "no plugin"),
        (["die 9"], "it was ended by signal 9 (Killed)"),
    ],
)
def test_a_launch_without_a_message_of_the_engine_has_measured_nothing_also_into_an_earlier_run(
    play, tmp_path, script, reason
):
    (tmp_path / "x.run").mkdir()
    (tmp_path / "x.run" / "zarr.json").write_text("{}")
    outcome, _ = play(*script)
    assert (outcome.status, outcome.error) == (3, f"{sys.executable} failed: {reason}")
    assert outcome.is_disconnected
    assert outcome.launcher is None


@pytest.mark.parametrize("error", ["1 rank of 2 was started", "ranks 1 of 2 did not join at 10.0.0.1:2 within 5 s"])
def test_ranks_that_report_others_as_missing_did_not_start(play, error):
    outcome, _ = play(f"say error: {error}", "exit 2")
    assert outcome.launcher is None
    outcome, _ = play("say error: a file is missing", "exit 2")
    assert outcome.launcher == Path(sys.executable)


def test_where_no_launcher_connects_the_ranks_the_reason_of_each_is_given(staged, tmp_path):
    launchers, shown = [], Recorded()
    for name, end in (("a", "echo no plugin; exit 1"), ("b", "echo 'PMIX ERROR: x' >&2; exit 0")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{end}\n")
        (tmp_path / name).chmod(0o755)
        launchers.append(Mpiexec(tmp_path / name, FakeLauncher(), "fake"))
    outcome = run_on_first(staged, shown, launchers, ENGINE, PLAN, tmp_path / "x.run")
    assert outcome.error == PINNED["tmp_path /a failed: no plugin"].filled(tmp_path=tmp_path)
    assert outcome.launcher_output == ("no plugin", "PMIX ERROR: x")
    assert (outcome.status, outcome.launcher) == (3, None)
    assert shown.notes == [PINNED["a is replaced by tmp_path"].filled(tmp_path=tmp_path)]
