"""Kernel log lines in which NIC drivers report failures and recoveries: one table per driver.

The texts are those of the sources of Linux 4.4 to 6.18 (drivers/net/ethernet/{mellanox/{mlx4,mlx5},broadcom/bnxt,
intel/{ice,i40e,ixgbe,igb,igc,e1000e,fm10k},amazon/ena,google/gve,pensando/ionic,microsoft/mana},
drivers/infiniband/hw/{bnxt_re,irdma,efa,hfi1}, drivers/infiniband/ulp/ipoib, drivers/infiniband/core,
net/sched/sch_generic.c). Few drivers report a recovery explicitly: after a reset or a reload the driver reports that
the link is up. `cxi_ss1` has a parser of its own, since its messages name the class of an error.
"""

from __future__ import annotations

from typing import NamedTuple

from fablint.snapshot.parsers.kernel_log import BDF, INTERFACE, Grade, Pattern, RecoveryPattern

LINK_DOWN = "link down"
STALLED = "queue stalled"
_FLAPS = 10  # links that went down within a day

_UNHEALTHY = "health compromised"
_FATAL = "fatal error"
_NOT_RECOVERED = "recovery failed"
_ERROR_STATE = "driver in error state"
_NO_ANSWER = "command without answer"
_ISSUE = "firmware reports a health issue"
_RESET = "firmware error, reset by the driver"
_ABORTED = "firmware reset failed"
_REBUILD = "driver could not reset the NIC"
_HOT = "NIC too hot"
_DISABLED = "adapter overheated and disabled"
_HMC = "error of the host memory cache"
_PROTOCOL_ENGINE = "critical error of the protocol engine"
_SAFE_MODE = "one queue and no RDMA, since the driver lacks its package (safe mode)"
_DOORBELLS = "doorbells dropped"
_STORM = "pause storm"
_MODULE_HOT = "module too hot"
_CABLE = "cable error"
_POWER = "too little power in the slot"
_FIRMWARE_LOST = "firmware of the port does not answer"
_REQUIRES_REBOOT = "requires a reboot"
_REFUSED = "module that the NIC does not accept"
_GONE = "lost from the bus"


class DriverMessages(NamedTuple):
    """Messages of a driver."""

    events: tuple[Pattern, ...]
    endings: tuple[RecoveryPattern, ...] = ()


_M = rf"mlx5_core {BDF}"
_MLX5_STATES = (_UNHEALTHY, _FATAL, _NOT_RECOVERED, _ERROR_STATE, _NO_ANSWER, _ISSUE)
MLX5 = DriverMessages(
    (
        Pattern("health compromised", rf"{_M}: .*health compromised", Grade.FAIL, _UNHEALTHY),
        Pattern("Fatal error ", rf"{_M}: .*Fatal error \d+ detected", Grade.FAIL, _FATAL),
        # the only line that all releases print: until Linux 4.18 no other one names a fatal error
        Pattern("handling bad device here", rf"{_M}: .*handling bad device here", Grade.FAIL, _FATAL),
        Pattern("health recovery ", rf"{_M}: .*health recovery (?:failed|flow aborted)", Grade.FAIL, _NOT_RECOVERED),
        Pattern("Driver is in error state", rf"{_M}: .*Driver is in error state", Grade.FAIL, _ERROR_STATE),
        Pattern("timeout. Will cause a leak", rf"{_M}: .*timeout\. Will cause a leak", Grade.FAIL, _NO_ANSWER),
        # the driver reports severities of its firmware as log levels: 0 to 2 are worse than an error
        Pattern("Health issue observed", rf"{_M}: .*Health issue observed, .*severity\([0-2]\)", Grade.FAIL, _ISSUE),
        Pattern("Health issue observed", rf"{_M}: .*Health issue observed, .*severity\(3\)", Grade.WARN, _ISSUE),
        Pattern("mlx5_load_one failed", rf"{_M}: .*mlx5_load_one failed", Grade.WARN, "driver did not load"),
        Pattern("High temperature on sensors", rf"{_M}: .*High temperature on", Grade.WARN, _HOT),
        Pattern("Port module event[error]", rf"{_M}: .*High Temperature", Grade.WARN, _MODULE_HOT),
        Pattern("Port module event[error]", rf"{_M}: .*Cable error", Grade.WARN, _CABLE),
        Pattern("insufficient power on the PCIe slot", rf"{_M}: .*insufficient power", Grade.WARN, _POWER),
        Pattern("Link down", rf"{INTERFACE}: Link down", Grade.NOTE, LINK_DOWN, _FLAPS),
        Pattern(": TX timeout", rf"{INTERFACE}: TX timeout (?:detected|on queue)", Grade.WARN, STALLED),
        Pattern(": RX timeout", rf"{INTERFACE}: RX timeout on channel", Grade.WARN, STALLED),
    ),
    (
        RecoveryPattern("health re", rf"{_M}: .*health re[cv]overy succe+ded", _MLX5_STATES),
        RecoveryPattern(": firmware version: ", rf"{_M}: firmware version: \d", _MLX5_STATES),  # the driver was loaded
        RecoveryPattern("Port module event", rf"{_M}: .*module \d+, Cable plugged", (_MODULE_HOT, _CABLE)),
        RecoveryPattern("sufficient power", rf"{_M}: .*advertised sufficient power", (_POWER,)),
        RecoveryPattern(": Link up", rf"{INTERFACE}: Link up\b", (STALLED,)),
    ),
)

