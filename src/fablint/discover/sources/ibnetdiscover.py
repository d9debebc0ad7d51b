"""`ibnetdiscover`: a record for each node, its ports below; and `ibnetdiscover -p`, a port on each line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fablint.discover.facts import Facts
from fablint.discover.sources.infiniband import Joined, Port, facts_of
from fablint.discover.sources.source import Saved

_NODE = re.compile(r'^(Switch|Ca|Rt)\s+(\d+)\s+"[SHR]-([0-9a-f]{1,16})"\s*#\s*"(.*?)"', re.IGNORECASE)
_PORT = re.compile(
    r'^\[(\d+)\](?:\([0-9a-f]+\))?\s+"([SHR])-([0-9a-f]{1,16})"\[(\d+)\](?:\([0-9a-f]+\))?'
    r'\s*#.*?"(.*)"\s+lid\s+\d+\s+(\d+x\w+)',
    re.IGNORECASE,
)
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
        return any(_NODE.match(line) for line in text.splitlines())

    def read(self, saved: Saved) -> Facts:
        return facts_of(_cables(saved.text))


class IbNetPorts:
    """The same with `-p`; ports without a cable have no other end and are left out."""

    name = "ibnetdiscover -p"
    command: tuple[str, ...] = ()

    def recognises(self, text: str) -> bool:
        return any(_LINE.match(line) for line in text.splitlines())

    def read(self, saved: Saved) -> Facts:
        return facts_of(_lines(saved.text))


def _cables(text: str) -> Iterator[Joined]:
    lines = text.splitlines()
    nodes = {match[3].lower(): match for match in map(_NODE.match, lines) if match}
    here: re.Match[str] | None = None
    for line in lines:
        if match := _NODE.match(line):
            here = match
        elif not line.strip():
            here = None
        elif here and (port := _PORT.match(line)):
            own = Port(here[3], here[4], port[1], here[1].lower() == "switch", int(here[2]))
            node = nodes.get(port[3].lower())
            other = Port(port[3], port[5], port[4], port[2].upper() == "S", int(node[2]) if node else 1)
            yield Joined(own, other, port[6])


def _lines(text: str) -> Iterator[Joined]:
    for match in map(_LINE.match, text.splitlines()):
        if match:
            here = Port(match[3], match[9], match[2], match[1].upper() == "SW")
            there = Port(match[8], match[10], match[7], match[6].upper() == "SW")
            yield Joined(here, there, f"{match[4].lower()}{match[5].upper()}")
