"""Cables between switches, each once, and the port at each end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from fablint.discover.agreement import Claim
from fablint.discover.facts import TRUST, Attachment, Wire
from fablint.model import Cable, Finding, State
from fablint.text.names import natural


@dataclass
class Plugs:
    """What is plugged in where."""

    cables: list[Cable] = field(default_factory=list)
    wires: list[Wire] = field(default_factory=list)  # those that the cables were made of
    ports: dict[tuple[str, str], str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    _taken: dict[tuple[str, str], str] = field(default_factory=dict)  # (switch, port): what hangs on it

    def plug(self, switch: str, port: str, end: str) -> None:
        """Note a port; one that has something else on it already is a finding."""
        if not port:
            return
        there = self._taken.setdefault((switch, port), end)
        if there != end:
            evidence = f"both {there} and {end} are said to be on it; {there} was taken"
            step = "LLDP remembers for two minutes who was there: ask again, then look at the cable"
            name = f"{switch}/{port}"
            self.findings.append(
                Finding(state=State.SUSPECT, component="config", name=name, evidence=evidence, next_step=step)
            )
            return
        ports = self.ports.get((switch, end), "").split(",")
        if port not in ports:
            self.ports[switch, end] = ",".join(filter(None, [*ports, port]))


def plug_in(places: Sequence[Attachment], wires: Sequence[Wire], on: Mapping[str, Claim], rails: bool) -> Plugs:
    """Cables and ports. `on` says which switch of each attachment is believed; `rails`: are NICs told apart?"""
    plugs = Plugs()
    several: dict[str, int] = defaultdict(int)
    for claim in on.values():
        several[claim.owner] += 1
    for place in sorted(places, key=lambda place: TRUST[place.source]):
        if place.switch == on[place.end].container and place.source is on[place.end].source:
            railed = rails and several[place.host] > 1
            if not railed or place.nic:
                plugs.plug(place.switch, place.port, place.end if railed else place.host)
    pairs: dict[tuple[str, str], list[Wire]] = defaultdict(list)
    for wire in wires:
        wire = wire if natural(wire.a) <= natural(wire.b) else _turned(wire)
        pairs[wire.a, wire.b].append(wire)
    for (a, b), between in sorted(pairs.items(), key=lambda pair: (natural(pair[0][0]), natural(pair[0][1]))):
        trusted = min((wire.source for wire in between), key=TRUST.__getitem__)
        single = _once([wire for wire in between if wire.source is trusted])
        plugs.cables += [Cable(a, b, wire.speed) for wire in single]
        plugs.wires += single
        for wire in single:
            plugs.plug(a, wire.a_port, b)
            plugs.plug(b, wire.b_port, a)
    return plugs


def _turned(wire: Wire) -> Wire:
    return replace(wire, a=wire.b, b=wire.a, a_port=wire.b_port, b_port=wire.a_port)


def _once(wires: Sequence[Wire]) -> list[Wire]:
    """Cables between two switches, told from both ends: each once.

    Who tells only its own port tells half a cable; the two halves are not joined, but counted from the fuller end.
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
        known = (first or second)[min(index, len(first or second) - 1)][1]
        a_port = first[index][0] if index < len(first) else ""
        b_port = second[index][0] if index < len(second) else ""
        joined.append(replace(known, a_port=a_port, b_port=b_port))
    return joined
