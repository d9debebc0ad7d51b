"""Pairs of groups, leaves and aggregation switches with fewer cables than the others."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from fablint.discover.cable_findings import judge_bundles
from fablint.model import Cable, State, Switch, Topology
from fablint.simulate import dragonfly, fat_tree, full_mesh, multi_rail
from fablint.text.evidence_sentences import sentences
from pinned import pinned_by

PINNED = pinned_by("discover.toml", __file__)


def dragonfly_plus(groups: int, spines: int = 4, hosts: int = 3) -> Topology:
    """Leaves and spines of each group are connected with each other, spines of one number with each other."""
    leaves = [f"l{group}.{n}" for group in range(groups) for n in range(4)]
    tops = [f"t{group}.{n}" for group in range(groups) for n in range(spines)]
    cables = [Cable(leaf, top) for leaf in leaves for top in tops if leaf[1:].split(".")[0] == top[1:].split(".")[0]]
    cables += [Cable(a, b) for a in tops for b in tops if a < b and a.split(".")[1] == b.split(".")[1]]
    placed = {f"n{leaf}.{number}": leaf for leaf in leaves for number in range(hosts)}
    return Topology({name: Switch(name) for name in (*leaves, *tops)}, placed, tuple(cables))


TREE, DEEP, FLY = fat_tree(6, 2).topology, fat_tree(4, 3).topology, dragonfly(5, 4, 4).topology
HEALTHY = {
    "two levels": TREE,
    "three levels": DEEP,
    "dragonfly": FLY,
    "dragonfly+": dragonfly_plus(6),
    "mesh": full_mesh(8, 8).topology,
    "rails": multi_rail(fat_tree(4, 2), 2).topology,
    "one switch": Topology({"s": Switch("s")}, {"n1": "s", "n2": "s"}),
}


def without(topology: Topology, cable: Cable) -> Topology:
    cables = list(topology.cables)
    cables.remove(cable)
    return replace(topology, cables=tuple(cables))


def named(topology: Topology) -> dict[tuple[str, str], str]:
    found = judge_bundles(topology)
    assert {finding.state for finding in found} <= {State.SUSPECT}
    return {(finding.component, finding.name): sentences(finding.evidence) for finding in found}


@pytest.mark.parametrize("name", HEALTHY)
def test_equal_bundles_have_no_finding(name: str) -> None:
    assert named(HEALTHY[name]) == {}


@pytest.mark.parametrize("hosts", [1, 2, 3, 5, 8, 20])
@pytest.mark.parametrize("name", HEALTHY)
def test_some_hosts_of_an_equal_fabric_have_no_finding(name: str, hosts: int) -> None:
    topology = HEALTHY[name]
    step = max(1, len(topology.host_switch) // hosts)
    kept = dict(list(topology.host_switch.items())[::step])
    assert named(replace(topology, host_switch=kept, nic_switch={})) == {}


@pytest.mark.parametrize("position", [0, 7, -1])
def test_a_leaf_without_one_of_its_up_links_is_named(position: int) -> None:
    cable = TREE.cables[position]
    leaf = next(end for end in (cable.a, cable.b) if end in TREE.host_switch.values())
    assert named(without(TREE, cable)) == {("switch", leaf): PINNED["the sources report 5 up-links"]}


def test_an_aggregation_switch_without_one_of_its_up_links_is_named() -> None:
    leaves = set(DEEP.host_switch.values())
    cable = next(one for one in DEEP.cables if not {one.a, one.b} & leaves)
    down = {end for one in DEEP.cables if {one.a, one.b} & leaves for end in (one.a, one.b)} - leaves
    (aggregation,) = {cable.a, cable.b} & down
    assert set(named(without(DEEP, cable))) == {("switch", aggregation)}


def test_two_groups_with_fewer_global_cables_are_named() -> None:
    def groups(cable: Cable) -> frozenset[str]:
        return frozenset(FLY.switches[end].group for end in (cable.a, cable.b))

    cable = next(one for one in FLY.cables if len(groups(one)) == 2)
    usual = Counter(map(groups, FLY.cables))[groups(cable)]
    ((kind, name), text) = next(iter(named(without(FLY, cable)).items()))
    assert (kind, set(name.split("="))) == ("route", set(groups(cable)))
    assert text == PINNED["the sources report usual"].filled(usual=usual - 1, usual_=usual)


@pytest.mark.parametrize("groups", [3, 6, 9])
def test_two_spines_of_a_dragonfly_plus_without_their_cable_are_named(groups: int) -> None:
    """The groups are not known, as in InfiniBand."""
    found = named(without(dragonfly_plus(groups), Cable("t0.2", "t2.2")))
    assert set(found) == {("switch", "t0.2"), ("switch", "t2.2")}
    counts = f"report {groups - 2} cables to its level"
    assert all(counts in text and text.endswith(f"have {groups - 1}") for text in found.values())


def test_leaves_of_another_kind_are_no_finding() -> None:
    """Three of twelve leaves, for storage, have half of the up-links."""
    switches = {f"l{n}": Switch(f"l{n}") for n in range(12)} | {f"t{n}": Switch(f"t{n}") for n in range(4)}
    hosts = {f"n{n}": f"l{n}" for n in range(12)}
    cables = tuple(Cable(f"l{n}", f"t{top}") for n in range(12) for top in range(2 if n > 8 else 4))
    assert named(Topology(switches, hosts, cables)) == {}
