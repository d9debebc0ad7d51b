"""Launches that fail because of hosts: which hosts are lost, what is measured without them, and how the run ends."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_launches import (
    LAUNCH_S,
    FakeCluster,
    Notes,
    every_pair,
    launches_of,
    no_answer,
    one_row,
    request_of,
)

from fablint.model import Finding, Run, State
from fablint.plan.check.plan_input import PlanInput
from fablint.plan.check.stages import Stage, all_rounds
from fablint.store import read_run
from fablint.workflows import analysis, measurement
from fablint.workflows.check.launches import Launches
from fablint.workflows.recovery.host_triage import MOST_REPEATS
from fact_cases import attributes_of
from finding_cases import texts
from pinned import pinned_by

PINNED = pinned_by("workflows.toml", __file__)

HOSTS = [f"h{number}" for number in range(6)]
REQUEST = request_of(HOSTS)
ROUNDS = all_rounds(REQUEST.placement(), 2, seed=1)

Started = tuple[Launches, Notes]


@pytest.fixture
def started(cluster: FakeCluster, tmp_path: Path) -> Started:
    return launches_of(cluster, REQUEST, tmp_path / "a.run")


def stage(asked: PlanInput, name: str = "edge") -> Stage:
    """Every pair of the hosts twice."""
    return one_row(asked, all_rounds(asked.placement(), 2, seed=1), name)


def met(run: Run, row: str = "edge-latency") -> set[frozenset[str]]:
    return {pair for _, pair in every_pair(run, row)}


def pairs_of(hosts: Sequence[str]) -> set[frozenset[str]]:
    return {frozenset(pair) for pair in combinations(hosts, 2)}


def but(*lost: str) -> list[str]:
    return [host for host in HOSTS if host not in lost]


def rounds_of(run: Run, row: str = "edge-latency") -> dict[frozenset[str], set[int]]:
    """The rounds in which each two hosts were measured."""
    found: dict[frozenset[str], set[int]] = {}
    for at, pair in every_pair(run, row):
        found.setdefault(pair, set()).add(at)
    return found


def planned(hosts: Sequence[str]) -> dict[frozenset[str], set[int]]:
    found: dict[frozenset[str], set[int]] = {pair: set() for pair in pairs_of(hosts)}
    for at, pairs in enumerate(ROUNDS):
        for a, b in pairs.tolist():
            pair = frozenset((HOSTS[a], HOSTS[b]))
            if pair in found:
                found[pair].add(at)
    return found


# ------------------------------------------------------------------------------------------------ no host is lost


def test_a_launch_that_loses_no_host_is_the_only_one(cluster: FakeCluster, started: Started) -> None:
    launches, notes = started
    run = launches.begin(stage)
    assert (run.state, launches.count, launches.error, notes.said) == ("complete", 1, "", [])
    assert rounds_of(run) == planned(HOSTS)
    assert cluster.launches[0].options == ("--watchdog", "20")
    assert not (launches.output / "launches").exists()


def test_a_further_stage_goes_into_the_same_run(cluster: FakeCluster, started: Started) -> None:
    launches, _ = started
    run, going = launches.add(stage(REQUEST, "local"), launches.begin(stage))
    assert going
    assert [row.name for row in run.rows] == ["edge-latency", "local-latency"]
    assert cluster.launches[1].rows["edge-latency"] == {}
    assert "--resume" in cluster.launches[1].options
    first, second = (np.nanmax(row.arrays["started"][:]) for row in run.rows)
    assert second - first > LAUNCH_S  # one clock


# ------------------------------------------------------------------------------------------------ a rank dies


def test_a_host_whose_rank_died_once_is_measured_with_all_others(
    cluster: FakeCluster, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.dies["h4"] = "edge"
    look = cluster.look

    def fake_look(hosts: Collection[str]) -> Mapping[str, Finding]:
        cluster.dies.clear()
        return look(hosts)

    launches, _ = started
    monkeypatch.setattr(launches.recovery.triage, "look", fake_look)
    run = launches.begin(stage)
    assert rounds_of(run) == planned(HOSTS)
    assert (run.state, launches.count, launches.error) == ("complete", 2, "")
    assert launches.recovery.triage.findings == []
    verdict = analysis.diagnose(run, None).verdict
    assert [one for one in verdict.findings if one.state in (State.FAULT, State.SUSPECT)] == []
    assert [entry.host for entry in run.facts.lost] == ["h4"]


def test_a_host_whose_rank_dies_again_is_left_out_and_the_rest_measured(cluster: FakeCluster, started: Started) -> None:
    cluster.dies["h4"] = "edge"
    launches, notes = started
    run = launches.begin(stage)
    assert rounds_of(run) == planned(but("h4"))
    assert [one.hosts for one in cluster.launches] == [tuple(HOSTS), tuple(HOSTS), tuple(but("h4"))]
    assert (run.state, attributes_of(run.row("edge-latency"))["state"]) == ("complete", "complete")
    assert {entry.host for entry in run.facts.lost} == {"h4"}
    assert list(launches.recovery.failed_hosts) == ["h4"]
    assert launches.recovery.failed_hosts["h4"].state is State.SUSPECT
    assert (launches.count, launches.error) == (3, "")
    assert PINNED["host h4 is excluded: a rank"].begins(notes.said[-1])


def test_what_was_measured_before_stays_and_is_not_measured_again(cluster: FakeCluster, started: Started) -> None:
    cluster.dies["h4"] = "edge"
    launches, _ = started
    first_of_h4 = min(at for pair, rounds in planned(HOSTS).items() if "h4" in pair for at in rounds)
    run = launches.begin(stage)
    again = cluster.launches[2].rows["edge-latency"]
    assert sorted(again) == list(range(first_of_h4, len(ROUNDS)))
    assert not any("h4" in pair for pairs in again.values() for pair in pairs)
    began = np.asarray(run.row("edge-latency").arrays["started"][:])
    assert np.isfinite(began).sum() == 2 * sum(map(len, planned(but("h4")).values()))
    assert np.nanmin(began[:, first_of_h4:]) >= LAUNCH_S  # the clock of the first launch


def test_the_parts_become_part_of_the_run(cluster: FakeCluster, started: Started) -> None:
    cluster.dies["h4"] = "edge"
    launches, _ = started
    launches.begin(stage)
    assert cluster.launches[1].output == launches.output / "launches" / "1.run"
    assert list((launches.output / "launches").iterdir()) == []
    assert {row.name for row in read_run(launches.output).rows} == {"edge-latency"}


def test_further_stages_are_measured_without_the_host(cluster: FakeCluster, started: Started) -> None:
    cluster.dies["h4"] = "edge"
    launches, _ = started
    run, going = launches.add(stage(REQUEST, "local"), launches.begin(stage))
    assert going
    assert rounds_of(run, "local-latency") == planned(but("h4"))
    assert [one.hosts for one in cluster.launches[3:]] == [tuple(but("h4"))]
    assert run.facts.rows == ["edge-latency", "local-latency"]
    assert run.state == "complete"


def test_several_hosts_die_one_after_the_other(cluster: FakeCluster, started: Started) -> None:
    cluster.dies |= {"h1": "edge", "h4": "edge", "h5": "edge"}
    launches, _ = started
    run = launches.begin(stage)
    assert set(launches.recovery.failed_hosts) == {"h1", "h4", "h5"}
    assert rounds_of(run) == planned(but("h1", "h4", "h5"))
    assert (run.state, launches.count) == ("complete", 4 + MOST_REPEATS)


def test_a_host_that_dies_in_a_later_stage(cluster: FakeCluster, started: Started) -> None:
    cluster.dies["h2"] = "local"
    launches, _ = started
    run, going = launches.add(stage(REQUEST, "local"), launches.begin(stage))
    assert going
    assert rounds_of(run) == planned(HOSTS)
    assert rounds_of(run, "local-latency") == planned(but("h2"))
    assert list(launches.recovery.failed_hosts) == ["h2"]


def test_only_two_are_left(cluster: FakeCluster, started: Started) -> None:
    """The run is complete: no other pair can be measured."""
    cluster.dies |= dict.fromkeys(but("h0"), "edge")
    launches, _ = started
    run = launches.begin(stage)
    assert run.state == "complete"
    assert len(launches.recovery.failed_hosts) == 5
    assert all("h0" in pair or len(pair) == 2 for pair in met(run))


# ------------------------------------------------------------------------------------------------ hosts are asked


def test_a_host_that_does_not_answer_is_believed_to_be_the_one(cluster: FakeCluster, started: Started) -> None:
    """Whichever host the launch reports, and without a trial."""
    cluster.mute, cluster.silent, cluster.reports = {"h3"}, {"h3"}, but("h3")
    launches, notes = started
    run = launches.begin(stage)
    assert launches.recovery.failed_hosts == {"h3": no_answer("h3")}
    assert cluster.trials == []
    assert rounds_of(run) == planned(but("h3"))
    assert notes.said[-1] == PINNED["host h3 is excluded: no answer"]


def test_several_that_do_not_answer_are_left_out_at_once(cluster: FakeCluster, started: Started) -> None:
    cluster.mute, cluster.silent = {"h1", "h3"}, {"h1", "h3"}
    launches, _ = started
    run = launches.begin(stage)
    assert set(launches.recovery.failed_hosts) == {"h1", "h3"}
    assert (launches.count, run.state) == (2, "complete")
    assert rounds_of(run) == planned(but("h1", "h3"))


# ------------------------------------------------------------------------------------------------ a launch stalls


def test_of_two_hosts_that_report_each_other_trials_find_the_faulty_one(cluster: FakeCluster, started: Started) -> None:
    cluster.mute, cluster.reports = {"h3"}, HOSTS
    launches, _ = started
    run = launches.begin(stage)
    assert list(launches.recovery.failed_hosts) == ["h3"]
    assert launches.recovery.failed_hosts["h3"].state is State.FAULT
    assert all(len(hosts) == 2 for hosts in cluster.trials)
    assert rounds_of(run) == planned(but("h3"))
    assert {entry.host for entry in run.facts.lost} > {"h3"}  # all that were reported


def test_a_wrong_report_is_corrected(cluster: FakeCluster, started: Started) -> None:
    cluster.mute, cluster.reports = {"h3"}, but("h3")
    launches, _ = started
    run = launches.begin(stage)
    assert list(launches.recovery.failed_hosts) == ["h3"]
    assert rounds_of(run) == planned(but("h3"))


def test_two_hosts_that_stall_only_with_each_other_are_kept_apart(cluster: FakeCluster, started: Started) -> None:
    cluster.cut = {frozenset(("h1", "h5"))}
    launches, _ = started
    run = launches.begin(stage)
    assert (launches.recovery.failed_hosts, set(launches.recovery.failed_pairs)) == ({}, cluster.cut)
    expected = planned(HOSTS)
    del expected[frozenset(("h1", "h5"))]
    assert rounds_of(run) == expected
    assert run.state == "complete"
    assert cluster.measuring[-1].hosts == tuple(HOSTS)


def test_what_is_cut_is_not_tried_again_in_further_stages(cluster: FakeCluster, started: Started) -> None:
    cluster.cut = {frozenset(("h1", "h5"))}
    launches, _ = started
    run = launches.begin(stage)
    before = launches.count
    run, going = launches.add(stage(REQUEST, "local"), run)
    assert going
    assert launches.count == before + 1
    assert met(run, "local-latency") == pairs_of(HOSTS) - cluster.cut


def test_trials_are_not_launches_of_the_check(cluster: FakeCluster, started: Started) -> None:
    cluster.mute = {"h3"}
    launches, _ = started
    launches.begin(stage)
    assert launches.count == len(cluster.measuring) < len(cluster.launches)


# ------------------------------------------------------------------------------------------------ no host is found


def test_a_launch_that_names_no_host_is_repeated(
    cluster: FakeCluster, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its launcher may have been killed."""
    cluster.mute, cluster.wordless = {"h3"}, True

    def measure(*words: Any, **more: Any) -> measurement.MeasurementResult:
        result = cluster.measure(*words, **more)
        cluster.mute = set()
        return result

    monkeypatch.setattr(measurement, "measure", measure)
    launches, _ = started
    run = launches.begin(stage)
    assert (run.state, launches.error, launches.count) == ("complete", "", 2)
    assert rounds_of(run) == planned(HOSTS)
    (note,) = texts(launches.recovery.notes)
    assert note.endswith(" it was repeated: it stalls")