_M4 = rf"mlx4_core {BDF}"
MLX4 = DriverMessages(
    (
        Pattern("Internal error detected:", rf"{_M4}: Internal error detected:", Grade.FAIL, _FATAL),
        Pattern("(go bit not cleared)", rf"{_M4}: command .* timed out \(go bit not", Grade.WARN, _NO_ANSWER),
        Pattern("Fail to reset HCA", rf"{_M4}: Fail to reset HCA", Grade.FAIL, _REBUILD),
    ),
    (RecoveryPattern("reset successfully", rf"{_M4}: device was reset succ", (_FATAL, _NO_ANSWER, _REBUILD)),),
)

_B = rf"bnxt_en {BDF}"
BNXT_EN = DriverMessages(
    (
        Pattern("initiating reset", rf"{_B} .*Detected firmware fatal condition, initiating reset", Grade.WARN, _RESET),
        Pattern(
            " reset event",
            rf"{_B} .*(?:Firmware fatal reset event|(?:Fatal|Non-fatal) firmware reset event)",
            Grade.WARN,
            _RESET,
        ),
        Pattern("irmware reset aborted", rf"{_B} .*Firmware reset aborted", Grade.FAIL, _ABORTED),
        Pattern(
            "previous firmware reset",
            rf"{_B} .*A previous firmware reset (?:did not complete|has not completed)",
            Grade.FAIL,
            _ABORTED,
        ),
        Pattern("during FW reset", rf"{_B} .*bnxt_open\(\) failed during FW reset", Grade.FAIL, _ABORTED),
        Pattern("Firmware init phase", rf"{_B} .*Firmware init phase \d failed", Grade.FAIL, _ABORTED),
        Pattern("Error (timeout: ", rf"{_B} .*Error \(timeout: \d+\) msg ", Grade.WARN, _NO_ANSWER),
        Pattern("bandoning msg", rf"{_B} .*[Aa]bandoning msg.* due to firmware status", Grade.WARN, _NO_ANSWER),
        Pattern(
            "Chip temperature has gone above",
            rf"{_B} .*Chip temperature has gone above the (?:warning|critical) ",
            Grade.WARN,
            _HOT,
        ),
        Pattern(
            "Chip temperature has gone above",
            rf"{_B} .*Chip temperature has gone above the (?:fatal|shutdown) ",
            Grade.FAIL,
            _HOT,
        ),
        Pattern("Pause Storm detected!", rf"{_B} .*Pause Storm detected!", Grade.WARN, _STORM),
        Pattern("MMIO doorbells dropped", rf"{_B} .*MMIO doorbells dropped by the device", Grade.WARN, _DOORBELLS),
        Pattern("TX timeout detected, starting", rf"{INTERFACE}: TX timeout detected, starting", Grade.WARN, STALLED),
    ),
    (
        RecoveryPattern(": NIC Link is ", rf"{_B} [\w.-]+: NIC Link is [Uu]p\b", (_RESET, _ABORTED, _NO_ANSWER)),
        RecoveryPattern(
            "Chip temperature has gone below", rf"{_B} .*Chip temperature has gone below the .* thermal", (_HOT,)
        ),
    ),
)
# its messages name the PCI device, whose driver is bnxt_en
BNXT_RE = DriverMessages(
    (
        Pattern("FW STALL Detected", rf"{_B}: (?:QPLIB: )?.*FW STALL Detected\. cmdq", Grade.FAIL, _NO_ANSWER),
        Pattern("timedout (", rf"{_B}: (?:QPLIB: )?cmdq\[0x[0-9a-f]+\]=0x[0-9a-f]+ timedout", Grade.FAIL, _NO_ANSWER),
    ),
)

