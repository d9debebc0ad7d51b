"""TLV in which a Slingshot switch requests an address and MTU of a NIC."""

from __future__ import annotations

import json
from dataclasses import dataclass

OUI = "000eab"
_LONGEST = 1022  # hexadecimal digits: a TLV has at most 511 octets


@dataclass(frozen=True)
class RequestedSettings:
    """Address and MTU that a switch requests."""

    address: str = ""  # `10.253.0.34/16`
    mtu: int | None = None


def requested(digits: str) -> RequestedSettings | None:
    """Parse hexadecimal digits of `{"ip_addr": "10.253.0.34/16", "ttl": "forever", "mtu": 9000}`; None if malformed."""
    try:
        document = json.loads(bytes.fromhex(digits[:_LONGEST]).decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    address, mtu = document.get("ip_addr"), document.get("mtu")
    return RequestedSettings(
        address if isinstance(address, str) else "",
        mtu if isinstance(mtu, int) and not isinstance(mtu, bool) else None,
    )
