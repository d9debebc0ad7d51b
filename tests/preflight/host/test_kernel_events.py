"""Events of the kernel log: which lines report them, how old they are, and what ends them.

The lines have the formats of the messages in the sources of Linux 5.10 to 6.12 (drivers/net/ethernet/mellanox/mlx5/
core/health.c, events.c and cmd.c, drivers/nvme/host/pci.c, block/blk-core.c, fs/ext4/super.c, fs/xfs/xfs_fsops.c,
fs/btrfs/messages.c, drivers/pci/pcie/err.c, kernel/rcu/tree_stall.h, arch/*/kernel/traps.c), of Lustre 2.12 and 2.15
(lustre/ptlrpc/import.c) and of NVIDIA's open kernel modules; Xids as in NVIDIA's catalogue of Xid errors.
"""

from __future__ import annotations

import pytest
from kernel_log_hosts import FAIL, HOUR, MLX5, PASS, ROOT, WARN, logged, reported
from preflight_help import NOW, host, nic, of, wrong

from fablint.model.preflight_results import Outcome
from fablint.preflight.checks.gpu.gpu_log import LOG_GPU
from fablint.preflight.checks.host.hardware_log import LOG_AER, LOG_EDAC, LOG_KERNEL
from fablint.preflight.checks.host.storage_log import LOG_LUSTRE, LOG_STORAGE
from fablint.preflight.checks.network.network_log import LOG_NIC
from fablint.snapshot.host_snapshot import Output
from fablint.snapshot.parsers.kernel_log import line_of
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

FATAL = MLX5 + "poll_health:825:(pid 0): Fatal error 3 detected"
COMPROMISED = MLX5 + "poll_health:840:(pid 0): device's health compromised - reached miss count"
RECOVERED = MLX5 + "mlx5_health_try_recover:341:(pid 512): health recovery succeeded"
XID = "NVRM: Xid (PCI:0000:3b:00): "
ACTION = XID + "154, GPU recovery action changed from {} to {}"
NONE, RESET, REBOOT = "0x0 (None)", "0x1 (GPU Reset Required)", "0x2 (Node Reboot Required)"
INIT = "NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x62:0xffff:2477)"


# ------------------------------------------------------------------------------------------------ age and end


def test_the_age_of_an_event_is_printed() -> None:
    (result,) = of(LOG_NIC, logged(FATAL, hours=3))
    assert result.message == f"fatal error; last 3 h ago: {FATAL[:77]}..."[: len(result.message)]
    assert result.outcome is FAIL


def test_no_age_is_printed_where_the_uptime_is_not_known() -> None:
    (result,) = of(LOG_NIC, host("n1", kernel_log=Output(f"<3>[  5.000000] {FATAL}\n<6>[ 999.000000] x", status=0)))
    assert result.message.startswith("fatal error; last: mlx5_core")


@pytest.mark.parametrize(("hours", "outcome"), [(1, "FAIL"), (167, "FAIL"), (169, "PASS"), (2000, "PASS")])
def test_an_event_of_a_week_ago_says_nothing_about_today(hours: float, outcome: str) -> None:
    assert reported(LOG_NIC, FATAL, hours=hours) == [f"{outcome} 0000:d2:00.0"]


@pytest.mark.parametrize(
    "event", [FATAL, COMPROMISED, MLX5 + "wait_func:1144: ACCESS_REG(0x805) timeout. Will cause a leak"]
)
def test_a_nic_that_recovered_is_in_order_and_one_that_failed_again_is_not(event: str) -> None:
    assert reported(LOG_NIC, event) == ["FAIL 0000:d2:00.0"]
    assert reported(LOG_NIC, event, RECOVERED) == ["PASS 0000:d2:00.0"]
    assert reported(LOG_NIC, event, RECOVERED, event) == ["FAIL 0000:d2:00.0"]
    assert reported(LOG_NIC, event, RECOVERED.replace("d2:", "d3:")) == ["FAIL 0000:d2:00.0"], "another NIC recovered"
    (result,) = of(LOG_NIC, logged(event, RECOVERED))
    assert " (recovered); last 60 min ago: " in result.message


