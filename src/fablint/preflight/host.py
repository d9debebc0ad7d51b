"""A host as checks see it: its snapshot, and what is read from it once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from fablint.model import Topology
from fablint.preflight.counters import Delta, delta
from fablint.snapshot import NicFact, Output, Snapshot, nics_of, rails
from fablint.snapshot.lldp import Neighbour
from fablint.snapshot.neighbours import heard_by
from fablint.snapshot.snapshot import Tree

NET = "/sys/class/net"
INFINIBAND = "/sys/class/infiniband"
CXI = "/sys/class/cxi"


@dataclass
class Host:
    """One host. `before` is an older reading of its counters since the same boot, where one was kept."""

    snapshot: Snapshot
    before: Mapping[str, object] | None = None  # `time`: seconds since 1970, `counters`: a tree

    @property
    def name(self) -> str:
        return self.snapshot.host

    @cached_property
    def nics(self) -> Sequence[NicFact]:
        return nics_of(self.snapshot)

    @cached_property
    def rails(self) -> Sequence[NicFact]:
        """NICs of the fabric: network interfaces, and ports of fabric devices."""
        return rails(self.nics)

    @cached_property
    def interfaces(self) -> Sequence[NicFact]:
        """Those of the rails that are network interfaces."""
        return [nic for nic in self.rails if self.read(f"{NET}/{nic.name}/address") is not None]

    @cached_property
    def neighbours(self) -> Sequence[Neighbour]:
        """Who is heard by LLDP."""
        return heard_by(self.snapshot)

    @cached_property
    def ports(self) -> Sequence[tuple[str, str]]:
        """Ports of RDMA devices: device and number."""
        devices = self.snapshot.names(INFINIBAND)
        return [(device, port) for device in devices for port in self.snapshot.names(f"{INFINIBAND}/{device}/ports")]

    @property
    def cxi(self) -> Sequence[str]:
        """Slingshot devices."""
        return self.snapshot.names(CXI)

    @cached_property
    def kind(self) -> str:
        """What machine it is: only like hosts are compared."""
        vendor = self.read("/sys/devices/virtual/dmi/id/sys_vendor") or ""
        return f"{vendor} {self.read('/sys/devices/virtual/dmi/id/product_name') or ''}".strip()

    def read(self, path: str) -> str | None:
        return self.snapshot.read(path)

    def number(self, path: str) -> int | None:
        return self.snapshot.number(path)

    def command(self, name: str) -> Output:
        return self.snapshot.command(name)

    def grown(self, path: str) -> Delta | None:
        """How much a counter grew: since the reading that was kept, else within the snapshot's own window.

        None where it cannot be read, or was reset in between.
        """
        last = self.snapshot.read_later(path)
        own = delta(path, self.snapshot.read(path), last, self.snapshot.window_s)
        if self.before is None or last is None:
            return own
        tree, moment = self.before.get("counters"), self.before.get("time")
        if not isinstance(tree, dict) or not isinstance(moment, int | float):
            return own
        passed = self.snapshot.time + self.snapshot.window_s - moment
        kept = Snapshot(self.name, counters=tree).read(path)
        return (delta(path, kept, last, passed) if passed > 0 else None) or own


@dataclass
class Fleet:
    """All hosts that gave a snapshot, and what is known besides."""

    hosts: Sequence[Host]
    silent: Mapping[str, str] = field(default_factory=dict)
    topology: Topology | None = None  # what the site says hangs where
    fabric: Snapshot | None = None  # outputs of the fabric's own tools, asked on one machine


def counters_of(snapshot: Snapshot) -> Tree:
    """The last reading of all counters, to be kept."""
    return snapshot.later or snapshot.counters
