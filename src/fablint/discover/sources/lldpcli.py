"""`lldpcli -f json0 show neighbors` (and `-f json`) of a switch or a host: who is at the other end of each cable."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from fablint.discover.facts import Attachment, Facts, SwitchFact, Told, Wire
from fablint.discover.sources.source import Saved
from fablint.errors import UsageError
from fablint.model import Finding, State
from fablint.snapshot.parsers import ama
from fablint.snapshot.parsers.documents import documents
from fablint.snapshot.parsers.lldp import Neighbour, local_name, neighbours
from fablint.text.names import fold, switch_name

_NIC = re.compile(r"(hsn|ib|eth)\d+|en[opsx]\w+|mgmt\d+")


class Lldpcli:
    """Neighbours as lldpd knows them."""

    name = "lldpcli"
    command: tuple[str, ...] = ()  # asked on each host, for its snapshot

    def recognises(self, text: str) -> bool:
        return text.lstrip()[:1] == "{" and any(
            isinstance(item, dict) and ("lldp" in item or "local-chassis" in item) for item in documents(text)
        )

    def read(self, saved: Saved) -> Facts:
        """Cables of the device that heard these neighbours. Raises UsageError where nobody says which one that is."""
        device = saved.device or local_name(saved.text)
        heard = neighbours(saved.text)
        if not heard:
            return Facts()
        if not device:
            raise UsageError(
                f"{saved.name}: it does not say whose neighbours these are",
                f"write --from NAME={saved.name}, or add the output of `lldpcli -f json0 show chassis`",
            )
        return wires(switch_name(device), heard)


def wires(device: str, heard: list[Neighbour]) -> Facts:
    """The cables of a device; whether it is a switch or a host is settled when all sources are merged.

    One all of whose ports bear the names of NICs is a host.
    """
    if all(_NIC.fullmatch(neighbour.port) for neighbour in heard):
        return of_host(device, heard)
    single, findings = one_per_port(device, heard)
    stations = frozenset(neighbour.name for neighbour in single if neighbour.bridge is False)
    return Facts(
        wires=tuple(Wire(device, one.name, Told.LLDP, one.port, one.its_port) for one in single),
        switches=tuple(_switches(single)),
        stations=stations,
        findings=tuple(findings),
    )


def of_host(host: str, heard: list[Neighbour]) -> Facts:
    """Where the NICs of a host hang."""
    single, findings = one_per_port(host, heard)
    places = [neighbour for neighbour in single if neighbour.bridge is not False]
    return Facts(
        attachments=tuple(
            Attachment(host, switch_name(one.name), Told.LLDP, one.port, one.its_port, one.address) for one in places
        ),
        switches=tuple(_switches(places)),
        stations=frozenset({host}),
        findings=tuple(findings),
    )


def one_per_port(device: str, heard: list[Neighbour]) -> tuple[list[Neighbour], list[Finding]]:
    """One neighbour for each port. Several mean that something between them hears no LLDP; a lone switch is kept."""
    ports: dict[str, dict[tuple[str, str], Neighbour]] = defaultdict(dict)
    for neighbour in heard:
        ports[neighbour.port][neighbour.name, neighbour.its_port] = neighbour
    kept, findings = [], []
    for port, there in ports.items():
        bridges = [neighbour for neighbour in there.values() if neighbour.bridge]
        if len(there) == 1:
            kept += list(there.values())
            continue
        kept += bridges if len(bridges) == 1 else []
        findings.append(
            Finding(
                state=State.SUSPECT,
                component="config",
                name=f"{device}/{port}",
                evidence=f"LLDP hears {len(there)} devices on one port ({fold(one.name for one in there.values())}): "
                "something between them is no LLDP switch, or passes LLDP on",
                next_step="look what the cable is plugged into",
            )
        )
    return kept, findings


def _switches(heard: list[Neighbour]) -> Iterator[SwitchFact]:
    """The switches among neighbours; an algorithmic address tells the group and the number of one."""
    for neighbour in heard:
        if neighbour.bridge is False:
            continue
        place = ama.decode(neighbour.address)
        if place and neighbour.address[3:5] == "fe":
            yield SwitchFact(switch_name(neighbour.name), Told.LLDP, place.group_name, place.switch_name)
        elif neighbour.bridge:
            yield SwitchFact(switch_name(neighbour.name), Told.LLDP)
