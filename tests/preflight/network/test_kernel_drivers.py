# ruff: noqa: E501
"""Failures that drivers of bnxt_en, ice, irdma, hfi1 and cxi report in the kernel log, and what ends them.

The lines have the formats of the messages in the sources of Linux 5.4 to 6.13 (drivers/net/ethernet/broadcom/bnxt/
bnxt.c, drivers/net/ethernet/intel/ice/ice_main.c, drivers/infiniband/hw/irdma/icrdma_if.c, drivers/infiniband/hw/hfi1/
chip.c, drivers/infiniband/core/cache.c, net/sched/sch_generic.c) and of HPE's shs-cxi-driver (cass_errors.c,
cass_phy.c, cass_uc.c, cass_sbl.c).
"""

from __future__ import annotations

import pytest
from preflight_help import host, of

from fablint.preflight.check import Check
from fablint.preflight.checks.network.network_log import LOG_CXI, LOG_NIC
from fablint.preflight.host import Host
from fablint.snapshot.host_snapshot import Output

BNXT = "bnxt_en 0000:41:00.0 enp65s0np0: "
BNXT_UP = BNXT + "NIC Link is Up, 400000 Mbps (PAM4 112Gbps) full duplex, Flow control: none"
ICE = "ice 0000:b1:00.0"
ICE_UP = (
    ICE + " ens801f0np0: NIC Link is up 100 Gbps Full Duplex, Requested FEC: RS-FEC, Negotiated FEC: RS-FEC, "
    "Autoneg Advertised: Off, Autoneg Negotiated: False, Flow Control: None"
)
HFI1 = "hfi1 0000:05:00.0: hfi1_0: "
HFI1_UP = HFI1 + "logical state changed to PORT_ACTIVE (0x4)"
HFI1_UP_613 = "hfi1 0000:05:00.0 hfi1_0: Port: 1 Link ACTIVE"
CXI = "cxi_ss1 0000:21:00.0: cxi0[hsn0]"
DEGRADED = CXI + ": C_EC_DEGRD_NS: C1_HNI_PML error: pcs_rx_degrade_failure (49) (was first error at 1767594045:1)"
CXI_UP = CXI + " CXI_EVENT_LINK_UP"
TIMED_OUT = "NETDEV WATCHDOG: enp65s0np0 (bnxt_en): transmit queue 3 timed out"


def logged(*lines: str) -> Host:
    text = "\n".join(f"<4>[{100.0 + index:12.6f}] {line}" for index, line in enumerate(lines))
    files = {"/proc/uptime": "3700.00 5.0", "/sys/class/cxi/cxi0/device/port/link": "up"}
    return host("n1", files, kernel_log=Output(text, status=0))


def reported(check: Check, *lines: str) -> list[str]:
    """`OUTCOME TARGET` of all results."""
    return [f"{one.outcome.name} {one.target}".strip() for one in of(check, logged(*lines))]


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        (BNXT + "Detected firmware fatal condition, initiating reset", "WARN 0000:41:00.0"),
        (BNXT + "Firmware fatal reset event, data1: 0x5, data2: 0x89021, min wait 2 ms", "WARN 0000:41:00.0"),
        (BNXT + "Fatal firmware reset event, data1: 0x5, data2: 0x89021, min wait 2 ms", "WARN 0000:41:00.0"),
        (BNXT + "Firmware reset aborted, rc = -110", "FAIL 0000:41:00.0"),
        (BNXT + "Solicited firmware reset event, data1: 0x5, data2: 0x0, min wait 2 ms", "PASS"),
        (ICE + ": Rebuild failed, unload and reload driver", "FAIL 0000:b1:00.0"),
        (
            ICE + " ens801f0np0: tx_timeout recovery unsuccessful, device is in unrecoverable state.",
            "FAIL 0000:b1:00.0",
        ),
        (ICE + " rocep177s0: HMC Error", "WARN 0000:b1:00.0"),
        (HFI1 + "Critical temperature reached! Forcing device into freeze mode!", "FAIL 0000:05:00.0"),
        (TIMED_OUT, "WARN enp65s0np0"),
        (ICE + " ens801f0np0: NETDEV WATCHDOG: CPU: 3: transmit queue 0 timed out 5010 ms", "WARN ens801f0np0"),
        (BNXT_UP, "PASS"),
        (ICE_UP, "PASS"),
        (HFI1_UP, "PASS"),
    ],
)
def test_failures_of_drivers(line: str, outcome: str) -> None:
    assert reported(LOG_NIC, line) == [outcome]


