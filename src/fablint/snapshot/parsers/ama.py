"""Slingshot's algorithmic MAC addresses: group, switch and port of the switch are in the NIC's address.

48 bits: `02:00:00:0`, 9 of group, 5 of switch, 6 of port; the switch's side has `fe` for the second octet
(HPE Slingshot Host Software Troubleshooting Guide).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ADDRESS = re.compile(r"[0-9a-f][26ae]:(00|fe):00:0[0-9a-f]:[0-9a-f]{2}:[0-9a-f]{2}")


@dataclass(frozen=True)
class Place:
    """Where an algorithmic address is."""

    group: int
    switch: int
    port: int  # number of the link, not STT's `port_num`

    @property
    def group_name(self) -> str:
        return f"group{self.group}"

    @property
    def switch_name(self) -> str:
        """What the switch is called as long as nobody tells its name."""
        return f"group{self.group}-switch{self.switch}"


def decode(mac: str) -> Place | None:
    """The place that an address tells; None where it is no algorithmic one.

    >>> decode("02:00:00:00:07:ea")
    Place(group=0, switch=31, port=42)
    """
    if not _ADDRESS.fullmatch(mac.lower()):
        return None
    value = int(mac.replace(":", ""), 16) & 0xFFFFF
    return Place(value >> 11, (value >> 6) & 31, value & 63)


def alias(group: int, switch: int) -> str:
    """The name by which algorithmic addresses know a switch."""
    return Place(group, switch, 0).switch_name
