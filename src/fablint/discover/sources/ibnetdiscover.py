"""`ibnetdiscover`: a record for each node, its ports below; and `ibnetdiscover -p`, a port on each line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fablint.discover.facts import Facts
from fablint.discover.sources.infiniband_cables import facts_of
from fablint.discover.sources.source import SavedOutput
from fablint.errors import UsageError
from fablint.snapshot.parsers.ibnetdiscover import cables_of, is_ibnetdiscover, why_incomplete
from fablint.snapshot.parsers.infiniband_tools import Port, PortPair

_LINE = re.compile(
    r"^(CA|SW|RT)\s+\d+\s+(\d+)\s+0x([0-9a-f]+)\s+(\d+x)\s+(\w+)\s+-\s+(CA|SW|RT)\s+\d+\s+(\d+)\s+0x([0-9a-f]+)"
    r"\s+\(\s*'(.*)'\s+-\s+'(.*)'\s*\)",
    re.IGNORECASE,
)


class IbNetDiscover:
    """Nodes and cables of the fabric, as a host of the subnet sees them."""

    name = "ibnetdiscover"
    command = ("ibnetdiscover",)

    def recognises(self, text: str) -> bool:
        return is_ibnetdiscover(text)

    def read(self, saved: SavedOutput) -> Facts:
        """Read the cables. Raises UsageError if the end of the output is missing."""
        if why := why_incomplete(saved.text):
            raise UsageError(f"{saved.name}: {why}", "save the whole output of ibnetdiscover again")
        return facts_of(cables_of(saved.text))


class IbNetPorts:
    """Output with `-p`: one port per line. Ports without a cable are skipped."""

    name = "ibnetdiscover -p"
    command: tuple[str, ...] = ()

    def recognises(self, text: str) -> bool:
        return any(_LINE.match(line) for line in text.splitlines())

    def read(self, saved: SavedOutput) -> Facts:
        return facts_of(_lines(saved.text))


def _lines(text: str) -> Iterator[PortPair]:
    for match in map(_LINE.match, text.splitlines()):
        if match:
            kind, other = match[1].upper(), match[6].upper()
            here = Port(match[3], match[9], match[2], kind == "SW", router=kind == "RT")
            there = Port(match[8], match[10], match[7], other == "SW", router=other == "RT")
            yield PortPair(here, there, f"{match[4].lower()}{match[5].upper()}")
