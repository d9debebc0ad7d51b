"""Launches that fail before there is a run: the hosts that prevent them are excluded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fake_launches import FakeCluster, Notes, launches_of, no_answer, request_of
from test_launches import HOSTS, REQUEST, but, met, pairs_of, stage

from fablint.errors import IncompleteError, NotStartedError
from fablint.model import Plan, State
from fablint.text.evidence_sentences import sentences
from fablint.workflows import measurement
from fablint.workflows.check.launches import MOST_LAUNCHES, Launches, without
from fablint.workflows.context import Context
from fablint.workflows.recovery.start_trials import MOST_SEARCHES
from pinned import pinned_by

PINNED = pinned_by("workflows.toml", __file__)


@pytest.fixture
def started(cluster: FakeCluster, tmp_path: Path) -> tuple[Launches, Notes]:
    return launches_of(cluster, REQUEST, tmp_path / "a.run")


def test_a_host_that_prevents_the_first_launch_is_not_of_the_run(
    cluster: FakeCluster, started: tuple[Launches, Notes]
) -> None:
    cluster.unreached, cluster.silent = {"h2"}, {"h2"}
    launches, notes = started
    run = launches.begin(stage)
    assert list(run.hosts) == but("h2") == launches.request.rank_hosts
    assert (run.state, launches.count) == ("complete", 2)
    assert met(run) == pairs_of(but("h2"))
    assert not run.facts.lost
    assert list(launches.recovery.failed_hosts) == ["h2"]
    assert notes.said[-1].startswith("fablint: host h2 is excluded")


@pytest.mark.parametrize("bad", HOSTS)
def test_a_host_that_answers_and_keeps_the_launch_from_starting_is_found_by_launches(
    cluster: FakeCluster, started: tuple[Launches, Notes], bad: str
) -> None:
    cluster.unreached, cluster.refused = {bad}, "connect() to 10.0.0.9 failed"
    launches, notes = started
    run = launches.begin(stage)
    assert list(run.hosts) == but(bad) == launches.request.rank_hosts
    assert (run.state, launches.count, launches.error) == ("complete", 2, "")
    assert met(run) == pairs_of(but(bad))
    (finding,) = launches.recovery.triage.findings
    assert (finding.state, finding.component, finding.name) == (State.FAULT, "host", bad)
    assert PINNED["launches that include"].begins(sentences(finding.evidence))
    assert "; 5 other hosts start" in sentences(finding.evidence)
    assert cluster.refused in sentences(finding.evidence)
    assert any("searching for hosts that keep the launch from starting" in one for one in notes.said)
    assert notes.said[0] == f"fablint: {cluster.refused}: looking for the host"  # and no advice of a single launch
    assert list(cluster.system.home_folder("scratch").iterdir()) == []


def test_a_host_that_the_launcher_names_is_launched_apart_from_the_others(
    cluster: FakeCluster, started: tuple[Launches, Notes]
) -> None:
    cluster.unreached, cluster.refused = {"h4"}, "connect() to 10.0.0.4:1024 failed: No route to host (113)"
    launches, notes = started
    launches.recovery.trials.addresses = {f"10.0.0.{number}": host for number, host in enumerate(HOSTS)}
    launches.begin(stage)
    assert list(launches.recovery.failed_hosts) == ["h4"]
    assert any(", h4 first, " in one for one in notes.said)
    assert all(len(one.hosts) <= 2 for one in cluster.launches[1:] if "h4" in one.hosts)


def test_where_no_two_hosts_start_the_launcher_is_named_and_no_host(
    cluster: FakeCluster, started: tuple[Launches, Notes]
) -> None:
    cluster.unreached, cluster.refused = set(HOSTS), "mpirun: error: no plugin"
    launches, _ = started
    with pytest.raises(IncompleteError, match=r"no launch starts, of two hosts either .* of 6 hosts.: .* no plugin"):
        launches.begin(stage)
    assert launches.recovery.triage.findings == []
    assert not launches.output.exists()


def test_a_first_launch_that_starts_when_it_is_repeated_costs_no_host(
    cluster: FakeCluster, started: tuple[Launches, Notes], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.unreached = {"h2"}

    def measure(*words: Any, **more: Any) -> measurement.MeasurementResult:
        if cluster.launches:
            cluster.unreached = set()
        return cluster.measure(*words, **more)

    monkeypatch.setattr(measurement, "measure", measure)
    launches, _ = started
    run = launches.begin(stage)
    assert (list(run.hosts), launches.recovery.triage.findings) == (HOSTS, [])


def test_a_launch_that_fails_again_and_again_while_all_hosts_start_ends_it(
    cluster: FakeCluster, started: tuple[Launches, Notes], monkeypatch: pytest.MonkeyPatch
) -> None:
    launches, _ = started

    def measure(
        context: Context, plan: Plan, output: Path, options: Sequence[str] = ()
    ) -> measurement.MeasurementResult:
        if output == launches.output:
            raise NotStartedError("it is too large")
        return cluster.measure(context, plan, output, options)

    monkeypatch.setattr(measurement, "measure", measure)
    with pytest.raises(IncompleteError, match="it is too large"):
        launches.begin(stage)
    assert launches.recovery.triage.findings == []
    assert launches.count == 2


def test_a_check_makes_so_many_searches_and_no_more(
    cluster: FakeCluster, started: tuple[Launches, Notes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host more keeps the launch from starting each time."""
    launches, _ = started

    def measure(
        context: Context, plan: Plan, output: Path, options: Sequence[str] = ()
    ) -> measurement.MeasurementResult:
        if output == launches.output:
            cluster.unreached = {HOSTS[launches.count - 1]}
        return cluster.measure(context, plan, output, options)

    monkeypatch.setattr(measurement, "measure", measure)
    with pytest.raises(IncompleteError, match="did not start"):
        launches.begin(stage)
    assert launches.recovery.trials.searches == MOST_SEARCHES
    assert list(launches.recovery.failed_hosts) == HOSTS[:MOST_SEARCHES]


