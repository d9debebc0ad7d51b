"""LLDP neighbours of a host, from lldpd or lldpad."""

from __future__ import annotations

from collections.abc import Sequence

from fablint.model.names import fold
from fablint.snapshot.host_snapshot import Snapshot
from fablint.snapshot.parsers.lldp import Neighbour, neighbours
from fablint.snapshot.parsers.lldptool import read_neighbour

RUNS = "LLDP runs on the host"


def neighbours_of(snapshot: Snapshot) -> list[Neighbour]:
    """Return the neighbours on all NICs: those of lldpd, else those of lldpad."""
    found = neighbours(snapshot.command("lldpcli").text)
    if not found:
        outputs = snapshot.commands_like("lldptool")
        found = [neighbour for nic, output in outputs.items() if (neighbour := read_neighbour(nic, output.text))]
    return found


def why_no_neighbour(snapshot: Snapshot, elsewhere: Sequence[Neighbour]) -> str:
    """Return why no NIC of the fabric has a neighbour: no daemon, no neighbour, or neighbours `elsewhere` only."""
    if elsewhere:
        names, ports = fold(one.name for one in elsewhere), fold(one.port for one in elsewhere)
        return f"{RUNS}, but its only neighbours are {names} on {ports}, not on a NIC of the fabric"
    outputs = {"lldpcli": snapshot.command("lldpcli"), **snapshot.commands_like("lldptool")}
    if any(output.status == 0 for output in outputs.values()):
        return f"{RUNS}, but there is no neighbour: the switch does not send LLDP, or the NIC's firmware consumes it"
    return snapshot.command("lldpcli").error or "no LLDP tool was run"