def test_where_no_host_is_found_the_run_stays_incomplete_and_says_why(cluster: FakeCluster, started: Started) -> None:
    cluster.mute, cluster.wordless = {"h3"}, True
    launches, _ = started
    run = launches.begin(stage)
    assert (run.state, launches.error) == ("interrupted", "it stalls")
    assert launches.recovery.triage.findings == []
    assert launches.count == 2
    assert read_run(launches.output).state == "interrupted"
    assert met(run) <= pairs_of(but("h3"))  # what was measured is kept


def test_a_stage_after_which_no_host_is_found_is_the_last(cluster: FakeCluster, started: Started) -> None:
    launches, _ = started
    run = launches.begin(stage)
    cluster.mute, cluster.wordless = {"h3"}, True
    run, going = launches.add(stage(REQUEST, "local"), run)
    assert (going, launches.error, run.state) == (False, "it stalls", "interrupted")
    assert rounds_of(run) == planned(HOSTS)


def test_a_launch_that_leaves_nothing_since_a_host_is_gone(cluster: FakeCluster, started: Started) -> None:
    launches, _ = started
    run = launches.begin(stage)
    cluster.unreached, cluster.silent = {"h2"}, {"h2"}
    run, going = launches.add(stage(REQUEST, "local"), run)
    assert (going, launches.error, run.state) == (True, "", "complete")
    assert rounds_of(run, "local-latency") == planned(but("h2"))


