"""Clusters, faults and properties of healthy networks that several scenarios share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from held_out.fabrics import leaf_spine
from held_out.network import Network
from held_out.noise import Conditions, Effect, Factor
from held_out.rank_runs.cluster import SPEED, Cluster, planes, rails_on_one_leaf, single
from held_out.rank_runs.component_faults import ComponentFault
from held_out.rank_runs.rank_scenario import Faults

Design = Callable[[Cluster, Network, np.random.Generator], None]


def leaves6() -> Cluster:
    """48 hosts on 6 leaves, 4 spines."""
    return single(leaf_spine(6, 4, 8))


def two_rails() -> Cluster:
    """32 hosts on 4 leaves, 2 spines; both NICs of a host on its leaf, the second one at the far socket."""
    return rails_on_one_leaf(leaf_spine(4, 2, 8), 2, far=(1,))


def two_planes() -> Cluster:
    """32 hosts; two planes of 4 leaves and 2 spines, a NIC of each host on each."""
    return planes(leaf_spine(4, 2, 8), 2)


def component(kind: str, name: str, **how: Any) -> Faults:
    """A component by its name."""
    return lambda cluster, rng: [ComponentFault(kind, name, **how)]


def components(*faults: ComponentFault) -> Faults:
    """Several components by their names."""
    return lambda cluster, rng: faults


def hosts(count: int, loss: float | tuple[float, float], **how: Any) -> Faults:
    """Hosts drawn by chance; with two losses each host has a loss between them."""

    def faults(cluster: Cluster, rng: np.random.Generator) -> list[ComponentFault]:
        low, high = loss if isinstance(loss, tuple) else (loss, loss)
        drawn = rng.permutation(len(cluster.hosts))[:count].tolist()
        return [ComponentFault("host", cluster.hosts[at], loss=float(rng.uniform(low, high)), **how) for at in drawn]

    return faults


def nic(rail: int, **how: Any) -> Faults:
    """The NIC of a rail at a host drawn by chance."""

    def faults(cluster: Cluster, rng: np.random.Generator) -> list[ComponentFault]:
        host = cluster.hosts[int(rng.integers(len(cluster.hosts)))]
        return [ComponentFault("nic", f"{host}/{cluster.nic(rail)}", **how)]

    return faults


def far_socket(loss: float = 0.15, added: float = 0.3e-6) -> Design:
    """NICs at the far socket are reached over the link between the sockets: less bandwidth, more latency."""

    def design(cluster: Cluster, network: Network, rng: np.random.Generator) -> None:
        for rail in cluster.far:
            ends = network.hosts(cluster.endpoints_of_rail(rail), "tx", "rx")
            network.capacity[ends] *= 1 - loss
            network.latency[ends] += added

    return design


def declared_speeds(cluster: Cluster, network: Network, rng: np.random.Generator) -> None:
    """NICs are as fast as their declared speed says."""
    for number, host in enumerate(cluster.hosts):
        for rail, endpoint in enumerate(cluster.endpoints_of(host)):
            ends = network.hosts([endpoint], "nic_tx", "nic_rx", "up", "down")
            network.capacity[ends] *= cluster.speed(number, rail) / SPEED


def in_period(slow: Callable[[Conditions], np.ndarray], begin: float, share: float, size: float) -> Effect:
    """Measurements that `slow` selects take longer in one period of the run."""

    def effect(conditions: Conditions) -> Factor:
        progress = conditions.progress
        chosen = slow(conditions) & (progress >= begin) & (progress < begin + share)
        return lambda quantity, _: np.where(chosen, 1 + size, 1.0)

    return effect


def all_measurements(conditions: Conditions) -> np.ndarray:
    """Every measurement."""
    return np.ones(conditions.pairs, bool)


def across(switch: str) -> Callable[[Conditions], np.ndarray]:
    """Measurements that enter or leave a switch."""

    def slow(conditions: Conditions) -> np.ndarray:
        fabric, schedule = conditions.network.fabric, conditions.schedule
        at = fabric.switches.index(switch)
        return np.asarray((fabric.host_switch[schedule.src] == at) != (fabric.host_switch[schedule.dst] == at))

    return slow