def test_a_recovery_ends_only_what_it_is_about() -> None:
    power = MLX5 + "mlx5_pcie_event:299:(pid 9): Detected insufficient power on the PCIe slot (27W)."
    enough = MLX5 + "mlx5_pcie_event:304:(pid 448): PCIe slot advertised sufficient power (75W)."
    hot = MLX5 + "Port module event[error]: module 0, Cable error, High Temperature"
    plugged = MLX5 + "Port module event: module 0, Cable plugged"
    assert reported(LOG_NIC, power, enough) == ["PASS 0000:d2:00.0"]
    assert reported(LOG_NIC, enough, power) == ["WARN 0000:d2:00.0"]
    assert reported(LOG_NIC, hot, plugged) == ["PASS 0000:d2:00.0"]
    assert reported(LOG_NIC, FATAL, plugged, enough) == ["FAIL 0000:d2:00.0"]


@pytest.mark.parametrize(
    ("head", "moment"),
    [
        ("<3>[  900.500000] ", 900.5),
        ("[  900.500000] kernel: ", 900.5),  # /var/log/dmesg of Debian and Ubuntu
        ("[  900.500000] nid001 kernel: ", 900.5),  # journalctl -o short-monotonic
        ("2026-01-05T06:15:00,500000+00:00 ", 900.5),  # dmesg --time-format iso
        ("2026-01-05T07:15:00+0100 nid001 kernel: ", 900.0),  # journalctl -o short-iso
        ("2026-01-05T06:15:00.500000+00:00 nid001.site.org kernel: [  900.500000] ", 900.5),  # rsyslog
        ("[Mon Jan  5 07:15:00 2026] ", None),  # dmesg -T: in a local time
        ("[Mon Jan  5 07:15:00] ", None),
        ("2026-01-99T07:15:00+0100 nid001 kernel: ", None),
    ],
)
def test_heads_of_lines_and_their_times(head: str, moment: float | None) -> None:
    line = line_of(head + FATAL, booted=1767593700.0 - 900.0)
    assert line is not None
    assert line.text == FATAL
    assert line.moment == (None if moment is None else pytest.approx(moment))


def test_lines_of_programs_are_no_lines_of_the_kernel() -> None:
    assert line_of("2026-01-05T07:15:00+0100 nid001 nhc[811]: Xid 79 found") is None


def test_dates_are_ages_by_the_time_of_the_snapshot() -> None:
    day = {"/proc/uptime": f"{100 * HOUR} 5.0"}
    text = f"2026-01-05T03:20:00+0000 n1 kernel: {FATAL}"  # the snapshot is of 06:20
    (result,) = of(LOG_NIC, host("n1", day, kernel_log=Output(text, status=0), time=NOW))
    assert result.message.startswith("fatal error; last 3 h ago: ")


# ------------------------------------------------------------------------------------------------ NICs


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        (
            "print_health_info:431:(pid 0): Health issue observed, firmware internal error, severity(2) CRITICAL:",
            "FAIL",
        ),
        ("print_health_info:431:(pid 0): Health issue observed, High temperature, severity(3) ERROR:", "WARN"),
        ("print_health_info:431:(pid 0): Health issue observed, unrecognized error, severity(4) WARNING:", ""),
        ("mlx5_health_try_recover:335:(pid 7): health recovery failed", "FAIL"),
        ("mlx5_health_try_recover:331:(pid 7): health recovery flow aborted, PCI reads still not working", "FAIL"),
        ("mlx5_fw_fatal_reporter_err_work:661:(pid 7): Driver is in error state. Unloading", "FAIL"),
        ("init_one:1371:(pid 803): mlx5_load_one failed with error code -22", "WARN"),
        ("temp_warn:171:(pid 0): High temperature on sensors with bit set 0 1", "WARN"),
        ("Port module event: module 0, Cable plugged", ""),
        ("firmware version: 28.39.1002", ""),
    ],
)
def test_health_of_mlx5(line: str, outcome: str) -> None:
    assert reported(LOG_NIC, MLX5 + line) == [f"{outcome} 0000:d2:00.0" if outcome else "PASS"]


