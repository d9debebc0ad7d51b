"""Faults of the components of a cluster, and the names of all components that carry exactly the same messages."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from held_out.fabrics import Fabric
from held_out.faults import Direction, Fault, Names
from held_out.network import Network
from held_out.rank_runs.cluster import Cluster
from held_out.rank_runs.incidence import Incidence

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
_SIDES = {"tx": ("tx",), "rx": ("rx",), "both": ("tx", "rx")}


@dataclass(frozen=True)
class ComponentFault:
    """A faulty component.

    Attributes:
        kind: `host nic link cable switch`.
        name: `node01`, `node01/hsn1`, `leaf1>spine2`, `leaf1=spine2`, `leaf1`.
        direction: of a host or a NIC.
        loss: share of the capacity that is gone in the slow state.
        added: s of latency more on each crossing in the slow state.
        incidence: when it is slow; None for always.
        dead: is nothing measured over it at all?
    """

    kind: str
    name: str
    direction: Direction = "both"
    loss: float = 0.0
    added: float = 0.0
    incidence: Incidence | None = field(default=None, compare=False)
    dead: bool = False

    def components(self, cluster: Cluster, network: Network) -> Ints:
        """Numbers of what becomes slow."""
        if self.kind in ("host", "nic"):
            host, _, nic = self.name.partition("/")
            prefix = "nic_" if self.kind == "nic" else ""
            sides = [f"{prefix}{side}" for side in _SIDES[self.direction]]
            return network.hosts(cluster.endpoints_of(host, nic), *sides)
        return self.plain.components(network)

    @property
    def plain(self) -> Fault:
        """The fault in the terms of a fabric whose endpoints are hosts."""
        return Fault(self.kind, self.name, self.direction, self.loss, self.added)

    def apply(self, cluster: Cluster, network: Network) -> None:
        """Make the network slow."""
        components = self.components(cluster, network)
        finite = components[np.isfinite(network.capacity[components])]
        network.capacity[finite] *= 1 - self.loss
        network.latency[components] += self.added

    def crossed_by(self, cluster: Cluster, network: Network, src: Ints, dst: Ints) -> Bools:
        """(P,) does a message from the one NIC to the other cross it on any of its paths?"""
        return np.asarray(np.isin(network.crossed(src, dst), self.components(cluster, network)).any(axis=(1, 2)))


class Carriers:
    """All components that can be named, by the measurements whose messages they carry.

    Args:
        cluster: the cluster.
        network: its network.
        src: (P,) NICs that send.
        dst: (P,) NICs that receive.
    """

    def __init__(self, cluster: Cluster, network: Network, src: Ints, dst: Ints) -> None:
        if cluster.fabric.routing == "ecmp":  # nothing in a run shows which of the paths a pair takes
            network = Network(replace(cluster.fabric, routing="adaptive"))
        self.cluster, self._network, self._crossed = cluster, network, network.crossed(src, dst)
        self._names: dict[bytes, set[str]] = {}
        for names, components in _components(cluster, network):
            if components.size:
                self._names.setdefault(self._carried(components), set()).update(names)

    def _carried(self, components: Ints) -> bytes:
        """Which measurements cross any of the components, packed."""
        chosen = np.zeros(self._network.none + 1, bool)
        chosen[components] = True
        return np.packbits(chosen[self._crossed].any(axis=(1, 2))).tobytes()

    def same_as(self, fault: ComponentFault) -> set[str]:
        """Names of the components that carry the same messages as the faulty one in all measurements."""
        return set(self._names.get(self._carried(fault.components(self.cluster, self._network)), ()))


def names_of_fault(fault: ComponentFault, carriers: Carriers) -> Names:
    """The names of the component, of those in series with it, and of its members."""
    cluster = carriers.cluster
    exact, series = _exact(fault), carriers.same_as(fault)
    members: set[str] = set()
    if fault.kind == "host" and cluster.rails > 1:
        members = {f"{fault.name}/{cluster.nic(rail)}" for rail in range(cluster.rails)}
    if fault.kind == "nic":
        series.add(fault.name.partition("/")[0])  # the component that contains it
    if fault.kind == "switch":
        switch = cluster.fabric.switches.index(fault.name)
        ends = {cluster.fabric.hosts[end] for end in cluster.fabric.hosts_of(switch).tolist()}
        members = ends if fault.dead else _cables_of(cluster.fabric, switch)
    return Names(frozenset(exact), frozenset(series - exact), frozenset(members - series - exact))


def _exact(fault: ComponentFault) -> set[str]:
    """The names of the component itself."""
    if fault.kind in ("cable", "link"):
        a, _, b = fault.name.partition("=" if fault.kind == "cable" else ">")
        return {f"{a}={b}", f"{b}={a}", f"{a}>{b}"} | ({f"{b}>{a}"} if fault.kind == "cable" else set())
    return {fault.name}


def _cables_of(fabric: Fabric, switch: int) -> set[str]:
    """All cables and links of a switch: together they are the switch."""
    touching = np.flatnonzero((fabric.links == switch).any(axis=1)).tolist()
    return {fabric.link(link) for link in touching} | {fabric.cable(link // 2) for link in touching}


def _components(cluster: Cluster, network: Network) -> list[tuple[set[str], Ints]]:
    """All components that can be named: their names, and their numbers in the network."""
    fabric, all_components = cluster.fabric, []
    for host in cluster.hosts:
        endpoints = cluster.endpoints_of(host)
        for side in (("tx",), ("rx",), ("tx", "rx")):
            all_components.append(({host}, network.hosts(endpoints, *side)))
            for rail, endpoint in enumerate(endpoints):
                switch = fabric.switches[fabric.host_switch[endpoint]]
                names = _names_of_nic(host, cluster.nic(rail), switch) | (
                    {f"{host}/*"} if cluster.rails == 1 else set()
                )
                all_components.append((names, network.hosts([endpoint], *side)))
    for link in range(len(fabric.links)):
        all_components.append(({fabric.link(link), fabric.cable(link // 2)}, network.links(link)))
    for cable in range(len(fabric.links) // 2):
        names = {fabric.cable(cable), fabric.link(2 * cable), fabric.link(2 * cable + 1)}
        all_components.append((names, network.links(2 * cable, 2 * cable + 1)))
    for at, (switch, group) in enumerate(zip(fabric.switches, fabric.groups, strict=True)):
        names = {switch, group} if fabric.groups.count(group) == 1 else {switch}
        all_components += [(names, parts) for parts in (network.switches(at), *_sides_of_switch(network, at))]
    return all_components


def _names_of_nic(host: str, nic: str, switch: str) -> set[str]:
    """A NIC, and its cable in both spellings."""
    ends = (host, f"{host}/{nic}")
    return {f"{host}/{nic}"} | {
        f"{first}{sign}{last}" for end in ends for sign in "=>" for first, last in ((end, switch), (switch, end))
    }


def _sides_of_switch(network: Network, switch: int) -> list[Ints]:
    """The links of a switch and the cables of its NICs: all, those towards the switch, those that leave it."""
    fabric = network.fabric
    out, into = (np.flatnonzero(fabric.links[:, end] == switch).tolist() for end in (0, 1))
    ends = fabric.hosts_of(switch)
    leaving = np.concatenate([network.links(*out), network.hosts(ends, "up")])
    entering = np.concatenate([network.links(*into), network.hosts(ends, "down")])
    return [np.concatenate([leaving, entering]), leaving, entering]