RECOVERIES = [
    (BNXT + "Detected firmware fatal condition, initiating reset", BNXT_UP, ICE_UP),
    (BNXT + "Firmware reset aborted, rc = -110", BNXT_UP, HFI1_UP),
    (TIMED_OUT, BNXT_UP, ICE_UP),
    (ICE + ": Rebuild failed, unload and reload driver", ICE_UP, BNXT_UP),
    (ICE + " rocep177s0: HMC Error", ICE_UP, ICE_UP.replace("b1:00.0", "b1:00.1")),
    (HFI1 + "Critical temperature reached! Forcing device into freeze mode!", HFI1_UP, HFI1_UP.replace("ACTIVE", "INIT")),
    (HFI1 + "Critical temperature reached! Forcing device into freeze mode!", HFI1_UP_613, HFI1_UP_613.replace("ACTIVE", "DOWN")),
    (
        "NETDEV WATCHDOG: ens3f0np0 (mlx5_core): transmit queue 3 timed out",
        "mlx5_core 0000:d2:00.0 ens3f0np0: Link up",
        "mlx5_core 0000:d2:00.1 ens3f1np1: Link up",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("event", "end", "other"), RECOVERIES)
def test_a_link_that_is_up_again_ends_the_failure_of_its_nic_alone(event: str, end: str, other: str) -> None:
    (ended,) = of(LOG_NIC, logged(event, end))
    assert ended.outcome.name == "PASS"
    assert "(recovered)" in ended.message
    assert reported(LOG_NIC, event, other)[0].split()[0] in ("WARN", "FAIL")
    assert reported(LOG_NIC, end, event)[0].split()[0] in ("WARN", "FAIL")


def test_a_slingshot_link_that_is_up_again_is_degraded_no_longer() -> None:
    assert reported(LOG_CXI, DEGRADED) == ["WARN cxi0"]
    assert reported(LOG_CXI, DEGRADED, CXI_UP) == ["PASS cxi0"]
    assert reported(LOG_CXI, DEGRADED, CXI_UP.replace("cxi0[hsn0]", "cxi1[hsn1]")) == ["WARN cxi0"]
    assert reported(LOG_CXI, CXI_UP, DEGRADED) == ["WARN cxi0"]


@pytest.mark.parametrize(
    ("alert", "outcome", "again"),
    [
        (" uC: QSFP_EPO_TEMPERATURE", "FAIL", "PASS"),
        (" (sbl): 0: serdes fw corruption alert", "FAIL", "FAIL"),
        (" (sbl): 0: tx degrade failure alert", "WARN", "PASS"),
        (" (sbl): 0: rx degrade failure alert", "WARN", "PASS"),
        (" (sbl): 0: rx degrade alert", "PASS", "PASS"),
    ],
)
def test_alerts_of_slingshot_links(alert: str, outcome: str, again: str) -> None:
    assert reported(LOG_CXI, CXI + alert)[0].split()[0] == outcome
    assert reported(LOG_CXI, CXI + alert, CXI_UP)[0].split()[0] == again


def test_a_link_that_is_up_ends_nothing_that_is_not_of_the_link() -> None:
    uncorrected = CXI + ": C_EC_UNCOR_NS: C_IXE error: port_dfa_mismatch (37)"
    elsewhere = CXI + ": C_EC_DEGRD_NS: C_MB error: sbe_threshold (3)"
    assert reported(LOG_CXI, uncorrected, DEGRADED, CXI_UP) == ["FAIL cxi0"]
    assert reported(LOG_CXI, elsewhere, DEGRADED, CXI_UP) == ["WARN cxi0"]