def test_two_hosts_whose_path_keeps_the_launch_from_starting_are_named_as_a_path(
    cluster: FakeCluster, started: tuple[Launches, Notes]
) -> None:
    cluster.keeps_apart = {frozenset(("h1", "h4"))}
    launches, _ = started
    run = launches.begin(stage)
    host, route = launches.recovery.triage.findings
    assert (route.state, route.component) == (State.FAULT, "route")
    assert set(route.name.split("=")) == {"h1", "h4"}
    assert (host.state, host.component) == (State.NOT_JUDGED, "host")
    assert host.name in ("h1", "h4")
    assert list(run.hosts) == but(host.name)


def test_with_fewer_than_two_hosts_there_is_nothing_to_measure(
    cluster: FakeCluster, started: tuple[Launches, Notes]
) -> None:
    cluster.unreached = cluster.silent = set(but("h0"))
    launches, _ = started
    with pytest.raises(IncompleteError, match="h0 alone is left to be measured"):
        launches.begin(stage)


def test_where_no_host_answers_none_of_them_is_blamed(cluster: FakeCluster, started: tuple[Launches, Notes]) -> None:
    cluster.unreached = cluster.silent = set(HOSTS)
    cluster.refused = "the job has ended"
    launches, _ = started
    with pytest.raises(IncompleteError, match="the job has ended"):
        launches.begin(stage)
    assert launches.recovery.triage.findings == []


def test_without_any_host_there_is_nothing_to_measure() -> None:
    with pytest.raises(IncompleteError, match="no host is left to be measured"):
        without(REQUEST, HOSTS)


def test_where_no_two_hosts_make_a_pair(started: tuple[Launches, Notes]) -> None:
    launches, _ = started
    with pytest.raises(IncompleteError, match="no two hosts make a pair"):
        launches.begin(lambda _: None)


def test_hosts_that_go_one_after_the_other_end_it_some_time(
    cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = [f"h{number:02d}" for number in range(2 * MOST_LAUNCHES)]
    launches, _ = launches_of(cluster, request_of(hosts), tmp_path / "a.run")
    cluster.unreached = set(hosts)
    going = iter(hosts)
    monkeypatch.setattr(launches.recovery.triage, "look", lambda present: {(host := next(going)): no_answer(host)})
    with pytest.raises(IncompleteError, match="no launch of 8 measured anything"):
        launches.begin(stage)
    assert launches.count == MOST_LAUNCHES


def test_without_keeps_the_ranks_of_the_others() -> None:
    asked = without(request_of(["a", "b", "c"], each=3), {"b", "x"})
    assert ([slot.host for slot in asked.slots], asked.ranks) == (["a", "c"], 6)
