"""Which hosts were lost: found by asking, by the launcher's report or by trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_launches import SILENT, FakeCluster, FakeSystem, Notes, no_answer
from hypothesis import HealthCheck, given, settings, strategies as st

from fablint.model import Medium, State
from fablint.model.facts.failed_rank import FailedRank
from fablint.plan.rows.row_text import parse_row
from fablint.text.actions import advice
from fablint.text.evidence_sentences import sentences
from fablint.workflows import measurement
from fablint.workflows.context import Context
from fablint.workflows.recovery.host_triage import MOST_REPEATS, HostTriage
from fablint.workflows.recovery.pair_trials import WATCHDOG_S, PairTrials, StallCause, cause_of
from pinned import pinned_by

PINNED = pinned_by("workflows.toml", __file__)

HOSTS = ["h0", "h1", "h2", "h3", "h4"]


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    fake = FakeCluster(FakeSystem(tmp_path / "home"))
    monkeypatch.setattr(measurement, "measure", fake.measure)
    return fake


def triage_of(cluster: FakeCluster, *transports: str) -> tuple[HostTriage, Notes]:
    notes = Notes()
    media = [Medium(transport) for transport in transports or ["mpi"]]
    return HostTriage(PairTrials(Context(cluster.system, notes), media), cluster.look), notes


def stalled(host: str, partner: int | None = 0) -> FailedRank:
    return FailedRank(1, host, 3, partner, SILENT)


def died(host: str, reason: str = "died (signal 9)") -> FailedRank:
    return FailedRank(None, host, None, None, reason)


def find_failed(
    triage: HostTriage, entries: Sequence[FailedRank] = (), partners: Sequence[str] = (), present: Sequence[str] = HOSTS
) -> bool:
    return triage.find_failed(present, entries, partners or [""] * len(entries), "rank 1 failed")


# ------------------------------------------------------------------------------------------------ in which order


def test_hosts_that_do_not_answer_are_lost_and_no_others(cluster: FakeCluster) -> None:
    cluster.silent = {"h2"}
    triage, notes = triage_of(cluster)
    assert find_failed(triage, [died("h1"), stalled("h3")], ["", "h4"])
    assert triage.failed_hosts == {"h2": no_answer("h2")}
    assert cluster.launches == []
    assert notes.said == [
        PINNED["rank 1 failed: looking"],
        PINNED["host h2 is excluded: no answer"],
    ]


def test_where_no_host_answers_any_more_none_is_lost(cluster: FakeCluster) -> None:
    """The connection to the hosts is gone, as when the job has ended."""
    cluster.silent = set(HOSTS)
    triage, notes = triage_of(cluster)
    assert not find_failed(triage, [died("h1"), stalled("h3")], ["", "h4"])
    assert (triage.findings, cluster.launches) == ([], [])
    assert notes.said[-1] == PINNED["no host answers any more"]


def test_a_rank_that_died_once_names_no_host(cluster: FakeCluster) -> None:
    """A process that is killed from outside, or that its MPI library ends after a short cut of another host's link."""
    triage, notes = triage_of(cluster)
    assert find_failed(triage, [died("h1")])
    assert (triage.findings, cluster.launches) == ([], [])
    assert notes.said[-1] == PINNED["no fault is found on h1"]


def test_a_host_whose_rank_died_again_needs_no_trial(cluster: FakeCluster) -> None:
    triage, _ = triage_of(cluster)
    assert find_failed(triage, [died("h1")])
    assert find_failed(triage, [died("h1"), stalled("h3")], ["", "h4"])
    assert list(triage.failed_hosts) == ["h1"]
    finding = triage.failed_hosts["h1"]
    assert (finding.state, finding.component, finding.name) == (State.SUSPECT, "host", "h1")
    assert sentences(finding.evidence) == PINNED["a rank on it died (signal"]
    assert "system log of h1" in advice(finding.next_step)
    assert cluster.launches == []


