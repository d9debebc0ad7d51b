"""Slingshot's algorithmic MAC addresses: group, switch and port of the switch are in the NIC's address.

48 bits: `02:00:00:0`, 9 of group, 5 of switch, 6 of port; the switch's side has `fe` for the second octet
(HPE Slingshot Host Software Troubleshooting Guide).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fablint.discover.facts import Attachment, NicFact, SwitchFact, Told
from fablint.model import Finding, State

_ADDRESS = re.compile(r"[0-9a-f][26ae]:(00|fe):00:0[0-9a-f]:[0-9a-f]{2}:[0-9a-f]{2}")


@dataclass(frozen=True)
class Place:
    """Where an algorithmic address is."""

    group: int
    switch: int
    port: int  # number of the link, not STT's `port_num`

    @property
    def group_name(self) -> str:
        return f"group{self.group}"

    @property
    def switch_name(self) -> str:
        """What the switch is called as long as nobody tells its name."""
        return f"group{self.group}-switch{self.switch}"


def decode(mac: str) -> Place | None:
    """The place that an address tells; None where it is no algorithmic one.

    >>> decode("02:00:00:00:07:ea")
    Place(group=0, switch=31, port=42)
    """
    if not _ADDRESS.fullmatch(mac.lower()):
        return None
    value = int(mac.replace(":", ""), 16) & 0xFFFFF
    return Place(value >> 11, (value >> 6) & 31, value & 63)


def alias(group: int, switch: int) -> str:
    """The name by which algorithmic addresses know a switch."""
    return Place(group, switch, 0).switch_name


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
