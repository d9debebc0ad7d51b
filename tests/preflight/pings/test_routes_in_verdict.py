"""Which warnings about pings are findings of a check's verdict, and which hosts of a launch they make suspects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from pinged_hosts import FAMILY, FINE, LOST, Row, pinged

from fablint.measure import NoProgress
from fablint.model import Finding, State
from fablint.preflight import Fleet, Host, judge, unanswered
from fablint.snapshot import CollectedSnapshots
from fablint.system import System
from fablint.text.evidence_sentences import sentences
from fablint.workflows.check.cluster_check import start_trials_of
from fablint.workflows.check.preflight_findings import not_understood, route_findings, warning_notes, warnings
from fablint.workflows.context import Context
from fablint.workflows.host_preflight import PreflightResult
from finding_cases import texts


def found(hosts: list[Host]) -> tuple[list[Finding], list[str]]:
    fitness = judge(Fleet(hosts), FAMILY)
    return route_findings(fitness), texts([*warning_notes(warnings(fitness)), *not_understood(warnings(fitness))])


def test_a_route_without_answer_is_a_finding_with_both_hosts_and_nics() -> None:
    hosts = pinged(8, lambda one, other: LOST if {one, other} == {3, 4} else FINE)
    (finding,), notes = found(hosts)
    assert (finding.state, finding.component, notes) == (State.SUSPECT, "route", [])
    assert finding.name in ("n3/hsn0=n4/hsn0", "n4/hsn0=n3/hsn0")
    assert "no answer" in sentences(finding.evidence)


def test_two_parts_that_do_not_reach_each_other_are_findings() -> None:
    hosts = pinged(8, lambda one, other: LOST if (one < 4) != (other < 4) else FINE, level="full")
    findings, notes = found(hosts)
    assert {(finding.state, finding.component, finding.name) for finding in findings} == {
        (State.SUSPECT, "nic", "n[0-3]/hsn0"),
        (State.SUSPECT, "nic", "n[4-7]/hsn0"),
    }
    assert notes == []


@pytest.mark.parametrize(
    "row",
    [lambda one, other: LOST, lambda one, other: LOST if other == 3 else FINE],
    ids=["no host answers", "one host answers none"],
)
def test_pings_that_may_be_filtered_are_notes(row: Callable[[int, int], Row]) -> None:
    """Frames arrive both ways where a host's own pings are answered: it filters them."""
    findings, notes = found(pinged(8, row))
    assert findings == []
    assert len(notes) == 1
    assert "ICMP" in notes[0]


def test_hosts_of_unanswered_pings_are_suspects_of_a_launch_and_addresses_have_hosts() -> None:
    hosts = pinged(8, lambda one, other: LOST if 5 in (one, other) else FINE)
    pairs = unanswered(hosts)
    assert pairs
    assert all("n5" in pair for pair in pairs)
    collected = CollectedSnapshots({}, {host.name: host.snapshot for host in hosts})
    trials = start_trials_of(Context(System(), NoProgress()), PreflightResult(collected, judge(Fleet(hosts), FAMILY)))
    names = [host.name for host in hosts]
    assert trials.suspects(names, []) == ["n5"]
    assert trials.suspects(names, ["connect() to 10.150.0.12:1024 failed"]) == ["n5", "n2"]


def test_an_address_that_two_hosts_have_names_none() -> None:
    hosts = pinged(4, lambda one, other: FINE)
    twin = replace(hosts[1].snapshot, host="m1")
    collected = CollectedSnapshots({}, {"n0": hosts[0].snapshot, "n1": hosts[1].snapshot, "m1": twin})
    trials = start_trials_of(Context(System(), NoProgress()), PreflightResult(collected, judge(Fleet(hosts), FAMILY)))
    assert trials.addresses["10.150.0.10"] == "n0"
    assert "10.150.0.11" not in trials.addresses