def test_launches_are_not_repeated_without_end(cluster: FakeCluster) -> None:
    triage, _ = triage_of(cluster)
    hosts = [f"h{number}" for number in range(MOST_REPEATS + 1)]
    assert [find_failed(triage, [died(host)]) for host in hosts] == [True] * len(hosts)
    assert (list(triage.failed_hosts), triage.repeats) == (hosts[-1:], MOST_REPEATS)


def test_a_host_whose_connection_for_control_messages_was_lost_is_tried_again(cluster: FakeCluster) -> None:
    """It has no round, as a rank that died; the path to the rank that reports it may be the cause."""
    cluster.cut = {frozenset(("h1", "h3"))}
    triage, _ = triage_of(cluster)
    lost = replace(stalled("h1", partner=3), round=None)
    assert find_failed(triage, [lost], ["h3"])
    assert list(triage.failed_pairs) == [frozenset(("h1", "h3"))]
    assert cluster.launches


def test_a_host_that_is_known_already_is_not_found_again(cluster: FakeCluster) -> None:
    cluster.silent = {"h2"}
    triage, _ = triage_of(cluster)
    assert find_failed(triage, [died("h1")])
    rest = [host for host in HOSTS if host != "h2"]
    assert find_failed(triage, [died("h1")], present=rest)
    assert find_failed(triage, [died("h1")], present=rest)
    before = dict(triage.failed_hosts)
    assert not find_failed(triage, [died("h1")], present=[host for host in HOSTS if host not in before])
    assert triage.failed_hosts == before


def test_a_host_that_took_no_part_cannot_have_been_it(cluster: FakeCluster) -> None:
    triage, _ = triage_of(cluster)
    assert not find_failed(triage, [died("elsewhere"), stalled("elsewhere")], ["", "h0"])
    assert triage.findings == []


def test_where_no_host_is_named_and_all_answer_no_host_is_found(cluster: FakeCluster) -> None:
    triage, notes = triage_of(cluster)
    assert not find_failed(triage, [replace(stalled("h1"), host=None, rank=None)])
    assert triage.findings == []
    assert cluster.launches == []
    assert len(notes.said) == 1


def test_a_launch_that_names_nothing_is_repeated_once(cluster: FakeCluster) -> None:
    triage, _ = triage_of(cluster)
    assert [find_failed(triage, []), find_failed(triage, [])] == [True, False]
    assert (triage.findings, cluster.launches) == ([], [])


def test_a_launch_after_which_no_host_answers_is_not_repeated(cluster: FakeCluster) -> None:
    cluster.silent = set(HOSTS)
    triage, _ = triage_of(cluster)
    assert not find_failed(triage, [])
    assert triage.findings == []


# ------------------------------------------------------------------------------------------------ trials


def test_a_host_that_stalls_with_two_that_work_is_faulty(cluster: FakeCluster) -> None:
    cluster.mute = {"h3"}
    triage, _ = triage_of(cluster)
    assert find_failed(triage, [stalled("h3")], ["h1"])
    assert list(triage.failed_hosts) == ["h3"]
    finding = triage.failed_hosts["h3"]
    assert (finding.state, finding.component) == (State.FAULT, "host")
    assert PINNED["the measurement stalled"].ends(sentences(finding.evidence))
    assert set(cluster.trials) == {("h0", "h3"), ("h1", "h2"), ("h2", "h3")}


@pytest.mark.parametrize("entries", [["h3"], ["h1"], ["h1", "h3"], ["h3", "h1"]], ids="-".join)
def test_whichever_host_is_reported_the_one_that_stalls_is_found(cluster: FakeCluster, entries: list[str]) -> None:
    cluster.mute = {"h3"}
    triage, _ = triage_of(cluster)
    other = {"h1": "h3", "h3": "h1"}
    assert find_failed(triage, [stalled(host) for host in entries], [other[host] for host in entries])
    assert (list(triage.failed_hosts), triage.failed_pairs) == (["h3"], {})