def test_a_fatal_error_of_a_nic_that_is_not_the_fabrics_only_warns() -> None:
    rail, other = nic("hsn0"), nic("eth0", speed="10000")
    links = {"/sys/class/net/hsn0/device": "../0000:c1:00.0", "/sys/class/net/eth0/device": "../0000:d2:00.0"}
    text = f"<3>[  100.000000] {FATAL}\n<3>[  101.000000] {FATAL.replace('d2:', 'c1:')}"
    (first, second) = of(LOG_NIC, host("n1", {**rail, **other}, links=links, kernel_log=Output(text, status=0)))
    assert (first.target, first.outcome) == ("0000:d2:00.0", WARN)
    assert (second.target, second.outcome) == ("0000:c1:00.0", FAIL)


# ------------------------------------------------------------------------------------------------ GPUs


def test_a_gpu_that_the_driver_could_not_initialise_fails() -> None:
    (result,) = of(
        LOG_GPU, logged(INIT, "NVRM: GPU 0000:3b:00.0: rm_init_adapter failed, device minor number 0", hours=2)
    )
    assert (result.target, result.outcome) == ("0000:3b:00", FAIL)
    assert PINNED["the driver could not initialise"].begins(result.message)
    assert reported(LOG_GPU, "NVRM: RmInitAdapter failed! (0x24:0x38:1157)") == ["FAIL"]


def test_a_driver_that_was_loaded_again_had_success_unless_it_says_otherwise() -> None:
    loaded = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build"
    assert reported(LOG_GPU, INIT, loaded) == ["PASS 0000:3b:00"]
    assert reported(LOG_GPU, INIT, loaded, INIT) == ["FAIL 0000:3b:00"]
    assert reported(LOG_GPU, loaded, INIT) == ["FAIL 0000:3b:00"]
    assert reported(LOG_GPU, XID + "79, GPU has fallen off the bus.", loaded) == ["FAIL 0000:3b:00"], "needs a repair"


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        (XID + "140, pid='<unknown>', name=<unknown>, An uncorrectable ECC error detected (possible firmware", "FAIL"),
        (XID + "143, GPU initialization failed", "FAIL"),
        (XID + "154, GPU recovery action", "FAIL"),  # cut off
        (ACTION.format(NONE, RESET), "FAIL"),
        (ACTION.format(NONE, REBOOT), "FAIL"),
        (ACTION.format(NONE, "0x3 (Drain P2P)"), "FAIL"),
        (ACTION.format(RESET, NONE), "PASS"),
        (XID + "31, pid=7, name=a.out, Ch 00000008", "PASS"),
    ],
)
def test_xids(line: str, outcome: str) -> None:
    assert reported(LOG_GPU, line) == [f"{outcome} 0000:3b:00"]


def test_a_gpu_that_requires_no_recovery_any_more_is_in_order() -> None:
    fallen = XID + "79, GPU has fallen off the bus."
    assert reported(LOG_GPU, fallen, ACTION.format(NONE, REBOOT), ACTION.format(REBOOT, NONE)) == ["PASS 0000:3b:00"]
    assert reported(LOG_GPU, ACTION.format(REBOOT, NONE), fallen, ACTION.format(NONE, REBOOT)) == ["FAIL 0000:3b:00"]
    (result,) = of(LOG_GPU, logged(fallen, ACTION.format(NONE, REBOOT)))
    assert PINNED["Xid 79; Xid 154, recovery"].begins(result.message)


