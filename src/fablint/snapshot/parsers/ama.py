"""Algorithmic MAC addresses of Slingshot: a NIC's address contains group, switch and switch port.

48 bits: `02:00:00:0`, 9 of group, 5 of switch, 6 of port; addresses of switch ports have the second octet `fe`
(HPE Slingshot Host Software Troubleshooting Guide).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ADDRESS = re.compile(r"[0-9a-f][26ae]:(00|fe):00:0[0-9a-f]:[0-9a-f]{2}:[0-9a-f]{2}")


@dataclass(frozen=True)
class FabricAddress:
    """Switch port that an algorithmic address encodes."""

    group: int
    switch: int
    port: int  # number of the link, not STT's `port_num`

    @property
    def group_name(self) -> str:
        """Name of the group."""
        return f"group{self.group}"

    @property
    def switch_name(self) -> str:
        """Name of the switch until a source reports another name."""
        return f"group{self.group}-switch{self.switch}"


def decode(mac: str) -> FabricAddress | None:
    """Decode an algorithmic address; None for other addresses.

    >>> decode("02:00:00:00:07:ea")
    FabricAddress(group=0, switch=31, port=42)
    """
    if not _ADDRESS.fullmatch(mac.lower()):
        return None
    value = int(mac.replace(":", ""), 16) & 0xFFFFF
    return FabricAddress(value >> 11, (value >> 6) & 31, value & 63)


def alias(group: int, switch: int) -> str:
    """Return the name of a switch that is derived from its group and number."""
    return FabricAddress(group, switch, 0).switch_name
