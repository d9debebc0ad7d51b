"""Faults: which directed links a sick part slows, and by how much."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from fablint.errors import UsageError
from fablint.model import Direction
from fablint.simulate.fabric import Fabric


@dataclass(frozen=True)
class Fault:
    """One sick part.

    `component`: `host` (its NIC, both directions or one), `link` (`s0>s1`), `cable` (`s0=s1`, both of its links)
    or `switch` (whatever leaves it, so every route through it once or more).
    """

    component: Literal["host", "link", "cable", "switch"]
    name: str
    direction: Direction = "both"  # of a host: `tx` slows what it sends
    bandwidth_factor: float = 1.0  # 0.8: 20 % less
    added_latency_s: float = 0.0

    def links(self, fabric: Fabric) -> list[int]:
        """Indices of the directed links that are slow. UsageError when the fabric has no such part."""
        names = [name for name in fabric.link_index if self._slows(*name.split(">"))]
        parts = {"host": fabric.topology.host_switch, "switch": fabric.topology.switches}
        if not names or self.name not in parts.get(self.component, (self.name,)):
            raise UsageError(f"fault: the fabric has no {self.component} {self.name}")
        return [fabric.link_index[name] for name in names]

    def _slows(self, start: str, end: str) -> bool:
        match self.component:
            case "host":
                sends, receives = self.direction in ("tx", "both"), self.direction in ("rx", "both")
                return (sends and start == self.name) or (receives and end == self.name)
            case "link":
                return f"{start}>{end}" == self.name
            case "cable":
                return self.name in (f"{start}={end}", f"{end}={start}")
            case "switch":
                return start == self.name


def broken(fabric: Fabric, faults: Iterable[Fault]) -> Fabric:
    """The same fabric with the faults in it."""
    latency, bandwidth = fabric.latency.copy(), fabric.bandwidth.copy()
    for fault in faults:
        links = fault.links(fabric)
        latency[links] += fault.added_latency_s
        bandwidth[links] *= fault.bandwidth_factor
    return replace(fabric, latency=latency, bandwidth=bandwidth)