def test_what_nvidia_smi_lists_now_was_initialised() -> None:
    gpu = "<gpu id='00000000:{}:00.0'>{}<pci><pci_bus_id>00000000:{}:00.0</pci_bus_id></pci></gpu>"
    none, reset = (f"<gpu_recovery_action>{one}</gpu_recovery_action>" for one in ("None", "Reset"))

    def now(bus: str, action: str, *lines: str) -> list[Outcome]:
        document = f"<nvidia_smi_log>{gpu.format(bus, action, bus)}</nvidia_smi_log>"
        return [one.outcome for one in of(LOG_GPU, logged(*lines, **{"nvidia-smi-q": document}))]

    required = ACTION.format(NONE, RESET)
    assert now("3B", none, INIT) == [PASS]
    assert now("3C", none, INIT) == [FAIL], "another GPU"
    assert now("3B", none, required) == [PASS]
    assert now("3B", reset, required) == [FAIL]
    assert now("3B", "", required) == [FAIL], "an older driver does not say"


# ------------------------------------------------------------------------------------------------ the kernel


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        ("Oops: 0000 [#1] SMP NOPTI", "FAIL"),
        ("Oops: Oops: 0002 [#1] PREEMPT SMP PTI", "FAIL"),
        ("Oops: general protection fault, probably for non-canonical address 0xdead: 0000 [#3] SMP NOPTI", "FAIL"),
        (
            "general protection fault, probably for non-canonical address 0x5f080b54534f611f: 0000 [#1] SMP NOPTI",
            "FAIL",
        ),
        ("invalid opcode: 0000 [#1] SMP", "FAIL"),
        ("Internal error: Oops: 0000000096000004 [#1] SMP", "FAIL"),
        ("Oops: Kernel access of bad area, sig: 11 [#1]", "FAIL"),
        ("rcu: INFO: rcu_sched self-detected stall on CPU", "WARN"),
        ("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", "WARN"),
        ("INFO: rcu_sched self-detected stall on CPU { 3}  (t=60000 jiffies)", "WARN"),
        ("rcu: INFO: rcu_sched detected expedited stalls on CPUs/tasks: { 12-... } 21 jiffies s: 5", "WARN"),
        ("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [a.out:77]", "WARN 3"),
        ("NMI watchdog: Watchdog detected hard LOCKUP on cpu 3", "WARN 3"),
        ("BUG: Bad page state in process a.out  pfn:7f3e10", "WARN"),
        # programs, and the kernel that is well
        ("traps: a.out[77] general protection fault ip:40113a sp:7ffd error:0 in a.out[401000+1000]", "PASS"),
        ("a.out[77]: segfault at 0 ip 000000000040113a sp 00007ffd error 4 in a.out[401000+1000]", "PASS"),
        ("WARNING: CPU: 3 PID: 77 at kernel/workqueue.c:1448 __queue_work+0x2d7/0x3a0", "PASS"),
        ("rcu: INFO: rcu_sched kthread timer wakeup didn't happen for 1 jiffies", "PASS"),
        ("clocksource: Long readout interval, skipping watchdog check: cs_nsec: 2 wd_nsec: 3", "PASS"),
    ],
)
def test_a_kernel_in_trouble(line: str, outcome: str) -> None:
    assert reported(LOG_KERNEL, line) == [outcome]


def test_a_stall_that_ended_is_a_note_and_a_later_one_is_not() -> None:
    stall, ended = (
        "rcu: INFO: rcu_sched detected stalls on CPUs/tasks:",
        "rcu: INFO: Stall ended before state dump start",
    )
    assert reported(LOG_KERNEL, stall, ended) == ["PASS"]
    assert reported(LOG_KERNEL, stall, ended, stall) == ["WARN"]


