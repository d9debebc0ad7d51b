"""Hosts with several NICs: rails that differ by design, planes, ranks that share a NIC."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from held_out.fabrics import leaf_spine, mesh, one_switch
from held_out.rank_runs.cluster import GIGABIT, Cluster, planes, rails_on_one_leaf, single
from held_out.rank_runs.rank_scenario import RankScenario
from held_out.rank_scenarios.drawn import (
    component,
    declared_speeds,
    far_socket,
    hosts,
    nic,
    two_planes,
    two_rails,
)


def rail_switches() -> Cluster:
    """24 hosts with 4 NICs, each rail on a switch of its own; two rails at the far socket."""
    return planes(one_switch(24), 4, far=(2, 3))


def _rails() -> Iterator[RankScenario]:
    """Rails on one fabric, measured with themselves; then one switch for each rail."""
    common = {"pattern": "rails", "design": far_socket()}
    faulty = {**common, "expected": "faulty"}
    yield RankScenario("rails: second NIC at the far socket", two_rails, passes=True, **common)
    yield RankScenario("rails: four rail switches, two NICs at the far socket", rail_switches, passes=True, **common)
    equal = lambda: rails_on_one_leaf(leaf_spine(4, 2, 8), 2)  # noqa: E731
    yield RankScenario("rails: two equal NICs", equal, pattern="rails", passes=True)
    yield RankScenario("rails: far NIC tx -20 %", two_rails, nic(1, loss=0.32, direction="tx"), **faulty)
    yield RankScenario("rails: near NIC -15 %, as slow as far ones", two_rails, nic(0, loss=0.15), **faulty)
    yield RankScenario("rails: host -30 % on both NICs", two_rails, hosts(1, 0.3), **faulty)
    yield RankScenario("rails: cable -40 %", two_rails, component("cable", "leaf3=spine2", loss=0.4), **faulty)
    yield RankScenario("rails: NIC on a rail switch rx -25 %", rail_switches,
                       nic(3, loss=0.3625, direction="rx"), **faulty)  # fmt: skip
    yield RankScenario("rails: one near rail switch -15 %, undecided", rail_switches,
                       component("switch", "p1.sw1", loss=0.15), **{**common, "expected": "undecided"})  # fmt: skip


def _planes() -> Iterator[RankScenario]:
    """Two fabrics, a NIC of each host on each."""
    common = {"pattern": "rails"}
    faulty = {**common, "expected": "faulty"}
    slow_plane = lambda: replace(two_planes(), slow_rails={1: 50 * GIGABIT})  # noqa: E731
    yield RankScenario("planes: quiet", two_planes, passes=True, **common)
    yield RankScenario("planes: the second one has half the speed, as declared", slow_plane, design=declared_speeds,
                       passes=True, **common)  # fmt: skip
    three = lambda: planes(leaf_spine(4, 2, 6, "adaptive"), 3)  # noqa: E731
    yield RankScenario("planes: three, adaptive routing", three, uplink=8.0, passes=True, **common)
    yield RankScenario("planes: leaf of the second plane -20 %", two_planes,
                       component("switch", "p2.leaf3", loss=0.2), **faulty)  # fmt: skip
    yield RankScenario("planes: spine of the first plane -30 %", two_planes,
                       component("switch", "p1.spine2", loss=0.3), **faulty)  # fmt: skip
    yield RankScenario("planes: NIC on the second plane rx -30 %", two_planes,
                       nic(1, loss=0.3, direction="rx"), **faulty)  # fmt: skip
    yield RankScenario("planes: host -25 % on both", two_planes, hosts(1, 0.25), **faulty)
    yield RankScenario("planes: uplink one way -40 % on the second plane", two_planes,
                       component("link", "p2.leaf2>p2.spine1", loss=0.4), **faulty)  # fmt: skip
    yield RankScenario("planes: NIC -30 % on the slower plane", slow_plane, nic(1, loss=0.3),
                       design=declared_speeds, **faulty)  # fmt: skip


def _ranks_per_nic() -> Iterator[RankScenario]:
    """Several ranks of a host share a NIC, and in a round some of them send at the same time."""
    four = lambda: single(one_switch(16), per_nic=4)  # noqa: E731
    leaves = lambda: single(leaf_spine(3, 2, 8), per_nic=3)  # noqa: E731
    rails = lambda: rails_on_one_leaf(mesh([8, 8], 4, "ecmp"), 2, per_nic=2)  # noqa: E731
    yield RankScenario("ranks per NIC: 4 on one switch", four, passes=True)
    yield RankScenario("ranks per NIC: 3 on three leaves, uplinks shared", leaves, shared=True)
    yield RankScenario("ranks per NIC: 2 on each of 2 rails, latency", rails, passes=True, quantities=("latency",))
    yield RankScenario("ranks per NIC: 4, host tx -25 %", four, hosts(1, 0.25, direction="tx"), expected="faulty")
    yield RankScenario("ranks per NIC: 4, one NIC at half speed", four, nic(0, loss=0.5), expected="faulty")
    yield RankScenario("ranks per NIC: 3 on three leaves, host -30 %", leaves, hosts(1, 0.3), expected="faulty")


RAILS_AND_PLANES = (*_rails(), *_planes(), *_ranks_per_nic())
