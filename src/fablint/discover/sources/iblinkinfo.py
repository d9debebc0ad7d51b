"""`iblinkinfo`, with and without `--line`: one port on each line, with its width and speed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from fablint.discover.facts import Facts
from fablint.discover.sources.infiniband_cables import facts_of
from fablint.discover.sources.source import SavedOutput
from fablint.snapshot.parsers.infiniband_tools import Port, PortPair, rate_of

_SWITCH, _ROUTERS = "switch", ("router", "rt")
_HEAD = re.compile(r"^(CA|Switch|Router|RT):?\s+(?:0x([0-9a-f]+)\s+)?(.*?):?\s*$", re.IGNORECASE)
_STATE = r"==\(\s*(\d+X)\s+([\d.]+)\s+Gbps\s+Active/\s*LinkUp\s*\)==>"
_BLOCK = re.compile(rf'^\s+(?:0x([0-9a-f]+)\s+)?(\d+)\s+(\d+)\[.*?\]\s+{_STATE}\s+(\d+)\s+(\d+)\[.*?\]\s+"(.*?)"', re.I)
_ANY_LINE = re.compile(r'^0x([0-9a-f]+)\s+"', re.IGNORECASE)  # in use or not
_LINE = re.compile(
    rf'^0x([0-9a-f]+)\s+"\s*(.*?)"\s+(\d+)\s+(\d+)\[.*?\]\s+{_STATE}\s+0x([0-9a-f]+)\s+(\d+)\s+(\d+)\[.*?\]\s+"(.*?)"',
    re.IGNORECASE,
)


class IbLinkInfo:
    """Ports with their current width and speed."""

    name = "iblinkinfo"
    command: tuple[str, ...] = ()  # ibnetdiscover reports the same

    def recognises(self, text: str) -> bool:
        return any(_BLOCK.match(line) or _LINE.match(line) for line in text.splitlines())

    def read(self, saved: SavedOutput) -> Facts:
        return facts_of([*_lines(saved.text), *_blocks(saved.text)])


def _lines(text: str) -> Iterator[PortPair]:
    """Parse `--line` output. It does not mark switches: a GUID on several lines is a switch, else a host port."""
    ports = Counter(match[1].lower() for match in map(_ANY_LINE.match, text.splitlines()) if match)
    for row in map(_LINE.match, text.splitlines()):
        if row:
            here = Port(row[1], row[2].strip(), row[4], ports[row[1].lower()] > 1)
            there = Port(row[7], row[10].strip(), row[9], ports[row[7].lower()] > 1)
            yield PortPair(here, there, rate_of(row[5], row[6]))


def _blocks(text: str) -> Iterator[PortPair]:
    """Parse output with a heading per node, which identifies the other end of a cable by its LID only."""
    nodes = {lid: (guid, kind) for _, guid, kind, lid, _ in _rows(text)}
    for name, guid, kind, lid, row in _rows(text):
        there_guid, other = nodes.get(row[6], (row[6], "ca" if " " in row[8].strip() else _SWITCH))
        here = Port(guid, name, row[3], kind == _SWITCH, router=kind in _ROUTERS)
        there = Port(there_guid, row[8].strip(), row[7], other == _SWITCH, router=other in _ROUTERS)
        if lid != row[6]:
            yield PortPair(here, there, rate_of(row[4], row[5]))


def _rows(text: str) -> Iterator[tuple[str, str, str, str, re.Match[str]]]:
    """Yield name, GUID, kind and LID of a node with the match of each of its active ports."""
    head: re.Match[str] | None = None
    for line in text.splitlines():
        if match := _HEAD.match(line):
            head = match
        elif head and (row := _BLOCK.match(line)):
            yield head[3].strip(), head[2] or row[1] or row[2], head[1].lower(), row[2], row
