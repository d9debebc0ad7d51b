"""Hosts of several kinds, effects of a launch, load of a place in a period, follow-ups, single slow measurements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from held_out import noise
from held_out.network import Network
from held_out.noise import Conditions, Effect, Factor
from held_out.rank_runs.cluster import GIGABIT, Cluster
from held_out.rank_runs.component_faults import ComponentFault
from held_out.rank_runs.rank_scenario import FollowUp, RankScenario
from held_out.rank_runs.rank_schedules import isolated
from held_out.rank_scenarios.drawn import (
    Design,
    across,
    all_measurements,
    component,
    components,
    declared_speeds,
    hosts,
    in_period,
    leaves6,
)
from held_out.schedule import Schedule

BASE = noise.lognormal(0.006)
HALF = 50 * GIGABIT


def slower_kind(*numbers: int) -> Cluster:
    """48 hosts, some of which have NICs of half the speed."""
    return replace(leaves6(), slow_hosts=dict.fromkeys(numbers, HALF))


def third() -> Cluster:
    """Every third host has a NIC of half the speed."""
    return slower_kind(*range(0, 48, 3))


def slightly_slower(share: float, loss: float) -> Design:
    """A share of the hosts, drawn by chance, is slower by so much."""

    def design(cluster: Cluster, network: Network, rng: np.random.Generator) -> None:
        chosen = rng.permutation(len(cluster.hosts))[: round(share * len(cluster.hosts))]
        network.capacity[network.hosts(chosen, "tx", "rx")] *= 1 - loss

    return design


def single_slow(count: int, loss: float) -> Effect:
    """Measurements drawn by chance take longer, and nothing else shows why."""

    def effect(conditions: Conditions) -> Factor:
        slow = np.zeros(conditions.pairs, bool)
        slow[conditions.rng.permutation(conditions.pairs)[:count]] = True
        return lambda quantity, size: np.where(slow & (quantity == "bandwidth"), 1 / (1 - loss), 1.0)

    return effect


def busy_host(host: int, loss: float) -> Effect:
    """Another job on a host while the rows of all pairs are measured."""

    def effect(conditions: Conditions) -> Factor:
        slow = (conditions.schedule.src == host) | (conditions.schedule.dst == host)
        return lambda quantity, size: np.where(slow & (quantity == "bandwidth"), 1 / (1 - loss), 1.0)

    return effect


def alone(host: int, partners: int = 36) -> FollowUp:
    """A host with many partners, then half as many pairs of others, one pair after the other."""

    def follow_up(cluster: Cluster, faults: Sequence[ComponentFault], rng: np.random.Generator) -> Schedule:
        others = np.delete(np.arange(len(cluster.hosts)), host)
        chosen = rng.permutation(others)[:partners]
        return isolated(cluster, host, chosen, rng.permutation(others)[: partners // 2 * 2].reshape(-1, 2))

    return follow_up


def _kinds() -> Iterator[RankScenario]:
    """Kinds of hosts that differ as declared, or by less than what counts."""
    leaf = lambda: slower_kind(*range(16, 24))  # noqa: E731
    declared = {"design": declared_speeds, "passes": True}
    yield RankScenario("kinds: a third of the NICs has half the speed, as declared", third, **declared)
    yield RankScenario("kinds: the NICs of a leaf have half the speed, as declared", leaf, **declared)
    yield RankScenario("kinds: a quarter of the hosts 3 % slower", leaves6, design=slightly_slower(0.25, 0.03),
                       passes=True)  # fmt: skip
    yield RankScenario("kinds: hosts differ by 1.5 %", leaves6, passes=True,
                       effects=lambda _: (BASE, noise.host_spread(0.015)))  # fmt: skip
    yield RankScenario("kinds: host -30 % of the slower kind", third, component("host", "node07", loss=0.65),
                       design=declared_speeds, expected="faulty")  # fmt: skip
    yield RankScenario("kinds: host of the faster kind as slow as the slower", third,
                       component("host", "node08", loss=0.5), design=declared_speeds, expected="faulty")  # fmt: skip


def _launches() -> Iterator[RankScenario]:
    """What a start of the program draws for each pair."""
    launch = lambda _: (BASE, noise.launch_effects(0.025))  # noqa: E731
    yield RankScenario("launch: effects of 2.5 % on pairs", leaves6, effects=launch, passes=True)
    yield RankScenario("launch: effects of 2.5 % on pairs, 3 repeats", leaves6, effects=launch, repeats=3, passes=True)
    yield RankScenario("launch: effects of 2.5 %, host -20 %", leaves6, hosts(1, 0.2), effects=launch,
                       expected="faulty")  # fmt: skip
    yield RankScenario("launch: effects of 2.5 %, cable -20 %", leaves6,
                       component("cable", "leaf3=spine2", loss=0.2), effects=launch, expected="faulty")  # fmt: skip


def _loads() -> Iterator[RankScenario]:
    """Load of others at a place, in a period, on a host."""
    place = in_period(across("leaf3"), 0.3, 0.15, 0.4)
    start = in_period(all_measurements, 0.0, 0.06, 1.0)
    loaded = lambda _: (BASE, place)  # noqa: E731
    yield RankScenario("load: what crosses a leaf 40 % slower in 15 % of the run", leaves6, effects=loaded)
    yield RankScenario("load: the first rounds take twice as long", leaves6, effects=lambda _: (BASE, start),
                       passes=True)  # fmt: skip
    yield RankScenario("load: one of 2,256 streams once 60 % slower", leaves6, passes=True,
                       effects=lambda _: (BASE, single_slow(1, 0.6)))  # fmt: skip
    yield RankScenario("load: one leaf loaded in a period, host on it -25 %", leaves6,
                       component("host", "node20", loss=0.25), effects=loaded, expected="faulty")  # fmt: skip
    yield RankScenario("load: one leaf loaded in a period, another leaf -25 %", leaves6,
                       components(ComponentFault("switch", "leaf5", loss=0.25)), effects=loaded,
                       expected="faulty")  # fmt: skip


def _follow_ups() -> Iterator[RankScenario]:
    """Isolated measurements after rows beside load."""
    beside = lambda _: (BASE, noise.varying_load(1, 0.2))  # noqa: E731
    yield RankScenario("follow-up: host -30 % beside load, and isolated as slow", leaves6,
                       component("host", "node12", loss=0.3), effects=beside, follow_up=alone(11),
                       expected="faulty")  # fmt: skip
    yield RankScenario("follow-up: host -30 % beside load only, isolated as fast as others", leaves6,
                       effects=lambda _: (BASE, busy_host(11, 0.3)), follow_up=alone(11))  # fmt: skip


KINDS_AND_LOAD = (*_kinds(), *_launches(), *_loads(), *_follow_ups())
