"""What healthy networks are like: populations of hosts, geometry, paths of different kinds, missing measurements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from held_out.fabrics import Fabric
from held_out.network import Network
from held_out.schedule import Schedule

Bools = npt.NDArray[np.bool_]
Structure = Callable[[Network, np.random.Generator], None]
Chosen = Callable[[Schedule, Fabric, np.random.Generator], Bools]


def older_hosts(share: float, loss: float, racks: bool = False) -> Structure:
    """A share of the hosts, drawn by chance or rack by rack, whose both directions are slower."""

    def structure(network: Network, rng: np.random.Generator) -> None:
        fabric = network.fabric
        count = round(share * fabric.n)
        hosts = rng.permutation(fabric.n)[:count]
        if racks:
            hosts = np.concatenate([fabric.hosts_of(at) for at in rng.permutation(1 + fabric.host_switch.max())])[
                :count
            ]
        network.capacity[network.hosts(hosts, "tx", "rx")] *= 1 - loss

    return structure


def half_speed_nics(share: float) -> Structure:
    """NICs of half the speed in a share of the hosts."""

    def structure(network: Network, rng: np.random.Generator) -> None:
        hosts = rng.permutation(network.fabric.n)[: round(share * network.fabric.n)]
        network.capacity[network.hosts(hosts, "nic_tx", "nic_rx", "up", "down")] /= 2

    return structure


def longer_cables(switch: int, seconds: float, uplinks: bool = False) -> Structure:
    """More time of flight on all host cables of a rack, or on all cables that leave it."""

    def structure(network: Network, rng: np.random.Generator) -> None:
        fabric = network.fabric
        if uplinks:
            touching = np.flatnonzero((fabric.links == switch).any(axis=1)).tolist()
            network.latency[network.links(*touching)] += seconds
        else:
            network.latency[network.hosts(fabric.hosts_of(switch), "up", "down")] += seconds

    return structure


def all_latencies(added: float) -> Structure:
    """More time in every switch: moves the times to a step of a rounded scale."""

    def structure(network: Network, rng: np.random.Generator) -> None:
        network.latency[network.switches(*range(len(network.fabric.switches)))] += added

    return structure


def slower_kind(fabric: Callable[[Fabric], list[int]], loss: float = 0.0, added: float = 0.0) -> Structure:
    """One kind of links is slower by design."""

    def structure(network: Network, rng: np.random.Generator) -> None:
        links = network.links(*fabric(network.fabric))
        network.capacity[links] *= 1 - loss
        network.latency[links] += added

    return structure


def between_groups(fabric: Fabric) -> list[int]:
    """Links whose ends are in different groups."""
    groups = np.array(fabric.groups)
    return np.flatnonzero(groups[fabric.links[:, 0]] != groups[fabric.links[:, 1]]).tolist()


def inside_groups(fabric: Fabric) -> list[int]:
    """Links whose ends are in the same group."""
    return sorted(set(range(len(fabric.links))) - set(between_groups(fabric)))


def links_of(switch: str) -> Callable[[Fabric], list[int]]:
    """All links of a switch."""
    return lambda fabric: np.flatnonzero((fabric.links == fabric.switches.index(switch)).any(axis=1)).tolist()


def missing(share: float) -> Chosen:
    """Each measurement is lost with this probability."""
    return lambda schedule, fabric, rng: rng.random(len(schedule)) >= share


def without_hosts(count: int) -> Chosen:
    """Some hosts are in no measurement."""

    def chosen(schedule: Schedule, fabric: Fabric, rng: np.random.Generator) -> Bools:
        gone = rng.permutation(fabric.n)[:count]
        return ~(np.isin(schedule.src, gone) | np.isin(schedule.dst, gone))

    return chosen


def one_partner(host: int) -> Chosen:
    """A host that was measured with its neighbour alone."""

    def chosen(schedule: Schedule, fabric: Fabric, rng: np.random.Generator) -> Bools:
        on_host = (schedule.src == host) | (schedule.dst == host)
        partner = (schedule.src == host + 1) | (schedule.dst == host + 1)
        return ~on_host | partner

    return chosen


def of_host(host: int) -> Chosen:
    """All measurements of a host."""
    return lambda schedule, fabric, rng: (schedule.src == host) | (schedule.dst == host)


def first_rounds(share: float) -> Chosen:
    """The rounds until the run was stopped."""
    return lambda schedule, fabric, rng: schedule.round < share * schedule.rounds
