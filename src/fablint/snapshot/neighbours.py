"""Who a host hears by LLDP, from whichever daemon it runs."""

from __future__ import annotations

from collections.abc import Sequence

from fablint.snapshot.host_snapshot import Snapshot
from fablint.snapshot.parsers.lldp import Neighbour, neighbours
from fablint.snapshot.parsers.lldptool import read_neighbour
from fablint.text.names import fold

RUNS = "LLDP runs on the host"  # whatever it hears


def neighbours_of(snapshot: Snapshot) -> list[Neighbour]:
    """Neighbours on all NICs: those that lldpd knows, else those of lldpad."""
    found = neighbours(snapshot.command("lldpcli").text)
    if not found:
        said = snapshot.commands_like("lldptool")
        found = [one for nic, output in said.items() if (one := read_neighbour(nic, output.text))]
    return found


def why_no_neighbour(snapshot: Snapshot, elsewhere: Sequence[Neighbour]) -> str:
    """Why no switch of the fabric is heard: the daemon does not run, hears nothing, or hears others `elsewhere`."""
    if elsewhere:
        names, ports = fold(one.name for one in elsewhere), fold(one.port for one in elsewhere)
        return f"{RUNS} and hears only {names} on {ports}, which is no NIC of the fabric"
    asked = {"lldpcli": snapshot.command("lldpcli"), **snapshot.commands_like("lldptool")}
    if any(one.status == 0 for one in asked.values()):
        return f"{RUNS} and hears no neighbour: the switch does not send LLDP, or the firmware of the NIC keeps it"
    return snapshot.command("lldpcli").error or "LLDP was not asked for"
