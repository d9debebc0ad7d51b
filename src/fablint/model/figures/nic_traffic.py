"""Packets that a NIC counted."""

from __future__ import annotations

from collections.abc import Mapping

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
        result = [moved[name] for name in names[side] if name in moved]
        if result:
            return sum(result) if min(result) >= 0 else None
    return None
