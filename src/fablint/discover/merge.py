"""Merge the facts of all sources into one topology, with a finding for each contradiction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fablint.discover.agreement import Claim, Dispute, group_disputes, settle
from fablint.discover.cabling import build_cabling
from fablint.discover.facts import TRUST, Attachment, Facts, Origin, SwitchFact, Wire
from fablint.discover.next_hops import find_routing
from fablint.model import ComponentRef, EvidenceRecord, Finding, State, Switch, Topology
from fablint.model.host_name import NicRef, one_spelling
from fablint.model.names import natural
from fablint.snapshot import NicFact
from fablint.snapshot.fabric_nics import fabric_nics
from fablint.text import actions as advise, evidence as seen


@dataclass(frozen=True)
class Merged:
    """The topology, None if no source gives the switch of a host; findings; and hosts without a switch."""

    topology: Topology | None
    findings: tuple[Finding, ...] = ()
    missing: tuple[str, ...] = ()  # hosts whose switch no source gives


@dataclass
class _MergedFacts:
    """Facts in which every switch and host has one name."""

    places: list[Attachment] = field(default_factory=list)
    wires: list[Wire] = field(default_factory=list)
    switches: list[SwitchFact] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def merge(facts: Facts, nics: Iterable[NicFact] = (), hosts: Sequence[str] = ()) -> Merged:
    """Return the topology of `hosts`; of all known hosts if `hosts` is empty.

    If sources differ, the most trusted source (in the order of `Origin`) is used, and the difference is a finding.
    """
    draft = _unify_names(facts, hosts)
    _keep_fabric(draft, nics)
    settled, disputes = settle(_by_trust(Claim(p.end, p.switch, p.source, p.host) for p in draft.places))
    selected = set(hosts) or {place.host for place in draft.places}
    on = {end: claim for end, claim in settled.items() if claim.owner in selected}
    draft.findings += _contradictions(disputes, selected, "is connected to")
    host_switch, nic_switch = _places(on, hosts)
    missing = tuple(host for host in hosts if host not in host_switch)
    if not host_switch:
        return Merged(None, (*facts.findings, *draft.findings), missing)
    groups, disputes = settle(_by_trust(Claim(s.name, s.group, s.source) for s in draft.switches if s.group))
    wires = [wire for wire in draft.wires if not {wire.a, wire.b} & set(host_switch)]
    names = {claim.container for claim in on.values()} | {end for wire in wires for end in (wire.a, wire.b)}
    draft.findings += _contradictions(disputes, names, "is in")
    containers = {name: claim.container for name, claim in groups.items()}
    ordered = sorted(names - set(host_switch), key=lambda name: (natural(containers.get(name, "")), natural(name)))
    cabling = build_cabling([place for place in draft.places if place.end in on], wires, on, bool(nic_switch))
    topology = Topology(
        switches={name: Switch(name, containers.get(name, "")) for name in ordered},
        host_switch=host_switch,
        cables=tuple(cabling.cables),
        source=", ".join(origin for origin in Origin if origin in {claim.source for claim in on.values()}),
        nic_switch=nic_switch,
        ports=cabling.ports,
    )
    routing, unsound = find_routing(facts, draft.switches, topology, cabling.wires)
    return Merged(
        replace(topology, routing=routing), (*facts.findings, *draft.findings, *cabling.findings, *unsound), missing
    )


# ------------------------------------------------------------------------------------------------ unique names


def _unify_names(facts: Facts, hosts: Sequence[str]) -> _MergedFacts:
    """Resolve aliases of switches and long host names; move the cables of hosts to the attachments."""
    names, draft = _aliases(facts.switches)
    switches = {fact.name for fact in facts.switches} | {place.switch for place in facts.attachments}
    named = {place.host for place in facts.attachments} | (facts.stations - switches)
    host = one_spelling(hosts, named)
    stations = {*hosts, *map(host, named)}
    ends = {end for wire in facts.wires for end in (wire.a, wire.b)} - named
    spelled = one_spelling((), {names.get(name, name) for name in switches | ends})

    def switch(name: str) -> str:
        return spelled(names.get(name, name))

    draft.switches = [replace(fact, name=switch(fact.name)) for fact in facts.switches]
    draft.places = [replace(p, host=host(p.host), switch=switch(p.switch)) for p in facts.attachments]
    for wire in facts.wires:
        a, b = (host(end) if host(end) in stations else "" for end in (wire.a, wire.b))
        if a and not b:
            draft.places.append(Attachment(a, switch(wire.b), wire.source, wire.a_port, wire.b_port))
        elif b and not a:
            draft.places.append(Attachment(b, switch(wire.a), wire.source, wire.b_port, wire.a_port))
        elif not a and not b and switch(wire.a) != switch(wire.b):
            draft.wires.append(replace(wire, a=switch(wire.a), b=switch(wire.b)))
    taken = {place.switch for place in draft.places}
    draft.places = [place for place in draft.places if place.host not in taken and place.host != place.switch]
    return draft


def _aliases(switches: Iterable[SwitchFact]) -> tuple[dict[str, str], _MergedFacts]:
    """Return the switch of each alias; an alias of two switches is a finding."""
    draft = _MergedFacts()
    fact_of_alias: dict[str, SwitchFact] = {}
    for fact in sorted(switches, key=lambda fact: TRUST[fact.source]):
        if not fact.alias:
            continue
        first = fact_of_alias.setdefault(fact.alias, fact)
        if first.name != fact.name:
            evidence = seen.two_names(str(first.source), first.name, str(fact.source), fact.name)
            draft.findings.append(_suspect(fact.alias, evidence))
    return {alias: fact.name for alias, fact in fact_of_alias.items()}, draft


def _keep_fabric(draft: _MergedFacts, nics: Iterable[NicFact]) -> None:
    """Drop NICs of the management network."""
    nics_of_host: dict[str, dict[str, NicFact]] = defaultdict(dict)
    for nic in nics:
        nics_of_host[nic.host][nic.name] = nic
    named: dict[str, set[str]] = defaultdict(set)
    for place in draft.places:
        if place.nic:
            named[place.host].add(place.nic)
    keep = {host: fabric_nics(there, nics_of_host.get(host, {})) for host, there in named.items()}
    draft.places = [p for p in draft.places if not p.nic or p.source is Origin.FILE or p.nic in keep[p.host]]


# ------------------------------------------------------------------------------------------------ contradictions


def _by_trust(claims: Iterable[Claim]) -> list[list[Claim]]:
    """Return the claims of each source, the most trusted source first."""
    by_source: dict[Origin, list[Claim]] = defaultdict(list)
    for claim in claims:
        by_source[claim.source].append(claim)
    return [by_source[source] for source in sorted(by_source, key=TRUST.__getitem__)]


def _contradictions(disputes: Sequence[Dispute], selected: Iterable[str], verb: str) -> list[Finding]:
    """Return one finding for all items with the same dispute."""
    owners = set(selected)
    groups = group_disputes([dispute for dispute in disputes if dispute.taken.owner in owners])
    return [
        _suspect(items, seen.contradiction(verb, taken, str(by), other, str(other_by)))
        for (taken, by, other, other_by), items in groups.items()
    ]


def _suspect(names: Iterable[str], evidence: EvidenceRecord) -> Finding:
    step = advise.resolve_contradiction()
    components = (ComponentRef.of("config", names),)
    return Finding(state=State.SUSPECT, components=components, evidence=(evidence,), next_step=step)


def _places(on: Mapping[str, Claim], hosts: Sequence[str]) -> tuple[dict[str, str], dict[NicRef, str]]:
    """Return the switch of each host, and of each NIC of hosts with several NICs. The first NIC is rail 0."""
    ends: dict[str, list[NicRef]] = defaultdict(list)
    for end, claim in on.items():
        ends[claim.owner].append(NicRef(end))
    host_switch: dict[str, str] = {}
    nic_switch: dict[NicRef, str] = {}
    for host in hosts or sorted(ends, key=natural):
        if host not in ends:
            continue
        rails = sorted(ends[host], key=natural)
        host_switch[host] = on[rails[0]].container
        if len(rails) > 1:
            nic_switch |= {end: on[end].container for end in rails if end.device}
    return host_switch, nic_switch
