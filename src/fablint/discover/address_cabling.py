"""What algorithmic MAC addresses tell of the fabric: where the NICs hang, and which are plugged in elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fablint.discover.facts import Attachment, SwitchFact, Told
from fablint.model import Finding, State
from fablint.snapshot.nics import NicFact
from fablint.snapshot.parsers.ama import decode


def attachments(nics: Iterable[NicFact]) -> tuple[tuple[Attachment, ...], tuple[SwitchFact, ...]]:
    """Where the NICs' own addresses say that they hang."""
    places: list[Attachment] = []
    switches: dict[str, SwitchFact] = {}
    for nic in nics:
        place = decode(nic.mac)
        if place is None or nic.kind == "virtual" or nic.mac[3:5].lower() != "00":
            continue
        name = place.switch_name
        places.append(Attachment(nic.host, name, Told.AMA, nic.name, str(place.port)))
        switches[name] = SwitchFact(name, Told.AMA, place.group_name)
    return tuple(places), tuple(switches.values())


def mismatches(places: Iterable[Attachment], nics: Mapping[tuple[str, str], NicFact]) -> list[Finding]:
    """NICs whose address is not that of the switch port that LLDP sees: their traffic goes astray."""
    findings = []
    for place in places:
        nic = nics.get((place.host, place.nic))
        there, here = decode(place.address), decode(nic.mac) if nic else None
        if nic is None or there is None or here is None or there == here:
            continue
        findings.append(
            Finding(
                state=State.FAULT,
                component="config",
                name=place.end,
                evidence=f"its MAC {nic.mac} is that of {here.switch_name} port {here.port}, but it is plugged into "
                f"{place.switch} {place.port}, which is {there.switch_name} port {there.port}",
                next_step="mend the cabling or the fabric template, then bring the NIC up again",
            )
        )
    return findings
