"""Paths without peers: judged by streams, relative to streams on a switch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cluster_cases import ALL, FABRIC, HOSTS, list_row, run_of, switch_of

from fablint.analyse import Settings, diagnose
from fablint.analyse.explain.view import judge_view
from fablint.analyse.explain.view_search import View
from fablint.analyse.findings.paths.path_streams import about_paths
from fablint.analyse.observations.samples import select_usable_rows
from fablint.model import Diagnosis, Placement, Routing, State
from fablint.topology.routing import routes_of

FAST_S = 0.010
FAR = [(a, b) for a in range(16) for b in (8 + (a + 3) % 8,) if a < 8]  # across the groups
LOCAL = [(a, 4 + (a + k) % 4) for a in range(4) for k in range(2)]  # s0 with s1


def group_of(rank: int) -> int:
    return rank // 8


def between_groups(src: int, dst: int) -> float:
    return FAST_S / (0.6 if group_of(src) != group_of(dst) else 1.0)


def out_of_group_0(src: int, dst: int) -> float:
    return FAST_S / (0.6 if (group_of(src), group_of(dst)) == (0, 1) else 1.0)


def through_s0(src: int, dst: int) -> float:
    """The cable between s0 and s1 is slow, and s1 reaches the other group across it."""
    ends = {switch_of(src), switch_of(dst)}
    return FAST_S / (0.6 if 1 in ends and len(ends) > 1 else 1.0)


def judged(time, alone=(), topology=FABRIC) -> Diagnosis:
    rows = [list_row("edge-bandwidth", ALL, time)]
    rows += [list_row("bandwidth-follow-up-1", alone, time, order="serial")] if alone else []
    return diagnose(run_of(*rows), topology)


def at_fault(diagnosis: Diagnosis) -> list[tuple[str, str]]:
    return [(finding.component, finding.name) for finding in diagnosis.verdict.findings if finding.state is State.FAULT]


def test_a_path_slow_among_concurrent_messages_is_measured_alone_and_not_reported():
    diagnosis = judged(between_groups)
    assert at_fault(diagnosis) == []
    message_paths = {follow_up.name for follow_up in diagnosis.distances}
    assert message_paths == {f"s{a}>s{b}" for a in (0, 1) for b in (2, 3)} | {
        f"s{b}>s{a}" for a in (0, 1) for b in (2, 3)
    }
    assert all(4 <= len(follow_up.pairs) <= 6 for follow_up in diagnosis.distances)


def test_the_only_path_between_two_groups_may_be_thin_by_design():
    far = [(a, b) for a in range(8) for b in range(8, 16)]
    diagnosis = judged(between_groups, far)
    assert at_fault(diagnosis) == []
    (finding,) = (finding for finding in diagnosis.verdict.findings if finding.state is State.CONFOUNDED)
    assert (finding.component, finding.name, finding.direction) == ("cable", "g0=g1", "both")
    assert finding.effect == pytest.approx(-0.4, abs=0.02)
    assert diagnosis.verdict.exit_code == 3
    assert diagnosis.distances == ()


def test_one_direction_is_a_link():
    far = [(a, b) for a in range(8) for b in range(8, 16)]
    assert at_fault(judged(out_of_group_0, far)) == [("link", "g0>g1")]


def test_the_path_out_of_a_group_through_a_slow_neighbour_is_not_reported_as_well():
    far = [(a, b) for a in range(8) for b in range(16) if switch_of(a) != switch_of(b) and a < b]
    rows = [list_row("edge-bandwidth", ALL, through_s0)]
    run = run_of(*rows, list_row("bandwidth-follow-up-1", far, through_s0, order="serial"))
    placement = Placement.of(run, FABRIC)
    (usable,), _ = select_usable_rows(run, placement, Settings())
    routes = routes_of(FABRIC)
    view = judge_view(View(usable.flows(65536, placement), placement, routes, Settings(), views=1))
    found = about_paths([view], placement, routes, np.empty(0, np.int64), Settings().log_loss_in_scope)
    assert [(finding.component, finding.name) for finding in found.findings] == [("cable", "s0=s1")]


def test_streams_that_are_fast_alone_exonerate_the_path():
    far = [(a, b) for a in range(8) for b in range(8, 16)]
    rows = [
        list_row("edge-bandwidth", ALL, between_groups),
        list_row("bandwidth-follow-up-1", far, lambda *_: FAST_S, order="serial"),
    ]
    diagnosis = diagnose(run_of(*rows), FABRIC)
    assert at_fault(diagnosis) == []
    assert diagnosis.distances == ()


def test_no_link_is_at_fault_with_adaptive_routing():
    far = [(a, b) for a in range(8) for b in range(8, 16)]
    adaptive = replace(FABRIC, routing=Routing("adaptive", 0.4))
    diagnosis = judged(out_of_group_0, far, adaptive)
    assert at_fault(diagnosis) == []
    suspects = {finding.name for finding in diagnosis.verdict.findings if finding.state is State.SUSPECT}
    assert suspects == {"g0>g1"}


def test_a_slow_host_is_not_reported_as_a_path():
    diagnosis = judged(lambda src, dst: FAST_S / (0.4 if 5 in (src, dst) else 1.0))
    assert [name for _, name in at_fault(diagnosis)] == [HOSTS[5]]
    assert diagnosis.distances == ()


def test_a_healthy_fabric_is_asked_nothing():
    diagnosis = judged(lambda *_: FAST_S)
    assert at_fault(diagnosis) == []
    assert diagnosis.distances == ()
