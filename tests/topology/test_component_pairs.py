"""How many pairs use the component of a finding, counted one by one for comparison, and which hosts are behind it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fablint.model import Placement, Routing, State
from fablint.simulate import Fabric, dragonfly, fat_tree, simulate, torus
from fablint.topology.component_pairs import FindingPairs, hosts_behind
from fablint.topology.routing import routes_of
from finding_cases import finding

FABRIC = fat_tree(4, 2)
DEEP = fat_tree(4, 3)  # 64 hosts: 4 pods of 4 leaves and 4 aggregation switches, 16 core switches


@pytest.mark.parametrize("ranks_per_host", [1, 2])
@pytest.mark.parametrize(
    ("kind", "name", "direction", "behind"),
    [
        ("host", "h05", "both", ["h05"]),
        ("host", "h05", "tx", ["h05"]),
        ("cable", "h05=leaf1", "both", ["h05"]),
        ("link", "leaf1>spine2", None, ["h04", "h05", "h06", "h07"]),
        ("cable", "leaf1=spine2", "both", ["h04", "h05", "h06", "h07"]),
        ("switch", "leaf1", "both", ["h04", "h05", "h06", "h07"]),
        ("switch", "spine2", None, [f"h{host:02d}" for host in range(16)]),
        ("route", "h00=h05", None, ["h00", "h05"]),
    ],
)
def test_pairs_that_use_a_component_and_hosts_behind_it(kind, name, direction, behind, ranks_per_host):
    run = simulate(FABRIC, seed=1, ranks_per_host=ranks_per_host)
    placement, routes = Placement.of(run, FABRIC.topology), routes_of(FABRIC.topology)
    of_component = finding(State.FAULT, kind, name, direction=direction)
    (crossing,) = FindingPairs([of_component], placement, routes).crossings
    assert crossing is not None
    src, dst = (ranks.ravel() for ranks in np.indices((placement.ranks, placement.ranks)))
    used = crossing.of(src, dst, placement.switch, "src") & (placement.host[src] != placement.host[dst])
    assert crossing.number(placement) == np.count_nonzero(used) > 0
    assert [placement.hosts[code] for code in hosts_behind(of_component, crossing, placement)] == behind


@pytest.mark.parametrize(
    ("fabric", "routing"),
    [(DEEP, "d-mod-k"), (dragonfly(5, 4, 2), "shortest"), (torus((4, 3)), "shortest")],
)
def test_pairs_that_use_a_link_are_those_whose_path_has_it(fabric: Fabric, routing: str) -> None:
    topology = replace(fabric.topology, routing=Routing(kind=routing))
    placement, routes = Placement.of(simulate(fabric, seed=1), topology), routes_of(topology)
    src, dst = (ranks.ravel() for ranks in np.indices((placement.ranks, placement.ranks)))
    code = routes.codes(placement.switches)[placement.switch]
    hops = routes.hops(code[src], code[dst], placement.location[dst])
    links = [*range(0, len(routes.ends), max(1, len(routes.ends) // 12))]
    findings = [finding(State.FAULT, "link", routes.names[link]) for link in links]
    assert (hops >= 0).any()
    for link, crossing in zip(links, FindingPairs(findings, placement, routes).crossings, strict=True):
        used = np.zeros(src.size, bool) if crossing is None else crossing.of(src, dst, placement.switch, "src")
        assert np.array_equal(used, (hops == link).any(axis=1)), routes.names[link]


def behind_in_deep_tree(kind: str, name: str, routing: str) -> tuple[list[str], int, int]:
    """Hosts behind a component, pairs counted by share, and pairs of which a message may use it."""
    topology = replace(DEEP.topology, routing=Routing(kind=routing))
    placement = Placement.of(simulate(DEEP, seed=1), topology)
    of_component = finding(State.FAULT, kind, name)
    (crossing,) = FindingPairs([of_component], placement, routes_of(topology)).crossings
    assert crossing is not None
    src, dst = (ranks.ravel() for ranks in np.indices((placement.ranks, placement.ranks)))
    used = crossing.of(src, dst, placement.switch, "src") & (src != dst)
    hosts = [placement.hosts[code] for code in hosts_behind(of_component, crossing, placement)]
    return hosts, crossing.number(placement), int(np.count_nonzero(used))


@pytest.mark.parametrize(
    ("kind", "name", "routing", "behind", "pairs", "used"),
    [
        # Destinations 0, 16, 32 and 48 are reached by core00 alone.
        ("cable", "agg00=core00", "d-mod-k", ["h00", "h16", "h32", "h48"], 16 * 3 + 48, 16 * 3 + 48),
        ("link", "core00>agg00", "d-mod-k", ["h00"], 48, 48),
        ("switch", "core00", "d-mod-k", ["h00", "h16", "h32", "h48"], 4 * 48, 4 * 48),
        # One of sixteen paths of each pair of pods: 1.2 % to 4.8 % of what a host sends.
        ("cable", "agg00=core00", "ecmp", [], 2 * 16 * 48 // 16, 2 * 16 * 48),
        ("link", "agg00>core00", "adaptive", [], 16 * 48 // 16, 16 * 48),
        ("switch", "core00", "ecmp", [], 64 * 48 // 16, 64 * 48),
        # One of four up-links of each leaf of the pod.
        ("switch", "agg00", "ecmp", [f"h{host:02d}" for host in range(16)], (16 * 60 + 48 * 16) // 4, None),
    ],
)
def test_hosts_that_send_little_across_a_component_are_not_behind_it(kind, name, routing, behind, pairs, used):
    hosts, number, crossed = behind_in_deep_tree(kind, name, routing)
    assert (hosts, number) == (behind, pairs)
    assert used in (None, crossed)
