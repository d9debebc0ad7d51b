"""Parsers of the tools of Slingshot's fabric manager: health of the hosts' NICs, state of the switches' ports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fablint.model.names import switch_name
from fablint.text.sanitise import shortened

_FAILURE = re.compile(r"FAILURE: Node:\s*(\S{1,80})\s+(\S.*)")
_COUNTS = re.compile(r"failure_computes:\s*(\d{1,7})")
_TEXT = re.compile(r"(?:device|dev)\s+(\S{1,20})\s+(.*?)(?:\s*Administrator is expected.*)?$")
_TOTAL = re.compile(r"(Edge|Fabric|Ports Reported|Fully Synchronized Switches):\s*(\d{1,7}) / (\d{1,7})\s*$")
_ONLINE = re.compile(r"(Edge|Fabric) Total:\s*(\d{1,7}) Online:\s*(\d{1,7}),")
_PORT = re.compile(r"(Edge|Fabric):\s*(x\d{1,4}c\d{1,2}r\d{1,3})(j\d{1,3}(?:p\d)?)\s*$")
_HEALTH = re.compile(r"(Runtime|Configuration|Traffic|Security):\s*(\w{1,30})\s*$")


def nic_failures(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield host, NIC and message of each failure in fmn-update-compute-hsn-health."""
    for match in map(_FAILURE.match, text.splitlines()):
        if match:
            detail = _TEXT.match(match[2])
            nic, message = (detail[1], detail[2]) if detail else ("", match[2])
            yield match[1].removesuffix("-nmn"), nic, shortened(message, 120)


def counted_failures(text: str) -> int | None:
    """Return the number of hosts that fail, according to the summary; None without a summary."""
    match = _COUNTS.search(text)
    return int(match[1]) if match else None


class DownPort(NamedTuple):
    """A port of a switch without a link."""

    kind: str  # `Edge` or `Fabric`
    switch: str
    port: str


class FabricStatus(NamedTuple):
    """Output of fmn-show-status."""

    down: Sequence[DownPort]
    totals: Sequence[tuple[str, int, int]]  # kind, number online, number of all
    health: Sequence[tuple[str, str]]  # `Traffic`, `HEALTHY`


def fabric_status(text: str) -> FabricStatus:
    """Parse fmn-show-status; lines of an unknown form are ignored."""
    lines = [line.strip() for line in text.splitlines()]
    down = [DownPort(match[1], switch_name(match[2]), match[3]) for match in map(_PORT.match, lines) if match]
    totals = [(match[1], int(match[2]), int(match[3])) for match in map(_TOTAL.match, lines) if match]
    totals += [(match[1], int(match[3]), int(match[2])) for match in map(_ONLINE.match, lines) if match]
    return FabricStatus(down, totals, [(match[1], match[2]) for match in map(_HEALTH.match, lines) if match])
