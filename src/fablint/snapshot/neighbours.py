"""Who a host hears by LLDP, from whichever daemon it runs."""

from __future__ import annotations

from fablint.snapshot.lldp import Neighbour, neighbours
from fablint.snapshot.lldptool import read_neighbour
from fablint.snapshot.snapshot import Snapshot


def heard_by(snapshot: Snapshot) -> list[Neighbour]:
    """Neighbours on all NICs: those that lldpd knows, else those of lldpad."""
    found = neighbours(snapshot.command("lldpcli").text)
    if not found:
        said = snapshot.commands_like("lldptool")
        found = [one for nic, output in said.items() if (one := read_neighbour(nic, output.text))]
    return found