_I = rf"ice {BDF}"
ICE = DriverMessages(
    (
        Pattern("unload and reload driver", rf"{_I}: Rebuild failed, unload and reload driver", Grade.FAIL, _REBUILD),
        Pattern("Unload and reload the driver", rf"{_I}: Error during VSI rebuild: -?\d+\.", Grade.FAIL, _REBUILD),
        Pattern(
            "unrecoverable state",
            rf"{_I} .*tx_timeout recovery unsuccessful, device is in unrecoverable state",
            Grade.FAIL,
            _REBUILD,
        ),
        Pattern("device is unrecoverable", rf"{_I}: \w+ failed, device is unrecoverable", Grade.FAIL, _REBUILD),
        Pattern("ntering Safe Mode", rf"{_I}: .*[Ee]ntering Safe Mode", Grade.WARN, _SAFE_MODE),
    ),
    (RecoveryPattern(": NIC Link is ", rf"{_I} [\w.-]+: NIC Link is [Uu]p\b", (_REBUILD,)),),
)
_LAN = rf"(?:ice|i40e|ixgbe|igb|igc|e1000e|fm10k) {BDF}"
_INTEL = rf"(?:ice|i40e|idpf) {BDF}"
IRDMA = DriverMessages(
    (
        Pattern("HMC Error", rf"{_INTEL} [\w.-]+: HMC Error", Grade.WARN, _HMC),
        Pattern("tx_timeout: VSI_", rf"{INTERFACE}: tx_timeout: VSI_(?:num|seid): ", Grade.WARN, STALLED),
        Pattern("critical PE Error", rf"{_INTEL} [\w.-]+: critical PE Error", Grade.WARN, _PROTOCOL_ENGINE),
    ),
    (RecoveryPattern(": NIC Link is ", rf"{_INTEL} [\w.-]+: NIC Link is [Uu]p\b", (_HMC, _PROTOCOL_ENGINE)),),
)
INTEL = DriverMessages(
    (
        Pattern(
            "Rx/Tx is disabled on this device", rf"{_LAN}.*: Rx/Tx is disabled on this device", Grade.WARN, _REFUSED
        ),
        Pattern("Detected Tx Unit ", rf"{INTERFACE}: Detected Tx Unit H\w+", Grade.WARN, STALLED),
        Pattern("Adapter removed", rf"{_LAN}.*: Adapter removed", Grade.FAIL, _GONE),
        Pattern("PCIe link lost", rf"{_LAN}.*: PCIe link lost", Grade.FAIL, _GONE),
    ),
    (RecoveryPattern(": NIC Link is ", rf"{_LAN} [\w.-]+: NIC Link is [Uu]p\b", (_REFUSED, _GONE)),),
)

