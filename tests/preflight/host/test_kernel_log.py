"""What the kernel log tells of, from samples of it and from lines as kernels write them."""

from __future__ import annotations

import pytest
from preflight_help import host, nic, of, outcomes, sample, wrong

from fablint.model.preflight_results import Outcome
from fablint.preflight.check import Check
from fablint.preflight.checks.gpu.gpu_log import LOG_GPU
from fablint.preflight.checks.host.hardware_log import LOG_AER, LOG_EDAC, LOG_HARDWARE, LOG_KERNEL, LOG_MCE
from fablint.preflight.checks.network.network_log import LOG_ARP, LOG_CXI, LOG_IB, LOG_NIC
from fablint.preflight.host import Host
from fablint.snapshot.host_snapshot import Output
from fablint.snapshot.parsers.kernel_log import KernelLog, hardware_errors, line_of
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

ALL = (LOG_HARDWARE, LOG_AER, LOG_EDAC, LOG_MCE, LOG_NIC, LOG_CXI, LOG_IB, LOG_ARP, LOG_GPU, LOG_KERNEL)
HARDWARE = sample("misc/dmesg-hardware.txt")
SLINGSHOT = sample("slingshot/dmesg-cxi.txt")
CXI = {"/sys/class/cxi/cxi0/device/port/link": "up"}


def logged(*lines: str, **files: str) -> Host:
    """A host with such a kernel log."""
    return host("n1", files, kernel_log=Output("\n".join(lines), status=0))


def one(check: Check, *lines: str) -> tuple[str, Outcome, str]:
    """Target, outcome and message of the one thing that is said."""
    (result,) = of(check, logged(*lines))
    return result.target, result.outcome, result.message


def test_priority_time_and_caller_are_taken_off_a_line() -> None:
    assert line_of("<3>[  100.000001] neighbour") == ("neighbour", 100.000001, 0)
    assert line_of("[    0.5][   T17] text ") == ("text", 0.5, 0)
    assert line_of("no head at all") == ("no head at all", None, 0)
    assert line_of("<30>[    1.0] EDAC says a program") is None  # which is not a message of the kernel


def test_lines_are_found_by_words_in_order_and_once() -> None:
    log = "b two\na one\nnothing\na b both"
    assert [line.text for line in KernelLog(log).lines_with(["a ", "b"])] == ["b two", "a one", "a b both"]


def test_lines_of_one_number_are_one_record_though_others_come_between() -> None:
    log = sample("misc/dmesg-hardware.txt").splitlines()
    mixed = [line for pair in zip(log[:5], log[7:12], strict=True) for line in pair] + log[5:7]
    records = hardware_errors(KernelLog("\n".join(mixed)).lines_with(["[Hardware Error]"]))
    reported = [(record.number, record.severity, record.section, record.device) for record in records]
    assert reported == [("1", "corrected", "PCIe error", "0000:60:03.1"), ("2", "fatal", "memory error", "")]


def test_a_fatal_record_fails_and_a_corrected_one_is_a_note() -> None:
    results = of(LOG_HARDWARE, logged(HARDWARE))
    assert [(result.target, result.outcome) for result in results] == [
        ("0000:60:03.1", Outcome.PASS),
        ("", Outcome.FAIL),
    ]
    assert PINNED["corrected PCIe error; last"].begins(results[0].message)
    assert PINNED["fatal memory error; last"].begins(results[1].message)


def test_a_record_that_lost_its_severity_is_not_taken_as_fatal() -> None:
    lines = [line for line in HARDWARE.splitlines() if "{2}" in line and "event severity" not in line]
    target, outcome, message = one(LOG_HARDWARE, *lines)
    assert (target, outcome) == ("", Outcome.PASS)
    assert "unknown severity" in message


def test_an_error_from_before_the_boot_is_a_warning() -> None:
    lines = ("BERT: [Hardware Error]: event severity: fatal", "[Hardware Error]:   section_type: PCIe error")
    _, outcome, message = one(LOG_HARDWARE, *lines)
    assert (outcome, message.partition(";")[0]) == (Outcome.WARN, "fatal PCIe error before the last boot")