def test_both_ends_may_be_faulty(cluster: FakeCluster) -> None:
    cluster.mute = {"h1", "h3"}
    triage, _ = triage_of(cluster)
    assert find_failed(triage, [stalled("h3")], ["h1"])
    assert set(triage.failed_hosts) == {"h1", "h3"}


def test_where_the_reference_host_is_faulty_the_next_host_decides(cluster: FakeCluster) -> None:
    """The two hosts were tried with h0, which stalls with every host."""
    cluster.mute = {"h0"}
    triage, _ = triage_of(cluster)
    assert find_failed(triage, [stalled("h3")], ["h1"])
    assert list(triage.failed_hosts) == ["h0"]
    assert sentences(triage.failed_hosts["h0"].evidence).endswith("and again with h2")


def test_two_that_work_with_others_are_kept_apart(cluster: FakeCluster) -> None:
    cluster.cut = {frozenset(("h1", "h3"))}
    triage, notes = triage_of(cluster)
    assert find_failed(triage, [stalled("h3"), stalled("h1")], ["h1", "h3"])
    assert triage.failed_hosts == {}
    (finding,) = triage.failed_pairs.values()
    assert set(triage.failed_pairs) == cluster.cut
    assert (finding.state, finding.component, finding.name) == (State.SUSPECT, "route", "h1=h3")
    assert PINNED["route h1=h3 is excluded"].begins(notes.said[-1])


def test_a_host_that_the_measured_transport_does_not_reach_is_faulty(cluster: FakeCluster) -> None:
    """MPI takes another network, or its ports are open."""
    cluster.blocked = {"h3": "ofi"}
    triage, _ = triage_of(cluster, "ofi")
    assert find_failed(triage, [stalled("h3"), stalled("h1")], ["h1", "h3"])
    assert (list(triage.failed_hosts), triage.failed_pairs) == (["h3"], {})
    finding = triage.failed_hosts["h3"]
    assert sentences(finding.evidence) == PINNED["messages of 8 B over ofi"]
    assert [one.label for one in finding.ambiguity_group][:2] == ["a firewall", "the set-up of ofi"]
    assert "firewall rules" in advice(finding.next_step)
    assert "provider that ofi uses" in advice(finding.next_step)


def test_of_several_transports_all_are_tried_and_mpi_first(cluster: FakeCluster) -> None:
    cluster.blocked = {"h3": "tcp"}
    triage, _ = triage_of(cluster, "tcp", "mpi")
    assert find_failed(triage, [stalled("h3")], ["h1"])
    assert "over tcp do not arrive" in sentences(triage.failed_hosts["h3"].evidence)
    rows = [parse_row(line.split()) for line in cluster.launches[0].lines]
    assert [row.transport for row in rows] == ["mpi", "mpi", "tcp", "tcp"]
    cluster.blocked, cluster.mute = {}, {"h3"}
    triage, _ = triage_of(cluster, "tcp", "mpi")
    assert find_failed(triage, [stalled("h3")], ["h1"])
    assert sentences(triage.failed_hosts["h3"].evidence).startswith("messages of 8 B do not arrive: ")


@pytest.mark.parametrize(("faulty", "partner"), [("h1", "h3"), ("h0", "h4"), ("h3", "h4")])
def test_a_host_whose_requests_are_blocked_is_tried_as_the_end_that_requests(
    cluster: FakeCluster, faulty: str, partner: str
) -> None:
    """It accepts connections, so that it works with hosts of lower ranks."""
    cluster.blocked, cluster.requests = {faulty: "tcp"}, True
    triage, _ = triage_of(cluster, "tcp")
    present = [*HOSTS, "h5", "h6"]
    assert find_failed(triage, [stalled(partner)], [faulty], present)
    assert (list(triage.failed_hosts), triage.failed_pairs) == ([faulty], {})