_E = rf"ena {BDF}"
_ENA_STATES = (_NO_ANSWER, _REBUILD, _RESET, STALLED)
ENA = DriverMessages(
    (
        Pattern("Keep alive watchdog timeout", rf"{_E}.*: Keep alive watchdog timeout", Grade.WARN, _NO_ANSWER),
        Pattern("ost tx completions is above", rf"{_E}.*lost tx completions is above", Grade.WARN, STALLED),
        Pattern("Lost TX completions are above", rf"{_E}.*Lost TX completions are above", Grade.WARN, STALLED),
        Pattern("has detected an unhealthy state", rf"{_E}.*device has detected an unhealthy", Grade.WARN, _RESET),
        Pattern("FW isn't responsive, skipping", rf"{_E}.*FW isn't responsive, skipping", Grade.FAIL, _NO_ANSWER),
        Pattern("receive a MSI-X interrupt", rf"{_E}.*sent a completion but the driver", Grade.WARN, _NO_ANSWER),
        Pattern("Transmit time out", rf"{INTERFACE}: Transmit time out", Grade.WARN, STALLED),
        Pattern(
            "a completion for the admin cmd", rf"{_E}.*send a completion for the admin cmd", Grade.FAIL, _NO_ANSWER
        ),
        Pattern("Can not reset the device", rf"{_E}.*Reset attempt failed\.", Grade.FAIL, _REBUILD),
        Pattern("Device reset failed", rf"{_E}.*: Device reset failed", Grade.FAIL, _REBUILD),
    ),
    (
        RecoveryPattern(
            "Device reset completed", rf"{_E}.*: Device reset completed(?: successfully|, status: 0,)", _ENA_STATES
        ),
    ),
)
_EFA = rf"(?:efa|infiniband) (?:{BDF}|efa_\d+|rdmap\w+)"
EFA = DriverMessages(
    (
        Pattern("for admin cmd ", rf"{_EFA}.*(?:send any|sent a) completion .*for admin cmd", Grade.FAIL, _NO_ANSWER),
        Pattern("for completion (polling) timeout", rf"{_EFA}.*\(polling\) timeout", Grade.FAIL, _NO_ANSWER),
        Pattern("Reading register timed out", rf"{_EFA}.*Reading register timed out", Grade.WARN, _NO_ANSWER),
        Pattern("Device isn't ready, ", rf"{_EFA}.*Device isn't ready, ", Grade.FAIL, _REBUILD),
        Pattern("Reset indication didn't turn", rf"{_EFA}.*Reset indication didn't turn", Grade.FAIL, _REBUILD),
    ),
)
_G = rf"(?:gve|gvnic) {BDF}"
GVE = DriverMessages(
    (
        Pattern("Reset failed! !!! DISABLING", rf"{_G}: Reset failed! !!! DISABLING", Grade.FAIL, _REBUILD),
        Pattern("DISABLING ALL QUEUES", rf"{_G}.*failed to start new queues, !!! DISABLING", Grade.FAIL, _REBUILD),
        Pattern("AQ commands timed out", rf"{_G}: AQ commands timed out", Grade.WARN, _NO_ANSWER),
        Pattern("Timeout on tx queue", rf"{INTERFACE}: Timeout on tx queue", Grade.WARN, STALLED),
    ),
    (RecoveryPattern("Device link is up", rf"{_G}.*Device link is up", (_NO_ANSWER, _REBUILD)),),
)

_A = rf"mana {BDF}"
MANA = DriverMessages((Pattern("HWC: Request timed out", rf"{_A}: HWC: Request timed", Grade.WARN, _NO_ANSWER),))

