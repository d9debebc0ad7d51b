"""One topology from what all sources say, and a finding for each contradiction among them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fablint.discover.agreement import Claim, Dispute, disputes_of, settle
from fablint.discover.cabling import plug_in
from fablint.discover.facts import TRUST, Attachment, Facts, SwitchFact, Told, Wire
from fablint.discover.next_hops import find_routing
from fablint.model import Finding, State, Switch, Topology
from fablint.snapshot import NicFact
from fablint.snapshot.fabric_nics import fabric_nics
from fablint.text.names import fold, natural, one_spelling


@dataclass(frozen=True)
class Merged:
    """The topology, None where no source placed a host; and what the sources do not agree on."""

    topology: Topology | None
    findings: tuple[Finding, ...] = ()
    missing: tuple[str, ...] = ()  # hosts that no source placed


@dataclass
class _MergedFacts:
    """Facts under one name for each thing."""

    places: list[Attachment] = field(default_factory=list)
    wires: list[Wire] = field(default_factory=list)
    switches: list[SwitchFact] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def merge(facts: Facts, nics: Iterable[NicFact] = (), hosts: Sequence[str] = ()) -> Merged:
    """The topology of `hosts` (of all that are known where there is none).

    Where sources differ the most trusted one is taken (`Told`, in that order), and the difference is a finding.
    """
    draft = _named_alike(facts, hosts)
    _keep_fabric(draft, nics)
    settled, disputes = settle(_by_trust(Claim(p.end, p.switch, p.source, p.host) for p in draft.places))
    wanted = set(hosts) or {place.host for place in draft.places}
    on = {end: claim for end, claim in settled.items() if claim.owner in wanted}
    draft.findings += _contradictions(disputes, wanted, "hangs on")
    host_switch, nic_switch = _places(on, hosts)
    missing = tuple(host for host in hosts if host not in host_switch)
    if not host_switch:
        return Merged(None, (*facts.findings, *draft.findings), missing)
    groups, disputes = settle(_by_trust(Claim(s.name, s.group, s.source) for s in draft.switches if s.group))
    wires = [wire for wire in draft.wires if not {wire.a, wire.b} & set(host_switch)]
    names = {claim.container for claim in on.values()} | {end for wire in wires for end in (wire.a, wire.b)}
    draft.findings += _contradictions(disputes, names, "is in")
    of = {name: claim.container for name, claim in groups.items()}
    ordered = sorted(names - set(host_switch), key=lambda name: (natural(of.get(name, "")), natural(name)))
    plugs = plug_in([place for place in draft.places if place.end in on], wires, on, bool(nic_switch))
    topology = Topology(
        switches={name: Switch(name, of.get(name, "")) for name in ordered},
        host_switch=host_switch,
        cables=tuple(plugs.cables),
        source=", ".join(told for told in Told if told in {claim.source for claim in on.values()}),
        nic_switch=nic_switch,
        ports=plugs.ports,
    )
    routing, unsound = find_routing(facts, draft.switches, topology, plugs.wires)
    return Merged(
        replace(topology, routing=routing), (*facts.findings, *draft.findings, *plugs.findings, *unsound), missing
    )


# ------------------------------------------------------------------------------------------------ one name each


def _named_alike(facts: Facts, hosts: Sequence[str]) -> _MergedFacts:
    """The facts, aliases of switches and long names of hosts resolved; cables of hosts among the attachments."""
    names, draft = _aliases(facts.switches)
    switches = {fact.name for fact in facts.switches} | {place.switch for place in facts.attachments}
    named = {place.host for place in facts.attachments} | (facts.stations - switches)
    host = one_spelling(hosts, named)
    stations = {*hosts, *map(host, named)}
    spelled = one_spelling((), {names.get(name, name) for name in switches})

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
    """What each other name of a switch stands for; a name that stands for two is a finding."""
    draft = _MergedFacts()
    told: dict[str, SwitchFact] = {}
    for fact in sorted(switches, key=lambda fact: TRUST[fact.source]):
        if not fact.alias:
            continue
        first = told.setdefault(fact.alias, fact)
        if first.name != fact.name:
            evidence = f"{first.source} calls it {first.name}, {fact.source} {fact.name}; {first.source} was taken"
            draft.findings.append(_suspect(fact.alias, evidence))
    return {alias: fact.name for alias, fact in told.items()}, draft


def _keep_fabric(draft: _MergedFacts, nics: Iterable[NicFact]) -> None:
    """Leave out NICs that only manage their host."""
    known: dict[str, dict[str, NicFact]] = defaultdict(dict)
    for nic in nics:
        known[nic.host][nic.name] = nic
    named: dict[str, set[str]] = defaultdict(set)
    for place in draft.places:
        if place.nic:
            named[place.host].add(place.nic)
    keep = {host: fabric_nics(there, known.get(host, {})) for host, there in named.items()}
    draft.places = [p for p in draft.places if not p.nic or p.source is Told.FILE or p.nic in keep[p.host]]


# ------------------------------------------------------------------------------------------------ who is right


def _by_trust(claims: Iterable[Claim]) -> list[list[Claim]]:
    """The claims of each source, most trusted first."""
    by_source: dict[Told, list[Claim]] = defaultdict(list)
    for claim in claims:
        by_source[claim.source].append(claim)
    return [by_source[source] for source in sorted(by_source, key=TRUST.__getitem__)]


def _contradictions(disputes: Sequence[Dispute], wanted: Iterable[str], verb: str) -> list[Finding]:
    """One finding for all things of which the same is disputed."""
    asked = set(wanted)
    alike = disputes_of([one for one in disputes if one.taken.owner in asked])
    return [
        _suspect(fold(things), f"{verb} {taken} says {by}, {other} says {other_by}; {by} was taken")
        for (taken, by, other, other_by), things in alike.items()
    ]


def _suspect(name: str, evidence: str) -> Finding:
    step = "find out which is right; correct the other, or decide with a topology file (--from)"
    return Finding(state=State.SUSPECT, component="config", name=name, evidence=evidence, next_step=step)


def _places(on: Mapping[str, Claim], hosts: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The switch of each host, and of each NIC where a host has several: the first NIC is rail 0."""
    ends: dict[str, list[str]] = defaultdict(list)
    for end, claim in on.items():
        ends[claim.owner].append(end)
    host_switch: dict[str, str] = {}
    nic_switch: dict[str, str] = {}
    for host in hosts or sorted(ends, key=natural):
        if host not in ends:
            continue
        rails = sorted(ends[host], key=natural)
        host_switch[host] = on[rails[0]].container
        if len(rails) > 1:
            nic_switch |= {end: on[end].container for end in rails if "/" in end}
    return host_switch, nic_switch
