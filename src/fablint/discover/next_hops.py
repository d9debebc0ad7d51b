"""How messages find their way: forwarding tables as ports, turned into next switches; Slingshot is adaptive."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from fablint.discover.facts import Facts, SwitchFact, Told, Wire
from fablint.model import Finding, Routing, State, Topology
from fablint.text.names import fold
from fablint.topology.forwarding import USUAL_SHARE, Tables, routing_loops

_SLINGSHOT = (Told.AMA, Told.STT, Told.TEMPLATE)


def find_routing(
    facts: Facts, switches: Iterable[SwitchFact], topology: Topology, wires: Sequence[Wire]
) -> tuple[Routing, list[Finding]]:
    """What is known of the routing, and tables that cannot be right. `switches` and `wires` bear their final names."""
    declared = facts.routing
    if declared is not None and declared.kind != "tables":
        return declared, []
    if facts.forwards:
        tables, findings = _tables(facts, switches, topology, wires)
        if any(tables.values()):
            return Routing("tables", tables=tables), findings
        return Routing(), findings
    slingshot = any(fact.source in _SLINGSHOT or "-switch" in fact.alias for fact in facts.switches)
    return (Routing("adaptive", minimal_share=USUAL_SHARE) if slingshot and wires else Routing()), []


def _tables(
    facts: Facts, switches: Iterable[SwitchFact], topology: Topology, wires: Sequence[Wire]
) -> tuple[Tables, list[Finding]]:
    names = {fact.alias: fact.name for fact in switches if fact.alias}
    behind: dict[tuple[str, str], str] = {}
    joined: set[tuple[str, str]] = set()
    for wire in wires:
        behind[wire.a, wire.a_port], behind[wire.b, wire.b_port] = wire.b, wire.a
        joined |= {(wire.a, wire.b), (wire.b, wire.a)}
    said: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for entry in facts.forwards:
        switch = names.get(entry.switch, entry.switch)
        onward = names.get(entry.onward, entry.onward) or behind.get((switch, entry.port), "")
        if (switch, onward) in joined and topology.host_switch.get(entry.host, switch) != switch:
            said[switch][entry.host].add(onward)
    # A host with several addresses has an entry for each; where they differ, the way of its messages is not known.
    tables = {
        switch: {host: next(iter(onward)) for host, onward in table.items() if len(onward) == 1}
        for switch, table in said.items()
    }
    return _without_circles(tables, topology)


def _without_circles(tables: Tables, topology: Topology) -> tuple[Tables, list[Finding]]:
    """Hosts that messages do not reach, for they go in a circle, are a finding and have no way."""
    lost = {host: way for host, way in routing_loops(tables, topology.host_switch)}
    if not lost:
        return tables, []
    findings = [
        Finding(
            state=State.FAULT,
            component="route",
            name=fold(lost),
            evidence=f"the forwarding tables send messages in a circle: {next(iter(lost.values()))}",
            next_step="let the subnet manager compute the routes again",
        )
    ]
    return {s: {h: onward for h, onward in table.items() if h not in lost} for s, table in tables.items()}, findings
