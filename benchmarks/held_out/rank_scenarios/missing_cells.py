"""Planned measurements without a figure: black holes, dead NICs and switches, deleted cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from held_out.fabrics import leaf_spine
from held_out.rank_runs.cluster import Cluster, single
from held_out.rank_runs.component_faults import ComponentFault
from held_out.rank_runs.rank_scenario import Missing, RankScenario
from held_out.rank_scenarios.drawn import component, components, hosts, leaves6, nic, two_planes, two_rails
from held_out.schedule import Schedule


def deleted(share: float) -> Missing:
    """A share of the pairs of NICs, drawn by chance, has no figure in either direction."""

    def missing(cluster: Cluster, schedule: Schedule, rng: np.random.Generator) -> np.ndarray:
        low, high = np.minimum(schedule.src, schedule.dst), np.maximum(schedule.src, schedule.dst)
        draws = rng.random((cluster.fabric.n, cluster.fabric.n))
        return np.asarray(draws[low, high] < share)

    return missing


def after(share: float) -> Missing:
    """The run was stopped after this share of the rounds."""
    return lambda cluster, schedule, rng: np.asarray(schedule.round >= share * schedule.rounds)


def _dead() -> Iterator[RankScenario]:
    """Components over which nothing arrives. A round trip or a stream needs the path back as well."""
    cases = {
        "black hole one way, uplink": (leaves6, component("link", "leaf2>spine3", dead=True), "matrix"),
        "dead cable": (leaves6, component("cable", "leaf5=spine1", dead=True), "matrix"),
        "dead host": (leaves6, component("host", "node20", dead=True), "matrix"),
        "dead NIC of two": (two_rails, nic(1, dead=True), "rails"),
        "dead NIC of the second plane": (two_planes, nic(1, dead=True), "rails"),
        "dead leaf of the second plane": (two_planes, component("switch", "p2.leaf2", dead=True), "rails"),
        "dead leaf": (leaves6, component("switch", "leaf2", dead=True), "matrix"),
    }
    for name, (cluster, faults, pattern) in cases.items():
        yield RankScenario(f"missing: {name}", cluster, faults, expected="faulty", pattern=pattern)
    both = components(
        ComponentFault("nic", "node09/hsn1", dead=True), ComponentFault("host", "node22", loss=0.3, direction="tx")
    )
    yield RankScenario("missing: dead NIC, and another host tx -30 %", two_rails, both, expected="faulty",
                       pattern="rails")  # fmt: skip


def _deleted() -> Iterator[RankScenario]:
    """Measurements that anything may have lost: no PASS, and no component is faulty for it."""
    yield RankScenario("missing: 30 % of the pairs deleted", leaves6, missing=deleted(0.3), expected="undecided")
    yield RankScenario("missing: stopped after 40 % of the rounds", leaves6, missing=after(0.4), expected="undecided")
    yield RankScenario("missing: 70 % of the pairs deleted, host -25 %", leaves6, hosts(1, 0.25),
                       missing=deleted(0.7), expected="faulty")  # fmt: skip
    yield RankScenario("missing: 30 % of the pairs deleted, cable -40 %", leaves6,
                       component("cable", "leaf3=spine2", loss=0.4), missing=deleted(0.3),
                       expected="faulty")  # fmt: skip
    few = RankScenario("missing: nothing, 16 rounds planned", leaves6, pattern="rails", rounds=16, passes=True)
    yield few
    yield replace(few, name="missing: nothing, 16 rounds planned, host -25 %", faults=hosts(1, 0.25), passes=None,
                  expected="faulty")  # fmt: skip
    yield RankScenario("missing: nothing, 24 rounds of 96 hosts", lambda: single(leaf_spine(8, 4, 12)),
                       pattern="rails", rounds=24, passes=True)  # fmt: skip


MISSING_CELLS = (*_dead(), *_deleted())
