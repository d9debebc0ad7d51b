"""The TLV by which a Slingshot switch tells a NIC its address and MTU."""

from __future__ import annotations

import json

from fablint.discover.facts import Expected

OUI = "000eab"
_LONGEST = 1022  # hexadecimal digits: a TLV has at most 511 octets


def expectation(host: str, nic: str, digits: str) -> Expected | None:
    """What `{"ip_addr": "10.253.0.34/16", "ttl": "forever", "mtu": 9000}` in hexadecimal digits asks of a NIC."""
    try:
        asked = json.loads(bytes.fromhex(digits[:_LONGEST]).decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(asked, dict):
        return None
    address, mtu = asked.get("ip_addr"), asked.get("mtu")
    return Expected(
        host,
        nic,
        address if isinstance(address, str) else "",
        mtu if isinstance(mtu, int) and not isinstance(mtu, bool) else None,
    )
