"""`ibnetdiscover`: a record for each node, its ports below; and `ibnetdiscover -p`, a port on each line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fablint.discover.facts import Facts
from fablint.discover.sources.infiniband_cables import facts_of
from fablint.discover.sources.source import Saved
from fablint.errors import UsageError
from fablint.snapshot.parsers.ibnetdiscover import cables_of, is_ibnetdiscover, why_incomplete
from fablint.snapshot.parsers.infiniband_tools import Joined, Port

_LINE = re.compile(
    r"^(CA|SW|RT)\s+\d+\s+(\d+)\s+0x([0-9a-f]+)\s+(\d+x)\s+(\w+)\s+-\s+(CA|SW|RT)\s+\d+\s+(\d+)\s+0x([0-9a-f]+)"
    r"\s+\(\s*'(.*)'\s+-\s+'(.*)'\s*\)",
    re.IGNORECASE,
)


class IbNetDiscover:
    """The fabric as a subnet's host sees it."""

    name = "ibnetdiscover"
    command = ("ibnetdiscover",)

    def recognises(self, text: str) -> bool:
        return is_ibnetdiscover(text)

    def read(self, saved: Saved) -> Facts:
        """The cables. Raises UsageError where the end of the output is missing."""
        if why := why_incomplete(saved.text):
            raise UsageError(f"{saved.name}: {why}", "save the whole output of ibnetdiscover again")
        return facts_of(cables_of(saved.text))


class IbNetPorts:
    """The same with `-p`; ports without a cable have no other end and are left out."""

    name = "ibnetdiscover -p"
    command: tuple[str, ...] = ()

    def recognises(self, text: str) -> bool:
        return any(_LINE.match(line) for line in text.splitlines())

    def read(self, saved: Saved) -> Facts:
        return facts_of(_lines(saved.text))


def _lines(text: str) -> Iterator[Joined]:
    for match in map(_LINE.match, text.splitlines()):
        if match:
            here = Port(match[3], match[9], match[2], match[1].upper() == "SW")
            there = Port(match[8], match[10], match[7], match[6].upper() == "SW")
            yield Joined(here, there, f"{match[4].lower()}{match[5].upper()}")
