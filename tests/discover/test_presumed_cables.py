"""Assumed cables of a topology without cables, and the findings on a slow path between two groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fablint.analyse import diagnose
from fablint.discover import add_assumed_cables, load_topology, write_topology
from fablint.discover.assumed_cables import MAX_GROUP_SWITCHES
from fablint.model import SCOPES, Cable, Finding, Scope, State, Switch, Topology
from fablint.plan.schedule.stratified import stratified_rounds
from fablint.simulate import Fault, Noise, SimulatedFabric, SimulatedRow, dragonfly
from fablint.topology.routed_placement import RoutedPlacement
from fablint.topology.routing import routes_of
from finding_cases import ref

Rounds = Sequence[np.ndarray]

QUIET = Noise(scale=0.01, spike_share=0.0, host_spread=0.001)


def topology(**groups: int) -> Topology:
    """Groups of so many switches, two hosts on each; group `_` is none."""
    switches = {
        f"{group}s{number}": Switch(f"{group}s{number}", "" if group == "_" else group)
        for group, count in groups.items()
        for number in range(count)
    }
    hosts = {f"h-{name}-{number}": name for name in switches for number in range(2)}
    return Topology(switches, hosts, source="Slurm")


def names(found: Topology) -> set[str]:
    return {cable.name for cable in found.cables}


def path_links(found: Topology, switches: Sequence[str]) -> dict[tuple[str, str], dict[str, float]]:
    """The links that a message between two of the switches may cross, and how likely each is."""
    routes = routes_of(found)
    pairs = list(permutations(switches, 2))
    code = {name: index for index, name in enumerate(routes.switches)}
    src, dst = (np.array([code[pair[end]] for pair in pairs], np.int32) for end in (0, 1))
    result: dict[tuple[str, str], dict[str, float]] = {pair: {} for pair in pairs}
    for query, link, share in zip(*(part.tolist() for part in routes.exposure(src, dst)), strict=True):
        result[pairs[query]][routes.names[link]] = share
    return result


# ------------------------------------------------------------------------------------------------ what is presumed


def test_two_groups_of_two_switches() -> None:
    before = topology(a=2, b=2)
    after = add_assumed_cables(before)
    assert names(after) == {"as0=as1", "bs0=bs1", "as0=a", "as1=a", "bs0=b", "bs1=b", "a=b"}
    assert set(after.switches) - set(before.switches) == {"a", "b"}
    assert (after.switches["a"].group, after.switches["b"].group) == ("a", "b")
    assert (after.host_switch, after.source) == (before.host_switch, before.source)


def test_one_group_has_no_path_out() -> None:
    after = add_assumed_cables(topology(a=3))
    assert names(after) == {"as0=as1", "as0=as2", "as1=as2"}
    assert set(after.switches) == {"as0", "as1", "as2"}


def test_groups_of_different_sizes() -> None:
    after = add_assumed_cables(topology(a=3, b=1))
    assert names(after) == {"as0=as1", "as0=as2", "as1=as2", "as0=a", "as1=a", "as2=a", "bs0=b", "a=b"}


KNOWN = replace(topology(a=2, b=2), cables=(Cable("as0", "bs0"),))
CLASHING = topology(a=2, b=2)
CLASHING = replace(CLASHING, switches={**CLASHING.switches, "a": Switch("a", "b")})
UNTOUCHED = {
    "cables are known": KNOWN,
    "no groups": topology(_=4),
    "some switches without a group": topology(a=2, _=1),
    "every switch a group": topology(a=1, b=1, c=1),
    "a switch called as a group": CLASHING,
    "a group too large": topology(a=MAX_GROUP_SWITCHES + 1, b=2),
    "nothing": Topology({}, {}),
}


@pytest.mark.parametrize("case", UNTOUCHED)
def test_it_stays_as_it_is(case: str) -> None:
    assert add_assumed_cables(UNTOUCHED[case]) is UNTOUCHED[case]


def test_a_large_group_is_joined_each_with_each() -> None:
    assert (
        len(add_assumed_cables(topology(a=MAX_GROUP_SWITCHES)).cables)
        == MAX_GROUP_SWITCHES * (MAX_GROUP_SWITCHES - 1) // 2
    )


def test_presuming_twice_is_the_same() -> None:
    once = add_assumed_cables(topology(a=2, b=2))
    assert add_assumed_cables(once) is once


def test_a_run_keeps_what_was_presumed(tmp_path: Path) -> None:
    presumed = add_assumed_cables(topology(a=2, b=3))
    (tmp_path / "topology.yaml").write_text(write_topology(presumed))
    read = load_topology(tmp_path / "topology.yaml")
    assert replace(read, source=presumed.source) == presumed


# ------------------------------------------------------------------------------------------------ paths


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5).filter(lambda sizes: max(sizes) > 1))
@settings(max_examples=30)
def test_between_two_switches_there_is_one_path(sizes: list[int]) -> None:
    before = topology(**{f"g{number}": size for number, size in enumerate(sizes)})
    found = add_assumed_cables(before)
    for (start, end), links in path_links(found, list(before.switches)).items():
        a, b = (before.switches[name].group for name in (start, end))
        path = [f"{start}>{end}"] if a == b else [f"{start}>{a}", f"{a}>{b}", f"{b}>{end}"]
        assert links == dict.fromkeys(path, 1.0)


def test_distances_are_those_of_the_groups() -> None:
    """A switch in the place of a group takes no host, and moves none."""
    before = topology(a=2, b=2)
    after = add_assumed_cables(before)
    hosts = list(before.host_switch)
    pairs = np.array(list(combinations(range(len(hosts)), 2)), np.int32)
    scopes = [RoutedPlacement.on_routes(hosts, one).scopes(*pairs.T).tolist() for one in (before, after)]
    assert scopes[0] == scopes[1]
    assert {SCOPES[code] for code in scopes[0]} == {Scope.EDGE, Scope.LOCAL, Scope.GLOBAL}


# ------------------------------------------------------------------------------------------------ what it tells

FLY = dragonfly(3, 3, 4, minimal_share=None)
BARE = replace(FLY.topology, cables=())
PRESUMED = add_assumed_cables(BARE)
SERIAL = (SimulatedRow("latency", (8,), "serial"), SimulatedRow("bandwidth", (1 << 20,), "serial"))


@pytest.fixture(scope="module")
def rounds() -> Rounds:
    return stratified_rounds(RoutedPlacement.on_routes(list(FLY.hosts), PRESUMED), 1)


def found(rounds: Rounds, *faults: Fault) -> list[Finding]:
    run = SimulatedFabric(FLY, faults, QUIET).measure(rounds, SERIAL)
    return list(diagnose(run, PRESUMED).verdict.findings)


def localised(rounds: Rounds, *faults: Fault, states: Sequence[State] = (State.FAULT,)) -> set[tuple[str, str]]:
    return {(one.component, one.name) for one in found(rounds, *faults) if one.state in states}


def test_a_healthy_fabric_has_no_finding_on_cables_that_it_may_not_have(rounds: Rounds) -> None:
    assert localised(rounds, states=(State.FAULT, State.SUSPECT)) == set()


def test_a_slow_cable_between_two_groups_is_reported_as_the_path_between_them(rounds: Rounds) -> None:
    """The cable connects two switches, which no source reports."""
    cable = next(cable for cable in FLY.topology.cables if cable.a[:2] == "g0" and cable.b[:2] == "g2")
    there = localised(rounds, Fault(ref("link", cable.a, cable.b), bandwidth_factor=0.5))
    both = localised(rounds, Fault(ref("cable", cable.a, cable.b), bandwidth_factor=0.5))
    assert (there, both) == ({("link", "g0>g2")}, {("cable", "g0=g2")})


def test_a_slow_cable_inside_a_group_has_its_own_name(rounds: Rounds) -> None:
    """It carries messages of other groups as well, which no source reports: their routes are only suspect."""
    findings = found(rounds, Fault(ref("cable", "g1r0", "g1r2"), bandwidth_factor=0.5))
    assert [finding.name for finding in findings if finding.state is State.FAULT] == ["g1r0=g1r2"]
    assert all(finding.component in ("route", "host") for finding in findings if finding.state is State.SUSPECT)


def test_a_slow_host_is_a_host(rounds: Rounds) -> None:
    assert localised(rounds, Fault(ref("host", "h07"), bandwidth_factor=0.5)) == {("host", "h07")}