def test_what_a_rank_knows_of_its_peer_is_evidence_on_the_pair(cluster: FakeCluster) -> None:
    cluster.cut = {frozenset(("h1", "h3"))}
    triage, _ = triage_of(cluster, "tcp")
    known = replace(stalled("h1"), reason="failed (no TCP connection to 10.0.0.1 for 16 s)")
    assert find_failed(triage, [stalled("h3"), known], ["h1", "h3"])
    (finding,) = triage.failed_pairs.values()
    assert PINNED["h3 reports: no TCP connection"].ends(sentences(finding.evidence))
    assert "firewall rules" in advice(finding.next_step)


def test_hosts_that_stalled_once_and_work_with_each_other_are_not_reported(cluster: FakeCluster) -> None:
    triage, notes = triage_of(cluster)
    assert find_failed(triage, [stalled("h3"), stalled("h1")], ["h1", "h3"])
    assert triage.findings == []
    assert ("h1", "h3") in cluster.trials
    assert notes.said[-1] == PINNED["no fault is found on h 1,3"]


def test_two_that_stall_again_with_each_other_are_kept_apart(cluster: FakeCluster) -> None:
    triage, _ = triage_of(cluster)
    for _ in range(2):
        assert find_failed(triage, [stalled("h3")], ["h1"])
    assert (triage.failed_hosts, list(triage.failed_pairs)) == ({}, [frozenset(("h1", "h3"))])


def test_a_host_that_takes_part_in_all_stalls_is_suspect_and_its_partners_are_not(cluster: FakeCluster) -> None:
    """As one whose link loses many frames: messages of two hosts arrive in the end."""
    triage, _ = triage_of(cluster)
    assert find_failed(triage, [stalled("h0")], ["h2"])
    assert find_failed(triage, [stalled("h2"), stalled("h3")], ["h1", "h2"])
    assert (list(triage.failed_hosts), triage.failed_pairs) == (["h2"], {})
    finding = triage.failed_hosts["h2"]
    assert (finding.state, finding.component) == (State.SUSPECT, "host")
    assert sentences(finding.evidence) == PINNED["several launches stalled"]


def test_ranks_of_one_host_that_stall_with_each_other_are_tried_on_that_host(cluster: FakeCluster) -> None:
    """Never kept apart from themselves."""
    triage, _ = triage_of(cluster)
    assert find_failed(triage, [stalled("h3")], ["h3"])
    assert (triage.findings, cluster.launches[0].hosts) == ([], ("h3",))
    cluster.unreached = {"h3"}
    assert find_failed(triage, [stalled("h3")], ["h3"])
    (finding,) = triage.findings
    assert (finding.state, finding.component, finding.name) == (State.FAULT, "host", "h3")
    assert PINNED["its launches end before"].begins(sentences(finding.evidence))
    assert finding.ambiguity_group == ()


def test_two_hosts_are_too_few_to_tell(cluster: FakeCluster) -> None:
    cluster.mute = {"h1"}
    triage, _ = triage_of(cluster)
    assert not find_failed(triage, [stalled("h1")], ["h0"], present=["h0", "h1"])
    assert (triage.findings, cluster.launches) == ([], [])


def test_of_three_hosts_there_is_one_to_try_with(cluster: FakeCluster) -> None:
    cluster.mute = {"h1"}
    triage, _ = triage_of(cluster)
    assert find_failed(triage, [stalled("h2")], ["h1"], present=["h0", "h1", "h2"])
    assert list(triage.failed_hosts) == ["h1"]
    assert sentences(triage.failed_hosts["h1"].evidence).endswith("and again with h0")


def test_hosts_that_are_lost_already_are_not_tried_with(cluster: FakeCluster) -> None:
    cluster.mute = {"h0", "h3"}
    triage, _ = triage_of(cluster)
    assert find_failed(triage, [stalled("h3")], ["h1"], present=HOSTS[1:])
    assert list(triage.failed_hosts) == ["h3"]
    assert not any("h0" in hosts for hosts in cluster.trials)


