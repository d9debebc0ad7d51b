"""`lldptool -t -n -i NIC` (lldpad): a heading for each TLV, its values indented by a tab."""

from __future__ import annotations

from fablint.discover.facts import Facts
from fablint.discover.sources.lldpcli import of_host
from fablint.discover.sources.source import Saved
from fablint.errors import UsageError
from fablint.snapshot.parsers.lldptool import read_neighbour
from fablint.text.names import plain


class Lldptool:
    """Neighbours as lldpad knows them: one per output, for the NIC that was asked about."""

    name = "lldptool"
    command: tuple[str, ...] = ()  # asked on each host, for its snapshot

    def recognises(self, text: str) -> bool:
        return text.lstrip().startswith("Chassis ID TLV") and "\n\t" in text

    def read(self, saved: Saved) -> Facts:
        """The cable of a NIC. Raises UsageError where the user does not say whose neighbour it is."""
        device, _, nic = saved.device.partition("/")
        if not device:
            hint = f"write --from HOST/NIC={saved.name}"
            raise UsageError(f"{saved.name}: it does not say whose neighbour this is", hint)
        neighbour = read_neighbour(nic or "hsn0", saved.text)
        return of_host(plain(device), [neighbour] if neighbour else [])
