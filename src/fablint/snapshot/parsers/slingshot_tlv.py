"""The TLV by which a Slingshot switch tells a NIC its address and MTU."""

from __future__ import annotations

import json
from dataclasses import dataclass

OUI = "000eab"
_LONGEST = 1022  # hexadecimal digits: a TLV has at most 511 octets


@dataclass(frozen=True)
class Requested:
    """How a NIC should be set."""

    address: str = ""  # `10.253.0.34/16`
    mtu: int | None = None


def requested(digits: str) -> Requested | None:
    """What `{"ip_addr": "10.253.0.34/16", "ttl": "forever", "mtu": 9000}` in hexadecimal digits asks of a NIC."""
    try:
        asked = json.loads(bytes.fromhex(digits[:_LONGEST]).decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(asked, dict):
        return None
    address, mtu = asked.get("ip_addr"), asked.get("mtu")
    return Requested(
        address if isinstance(address, str) else "",
        mtu if isinstance(mtu, int) and not isinstance(mtu, bool) else None,
    )