def test_many_corrected_errors_within_a_day_are_a_warning() -> None:
    def record(number: int, moment: int) -> str:
        return f"[{moment}.000000] {{{number}}}[Hardware Error]: event severity: corrected"

    few = one(LOG_HARDWARE, *(record(index, index) for index in range(100)))
    many = one(LOG_HARDWARE, *(record(index, index) for index in range(101)))
    long = one(LOG_HARDWARE, *(record(index, 7200 * index) for index in range(101)))
    assert (few[1], many[1], long[1]) == (Outcome.PASS, Outcome.WARN, Outcome.PASS)
    assert PINNED["corrected hardware error"].begins(many[2])


def test_aer_counts_what_port_and_device_both_tell_once() -> None:
    (result,) = of(LOG_AER, logged(*HARDWARE.splitlines()[11:13]))
    assert (result.target, result.outcome, result.value) == ("0000:c1:00.0", Outcome.PASS, 1)


@pytest.mark.parametrize(
    ("line", "times", "outcome"),
    [
        ("pcieport 0000:c0:01.4: AER: Uncorrected (Non-Fatal) error received: 0000:c1:00.0", 1, Outcome.WARN),
        ("pcieport 0000:c0:01.4: AER: Uncorrected (Non-Fatal) error received: 0000:c1:00.0", 5, Outcome.FAIL),
        ("pcieport 0000:c0:01.4: AER: Multiple Uncorrected (Fatal) error received: 0000:c1:00.0", 1, Outcome.FAIL),
        ("p: AER: Uncorrectable (Fatal) error message received from 0000:c1:00.0", 1, Outcome.FAIL),
        ("mlx5_core 0000:c1:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction", 1, Outcome.FAIL),
        ("p: AER: Correctable error message received from 0000:c1:00.0", 100, Outcome.PASS),
        ("p: AER: Correctable error message received from 0000:c1:00.0", 101, Outcome.WARN),
    ],
)
def test_errors_of_pci_express(line: str, times: int, outcome: Outcome) -> None:
    target, found, _ = one(LOG_AER, *[line] * times)
    assert (target, found) == ("0000:c1:00.0", outcome)


def test_memory_errors_are_counted_as_the_line_says() -> None:
    assert one(LOG_EDAC, HARDWARE)[1] is Outcome.PASS
    assert one(LOG_EDAC, "EDAC MC1: 500 CE memory read error on DIMM_A1 (channel:0)")[1] is Outcome.WARN
    target, outcome, message = one(LOG_EDAC, "EDAC MC1: 1 UE memory read error on DIMM_A1 (channel:0)")
    assert (target, outcome) == ("MC1", Outcome.FAIL)
    assert "DIMM_A1" in message


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        ("mce: [Hardware Error]: Machine check events logged", Outcome.PASS),
        ("mce: [Hardware Error]: CPU 2: Machine Check: 0 Bank 7: 8c00004000010090", Outcome.PASS),
        ("mce: [Hardware Error]: CPU 2: Machine Check: 0 Bank 7: bd80000000100134", Outcome.FAIL),
        ("mce: [Hardware Error]: CPU 2: Machine Check Exception: 5 Bank 4: 8600000000020408", Outcome.FAIL),
        ("[Hardware Error]: Corrected error, no action required.", Outcome.PASS),
        ("[Hardware Error]: Uncorrected, software restartable error.", Outcome.FAIL),
    ],
)
def test_machine_checks(line: str, outcome: Outcome) -> None:
    assert one(LOG_MCE, line)[1] is outcome


def test_firmware_records_are_no_machine_checks() -> None:
    lines = [line for line in HARDWARE.splitlines() if "}[Hardware Error]" in line]
    assert one(LOG_MCE, *lines) == ("", Outcome.PASS, "")


