"""A check whose hosts have other names in the request than their ranks have for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_launches import FakeCluster, FakeSystem, every_pair, fabric, launches_of, request_of

import finding_cases
from fablint.model import Finding, Placement, State, Topology
from fablint.plan.check.suites import find_suite
from fablint.store import read_run
from fablint.workflows import analysis, measurement, run_files
from fablint.workflows.check.check_run import CheckOutcome
from fablint.workflows.check.level_runs import LevelRuns

FABRIC = fabric(3, 6)
HOSTS = tuple(FABRIC.host_switch)
Spelling = Callable[[int], str]  # of the host with this number


def short(number: int) -> str:
    return f"nid{number:06}"


def long(number: int) -> str:
    return f"nid{number:06}.hpc.example"


def mixed(number: int) -> str:
    return (short, long, lambda at: f"{long(at)}.", lambda at: long(at).upper())[number % 4](number)


def numbered(number: int) -> str:
    """The number is the second label: first labels are equal."""
    return f"mpi-worker.{number}.foo.net"


SPELLINGS: list[tuple[Spelling, Spelling]] = [
    (long, short),
    (short, long),
    (mixed, long),
    (numbered, lambda number: f"mpi-worker.{number}"),
    (lambda number: f"nid{number:06}.mgmt.example", lambda number: f"nid{number:06}.hsn.example"),
]


@dataclass
class SpelledCluster(FakeCluster):
    """Hosts that call themselves otherwise than the request does."""

    called: dict[str, str] = field(default_factory=dict)

    def _called(self, host: str) -> str:
        return self.called[host]


def check(
    folder: Path, requested: Spelling, called: Spelling, known: Sequence[Finding] = (), **more: Any
) -> tuple[CheckOutcome, LevelRuns]:
    names = {host: requested(number) for number, host in enumerate(HOSTS)}
    cluster = SpelledCluster(FakeSystem(folder / "home"), **more)
    cluster.called = {requested(number): called(number) for number in range(len(HOSTS))}
    topology = Topology(FABRIC.switches, {names[host]: at for host, at in FABRIC.host_switch.items()})
    launches, _ = launches_of(cluster, request_of(list(names.values()), topology), folder / "a.run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measurement, "measure", cluster.measure)
        level_runs = LevelRuns(launches, find_suite("quick"), known)
        return level_runs.check(), level_runs


@pytest.mark.parametrize(("requested", "called"), SPELLINGS)
def test_every_level_is_measured_and_every_host_has_a_switch(
    tmp_path: Path, requested: Spelling, called: Spelling
) -> None:
    """Host 3 is slow; host 8 dies in the level `local`."""
    checked, level_runs = check(tmp_path, requested, called, slow={requested(3): 2.0}, dies={requested(8): "local"})
    run = read_run(tmp_path / "a.run")
    assert {row.name.partition("-")[0] for row in run.rows} >= {"reach", "edge", "local", "global"}
    placement = Placement.of(run, run_files.load_topology(None, run))
    assert np.bincount(placement.switch).tolist() == [6, 6, 6]
    assert level_runs.exclusions.levels == {requested(3): "edge"}
    assert list(level_runs.launches.recovery.failed_hosts) == [requested(8)]
    for row in ("local-latency", "global-latency"):
        assert not any(called(3) in pair for _, pair in every_pair(run, row))
    verdict = checked.diagnosis.verdict
    faults = {one.name for one in verdict.findings if one.state is State.FAULT}
    assert faults == {called(3)}
    reported = [one for one in verdict.findings if one.state in (State.FAULT, State.SUSPECT)]
    assert sorted(name for one in reported for name in one.hosts) == [called(3), called(8)]  # each once
    again = analysis.diagnose(run, run_files.load_topology(None, run))
    assert {one.name for one in again.verdict.findings if one.state is State.FAULT} == faults


def test_an_additional_finding_about_a_host_of_another_spelling_excludes_it_not(tmp_path: Path) -> None:
    nic = finding_cases.finding(State.FAULT, "nic", f"{long(2)}/hsn0", evidence="MTU 1500, others 9000")
    checked, level_runs = check(tmp_path, long, short, known=[nic])
    assert level_runs.exclusions.levels == {}
    assert [one.name for one in checked.diagnosis.verdict.findings if one.state is State.FAULT] == [f"{short(2)}/hsn0"]
