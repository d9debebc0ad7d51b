"""Parser of `ibnetdiscover`: a record for each node, with its ports below."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fablint.model.names import plural
from fablint.snapshot.parsers.infiniband_tools import Port, PortPair

_NODE = re.compile(r'^(Switch|Ca|Rt)\s+(\d+)\s+"[SHR]-([0-9a-f]{1,16})"\s*#\s*"(.*?)"', re.IGNORECASE)
_PORT = re.compile(
    r'^\[(\d+)\](?:\([0-9a-f]+\))?\s+"([SHR])-([0-9a-f]{1,16})"\[(\d+)\](?:\([0-9a-f]+\))?'
    r'\s*#.*?"(.*)"\s+lid\s+\d+\s+(\d+x\w+)',
    re.IGNORECASE,
)


_REFERENCE = re.compile(r'^\[\d+\][^"\n]*"([SHR]-[0-9a-f]{1,16})"\[', re.IGNORECASE | re.MULTILINE)
_RECORD = re.compile(r'^(?:Switch|Ca|Rt)\s+\d+\s+"([SHR]-[0-9a-f]{1,16})"', re.IGNORECASE | re.MULTILINE)


def why_incomplete(text: str) -> str:
    """Return why an output is incomplete: cables to nodes without a record. '' for a complete output.

    ibnetdiscover writes a record for every node at the end of a cable; the end of a saved file can be missing.
    """
    recorded = {name.lower() for name in _RECORD.findall(text)}
    missing = sorted({name.lower() for name in _REFERENCE.findall(text)} - recorded)
    if not missing:
        return ""
    which = ", ".join(missing[:2]) + (", ..." if len(missing) > 2 else "")
    return f"the output is cut off: cables lead to {plural(len(missing), 'node')} that have no record ({which})"


def node_count(text: str) -> int:
    """Return the number of switches, hosts' adapters and routers that have a record."""
    return len({name.lower() for name in _RECORD.findall(text)})


def is_ibnetdiscover(text: str) -> bool:
    """Tell whether a text is output of ibnetdiscover."""
    return any(_NODE.match(line) for line in text.splitlines())


def cables_of(text: str) -> Iterator[PortPair]:
    """Yield every cable as reported by each of its ends."""
    lines = text.splitlines()
    nodes = {match[3].lower(): match for match in map(_NODE.match, lines) if match}
    here: re.Match[str] | None = None
    for line in lines:
        if match := _NODE.match(line):
            here = match
        elif not line.strip():
            here = None
        elif here and (port := _PORT.match(line)):
            kind = here[1].lower()
            near = Port(here[3], here[4], port[1], kind == "switch", int(here[2]), kind == "rt")
            node = nodes.get(port[3].lower())
            kind, ports = port[2].upper(), int(node[2]) if node else 1
            other = Port(port[3], port[5], port[4], kind == "S", ports, kind == "R")
            yield PortPair(near, other, port[6])