def test_what_drivers_say_of_nics() -> None:
    results = of(LOG_NIC, logged(HARDWARE))
    said = {result.target: (result.outcome, result.message.partition("; last")[0]) for result in results}
    assert said == {
        "0000:d2:00.0": (Outcome.FAIL, "health compromised"),
        "0000:5c:00.0": (Outcome.WARN, "module too hot; cable error"),
        "0000:12:00.0": (Outcome.WARN, "too little power in the slot"),
    }


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        ("mlx5_core 0000:c1:00.0: wait_func:1144: ACCESS_REG(0x805) timeout. Will cause a leak", Outcome.FAIL),
        ("mlx5_core 0000:c1:00.0: mlx5_cmd_out_err:833: ACCESS_REG(0x805) op_mod(0x1) failed", Outcome.PASS),
        ("NETDEV WATCHDOG: hsn0 (mlx5_core): transmit queue 3 timed out 5000 ms", Outcome.WARN),
    ],
)
def test_lines_of_nic_drivers(line: str, outcome: Outcome) -> None:
    assert one(LOG_NIC, line)[1] is outcome


def test_many_restarts_of_a_fabric_link_are_a_warning_and_a_cable_of_another_network_is_not() -> None:
    flap = "mlx5_core 0000:c1:00.0 {}: Link down"
    files = {**nic("hsn0"), **nic("eno1", speed="1000")}
    few, many = logged(*[flap.format("hsn0")] * 10, **files), logged(*[flap.format("hsn0")] * 11, **files)
    assert wrong(of(LOG_NIC, few)) == []
    ((_, target, outcome, message),) = wrong(of(LOG_NIC, many))
    assert (target, outcome, message.partition(";")[0]) == ("hsn0", Outcome.WARN, "link down, 11 times within a day")
    assert wrong(of(LOG_NIC, logged(*["igb 0000:01:00.0 eno1: igb: eno1 NIC Link is Down"] * 50, **files))) == []


def test_slingshot_errors_by_class_with_what_they_mean() -> None:
    results = of(LOG_CXI, logged(SLINGSHOT))
    said = {result.target: (result.outcome, result.message.partition("; last")[0]) for result in results}
    assert said == {
        "cxi0": (Outcome.PASS, "pcs_link_down; link down"),
        "cxi1": (Outcome.FAIL, "tct_tbl_dealloc (reboot the host)"),
        "cxi2": (Outcome.FAIL, PINNED["port_dfa_mismatch (the algorithmic"]),
    }


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        ("cxi1[hsn1]: C_EC_UNCOR_NS: C1_HNI error: llr_eopb (32) (was first error at 1:2)", Outcome.PASS),
        ("cxi1[hsn1]: C_EC_BADCON_S: C_RMU error: ptl_invld_vni (49)", Outcome.PASS),
        ("cxi1[hsn1]: C_EC_UNCOR_NS: C_HNI error: pcs_tx_dp_err (3)", Outcome.FAIL),
        ("cxi1[hsn1]: C_EC_DEGRD_NS: C_HNI error: some_block (3)", Outcome.WARN),
        ("cxi1[hsn1]: C_EC_COR: C_HNI error: some_block (3)", Outcome.PASS),
        ("cxi1[hsn1]: PCIe error: Retry LLP=17", Outcome.WARN),
    ],
)
def test_slingshot_lines(line: str, outcome: Outcome) -> None:
    target, found, _ = one(LOG_CXI, f"[  1.0] cxi_ss1 0000:41:00.0: {line}")
    assert (target, found) == ("cxi1", outcome)


def test_a_transmit_error_of_a_link_that_goes_down_is_harmless() -> None:
    error = "cxi_ss1 0000:41:00.0: cxi1[hsn1]: C_EC_UNCOR_NS: C_HNI error: pcs_tx_dp_err (3)"
    assert one(LOG_CXI, error, "cxi_ss1 0000:41:00.0: cxi1[hsn1] CXI_EVENT_LINK_DOWN")[1] is Outcome.PASS


def test_xids_of_broken_gpus_fail_and_those_of_programs_do_not() -> None:
    results = of(LOG_GPU, logged(HARDWARE))
    assert [(result.target, result.outcome) for result in results] == [
        ("0000:3b:00", Outcome.FAIL),
        ("0000:c4:00.0", Outcome.FAIL),
    ]
    assert one(LOG_GPU, "NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=a.out")[1] is Outcome.PASS
    assert one(LOG_GPU, "NVRM: Xid (PCI:0000:3b:00): 94, pid=7, name=a.out")[1] is Outcome.WARN
    assert one(LOG_GPU, "nvidia-nvswitch0: SXid (PCI:0000:c4:00.0): 22013, Non-fatal, Link 30")[1] is Outcome.PASS


