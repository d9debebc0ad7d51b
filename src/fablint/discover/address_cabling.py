"""Attachments of NICs from their algorithmic MAC addresses, and NICs whose cable contradicts their address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fablint.discover.facts import Attachment, Origin, SwitchFact
from fablint.model import ComponentRef, Endpoint, Finding, State
from fablint.snapshot.nics import NicFact
from fablint.snapshot.parsers.ama import decode
from fablint.text import actions as advise, evidence as seen


def attachments(nics: Iterable[NicFact]) -> tuple[tuple[Attachment, ...], tuple[SwitchFact, ...]]:
    """Return the attachments and switches that the NICs' own algorithmic addresses encode."""
    places: list[Attachment] = []
    switches: dict[str, SwitchFact] = {}
    for nic in nics:
        place = decode(nic.mac)
        if place is None or nic.kind == "virtual" or nic.mac[3:5].lower() != "00":
            continue
        name = place.switch_name
        places.append(Attachment(nic.host, name, Origin.AMA, nic.name, str(place.port)))
        switches[name] = SwitchFact(name, Origin.AMA, place.group_name)
    return tuple(places), tuple(switches.values())


def mismatches(places: Iterable[Attachment], nics: Mapping[tuple[str, str], NicFact]) -> list[Finding]:
    """Return a fault for each NIC whose address differs from that of the switch port that LLDP reports.

    The fabric delivers the traffic of such a NIC to another port.
    """
    findings = []
    for place in places:
        nic = nics.get((place.host, place.nic))
        there, here = decode(place.address), decode(nic.mac) if nic else None
        if nic is None or there is None or here is None or there == here:
            continue
        findings.append(
            Finding(
                state=State.FAULT,
                components=(ComponentRef.of("config", Endpoint(nodes=(place.host,), part=place.nic)),),
                evidence=(
                    seen.mac_of_another_port(
                        mac=nic.mac,
                        own_switch=here.switch_name,
                        own_port=here.port,
                        switch=place.switch,
                        port=place.port,
                        there_switch=there.switch_name,
                        there_port=there.port,
                    ),
                ),
                next_step=advise.correct_cabling(),
            )
        )
    return findings
