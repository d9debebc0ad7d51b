"""`dump_fts` (formerly dump_lfts): output port of each switch for each LID."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fablint.discover.facts import Facts, Forward
from fablint.discover.sources.source import SavedOutput
from fablint.snapshot.parsers.infiniband_tools import guid_alias, host_and_nic

_SWITCH = re.compile(r"^Unicast lids .* of switch .*\bguid (?:0x)?([0-9a-f]+)\b", re.IGNORECASE)
_ENTRY = re.compile(r"^0x[0-9a-f]+\s+(\d+)\s*:\s*\(Channel Adapter portguid 0x[0-9a-f]+:\s*'(.*)'\)", re.IGNORECASE)


class DumpFts:
    """Forwarding tables. The switch behind a port comes from another source, such as ibnetdiscover."""

    name = "dump_fts"
    command = ("dump_fts",)

    def recognises(self, text: str) -> bool:
        return any(_SWITCH.match(line) for line in text.splitlines())

    def read(self, saved: SavedOutput) -> Facts:
        return Facts(forwards=tuple(_entries(saved.text)))


def _entries(text: str) -> Iterator[Forward]:
    switch = ""
    for line in text.splitlines():
        if match := _SWITCH.match(line):
            switch = guid_alias(match[1])
        elif switch and (entry := _ENTRY.match(line)):
            host, _ = host_and_nic(entry[2])
            if host:
                yield Forward(switch, host, str(int(entry[1])))
