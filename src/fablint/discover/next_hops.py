"""Routing of the fabric: forwarding tables with ports replaced by next switches; Slingshot is adaptive."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from fablint.discover.facts import Facts, Origin, SwitchFact, Wire
from fablint.model import ComponentRef, Finding, Routing, State, Topology
from fablint.text import actions as advise, evidence as seen
from fablint.topology.forwarding import USUAL_SHARE, Tables, routing_loops

_SLINGSHOT = (Origin.AMA, Origin.STT, Origin.TEMPLATE)


def find_routing(
    facts: Facts, switches: Iterable[SwitchFact], topology: Topology, wires: Sequence[Wire]
) -> tuple[Routing, list[Finding]]:
    """Return the routing, and findings on tables with routing loops. `switches` and `wires` have their final names."""
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
    entries: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for entry in facts.forwards:
        switch = names.get(entry.switch, entry.switch)
        onward = names.get(entry.onward, entry.onward) or behind.get((switch, entry.port), "")
        if (switch, onward) in joined and topology.host_switch.get(entry.host, switch) != switch:
            entries[switch][entry.host].add(onward)
    # A host with several addresses has an entry for each; if these differ, the path of its messages is unknown.
    tables = {
        switch: {host: next(iter(onward)) for host, onward in table.items() if len(onward) == 1}
        for switch, table in entries.items()
    }
    return _without_loops(tables, topology)


def _without_loops(tables: Tables, topology: Topology) -> tuple[Tables, list[Finding]]:
    """Drop the entries for hosts behind a routing loop, and report these hosts as a finding."""
    loops = dict(routing_loops(tables, topology.host_switch))
    if not loops:
        return tables, []
    findings = [
        Finding(
            state=State.FAULT,
            components=(ComponentRef.of("route", loops),),
            evidence=(seen.routing_loop(next(iter(loops.values()))),),
            next_step=advise.recompute_routes(),
        )
    ]
    return {s: {h: onward for h, onward in table.items() if h not in loops} for s, table in tables.items()}, findings
