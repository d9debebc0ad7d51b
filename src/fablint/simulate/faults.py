"""Faults: directed links that a faulty component slows, and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fablint.errors import UsageError
from fablint.model import ComponentKind, ComponentRef, Direction
from fablint.model.arrays import Codes, Floats, Mask, Values
from fablint.model.names import fold
from fablint.simulate.simulated_fabric import LINK_BANDWIDTH, LINK_LATENCY_S, Fabric

Kind = Literal["slow", "latency", "duplex", "lossy", "flapping", "mis-cabled", "noise"]

MOST_STATES = 64  # combinations of states of flapping components in one row


@dataclass(frozen=True)
class Fault:
    """One faulty component.

    `component`: a host (all of its NICs, both directions or one), a NIC (`h00/hsn1`), a link (`s0>s1`, `h00>s0`),
    a cable (`s0=s1`, `h00=s0`, both of its links) or a switch (all links that leave it, so that every route through it
    counts once). The other fields add up; a field at its default has no effect.
    """

    component: ComponentRef
    direction: Direction = "both"  # of a host, a NIC or a host's cable: `tx` slows what the host sends
    bandwidth_factor: float = 1.0  # 0.8: 20 % less
    added_latency_s: float = 0.0
    duplex_factor: float = 1.0  # of the bandwidth while both directions are in use at once
    retry_share: float = 0.0  # share of messages that are retransmitted ...
    retry_s: float = 0.0  # ... and arrive this much later
    flapping: float = 1.0  # share of the rounds in which the component is faulty
    moved_to: str = ""  # the host is connected to this switch, whatever the topology says
    scatter: float = 1.0  # factor of the scatter of its measurements; their median is unchanged

    @property
    def kind(self) -> Kind:
        """Kind of the fault."""
        if self.moved_to:
            return "mis-cabled"
        if self.flapping < 1.0:
            return "flapping"
        if self.retry_share:
            return "lossy"
        if self.duplex_factor < 1.0:
            return "duplex"
        if self.bandwidth_factor < 1.0:
            return "slow"
        return "latency" if self.added_latency_s else "noise"

    def facts(self) -> dict[str, Any]:
        """Return the fields as JSON data, for the facts of the run."""
        return {**vars(self), "component": self.component.model_dump(mode="json")}

    @property
    def loss(self) -> float:
        """Share of the bandwidth that is lost."""
        return 1.0 - self.bandwidth_factor * self.duplex_factor

    def links(self, fabric: Fabric) -> list[int]:
        """Numbers of the directed links that are slow. Raises UsageError if the fabric has no such component."""
        links = self._links(fabric)
        if not links or (self.moved_to and self.moved_to not in fabric.switch_codes):
            missing = ComponentRef.of("switch", self.moved_to) if links else self.component
            raise UsageError(f"fault: the fabric has no {missing.text}", _example(fabric, missing.kind))
        return links

    def _links(self, fabric: Fabric) -> list[int]:
        names = [fold(end.nodes) for end in self.component.ends]
        match self.component.kind, names:
            case "host", [host]:
                return self._of_ports(fabric, fabric.ports_of(host))
            case "nic", [host] if nic := self.component.ends[0].part:
                return self._of_ports(fabric, fabric.ports_of(host, nic))
            case "link", [start, end]:
                return [link for link in [fabric.link(start, end)] if link >= 0]
            case "cable", [a, b]:
                return self._of_cable(fabric, a, b)
            case "switch", [name]:
                code = fabric.switch_codes.get(name, len(fabric.switch_codes))
                return np.flatnonzero(fabric.starts == code).tolist()
        return []

    def _of_cable(self, fabric: Fabric, a: str, b: str) -> list[int]:
        port = next((port for end in (a, b) for port in fabric.ports_of(end)), None)
        links = [fabric.link(a, b), fabric.link(b, a)]
        if min(links) < 0:
            return []
        if port is None:
            return links
        return self._of_ports(fabric, [(max(links) - fabric.switch_links) % fabric.ports])

    def _of_ports(self, fabric: Fabric, ports: Sequence[int]) -> list[int]:
        sends, receives = self.direction in ("tx", "both"), self.direction in ("rx", "both")
        return [fabric.up(port) for port in ports if sends] + [fabric.down(port) for port in ports if receives]


def _example(fabric: Fabric, kind: ComponentKind) -> str:
    """Hint with the names of such components in this fabric."""
    link = 0 if fabric.switch_links else fabric.up(0)
    names: dict[ComponentKind, str] = {
        "host": f"its hosts are {fabric.hosts[0]} to {fabric.hosts[-1]}",
        "nic": f"its NICs are named like {fabric.nic_ref(0).label}",
        "link": f"its links are named like {fabric.link_ref(link).label}",
        "cable": f"its cables are named like {fabric.cable_ref(link).label}",
        "switch": f"its switches are {fabric.routes.switches[0]} to {fabric.routes.switches[-1]}",
    }
    return names[kind]


@dataclass(frozen=True)
class Condition:
    """A fabric with its faults, in all states of flapping components.

    Arrays over links have one more element, for "no link".
    """

    state: Codes  # (rounds,)
    latency: Floats  # (states, links + 1) seconds that crossing the link adds
    per_byte: Floats  # (states, links + 1) seconds per byte
    duplex: Floats  # (states, links + 1) slowdown while both directions are in use
    retry_share: Floats  # (states, links + 1)
    retry_s: Floats  # (states, links + 1)
    port_switch: Codes  # (ports,) actual switch of each NIC
    scatter: Values  # (hosts,)
    faulty: Mask  # (links + 1,) links that a fault changes


def condition_of(
    fabric: Fabric, faults: Sequence[Fault], spread: Values, rounds: int, rng: np.random.Generator
) -> Condition:
    """Condition of a fabric with faults.

    Parameters
    ----------
    fabric
        The healthy fabric.
    faults
        Faults of its components.
    spread
        (links,) log-effects of the healthy variation of the links.
    rounds
        Rounds of the row, in some of which flapping components are faulty.
    rng
        Selects these rounds.

    Raises
    ------
    UsageError
        A fault is in a component that the fabric does not have, or too many components flap.
    """
    active = np.array([fault.flapping >= 1 - rng.random(rounds) for fault in faults], dtype=bool)
    active = active.reshape(len(faults), rounds)
    states, state = np.unique(active, axis=1, return_inverse=True)
    if states.shape[1] > MOST_STATES:
        raise UsageError(
            f"faults: {sum(fault.flapping < 1 for fault in faults)} flapping components have too many states",
            "let fewer flap, or measure fewer rounds",
        )
    shape = (states.shape[1], fabric.links + 1)
    factors = np.append(np.exp(spread.astype(np.float64)), 0.0)
    latency, per_byte = (
        np.broadcast_to(factors * LINK_LATENCY_S, shape),
        np.broadcast_to(factors / LINK_BANDWIDTH, shape),
    )
    latency, per_byte = latency.copy(), per_byte.copy()
    duplex, share, retry_s = np.ones(shape), np.zeros(shape), np.zeros(shape)
    port_switch, scatter = fabric.port_switch.copy(), np.ones(len(fabric.hosts), dtype=np.float32)
    faulty = np.zeros(fabric.links + 1, dtype=bool)
    for fault, on in zip(faults, states, strict=True):
        links = np.array(fault.links(fabric))
        faulty[links] = True
        place = np.ix_(np.flatnonzero(on), links)
        latency[place] += fault.added_latency_s
        per_byte[place] /= fault.bandwidth_factor
        duplex[place] /= fault.duplex_factor
        share[place] += fault.retry_share
        retry_s[place] = np.maximum(retry_s[place], fault.retry_s)
        ports = np.unique((links - fabric.switch_links) % max(1, fabric.ports))
        if fault.moved_to:
            port_switch[ports] = fabric.switch_codes[fault.moved_to]
        if fault.scatter != 1.0:
            scatter[ports // fabric.rails] = fault.scatter
    return Condition(
        np.asarray(state, dtype=np.int32).ravel(),
        latency,
        per_byte,
        duplex,
        share,
        retry_s,
        port_switch,
        scatter,
        faulty,
    )
