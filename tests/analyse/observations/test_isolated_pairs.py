"""Pairs that are measured again isolated do not take the evidence of the planned measurements away.

The situation of a healthy cluster of one switch with 16 hosts (a saved run of a virtual cluster): pairs measured at
once are a few percent slower than isolated ones, and the follow-up measurements of three hosts and their controls are
isolated. Six hosts without isolated pairs lost 60 measurements each.
"""

from __future__ import annotations

from itertools import combinations

import pytest
from cluster_cases import ALL, FABRIC, HOSTS, list_row, run_of

from fablint.analyse import diagnose
from fablint.model import Run, State, Topology
from fact_cases import with_facts

ISOLATED_S = 0.01
ONE_SWITCH = Topology(switches={"s0": FABRIC.switches["s0"]}, host_switch=dict.fromkeys(HOSTS, "s0"))
SUSPECTS, CONTROLS = (0, 1, 2), (3, 4, 5, 6, 7, 13, 15)


def cluster(
    cost: float,
    followed_up: list[tuple[int, int]],
    *,
    purpose: str = "follow_up",
    slow: dict[int, float] | None = None,
    planned: list[tuple[int, int]] | None = None,
) -> Run:
    """All pairs twice, at once with others, which makes them `cost` times as long; then some of them isolated."""

    def time(shared: float, src: int) -> float:
        return ISOLATED_S * max(shared, (slow or {}).get(src, 1.0))

    rows = [list_row("bandwidth", ALL * 2, lambda src, _: time(cost, src))]
    for number, (pairs, kind) in enumerate([(planned or [], "measure"), (followed_up, purpose)]):
        if pairs:
            row = list_row(f"bandwidth-{number}", pairs, lambda src, _: time(1.0, src), order="serial")
            rows.append(with_facts(row, purpose=kind, options="x --name bandwidth"))
    return run_of(*rows)


def state_of(run: Run, host: int) -> list[State]:
    return [finding.state for finding in diagnose(run, ONE_SWITCH).verdict.findings if HOSTS[host] in finding.hosts]


AGAIN = [(suspect, control) for suspect in SUSPECTS for control in CONTROLS]


@pytest.mark.parametrize("cost", [1.0, 1.08, 1.5])
@pytest.mark.parametrize("purpose", ["follow_up", "retest"])
def test_hosts_without_isolated_pairs_stay_judged(cost: float, purpose: str) -> None:
    for followed_up in ([], AGAIN, [*AGAIN, *AGAIN]):
        verdict = diagnose(cluster(cost, followed_up, purpose=purpose), ONE_SWITCH).verdict
        assert (verdict.verdict, verdict.coverage.hosts_judged) == ("pass", 16)
        assert {host for finding in verdict.findings if finding.state is State.OK for host in finding.hosts} == {*HOSTS}


@pytest.mark.parametrize("host", [1, 5, 9])
def test_a_slow_host_is_at_fault_whoever_was_measured_again(host: int) -> None:
    for followed_up in ([], AGAIN, AGAIN[:4], list(combinations(CONTROLS, 2))):
        assert state_of(cluster(1.08, followed_up, slow={host: 1.4}), host) == [State.FAULT]


def test_isolated_pairs_of_the_plan_show_what_sharing_hides() -> None:
    assert state_of(cluster(1.5, [], planned=ALL, slow={4: 1.3}), 4) == [State.FAULT]
    assert state_of(cluster(1.5, AGAIN, planned=ALL, slow={4: 1.3}), 4) == [State.FAULT]
