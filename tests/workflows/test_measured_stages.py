"""Stages of a check under the real MPIs: rows are added to the run of the first launch."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fablint.errors import IncompleteError, UsageError
from fablint.measure import NoProgress, session
from fablint.model import Plan, PlanRow, Slots
from fablint.plan.check.stages import Stage
from fablint.plan.rows.row_text import parse_row
from fablint.store import missing_rounds
from fablint.store.facts.table_arrays import write_texts
from fablint.system import System
from fablint.workflows import measurement, run_formats
from fablint.workflows.context import Context

RANKS = 4
FIRST = "latency --sizes 8 --name latency --pattern rounds --rounds-file rounds/stratified.txt --samples 3"
NEXT = "latency --sizes 8 --name latency-follow-up-1 --pattern rounds --rounds-file rounds/more.txt --samples 3"
ROUNDS = [np.array([[0, 1], [2, 3]]), np.array([[0, 2]])]


def stage(line: str, file: str, slots: tuple[Slots, ...] = ()) -> Stage:
    return Stage(Plan(RANKS, (PlanRow(parse_row(line.split()), len(ROUNDS), 1.0),), slots), {file: ROUNDS})


@pytest.fixture
def context(mpicxx) -> Context:
    return Context(System(), NoProgress(), mpicxx)


@pytest.fixture
def path(context, tmp_path) -> Path:
    """A run of two stages."""
    path = tmp_path / "a.run"
    first = measurement.measure_stage(context, stage(FIRST, "rounds/stratified.txt"), path)
    assert (first.exit_code, first.run.state) == (0, "complete")
    measurement.measure_stage(context, stage(NEXT, "rounds/more.txt"), path, first.run)
    return path


def test_the_next_stage_goes_into_the_same_run(path):
    run = run_formats.read(path)
    assert [row.name for row in run.rows] == ["latency", "latency-follow-up-1"]
    assert run.state == "complete"
    for row in run.rows:
        assert missing_rounds(row) == []
        assert row.arrays["dst"][:].tolist() == [[1, 2], [0, -1], [3, 0], [2, -1]]
    first, second = (row.arrays["started"][:] for row in run.rows)
    assert np.nanmax(first) < np.nanmin(second)  # one clock for all stages
    assert (path / "rounds" / "more.txt").read_text() == "0-1 2-3\n0-2\n"


def test_a_stage_that_was_not_begun_is_resumed_from_the_run_s_own_rounds(context, path, tmp_path):
    for chunk in (path / "latency-follow-up-1").rglob("*"):
        if chunk.is_file():
            chunk.unlink()
    moved = path.rename(tmp_path / "b.run")
    resumed = measurement.resume(context, moved)
    assert resumed is not None
    assert [missing_rounds(row) for row in resumed.run.rows] == [[], []]
    assert measurement.resume(context, moved) is None


def test_a_stage_that_cannot_start_leaves_nothing(context, tmp_path):
    good = stage(FIRST, "rounds/stratified.txt")
    spec = replace(good.plan.rows[0].spec, window=8)
    bad = replace(good, plan=replace(good.plan, rows=(PlanRow(spec, len(ROUNDS), 1.0),)))
    with pytest.raises(UsageError, match="--window does not apply to latency"):
        measurement.measure_stage(context, bad, tmp_path / "a.run")
    assert not (tmp_path / "a.run").exists()


def test_a_transport_that_is_refused_before_the_first_row_leaves_nothing(context, tmp_path):
    absent = stage(f"{FIRST} --memory hip", "rounds/stratified.txt")
    with pytest.raises(UsageError, match="libamdhip64"):
        measurement.measure_stage(context, absent, tmp_path / "a.run")
    assert not (tmp_path / "a.run").exists()


def test_of_several_memories_one_that_is_refused_leaves_nothing(context, tmp_path):
    lines = (f"{FIRST} --memory host", f"{FIRST.replace('--name latency', '--name on-gpus')} --memory hip")
    good, absent = (stage(line, "rounds/stratified.txt") for line in lines)
    both = replace(good, plan=replace(good.plan, rows=(*good.plan.rows, *absent.plan.rows)))
    with pytest.raises(UsageError, match="libamdhip64"):
        measurement.measure_stage(context, both, tmp_path / "a.run")
    assert not (tmp_path / "a.run").exists()


def test_a_run_of_other_hosts_does_not_grow(context, path):
    write_texts(path / "tables/hosts", "host", ["elsewhere"])
    (path / "checksums" / "zarr.json.sha256").unlink()
    before = run_formats.read(path)
    again = stage(NEXT.replace("follow-up-1", "follow-up-2"), "rounds/more.txt")
    with pytest.raises(UsageError, match="was started with other ranks or on other hosts"):
        measurement.measure_stage(context, again, path, before)
    assert run_formats.read(path).facts.rows == before.facts.rows


def test_a_check_of_this_machine_is_all_pairs_as_ever(fablint_program, mpicxx):
    chosen = ["--mpicxx", str(mpicxx)] if mpicxx else []
    done = fablint_program("-q", "check", "--local", "3", "--budget", "2s", "--json", "-o", "x.run", *chosen)
    verdict = json.loads(done.stdout)
    assert verdict["coverage"]["pairs_measured"] == verdict["coverage"]["pairs_planned"] > 0
    assert verdict["coverage"]["pairs_planned"] % 12 == 0  # repeats of 6 ordered pairs in two rows
    assert not any("undecided" in note["kind"] for note in verdict["notes"])


def test_a_launcher_that_does_not_reach_the_hosts_leaves_no_run(context, tmp_path, monkeypatch):
    """Slots that are on no machine: whatever the launcher says, there is one line and no directory."""
    monkeypatch.setattr(session, "START_S", 5.0)  # Hydra waits for ever
    away = stage(FIRST, "rounds/stratified.txt", tuple(Slots(f"no-such-host-{i}", 1) for i in range(RANKS)))
    with pytest.raises(IncompleteError):
        measurement.measure_stage(context, away, tmp_path / "a.run")
    assert not (tmp_path / "a.run").exists()
