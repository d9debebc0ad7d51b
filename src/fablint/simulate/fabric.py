"""Fabrics: hosts, switches, directed links with their speed, and the links that each pair of hosts uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fablint.errors import UsageError
from fablint.model import Cable, Switch, Topology

Links = npt.NDArray[np.int32]
Hosts = npt.NDArray[np.int64]

LINK_LATENCY_S = 0.3e-6  # a cable and the switch behind it
LINK_BANDWIDTH = 25e9  # bytes/s: 200 Gbit/s


class Routes(Protocol):
    """Which directed links a message crosses. A fat tree or a dragonfly is another class of this shape."""

    def __call__(self, src: Hosts, dst: Hosts) -> Links:
        """Link indices of shape (*broadcast(src, dst), hops), -1 where the route is shorter than the longest one.

        `src` and `dst` are host indices. A host reaches itself over no link at all.
        """
        ...


@dataclass(frozen=True)
class Fabric:
    """A healthy fabric. Directed links are named `h00>s0` (host to switch), `s0>s1`, `s0>h00`."""

    topology: Topology
    link_index: Mapping[str, int]
    latency: npt.NDArray[np.float64]  # (links,) seconds that crossing the link adds
    bandwidth: npt.NDArray[np.float64]  # (links,) bytes/s
    routes: Routes

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """Host names; their position is the host index."""
        return tuple(self.topology.host_switch)


@dataclass(frozen=True)
class _MeshRoutes:
    """Up to the switch, over the one direct cable, down to the host."""

    switch: Hosts  # (hosts,)
    up: Links  # (hosts,) host -> switch
    down: Links  # (hosts,) switch -> host
    across: Links  # (switches, switches), -1 on the diagonal

    def __call__(self, src: Hosts, dst: Hosts) -> Links:
        src, dst = np.broadcast_arrays(src, dst)
        hops = (self.up[src], self.across[self.switch[src], self.switch[dst]], self.down[dst])
        links = np.stack(hops, axis=-1)
        links[src == dst] = -1
        return links


def full_mesh(switches: int = 8, hosts_per_switch: int = 8) -> Fabric:
    """Every switch joined to every other by one cable, as inside a Slingshot group.

    Hosts are `h00`, `h01`, ... in switch order, switches `s0`, `s1`, ..., all in group `g0`.
    Raises UsageError when a number is below 1.
    """
    if switches < 1 or hosts_per_switch < 1:
        raise UsageError(f"full_mesh: {switches} switches of {hosts_per_switch} hosts", "both must be at least 1")
    hosts = switches * hosts_per_switch
    digits = max(2, len(str(hosts - 1)))
    host_names = [f"h{index:0{digits}d}" for index in range(hosts)]
    switch_names = [f"s{index:0{len(str(switches - 1))}d}" for index in range(switches)]
    switch_of = np.repeat(np.arange(switches), hosts_per_switch)

    pairs = [(a, b) for a in range(switches) for b in range(switches) if a != b]
    names = [f"{host}>{switch_names[s]}" for host, s in zip(host_names, switch_of, strict=True)]
    names += [f"{switch_names[s]}>{host}" for host, s in zip(host_names, switch_of, strict=True)]
    names += [f"{switch_names[a]}>{switch_names[b]}" for a, b in pairs]
    across = np.full((switches, switches), -1, dtype=np.int32)
    for index, (a, b) in enumerate(pairs):
        across[a, b] = 2 * hosts + index

    topology = Topology(
        switches={name: Switch(name, "g0") for name in switch_names},
        host_switch={host: switch_names[s] for host, s in zip(host_names, switch_of, strict=True)},
        cables=tuple(Cable(switch_names[a], switch_names[b]) for a, b in pairs if a < b),
        source=f"simulated full mesh of {switches} switches",
    )
    return Fabric(
        topology=topology,
        link_index={name: index for index, name in enumerate(names)},
        latency=np.full(len(names), LINK_LATENCY_S),
        bandwidth=np.full(len(names), LINK_BANDWIDTH),
        routes=_MeshRoutes(
            switch=switch_of,
            up=np.arange(hosts, dtype=np.int32),
            down=np.arange(hosts, 2 * hosts, dtype=np.int32),
            across=across,
        ),
    )
