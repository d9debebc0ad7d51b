"""LLDP neighbours of a host, from lldpd or lldpad."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from fablint.model.names import fold, switch_name
from fablint.snapshot.host_snapshot import Snapshot
from fablint.snapshot.parsers.lldp import Neighbour, neighbours
from fablint.snapshot.parsers.lldptool import read_neighbour

RUNS = "LLDP runs on the host"


class CableEnd(NamedTuple):
    """The other end of a NIC's cable."""

    switch: str
    port: str

    def __str__(self) -> str:
        return f"{self.switch} port {self.port}" if self.port else self.switch


def neighbours_of(snapshot: Snapshot) -> list[Neighbour]:
    """Return the neighbours on all NICs: those of lldpd, else those of lldpad."""
    result = neighbours(snapshot.command("lldpcli").text)
    if not result:
        outputs = snapshot.commands_like("lldptool")
        result = [neighbour for nic, output in outputs.items() if (neighbour := read_neighbour(nic, output.text))]
    return result


def switch_ports(neighbours: Iterable[Neighbour], nics: Iterable[str]) -> Mapping[str, Sequence[CableEnd]]:
    """Return the neighbours of each of these NICs, without duplicates."""
    cable_ends: dict[str, dict[CableEnd, None]] = {nic: {} for nic in nics}
    for neighbour in neighbours:
        if neighbour.port in cable_ends:
            cable_ends[neighbour.port][CableEnd(switch_name(neighbour.name), neighbour.its_port)] = None
    return {nic: list(ends) for nic, ends in cable_ends.items()}


def why_no_neighbour(snapshot: Snapshot, elsewhere: Sequence[Neighbour]) -> str:
    """Return why no NIC of the fabric has a neighbour: no daemon, no neighbour, or neighbours `elsewhere` only."""
    if elsewhere:
        names, ports = fold(one.name for one in elsewhere), fold(one.port for one in elsewhere)
        return f"{RUNS}, but its only neighbours are {names} on {ports}, not on a NIC of the fabric"
    outputs = {"lldpcli": snapshot.command("lldpcli"), **snapshot.commands_like("lldptool")}
    if any(output.status == 0 for output in outputs.values()):
        return f"{RUNS}, but there is no neighbour: the switch does not send LLDP, or the NIC's firmware consumes it"
    return snapshot.command("lldpcli").error or "no LLDP tool was run"
