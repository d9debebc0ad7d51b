"""Widths of port counters with fewer than 64 bits."""

from __future__ import annotations

from collections.abc import Mapping

CXI_BITS = 56  # of a Slingshot NIC's telemetry counters, which wrap
CODE_WORD_BITS = 5440  # of the Reed-Solomon code of a lane group
# Old InfiniBand counters stop at their maximum (InfiniBand specification, volume 1, 16.1.3.5).
OLD_BITS: Mapping[str, int] = {
    "symbol_error": 16,
    "link_error_recovery": 8,
    "link_downed": 8,
    "port_rcv_errors": 16,
    "port_rcv_remote_physical_errors": 16,
    "port_rcv_switch_relay_errors": 16,
    "port_xmit_discards": 16,
    "port_xmit_constraint_errors": 8,
    "port_rcv_constraint_errors": 8,
    "local_link_integrity_errors": 4,
    "excessive_buffer_overrun_errors": 4,
    "VL15_dropped": 16,
}
