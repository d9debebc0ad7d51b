"""Faults: what they do to the network, which pairs they slow, and under which names they may be reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from held_out.fabrics import Fabric
from held_out.network import Network

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Direction = Literal["tx", "rx", "both"]
Active = Callable[[Floats], Bools]  # of the share of the run that is over, when the pair was measured


@dataclass(frozen=True)
class Fault:
    """One faulty component.

    Attributes:
        kind: `host nic cable link switch pair`.
        name: as docs/reference/verdict.md spells it.
        direction: of a host, NIC or host cable, seen from the host.
        loss: share of the capacity that is gone.
        added: s of latency more on each crossing.
        lossy: share of the messages that are sent again, each 0.2 ms late.
        active: when the component is slow; None for always.
        cable: which of several parallel cables.
        whole: of a switch: are messages that stay on the switch slow as well?
    """

    kind: str
    name: str
    direction: Direction = "both"
    loss: float = 0.0
    added: float = 0.0
    lossy: float = 0.0
    active: Active | None = field(default=None, compare=False)
    cable: int | None = None

    def components(self, network: Network) -> Ints:
        """What becomes slow. A pair has no component of its own."""
        fabric = network.fabric
        sides = {"tx": ("tx",), "rx": ("rx",), "both": ("tx", "rx")}[self.direction]
        if self.kind == "host":
            return network.hosts([fabric.hosts.index(self.name)], *sides)
        if self.kind == "nic":
            host = fabric.hosts.index(self.name.partition("/")[0])
            return network.hosts([host], *(f"nic_{side}" for side in sides))
        if self.kind == "switch":
            return _switch(network, fabric.switches.index(self.name))
        if self.kind in ("cable", "link"):
            return self._cable(network, sides)
        return np.array([], np.int64)

    def _cable(self, network: Network, sides: tuple[str, ...]) -> Ints:
        fabric = network.fabric
        a, _, b = self.name.partition("=" if self.kind == "cable" else ">")
        if a in fabric.hosts:
            directions = ["up" if side == "tx" else "down" for side in sides]
            return network.hosts([fabric.hosts.index(a)], *directions)
        ends = (fabric.switches.index(a), fabric.switches.index(b))
        links = [number for number, pair in enumerate(fabric.links.tolist()) if tuple(pair) == ends]
        chosen = links if self.cable is None else links[self.cable : self.cable + 1]
        back = [link ^ 1 for link in chosen] if self.kind == "cable" else []
        return network.links(*chosen, *back)

    def slow_pairs(self, network: Network, src: Ints, dst: Ints) -> Bools:
        """(P,) does the pair cross it?"""
        if self.kind == "pair":
            a, _, b = self.name.partition(">")
            hosts = network.fabric.hosts
            return np.asarray((src == hosts.index(a)) & (dst == hosts.index(b)))
        return np.asarray(np.isin(network.crossed(src, dst), self.components(network)).any(axis=(1, 2)))

    def apply(self, network: Network) -> None:
        """Make the network slow."""
        components = self.components(network)
        finite = components[np.isfinite(network.capacity[components])]
        network.capacity[finite] *= 1 - self.loss
        network.latency[components] += self.added


def _switch(network: Network, switch: int) -> Ints:
    """A slow switch: all its links, in both directions, and the cables of its hosts."""
    fabric = network.fabric
    touching = np.flatnonzero((fabric.links == switch).any(axis=1))
    hosts = fabric.hosts_of(switch)
    return np.concatenate([network.links(*touching.tolist()), network.hosts(hosts, "up", "down")])


@dataclass(frozen=True)
class Names:
    """Under which names a fault may be reported.

    Attributes:
        exact: the component itself.
        series: components that lie in series with it.
        members: components of which it consists: slow, but only all of them together are the fault.
    """

    exact: frozenset[str]
    series: frozenset[str]
    members: frozenset[str] = frozenset()


def names_of(fault: Fault, fabric: Fabric) -> Names:
    """The component, and those that carry exactly the same messages."""
    if fault.kind in ("host", "nic") or (fault.kind == "cable" and fault.name.partition("=")[0] in fabric.hosts):
        return _host_names(fault, fabric)
    if fault.kind in ("cable", "link"):
        return _cable_names(fault, fabric)
    if fault.kind == "switch":
        switch = fabric.switches.index(fault.name)
        touching = np.flatnonzero((fabric.links == switch).any(axis=1)).tolist()
        hosts = fabric.hosts_of(switch)
        only = {fabric.hosts[hosts[0]]} if hosts.size == 1 else set()
        # All links of a switch together are the switch; where it has one cable, so is that one alone.
        cables = {fabric.link(link) for link in touching} | {fabric.cable(link // 2) for link in touching}
        return Names(frozenset({fault.name}), frozenset(only | cables | {fabric.groups[switch]}))
    a, _, b = fault.name.partition(">")
    return Names(frozenset({fault.name, f"{a}={b}", f"{b}={a}", f"{b}>{a}"}), frozenset())


def _host_names(fault: Fault, fabric: Fabric) -> Names:
    host = fault.name.partition("/")[0].partition("=")[0]
    at = int(fabric.host_switch[fabric.hosts.index(host)])
    switch = fabric.switches[at]
    series = {host, f"{host}/*", f"{host}={switch}", f"{host}>{switch}", f"{switch}>{host}"}
    if fabric.hosts_of(at).size == 1:
        series.add(switch)
    exact = {fault.name, f"{host}/*"} if fault.kind == "nic" else {fault.name}
    if fault.kind == "cable":
        exact |= {f"{host}>{switch}"} if fault.direction == "tx" else {f"{switch}>{host}"}
    return Names(frozenset(exact), frozenset(series - exact))


def _cable_names(fault: Fault, fabric: Fabric) -> Names:
    a, _, b = fault.name.partition("=" if fault.kind == "cable" else ">")
    exact = {f"{a}={b}", f"{b}={a}", f"{a}>{b}"} | ({f"{b}>{a}"} if fault.kind == "cable" else set())
    first, second = (fabric.groups[fabric.switches.index(end)] for end in (a, b))
    series = {f"{first}={second}", f"{second}={first}", f"{first}>{second}"} if first != second else set()
    for end, other in ((a, b), (b, a)):  # a switch with one cable and one host or none is in series with it
        position = fabric.switches.index(end)
        cables = int((fabric.links == position).any(axis=1).sum()) // 2
        if cables == 1 and fabric.hosts_of(position).size <= 1:
            series.add(end)
        if cables == 1 and fabric.hosts_of(position).size == 1:
            series.add(fabric.hosts[fabric.hosts_of(position)[0]])
        if not fabric.hosts_of(fabric.switches.index(other)).size:
            # Cables not declared: a switch without hosts is unknown, and its cable is the paths from the other end.
            far = [
                name for name in fabric.switches if name != end and fabric.hosts_of(fabric.switches.index(name)).size
            ]
            forward, backward = {f"{end}>{name}" for name in far}, {f"{name}>{end}" for name in far}
            series |= (forward if end == a else backward) if fault.kind == "link" else forward | backward
    return Names(frozenset(exact), frozenset(series))
