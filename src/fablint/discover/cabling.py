"""Cables between switches without duplicates, and the port at each end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from fablint.discover.agreement import Claim
from fablint.discover.facts import TRUST, Attachment, Wire
from fablint.model import Cable, ComponentRef, Endpoint, Finding, State
from fablint.model.names import natural
from fablint.text import actions as advise, evidence as seen


@dataclass
class Cabling:
    """Cables, the ports at their ends, and a finding for each port with two ends."""

    cables: list[Cable] = field(default_factory=list)
    wires: list[Wire] = field(default_factory=list)  # sources of the cables
    ports: dict[tuple[str, str], str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    _taken: dict[tuple[str, str], str] = field(default_factory=dict)  # (switch, port): the connected end

    def plug(self, switch: str, port: str, end: str) -> None:
        """Record the end at a port. A port that has another end already is a finding."""
        if not port:
            return
        there = self._taken.setdefault((switch, port), end)
        if there != end:
            evidence = (seen.two_ends(there, end),)
            step = advise.discover_again()
            components = (ComponentRef.of("config", Endpoint(nodes=(switch,), part=port)),)
            self.findings.append(Finding(state=State.SUSPECT, components=components, evidence=evidence, next_step=step))
            return
        ports = self.ports.get((switch, end), "").split(",")
        if port not in ports:
            self.ports[switch, end] = ",".join(filter(None, [*ports, port]))


def build_cabling(places: Sequence[Attachment], wires: Sequence[Wire], on: Mapping[str, Claim], rails: bool) -> Cabling:
    """Build the cables and ports. `on` gives the accepted switch of each end; `rails`: ends are NICs, not hosts."""
    cabling = Cabling()
    several: dict[str, int] = defaultdict(int)
    for claim in on.values():
        several[claim.owner] += 1
    for place in sorted(places, key=lambda place: TRUST[place.source]):
        if place.switch == on[place.end].container and place.source is on[place.end].source:
            railed = rails and several[place.host] > 1
            if not railed or place.nic:
                cabling.plug(place.switch, place.port, place.end if railed else place.host)
    pairs: dict[tuple[str, str], list[Wire]] = defaultdict(list)
    for wire in wires:
        wire = wire if natural(wire.a) <= natural(wire.b) else _turned(wire)
        pairs[wire.a, wire.b].append(wire)
    for (a, b), between in sorted(pairs.items(), key=lambda pair: (natural(pair[0][0]), natural(pair[0][1]))):
        trusted = min((wire.source for wire in between), key=TRUST.__getitem__)
        single = _once([wire for wire in between if wire.source is trusted])
        cabling.cables += [Cable(a, b, wire.speed) for wire in single]
        cabling.wires += single
        for wire in single:
            cabling.plug(a, wire.a_port, b)
            cabling.plug(b, wire.b_port, a)
    return cabling


def _turned(wire: Wire) -> Wire:
    return replace(wire, a=wire.b, b=wire.a, a_port=wire.b_port, b_port=wire.a_port)


def _once(wires: Sequence[Wire]) -> list[Wire]:
    """Return each cable between two switches once, although both ends report it.

    A report with one port only is half a cable; halves are paired in the order of their ports, and the end with more
    of them gives the number of cables.
    """
    whole = {(wire.a_port, wire.b_port): wire for wire in wires if wire.a_port and wire.b_port}
    here = {wire.a_port: wire for wire in wires if wire.a_port and not wire.b_port}
    there = {wire.b_port: wire for wire in wires if wire.b_port and not wire.a_port}
    bare = [wire for wire in wires if not wire.a_port and not wire.b_port]
    if whole:
        return list(whole.values())
    if not here and not there:
        return bare
    first, second = sorted(here.items()), sorted(there.items())
    joined = []
    for index in range(max(len(first), len(second))):
        wire_of_end = (first or second)[min(index, len(first or second) - 1)][1]
        a_port = first[index][0] if index < len(first) else ""
        b_port = second[index][0] if index < len(second) else ""
        joined.append(replace(wire_of_end, a_port=a_port, b_port=b_port))
    return joined