def test_pci_express_errors_that_the_device_recovered_from() -> None:
    received = "pcieport 0000:c0:01.4: AER: Multiple Uncorrected ({}) error received: 0000:c1:00.0"
    recovered = "pcieport 0000:c0:01.4: AER: device recovery successful"
    fatal, other = received.format("Fatal"), received.format("Non-Fatal")
    assert reported(LOG_AER, fatal) == ["FAIL 0000:c1:00.0"]
    assert reported(LOG_AER, fatal, recovered) == ["PASS 0000:c1:00.0"]
    assert reported(LOG_AER, fatal, recovered.replace("01.4", "01.5")) == ["FAIL 0000:c1:00.0"], "another port"
    assert reported(LOG_AER, fatal, "pcieport 0000:c0:01.4: AER: device recovery failed") == ["FAIL 0000:c1:00.0"]
    assert reported(LOG_AER, *[other, recovered] * 4) == ["PASS 0000:c1:00.0"]
    assert reported(LOG_AER, *[other, recovered] * 5) == ["WARN 0000:c1:00.0"], "5 within a day"
    assert reported(LOG_AER, *[other, recovered] * 5, hours=30) == ["PASS 0000:c1:00.0"]
    assert reported(LOG_AER, "mlx5_core 0000:c1:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=x") == [
        "FAIL 0000:c1:00.0"
    ]


# ------------------------------------------------------------------------------------------------ healthy hosts


def test_what_healthy_hosts_print_when_they_are_booted_is_no_event() -> None:
    boot = (
        "Linux version 6.8.0-45-generic (buildd@lcy02) (x86_64-linux-gnu-gcc-13) #45-Ubuntu SMP PREEMPT_DYNAMIC",
        "mce: CPU0: Thermal monitoring enabled (TM1)",
        "EDAC MC: Ver: 3.0.0",
        "pcieport 0000:c0:01.4: AER: enabled with IRQ 55",
        "ACPI: \\_SB_.PC00: _OSC: OS now controls [PCIeHotplug SHPCHotplug PME AER PCIeCapability LTR DPC]",
        "nvme nvme0: 64/0/0 default/read/poll queues",
        "EXT4-fs (nvme0n1p2): mounted filesystem 9a5e1b1c-0b2f-4f0e-9f68-1e6f2b7c9d10 ro with ordered data mode.",
        "EXT4-fs (nvme0n1p2): re-mounted 9a5e1b1c-0b2f-4f0e-9f68-1e6f2b7c9d10 r/w. Quota mode: none.",
        "mlx5_core 0000:d2:00.0: firmware version: 28.39.1002",
        "mlx5_core 0000:d2:00.0: Port module event: module 0, Cable plugged",
        "mlx5_core 0000:d2:00.0: mlx5_pcie_event:304:(pid 448): PCIe slot advertised sufficient power (75W).",
        "nvidia-nvlink: Nvlink Core is being initialized, major device number 234",
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024",
        "Lustre: Lustre: Build Version: 2.15.4",
        "Lustre: Mounted scratch-client",
        "rcu: Hierarchical SRCU implementation.",
        "NMI watchdog: Enabled. Permanently consumes one hw-PMU counter.",
    )
    for check in (LOG_AER, LOG_KERNEL, LOG_NIC, LOG_GPU, LOG_STORAGE, LOG_LUSTRE):
        assert wrong(of(check, logged(*boot, files=ROOT))) == []


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        ("Memory failure: 0x3a3b2c: recovery action for dirty LRU page: Recovered", "WARN"),
        ("Memory failure: 0x3a3b2c: recovery action for huge page: Failed", "FAIL"),
        ("Memory failure: 0x3a3b2c: recovery action for reserved kernel page: Failed", "FAIL"),
        ("Memory failure: 0x3a3b2c: recovery action for free buddy page: Delayed", "WARN"),
        ("MCE 0x3a3b2c: recovery action for clean LRU page: Recovered", "WARN"),  # until Linux 4.10
        ("Memory failure: 0x3a3b2c: corrupted page was clean: dropped without side effects", "PASS"),
        ("EDAC MC: Ver: 3.0.0", "PASS"),
    ],
)
def test_pages_that_the_kernel_gave_up(line: str, outcome: str) -> None:
    assert reported(LOG_EDAC, line) == [outcome]
