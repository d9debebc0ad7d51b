"""`lldptool -t -n -i NIC` (lldpad): a heading for each TLV, its values indented by a tab."""

from __future__ import annotations

from fablint.discover.facts import Facts
from fablint.discover.sources.lldpcli import of_host
from fablint.discover.sources.source import SavedOutput
from fablint.errors import UsageError
from fablint.model.host_name import NicRef
from fablint.model.names import plain
from fablint.snapshot.parsers.lldptool import read_neighbour


class Lldptool:
    """Neighbour in lldpad: one per output, for the NIC on the command line."""

    name = "lldptool"
    command: tuple[str, ...] = ()  # run on each host for its snapshot

    def recognises(self, text: str) -> bool:
        return text.lstrip().startswith("Chassis ID TLV") and "\n\t" in text

    def read(self, saved: SavedOutput) -> Facts:
        """Read the cable of a NIC. Raises UsageError if the user does not name the host and the NIC."""
        end = NicRef(saved.device)
        if not end.host:
            hint = f"use --from HOST/NIC={saved.name}"
            raise UsageError(f"{saved.name}: the output does not name the host and NIC that have this neighbour", hint)
        neighbour = read_neighbour(end.device or "hsn0", saved.text)
        return of_host(plain(end.host), [neighbour] if neighbour else [])
