"""Kernel log lines in which NIC drivers other than mlx5 report failures and recoveries.

The texts are those of the sources of Linux 5.4 to 6.13: drivers/net/ethernet/broadcom/bnxt/bnxt.c,
drivers/net/ethernet/intel/ice/ice_main.c, drivers/infiniband/hw/irdma/icrdma_if.c, drivers/infiniband/hw/hfi1/chip.c
and drivers/infiniband/core/cache.c. None of these drivers reports a recovery explicitly: after a reset or a reload the
driver reports that the link is up.
"""

from __future__ import annotations

from fablint.snapshot.parsers.kernel_log import BDF, Grade, Pattern, RecoveryPattern

_RESET = "firmware error, reset by the driver"
_ABORTED = "firmware reset failed"
_REBUILD = "driver could not reset the NIC"
_HMC = "error of the host memory cache"
_HOT = "adapter overheated and disabled"
STALLED = "queue stalled"
FAILURES = (_RESET, _ABORTED, _REBUILD, _HMC, _HOT)

PATTERNS = (
    Pattern(
        "initiating reset", rf"bnxt_en {BDF} .*Detected firmware fatal condition, initiating reset", Grade.WARN, _RESET
    ),
    Pattern(
        " reset event",
        rf"bnxt_en {BDF} .*(?:Firmware fatal reset event|Fatal firmware reset event)",
        Grade.WARN,
        _RESET,
    ),
    Pattern("Firmware reset aborted", rf"bnxt_en {BDF} .*Firmware reset aborted", Grade.FAIL, _ABORTED),
    Pattern("unload and reload driver", rf"ice {BDF}: Rebuild failed, unload and reload driver", Grade.FAIL, _REBUILD),
    Pattern(
        "unrecoverable state",
        rf"ice {BDF} .*tx_timeout recovery unsuccessful, device is in unrecoverable state",
        Grade.FAIL,
        _REBUILD,
    ),
    Pattern("HMC Error", rf"{BDF} [\w.-]+: HMC Error", Grade.WARN, _HMC),
    Pattern(
        "Critical temperature reached!",
        rf"hfi1 {BDF}: .*Critical temperature reached! Forcing device into freeze mode",
        Grade.FAIL,
        _HOT,
    ),
    # until Linux 6.6 `NETDEV WATCHDOG: ens1f0 (ice): transmit queue 3 timed out`, later
    # `ice 0000:b1:00.0 ens1f0: NETDEV WATCHDOG: CPU: 3: transmit queue 3 timed out 5010 ms`
    Pattern("NETDEV WATCHDOG", r"NETDEV WATCHDOG: (?P<device>[\w.-]+) \(", Grade.WARN, STALLED),
    Pattern("NETDEV WATCHDOG", r"(?P<device>[\w.-]+): NETDEV WATCHDOG: CPU", Grade.WARN, STALLED),
)
ENDINGS = (
    RecoveryPattern(": NIC Link is ", rf"{BDF} [\w.-]+: NIC Link is [Uu]p\b", FAILURES),
    RecoveryPattern(": NIC Link is ", r"(?P<device>[\w.-]+): NIC Link is [Uu]p\b", (STALLED,)),
    RecoveryPattern(": Link up", r"(?P<device>[\w.-]+): Link up\b", (STALLED,)),  # mlx5
    # until Linux 6.12; since then from the kernel's RDMA core
    RecoveryPattern("PORT_ACTIVE", rf"hfi1 {BDF}: .*logical state changed to PORT_ACTIVE \(", FAILURES),
    RecoveryPattern("Link ACTIVE", rf"hfi1 {BDF} [\w.-]+: Port: \d+ Link ACTIVE", FAILURES),
)