def test_tables_and_groups() -> None:
    assert one(LOG_ARP, HARDWARE)[:2] == ("arp_cache", Outcome.WARN)
    assert one(LOG_IB, HARDWARE)[:2] == ("ib0", Outcome.WARN)


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        ("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [a.out:77]", Outcome.WARN),
        ("INFO: task a.out:123 blocked for more than 122 seconds.", Outcome.WARN),
        ("oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/", Outcome.WARN),
        ("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=job_7", Outcome.PASS),
        ("Out of memory: Kill process 17 (a.out) score 900 or sacrifice child", Outcome.WARN),
        ("nf_conntrack: nf_conntrack: table full, dropping packet", Outcome.WARN),
        ("usb 1-1: new high-speed USB device number 2", Outcome.PASS),
    ],
)
def test_signs_of_a_kernel_in_trouble(line: str, outcome: Outcome) -> None:
    assert one(LOG_KERNEL, line)[1] is outcome


def test_a_warning_lasts_for_a_day_and_a_failure_for_a_week() -> None:
    def uptime(days: float) -> Host:
        text = "[  10.0] watchdog: BUG: soft lockup - CPU#3 stuck\n[  10.0] NVRM: Xid (PCI:0000:3b:00): 79, gone"
        return host("n1", {"/proc/uptime": f"{86400 * days:.2f} 5.0"}, kernel_log=Output(text, status=0))

    assert outcomes(of(LOG_KERNEL, uptime(0.9))) == [Outcome.WARN]
    assert outcomes(of(LOG_KERNEL, uptime(1.1))) == [Outcome.PASS]
    assert outcomes(of(LOG_GPU, uptime(6.9))) == [Outcome.FAIL]
    assert outcomes(of(LOG_GPU, uptime(7.1))) == [Outcome.PASS]


@pytest.mark.parametrize("check", ALL)
def test_a_log_that_cannot_be_read_is_no_pass(check: Check) -> None:
    for log in (Output(error="Operation not permitted"), Output("", status=0), Output("  \n", status=0)):
        (result,) = of(check, host("n1", kernel_log=log))
        assert result.outcome is Outcome.SKIP
        assert result.message.endswith(log.error or "it is empty")


@pytest.mark.parametrize("check", ALL)
def test_a_quiet_log_is_silent(check: Check) -> None:
    results = of(check, logged("<6>[    0.000000] Linux version 6.1.0", "<6>[    1.0] EDAC MC: Ver: 3.0.0"))
    assert set(outcomes(results)) <= {Outcome.PASS, Outcome.SKIP}
    assert len(results) == 1


def test_what_a_host_has_none_of_is_skipped() -> None:
    quiet = logged("<6>[    0.000000] Linux version 6.1.0")
    for check in (LOG_CXI, LOG_IB, LOG_GPU):
        assert outcomes(of(check, quiet)) == [Outcome.SKIP]
    assert outcomes(of(LOG_CXI, logged("<6>[    0.000000] Linux version 6.1.0", **CXI))) == [Outcome.PASS]


def test_a_message_is_one_short_line_without_control_letters() -> None:
    _, _, message = one(LOG_KERNEL, f"INFO: task \x1b[31m{'x' * 300} blocked for more than 122 seconds.")
    assert len(message) < 120
    assert message.isprintable()


def test_fields_of_a_record_are_short_and_without_control_letters() -> None:
    lines = ("event severity: fatal", f"section_type: PCIe\x1b[31m {'x' * 900}", "device_id: 0000:60:\x0703.1")
    target, outcome, message = one(LOG_HARDWARE, *(f"{{1}}[Hardware Error]:  {line}" for line in lines))
    assert (target, outcome) == ("0000:60: 03.1", Outcome.FAIL)
    assert len(message) < 200
    assert message.isprintable()
