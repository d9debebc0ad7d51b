"""A fabric: its topology, its directed links by number, and the switch of each NIC."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fablint.errors import UsageError
from fablint.model import ComponentRef, Endpoint, Topology
from fablint.model.arrays import Codes
from fablint.model.host_name import NicRef
from fablint.topology.routing import Routes, routes_of

LINK_LATENCY_S = 0.3e-6  # a cable and the switch after it
LINK_BANDWIDTH = 25e9  # bytes/s: 200 Gbit/s


@dataclass(frozen=True)
class Fabric:
    """A healthy fabric.

    Ports are the NICs: port h R + r is rail r of host h, of R rails. Directed links are numbered: first those between
    switches as `fablint.topology.routing` numbers them, then `HOST>SWITCH` of every port, then `SWITCH>HOST` of every
    port.
    """

    topology: Topology
    nics: tuple[str, ...] = ("nic0",)  # names of a host's NICs, one per rail

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """Host names; their position is the host index."""
        return tuple(self.topology.host_switch)

    @cached_property
    def routes(self) -> Routes:
        """Routes between switches."""
        return routes_of(self.topology)

    @property
    def rails(self) -> int:
        """Number of NICs of each host."""
        return len(self.nics)

    @property
    def ports(self) -> int:
        """Number of NICs of all hosts."""
        return len(self.hosts) * self.rails

    @property
    def switch_links(self) -> int:
        """Directed links between switches: those with the lowest numbers."""
        return len(self.routes.ends)

    @property
    def links(self) -> int:
        """All directed links."""
        return self.switch_links + 2 * self.ports

    @cached_property
    def port_switch(self) -> Codes:
        """(ports,) code of the switch at each NIC."""
        code = self.switch_codes
        topology = self.topology
        if self.rails == 1:
            return np.array([code[switch] for switch in topology.host_switch.values()], dtype=np.int32)
        names = (topology.nic_switch[NicRef.of(host, nic)] for host in self.hosts for nic in self.nics)
        return np.array([code[name] for name in names], dtype=np.int32)

    @cached_property
    def switch_codes(self) -> dict[str, int]:
        """Index of each switch by name."""
        return {name: index for index, name in enumerate(self.topology.switches)}

    @cached_property
    def host_codes(self) -> dict[str, int]:
        """Index of each host by name."""
        return {name: index for index, name in enumerate(self.hosts)}

    @cached_property
    def starts(self) -> Codes:
        """(links,) code of the switch that each directed link leaves, -1 for a link that leaves a host."""
        ends = self.routes.ends[:, 0] if self.switch_links else np.zeros(0, np.int32)
        return np.concatenate([ends, np.full(self.ports, -1, np.int32), self.port_switch])

    def ports_of(self, host: str, nic: str | None = None) -> list[int]:
        """Ports of a host, or its port of that name; [] if there is none."""
        if host not in self.host_codes:
            return []
        first = self.host_codes[host] * self.rails
        return [first + rail for rail, name in enumerate(self.nics) if nic in (None, name)]

    def up(self, port: int) -> int:
        """Link that leaves a NIC."""
        return self.switch_links + port

    def down(self, port: int) -> int:
        """Link that enters a NIC."""
        return self.switch_links + self.ports + port

    def link(self, start: str, end: str) -> int:
        """Number of the directed link `start>end`, -1 if there is none."""
        code = self.switch_codes
        for port in self.ports_of(start):
            if code.get(end) == self.port_switch[port]:
                return self.up(port)
        for port in self.ports_of(end):
            if code.get(start) == self.port_switch[port]:
                return self.down(port)
        if start not in code or end not in code or not self.switch_links:
            return -1
        ends = self.routes.ends
        numbers = np.flatnonzero((ends[:, 0] == code[start]) & (ends[:, 1] == code[end]))
        return int(numbers[0]) if numbers.size else -1

    def link_ref(self, link: int) -> ComponentRef:
        """Return a directed link: `s0>s1`, `h00>s0` or `s0>h00`."""
        if link < self.switch_links:
            return self.routes.component(link)
        port = (link - self.switch_links) % self.ports
        host, switch = self.hosts[port // self.rails], self.routes.switches[self.port_switch[port]]
        return ComponentRef.of("link", *((host, switch) if link == self.up(port) else (switch, host)))

    def nic_ref(self, port: int) -> ComponentRef:
        """Return the NIC of a port: `h00/hsn1`."""
        host = self.hosts[port // self.rails]
        return ComponentRef.of("nic", Endpoint(nodes=(host,), part=self.nics[port % self.rails]))

    def cable_ref(self, link: int) -> ComponentRef:
        """Return the cable of a directed link: `s0=s1` with the ends as in the topology, or `h00=s0`."""
        if link < self.switch_links:
            return self.routes.cable_component(link)
        port = (link - self.switch_links) % self.ports
        return ComponentRef.of("cable", *self.link_ref(self.up(port)).ends)


def numbered(prefix: str, count: int, digits: int = 1) -> list[str]:
    """Names of equal length: `h00`, `h01`, ..."""
    width = max(digits, len(str(count - 1)))
    return [f"{prefix}{index:0{width}d}" for index in range(count)]


def checked(kind: str, **numbers: int) -> None:
    """Raise UsageError if a number of a shape is below 1."""
    for name, number in numbers.items():
        if number < 1:
            raise UsageError(f"{kind}: {number} {name.replace('_', ' ')}", "it must be at least 1")
