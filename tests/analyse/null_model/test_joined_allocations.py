"""A fabric that several allocations measure in parts has one verdict."""

from __future__ import annotations

import numpy as np
import pytest
from split_cases import SplitFabric

from fablint.analyse import diagnose
from fablint.model import ComponentRef, Placement, State, Verdict
from fablint.simulate import Fault
from fablint.simulate.fabrics.kinds import build
from fablint.simulate.simulated_fabric import Fabric
from fablint.text import notes as noted

TREE, DRAGONFLY = build("fat-tree", shape="16x2"), build("dragonfly", shape="9x4x4")
CASES = pytest.mark.parametrize(
    ("fabric", "count"), [(TREE, 2), (TREE, 8), (DRAGONFLY, 4)], ids=["tree-2", "tree-8", "dragonfly-4"]
)
LEVELS = (0.03, 0.0, -0.03, 0.01, 0.02, -0.02, 0.0, 0.03)


def verdict_of(split: SplitFabric, missing: tuple[int, ...] = ()) -> Verdict:
    return diagnose(split.joined(missing), split.fabric.topology).verdict


def faults(verdict: Verdict) -> list[tuple[str, str]]:
    return [(finding.component, finding.name) for finding in verdict.findings if finding.state is State.FAULT]


def slow(kind: str, *names: str, factor: float = 0.8) -> Fault:
    return Fault(ComponentRef.of(kind, *names), "tx" if kind == "host" else None, bandwidth_factor=factor)


@CASES
def test_a_healthy_fabric_whose_allocations_differ_by_3_percent_passes(fabric: Fabric, count: int) -> None:
    assert verdict_of(SplitFabric(fabric, count, levels=LEVELS)).verdict == "pass"


@pytest.mark.long
@CASES
@pytest.mark.parametrize("place", ["own", "guest"])
def test_a_slow_host_is_named_whether_one_or_two_allocations_have_it(fabric: Fabric, count: int, place: str) -> None:
    allocation = SplitFabric(fabric, count).allocations[1]
    own = next(host for host in allocation.hosts[3:] if host not in (*allocation.guests, *allocation.lent))
    host = own if place == "own" else allocation.guests[0]
    assert faults(verdict_of(SplitFabric(fabric, count, levels=LEVELS, faults=(slow("host", host),)))) == [
        ("host", host)
    ]


@pytest.mark.long
@pytest.mark.parametrize("count", [2, 4, 8])
def test_a_slow_cable_and_a_slow_switch_of_a_tree_are_named(count: int) -> None:
    cable = slow("link", "leaf03", "spine02", factor=0.6)
    assert faults(verdict_of(SplitFabric(TREE, count, levels=LEVELS, faults=(cable,)))) == [("link", "leaf03>spine02")]
    switch = slow("switch", "leaf05")
    assert faults(verdict_of(SplitFabric(TREE, count, levels=LEVELS, faults=(switch,)))) == [("switch", "leaf05")]


@pytest.mark.long
@pytest.mark.parametrize("count", [2, 8])
def test_a_slow_switch_of_a_dragonfly_is_named(count: int) -> None:
    switch = slow("switch", "g3r0")
    assert ("switch", "g3r0") in faults(verdict_of(SplitFabric(DRAGONFLY, count, levels=LEVELS, faults=(switch,))))


def test_an_allocation_that_is_missing_does_not_change_the_verdict_about_the_others() -> None:
    split = SplitFabric(TREE, 4, levels=LEVELS)
    verdict = verdict_of(split, missing=(2,))
    assert verdict.verdict == "pass"
    own = set(split.allocations[2].hosts) - {host for at in (0, 1, 3) for host in split.allocations[at].hosts}
    assert verdict.coverage.hosts == len(TREE.hosts) - len(own)


def test_a_level_that_hosts_of_two_allocations_confirm_is_the_launch() -> None:
    verdict = verdict_of(SplitFabric(TREE, 4, levels=(0.0, 0.12, 0.0, 0.0)))
    assert verdict.verdict == "pass"
    assert any(note.kind == noted.allocation_levels.name for note in verdict.notes)


def test_a_level_that_no_host_of_two_allocations_confirms_is_confounded() -> None:
    verdict = verdict_of(SplitFabric(TREE, 4, levels=(0.0, 0.12, 0.0, 0.0), ties=False))
    (finding,) = [finding for finding in verdict.findings if finding.state is not State.OK]
    assert (finding.state, finding.component) == (State.CONFOUNDED, "config")
    assert "allocation 2" in finding.name
    assert finding.effect == pytest.approx(1 / 1.12 - 1, abs=0.02)
    assert verdict.verdict == "incomplete"


def test_slow_hosts_of_one_allocation_are_not_taken_for_its_level() -> None:
    """Its guests, and its hosts that are guests elsewhere, are as fast in it as in the others."""
    allocation = SplitFabric(TREE, 4).allocations[1]
    own = [host for host in allocation.hosts if host not in (*allocation.guests, *allocation.lent)]
    verdict = verdict_of(SplitFabric(TREE, 4, faults=tuple(slow("host", host, factor=0.85) for host in own)))
    named = {finding.name for finding in verdict.findings if finding.state in (State.FAULT, State.SUSPECT)}
    assert verdict.verdict != "pass"
    assert len(named & set(own)) > len(own) / 2
    assert not named - set(own)


def test_levels_are_those_of_the_launches() -> None:
    from fablint.analyse.findings.judged_run import judge_run
    from fablint.analyse.settings import Settings

    levels = (0.03, 0.0, -0.03, 0.0)
    run = SplitFabric(TREE, 4, levels=levels).joined()
    judged, _ = judge_run(run, TREE.topology, Placement.of(run, TREE.topology), Settings(), (), {})
    for view in judged.views:
        assert view.levels is not None
        assert view.levels.confirmed.all()
        np.testing.assert_allclose(view.levels.level, np.log1p(levels), atol=0.006)
