"""The fabric: switches, cables, how they route, and how far apart two hosts are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

from fablint.model.host_name import HostNames, NicRef


@dataclass(frozen=True)
class Switch:
    """A switch and the group (dragonfly group, fat-tree pod) it belongs to."""

    name: str
    group: str = ""


@dataclass(frozen=True)
class Cable:
    """A cable between two switches. It carries two directed links, `a>b` and `b>a`."""

    a: str
    b: str
    speed: float | None = None  # bytes/s in each direction, as ordered; None: not declared

    @property
    def name(self) -> str:
        return f"{self.a}={self.b}"


@dataclass(frozen=True)
class Routing:
    """How switches choose among the shortest paths.

    `shortest`: unknown, so that only a path without an alternative is known. `d-mod-k`: by the destination's
    position among the topology's hosts (fat trees). `tables`: by the forwarding tables. `ecmp`: a constant
    but unknown choice per pair. `adaptive`: every message by itself; `minimal_share` of them take a shortest path.
    """

    kind: Literal["shortest", "d-mod-k", "tables", "ecmp", "adaptive"] = "shortest"
    minimal_share: float = 1.0
    tables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # switch: {destination host: next switch}


@dataclass(frozen=True)
class Topology:
    """The switch that each host is connected to, and the cables between switches.

    The cable between a host and its switch is implied and named `HOST=SWITCH`. A topology without cables
    still tells the scope of a pair; links between switches are then not judged one by one.
    """

    switches: Mapping[str, Switch]
    host_switch: Mapping[str, str]
    cables: tuple[Cable, ...] = ()
    source: str = ""
    routing: Routing = field(default_factory=Routing)
    nic_switch: Mapping[NicRef, str] = field(default_factory=dict)  # where a host has several NICs
    ports: Mapping[tuple[str, str], str] = field(default_factory=dict)  # (switch, what is at the other end): its port
    inferred: bool = False  # inferred from the measured times, not declared

    def named_as(self, hosts: Iterable[str]) -> Topology:
        """Return the topology with the names that `hosts` gives its hosts; others keep theirs."""
        matches = HostNames(self.host_switch, complete=True).matched(hosts)
        names = {declared: name for name, declared in matches.items() if declared != name}
        if not names:
            return self

        def spell(end: str) -> NicRef:
            ref = NicRef(end)
            return NicRef.of(names.get(ref.host, ref.host), ref.device)

        tables = {
            switch: {names.get(host, host): onward for host, onward in table.items()}
            for switch, table in self.routing.tables.items()
        }
        return replace(
            self,
            host_switch={names.get(host, host): switch for host, switch in self.host_switch.items()},
            nic_switch={spell(end): switch for end, switch in self.nic_switch.items()},
            ports={(switch, spell(end)): port for (switch, end), port in self.ports.items()},
            routing=replace(self.routing, tables=tables),
        )

    @property
    def end_switch(self) -> dict[NicRef, str]:
        """Switch of each host, and of each NIC of a host that has several."""
        return {NicRef(host): switch for host, switch in self.host_switch.items()} | dict(self.nic_switch)

    def group_of(self, host: str) -> str:
        """Group of a host; the switch's own name where no groups were declared."""
        switch = self.switches[self.host_switch[host]]
        return switch.group or switch.name


class Scope(StrEnum):
    """How far apart the two ends of a pair are."""

    INTRA_NODE = "intra-node"
    EDGE = "edge"  # same switch
    LOCAL = "local"  # same group
    GLOBAL = "global"  # between groups
    UNKNOWN = "unknown"  # between hosts, no topology given


SCOPES = tuple(Scope)  # arrays hold the scope of a pair as an index into this