_P = rf"ionic {BDF}"
IONIC = DriverMessages(
    (
        Pattern("FW heartbeat stalled", rf"{_P}: FW heartbeat stalled at ", Grade.WARN, _NO_ANSWER),
        Pattern("DEVCMD ", rf"{_P}: DEVCMD .*\) timeout after ", Grade.WARN, _NO_ANSWER),
        Pattern("LIFs restart failed", rf"{_P}: FW Up: LIFs restart failed", Grade.FAIL, _REBUILD),
    ),
    (
        RecoveryPattern("FW heartbeat restored", rf"{_P}: FW heartbeat restored at ", (_NO_ANSWER,)),
        RecoveryPattern("LIFs restarted", rf"{_P}: FW Up: LIFs restarted", (_NO_ANSWER, _REBUILD)),
    ),
)

_H = rf"hfi1 {BDF}: "
_HFI1_STATES = (_DISABLED, _FIRMWARE_LOST, _NO_ANSWER, STALLED, _CABLE, _POWER)
HFI1 = DriverMessages(
    (
        Pattern(
            "Critical temperature reached!",
            rf"{_H}.*Critical temperature reached! Forcing device into freeze mode",
            Grade.FAIL,
            _DISABLED,
        ),
        Pattern(
            "Aborted freeze recovery", rf"{_H}.*Aborted freeze recovery\. Please REBOOT", Grade.FAIL, _REQUIRES_REBOOT
        ),
        Pattern("Lost 8051 heartbeat", rf"{_H}.*Lost 8051 heartbeat", Grade.FAIL, _FIRMWARE_LOST),
        Pattern("8051 host command ", rf"{_H}.*8051 host command \d+ timeout", Grade.WARN, _NO_ANSWER),
        Pattern("timeout waiting for packets to egress", rf"{_H}.*packets to egress, remaining", Grade.WARN, STALLED),
        Pattern("QSFP not responding, giving up", rf"{_H}.*QSFP not responding, giving up", Grade.WARN, _CABLE),
        Pattern("QSFP cable temperature too high", rf"{_H}.*QSFP cable temperature too high", Grade.WARN, _MODULE_HOT),
        Pattern(" power too ", rf"{_H}.*Cable [RT]X channel \S+ power too (?:low|high)", Grade.WARN, _CABLE),
        Pattern("due to system power restrictions", rf"{_H}.*Port disabled due to system power", Grade.FAIL, _POWER),
    ),
    (
        # until Linux 6.12; since then from the kernel's RDMA core
        RecoveryPattern("PORT_ACTIVE", rf"{_H}.*logical state changed to PORT_ACTIVE \(", _HFI1_STATES),
        RecoveryPattern("Link ACTIVE", rf"hfi1 {BDF} [\w.-]+: Port: \d+ Link ACTIVE", _HFI1_STATES),
    ),
)

# of every driver: until Linux 6.6 `NETDEV WATCHDOG: ens1f0 (ice): transmit queue 3 timed out`, once per boot, later
# `ice 0000:b1:00.0 ens1f0: NETDEV WATCHDOG: CPU: 3: transmit queue 3 timed out 5010 ms`
KERNEL = DriverMessages(
    (
        Pattern("NETDEV WATCHDOG", rf"NETDEV WATCHDOG: {INTERFACE} \(", Grade.WARN, STALLED),
        Pattern("NETDEV WATCHDOG", rf"{INTERFACE}: NETDEV WATCHDOG: CPU", Grade.WARN, STALLED),
        Pattern("transmit timeout: latency", rf"{INTERFACE}: transmit timeout: latency", Grade.WARN, STALLED),  # ipoib
        Pattern("NIC Link is Down", rf"{INTERFACE}:? NIC Link is Down", Grade.NOTE, LINK_DOWN, _FLAPS),
    ),
    (RecoveryPattern(": NIC Link is ", rf"{INTERFACE}: NIC Link is [Uu]p\b", (STALLED,)),),
)

DRIVERS = (MLX4, MLX5, BNXT_EN, BNXT_RE, ICE, IRDMA, INTEL, ENA, EFA, GVE, MANA, IONIC, HFI1, KERNEL)
EVENTS = tuple(pattern for driver in DRIVERS for pattern in driver.events)
ENDINGS = tuple(pattern for driver in DRIVERS for pattern in driver.endings)