# ------------------------------------------------------------------------------------------------ several ranks


def test_all_ranks_of_a_lost_host_are_left_out(cluster: FakeCluster, tmp_path: Path) -> None:
    asked = request_of(HOSTS[:4], each=2)
    launches, _ = launches_of(cluster, asked, tmp_path / "a.run")
    cluster.dies["h1"] = "edge"
    run = launches.begin(stage)
    assert met(run) == {frozenset(pair) for pair in combinations(("h0", "h2", "h3"), 2)} | {
        frozenset((host,)) for host in ("h0", "h2", "h3")
    }
    assert run.state == "complete"
    count = np.asarray(run.row("edge-latency").arrays["count"][:])[:, :, 0] > 0
    partners = [int(ranks) for ranks in count.sum(axis=1)]
    assert [partners[rank] for rank in (0, 1, 4, 5, 6, 7)] == [2 * 5] * 6  # twice with each of five


# ------------------------------------------------------------------------------------------------ the run directory


def test_a_run_that_lost_a_host_can_be_resumed(cluster: FakeCluster, started: Started) -> None:
    """When the host is back: every row has its rounds in the run."""
    cluster.dies["h4"] = "edge"
    launches, _ = started
    launches.add(stage(REQUEST, "local"), launches.begin(stage))
    cluster.dies.clear()
    resumed = measurement.resume(launches.context, launches.output)
    assert resumed is not None
    for row in ("edge-latency", "local-latency"):
        assert rounds_of(resumed.run, row) == planned(HOSTS)


def test_hosts_that_call_themselves_otherwise_are_found(cluster: FakeCluster, started: Started) -> None:
    """`h4` is `h4.site.org` to itself: `measurement.measure` takes both for the same host."""
    cluster.dies["h4"], cluster.domain = "edge", ".site.org"
    launches, _ = started
    run = launches.begin(stage)
    assert list(launches.recovery.failed_hosts) == ["h4"]
    assert met(run) == {frozenset(f"{host}.site.org" for host in pair) for pair in pairs_of(but("h4"))}


def test_of_hosts_that_call_themselves_otherwise_nothing_is_measured_twice(
    cluster: FakeCluster, started: Started
) -> None:
    cluster.mute, cluster.silent, cluster.domain = {"h4"}, {"h4"}, ".site.org"
    launches, _ = started
    run = launches.begin(stage)
    assert launches.count == 2
    assert run.state == "complete"


def test_lost_hosts_of_later_launches_are_recorded(cluster: FakeCluster, started: Started) -> None:
    cluster.dies |= {"h1": "edge", "h4": "edge"}
    launches, _ = started
    run = launches.begin(stage)
    assert {entry.host for entry in run.facts.lost} == {"h1", "h4"}
