"""Launches that fail before there is a run: who prevents them is not of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_launches import FakeCluster, FakeSystem, Notes, asked_of, launches_of, no_answer
from test_relaunch import ASKED, HOSTS, but, met, pairs_of, stage

from fablint import flow
from fablint.errors import IncompleteError
from fablint.relaunch import MOST_LAUNCHES, Launches, without


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    fake = FakeCluster(FakeSystem(tmp_path / "home"))
    monkeypatch.setattr(flow, "measure", fake.measure)
    return fake


@pytest.fixture
def started(cluster: FakeCluster, tmp_path: Path) -> tuple[Launches, Notes]:
    return launches_of(cluster, ASKED, tmp_path / "a.run")


def test_a_host_that_prevents_the_first_launch_is_not_of_the_run(
    cluster: FakeCluster, started: tuple[Launches, Notes]
) -> None:
    cluster.unreached, cluster.silent = {"h2"}, {"h2"}
    launches, notes = started
    run = launches.begin(stage)
    assert list(run.hosts) == but("h2") == launches.asked.rank_hosts
    assert (run.state, launches.launches) == ("complete", 2)
    assert met(run) == pairs_of(but("h2"))
    assert "lost" not in run.attributes
    assert list(launches.crew.lost) == ["h2"]
    assert notes.said[-1].startswith("fablint: host h2 is left out")


def test_a_first_launch_that_nobody_can_be_blamed_for(cluster: FakeCluster, started: tuple[Launches, Notes]) -> None:
    cluster.unreached, cluster.refused = {"h2"}, "srun: error: no idea"
    launches, _ = started
    with pytest.raises(IncompleteError, match="no idea"):
        launches.begin(stage)
    assert not launches.output.exists()


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
    assert launches.crew.findings == []


def test_without_any_host_there_is_nothing_to_measure() -> None:
    with pytest.raises(IncompleteError, match="no host is left to be measured"):
        without(ASKED, HOSTS)


def test_where_no_two_hosts_make_a_pair(started: tuple[Launches, Notes]) -> None:
    launches, _ = started
    with pytest.raises(IncompleteError, match="no two hosts make a pair"):
        launches.begin(lambda _: None)


def test_hosts_that_go_one_after_the_other_end_it_some_time(
    cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = [f"h{number:02d}" for number in range(2 * MOST_LAUNCHES)]
    launches, _ = launches_of(cluster, asked_of(hosts), tmp_path / "a.run")
    cluster.unreached = set(hosts)
    going = iter(hosts)
    monkeypatch.setattr(launches.crew, "look", lambda present: {(host := next(going)): no_answer(host)})
    with pytest.raises(IncompleteError, match="no launch of 8 measured anything"):
        launches.begin(stage)
    assert launches.launches == MOST_LAUNCHES


def test_without_keeps_the_ranks_of_the_others() -> None:
    asked = without(asked_of(["a", "b", "c"], each=3), {"b", "x"})
    assert ([slot.host for slot in asked.slots], asked.ranks) == (["a", "c"], 6)
