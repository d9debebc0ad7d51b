"""Changes of hosts during a measurement: growth of counters, changed states of links."""

from __future__ import annotations

from dataclasses import replace

from fablint.preflight.check import Check
from fablint.preflight.checks.host import pcie
from fablint.preflight.checks.infiniband import port_counters, ports, rdma_loss
from fablint.preflight.checks.network import arp_table, link_counters, links, multirail
from fablint.preflight.checks.slingshot import cxi, cxi_counters
from fablint.snapshot import Snapshot
from fablint.snapshot.host_snapshot import BOOT

# Checks of counters and of link states. Load and memory always differ after a measurement.
GROWTH: tuple[Check, ...] = (
    links.LINK_UP,
    links.LINK_SPEED,
    link_counters.LINK_FLAPS,
    link_counters.LINK_ERRORS,
    link_counters.LINK_DROPS,
    arp_table.ARP_OVERFLOW,
    multirail.RPF_DROPS,
    cxi.CXI_LINK,
    cxi_counters.CXI_UNCORRECTED,
    cxi_counters.CXI_CORRECTED,
    cxi_counters.CXI_REPLAY,
    cxi_counters.CXI_ERRORS,
    ports.IB_PORT_STATE,
    ports.IB_PORT_RATE,
    port_counters.IB_ERRORS,
    rdma_loss.IB_LOSS,
    pcie.PCIE_ERRORS,
)


def spanning(before: Snapshot, after: Snapshot) -> Snapshot | None:
    """Return one snapshot with the counters before and after a measurement as its two readings.

    The outputs of programs are those before it. None if the host was booted in between, or its clock was set back.
    """
    seconds = after.time + after.window_s - before.time
    if seconds <= 0 or before.read(BOOT) != after.read(BOOT):
        return None
    later = after.later or after.counters
    return replace(
        after, time=before.time, window_s=seconds, counters=before.counters, later=later, commands=before.commands
    )