def test_a_trial_has_small_and_large_messages_and_a_watchdog_of_its_own(cluster: FakeCluster) -> None:
    triage, _ = triage_of(cluster)
    find_failed(triage, [stalled("h3")], ["h1"])
    trial = cluster.launches[0]
    rows = [parse_row(line.split()) for line in trial.lines]
    assert [(row.kernel, row.sizes) for row in rows] == [("latency", (8,)), ("bandwidth", (64 << 10,))]
    assert trial.options == ("--watchdog", f"{WATCHDOG_S:g}")
    assert len(trial.hosts) == 2


def test_a_trial_that_cannot_start_counts_as_stalled(cluster: FakeCluster) -> None:
    cluster.unreached = {"h3"}
    triage, _ = triage_of(cluster)
    assert find_failed(triage, [stalled("h3")], ["h1"])
    assert list(triage.failed_hosts) == ["h3"]
    assert advice(triage.failed_hosts["h3"].next_step).startswith("ping h3 ")


def test_trials_leave_nothing_behind(cluster: FakeCluster) -> None:
    cluster.mute = {"h3"}
    triage, _ = triage_of(cluster)
    find_failed(triage, [stalled("h3")], ["h1"])
    assert list(cluster.system.home_folder("scratch").iterdir()) == []


@given(st.integers(3, 7), st.randoms(use_true_random=False))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_one_faulty_host_of_many_is_found_whichever_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, random: Any
) -> None:
    """Where two others were measured well meanwhile."""
    hosts = [f"h{number}" for number in range(count + 1)]
    cluster = FakeCluster(FakeSystem(tmp_path / "home"))
    monkeypatch.setattr(measurement, "measure", cluster.measure)
    faulty, partner, *_ = random.sample(hosts, count + 1)
    cluster.mute = {faulty}
    triage, _ = triage_of(cluster)
    entries = random.choice([[(faulty, partner)], [(partner, faulty)], [(faulty, partner), (partner, faulty)]])
    assert find_failed(triage, [stalled(one) for one, _ in entries], [other for _, other in entries], hosts)
    assert (list(triage.failed_hosts), triage.failed_pairs) == ([faulty], {})


# ------------------------------------------------------------------------------------------------ what is said


def test_findings_are_those_of_hosts_and_then_of_pairs(cluster: FakeCluster) -> None:
    cluster.cut = {frozenset(("h1", "h3"))}
    triage, _ = triage_of(cluster)
    find_failed(triage, [stalled("h3")], ["h1"])
    cluster.silent = {"h4"}
    find_failed(triage)
    assert [(one.component, one.name) for one in triage.findings] == [("host", "h4"), ("route", "h3=h1")]


def test_what_is_new_is_said(cluster: FakeCluster) -> None:
    cluster.cut = {frozenset(("h1", "h3"))}
    triage, notes = triage_of(cluster)
    find_failed(triage, [stalled("h3")], ["h1"])
    cluster.silent = {"h4"}
    assert find_failed(triage)
    assert notes.said[-1] == PINNED["host h4 is excluded: no answer"]


def test_the_end_that_requests_a_connection_knows_more_than_the_one_that_accepts_it() -> None:
    accepts = replace(stalled("h1"), reason="failed (no TCP connection from the rank within 8 s)")
    requests = replace(stalled("h2"), reason="failed (no TCP connection (10.0.0.2: No route to host))")
    assert cause_of([(accepts, "h2"), (requests, "h1")]) == StallCause(PINNED["no TCP connection (10.0.0.2"], "h1")
    assert cause_of([(accepts, "h2")]) == StallCause(PINNED["no TCP connection"], "h2")
    assert cause_of([(stalled("h1"), "h2")]) is None
