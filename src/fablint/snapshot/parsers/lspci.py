"""Parser of `lspci -vvv`: a paragraph for each PCI function."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

_HEAD = re.compile(r"^((?:[0-9a-f]{4,8}:)?)([0-9a-f]{2}):[0-9a-f]{2}\.[0-7] (?P<kind>[^:\n]{1,80}): ", re.MULTILINE)
_ADDRESS = re.compile(r"^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ")
_SIZES = re.compile(r"\bMaxPayload (\d{2,5}) bytes, MaxReadReq (\d{2,5}) bytes")
_BUSES = re.compile(r"secondary=([0-9a-f]{2}), subordinate=([0-9a-f]{2})")
_ORDERING = re.compile(r"\bRlxdOrd([+-])")
_ACS = re.compile(r"ACSCtl:(.*)")


class PciFunction(NamedTuple):
    """A function of a PCI device; '' and an empty range: not printed."""

    name: str  # as lspci prints it, `3b:00.0`
    address: str  # with the domain, `0000:3b:00.0`
    domain: str  # `0000:`, if lspci prints it
    bus: int
    kind: str  # `Ethernet controller`
    sizes: str  # `MaxPayload 256, MaxReadReq 4096`
    buses: range  # behind a bridge
    ordering: str  # `on`, `off`: relaxed ordering of its requests
    has_acs: bool  # Access Control Services redirect traffic between devices behind the bridge


@lru_cache(maxsize=64)
def pci_functions(text: str) -> Sequence[PciFunction]:
    """Return all functions in an output."""
    return [_function(part) for part in re.split(r"\n\s*\n", text)]


def _function(part: str) -> PciFunction:
    head, address, sizes, buses = (pattern.search(part) for pattern in (_HEAD, _ADDRESS, _SIZES, _BUSES))
    control, ordering = _ACS.search(part), _ORDERING.search(part)
    return PciFunction(
        part.split(" ", 1)[0].strip(),
        f"{address[1] or '0000'}:{address[2]}" if address else "",
        head[1] if head else "",
        int(head[2], 16) if head else -1,
        head["kind"] if head else "",
        f"MaxPayload {sizes[1]}, MaxReadReq {sizes[2]}" if sizes else "",
        range(int(buses[1], 16), int(buses[2], 16) + 1) if buses else range(0),
        {"+": "on", "-": "off"}[ordering[1]] if ordering else "",
        control is not None and "+" in control[1],
    )
