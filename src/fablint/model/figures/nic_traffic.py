"""NICs of a run that belong to the fabric, and the packets that they counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# Counters of packets sent and received; the first line of which a NIC has one counts, all of its counters added up.
# Slingshot counts packets of its own protocol (opt) and of Ethernet (ieee) apart.
_PACKETS = (
    (("hni_tx_ok_opt", "hni_tx_ok_ieee"), ("hni_rx_ok_opt", "hni_rx_ok_ieee")),
    (("hni_sts_tx_ok_opt", "hni_sts_tx_ok_ieee"), ("hni_sts_rx_ok_opt", "hni_sts_rx_ok_ieee")),
    (("port_xmit_packets",), ("port_rcv_packets",)),
    (("tx_packets",), ("rx_packets",)),
)


def packets(moved: Mapping[str, int], side: int) -> int | None:
    """Packets sent (side 0) or received (1); None where the NIC counts none, or was reset."""
    for names in _PACKETS:
        found = [moved[name] for name in names[side] if name in moved]
        if found:
            return sum(found) if min(found) >= 0 else None
    return None


def fabric_nics(nics: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of a host's adapters to the fabric: those that are up and made for messages, of the fastest kind there is.

    Where there is nothing but Ethernet, the fastest of those. Ports of a bond and virtual interfaces do not count.
    """
    able = [nic for nic in nics if _up(nic) and not nic.get("port_of") and nic.get("physical", True)]
    special = [nic for nic in able if nic.get("kind") != "ethernet"]
    fastest = max((float(nic.get("speed_mbps") or 0) for nic in special or able), default=0.0)
    # A second port of a slower kind (management, storage) is not an adapter to this fabric.
    return [str(nic["name"]) for nic in special or able if float(nic.get("speed_mbps") or 0) >= fastest]


def _up(nic: Mapping[str, Any]) -> bool:
    state = str(nic.get("state", ""))
    return state in ("up", "unknown") or "ACTIVE" in state
