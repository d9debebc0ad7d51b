"""Launches that do not start although earlier ones did: in a later level, or when a run is resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_launches import FakeCluster, Notes, fabric as fake_fabric, launches_of, request_of
from test_launches import HOSTS, REQUEST, but, met, pairs_of, stage

from fablint.discover import write_topology
from fablint.errors import NotStartedError
from fablint.plan.check.suites import find_suite
from fablint.workflows import measurement
from fablint.workflows.check.check_record import CheckRecord, load_check
from fablint.workflows.check.launches import Launches
from fablint.workflows.check.level_runs import LevelRuns
from fablint.workflows.check.request import CheckRequest
from fablint.workflows.run_files import load_levels
from finding_cases import note_texts
from pinned import pinned_by

PINNED = pinned_by("workflows.toml", __file__)


@pytest.fixture
def started(cluster: FakeCluster, tmp_path: Path) -> tuple[Launches, Notes]:
    return launches_of(cluster, REQUEST, tmp_path / "a.run")


def test_a_launch_that_does_not_start_any_more_costs_the_host_that_prevents_it(
    cluster: FakeCluster, started: tuple[Launches, Notes]
) -> None:
    launches, _ = started
    run = launches.begin(stage)
    cluster.unreached, cluster.refused = {"h2"}, "ssh: connect to host h2: No route to host"
    run, going = launches.add(stage(REQUEST, "local"), run)
    assert (going, launches.error) == (True, "")
    assert list(launches.recovery.failed_hosts) == ["h2"]
    assert run.state == "complete"
    assert (met(run), met(run, "local-latency")) == (pairs_of(HOSTS), pairs_of(but("h2")))


def test_a_launch_of_which_nothing_starts_any_more_keeps_the_run(
    cluster: FakeCluster, started: tuple[Launches, Notes]
) -> None:
    launches, _ = started
    run = launches.begin(stage)
    cluster.unreached, cluster.refused = set(HOSTS), "the job has ended"
    run, going = launches.add(stage(REQUEST, "local"), run)
    assert not going
    assert launches.error.startswith("no launch starts, of two hosts either")
    assert launches.recovery.triage.findings == []
    assert [row.name for row in run.rows] == ["edge-latency"]
    assert run.state == "interrupted"


@pytest.mark.parametrize("launch", [2, 3])
def test_a_level_that_does_not_start_is_in_the_verdict_and_measured_by_resume(
    cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launch: int
) -> None:
    fabric = fake_fabric()
    request = request_of(list(fabric.host_switch), fabric)
    launches, _ = launches_of(cluster, request, tmp_path / "a.run")
    record = CheckRecord(CheckRequest(), topology=write_topology(fabric))
    state = {"fails": True}

    def measure(*words: Any, **more: Any) -> measurement.MeasurementResult:
        if state["fails"] and len(cluster.measuring) >= launch:
            raise NotStartedError("mpirun failed: PMIX ERROR: OUT-OF-RESOURCE")
        return cluster.measure(*words, **more)

    monkeypatch.setattr(measurement, "measure", measure)
    outcome = LevelRuns(launches, find_suite("quick"), record=record).check()
    verdict = outcome.diagnosis.verdict
    assert (verdict.verdict, verdict.exit_code, outcome.run.state) == ("incomplete", 3, "interrupted")
    (note,) = [note for note in note_texts(verdict) if note.startswith("not all was measured: ")]
    assert PINNED["mpirun failed: PMIX ERROR"].ends(note)
    assert outcome.error.endswith(f": go on with fablint resume {launches.output}")
    kept = load_check(launches.output)
    assert kept is not None
    assert not kept.ended
    state["fails"] = False
    again, _ = launches_of(cluster, request, launches.output)
    resumed = LevelRuns(again, find_suite("quick"), record=kept, planned=list(load_levels(outcome.run)))
    outcome = resumed.check(outcome.run)
    assert (outcome.diagnosis.verdict.verdict, outcome.run.state, outcome.error) == ("pass", "complete", "")


def test_a_resumed_run_that_does_not_start_costs_the_host_that_prevents_it(
    cluster: FakeCluster, started: tuple[Launches, Notes]
) -> None:
    launches, _ = started
    cluster.stop_after = 4
    run = launches.begin(stage)
    assert run.state != "complete"
    cluster.stop_after, cluster.unreached = None, {"h3"}
    again, _ = launches_of(cluster, REQUEST, launches.output)
    run, going = again.finish(stage(REQUEST), run)
    assert (going, again.error, run.state) == (True, "", "complete")
    assert list(again.recovery.failed_hosts) == ["h3"]
    assert pairs_of(but("h3")) <= met(run)


def test_a_later_launch_that_starts_when_it_is_repeated_is_measured(
    cluster: FakeCluster, started: tuple[Launches, Notes], monkeypatch: pytest.MonkeyPatch
) -> None:
    launches, _ = started
    run = launches.begin(stage)
    fails = iter([True])

    def measure(*words: Any, **more: Any) -> measurement.MeasurementResult:
        if next(fails, False):
            raise NotStartedError("it crashed")
        return cluster.measure(*words, **more)

    monkeypatch.setattr(measurement, "measure", measure)
    run, going = launches.add(stage(REQUEST, "local"), run)
    assert (going, launches.error, launches.recovery.triage.findings) == (True, "", [])
    assert met(run, "local-latency") == pairs_of(HOSTS)
