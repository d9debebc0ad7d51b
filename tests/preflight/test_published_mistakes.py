"""Mistakes of published scripts that let faulty nodes pass. Each has a test here that fablint does not make it.

The numbers are those of the list that these scripts were read for: eight mistakes in scripts that sites run.
"""

from __future__ import annotations

import pytest
from preflight_help import NOW, host, nic, sample, sysroot

from fablint.model.preflight_results import Outcome, Result
from fablint.preflight import CHECKS, Fleet, Host, judge
from fablint.snapshot.host_snapshot import Output
from fablint.text.fitness_findings import findings

CXI = "/sys/class/cxi"
MLX5 = "/sys/class/infiniband"
WRONG = (Outcome.WARN, Outcome.FAIL)


def said(check: str, *hosts: Host) -> list[Result]:
    """What the check of this id says of hosts."""
    wanted = [one for one in CHECKS if one.id == check]
    assert wanted, f"no check {check}"
    return list(judge(Fleet(list(hosts)), wanted).results)


def detections(results: list[Result]) -> list[str]:
    return [one.name for one in results if one.outcome in WRONG]


# 1. One script reads the list of hosts from the wrong argument, another greps LLDP texts of several lines: nodes that
#    say nothing are never missed.


def test_1_a_silent_host_is_unfit() -> None:
    fitness = judge(Fleet([host("n1", nic())], silent={"n2": "no answer in 10 s"}))
    assert fitness.unfit["n2"] == "no answer: no answer in 10 s"
    assert fitness.exit_code == 1
    assert findings(fitness)[0].name == "n2"


def test_1_values_on_the_line_below_their_heading_are_read() -> None:
    (heard,) = host("n1", nic("hsn0"), commands={"lldptool/hsn0": sample("lldptool-tn-hsn0.txt")}).neighbours
    assert (heard.port, heard.name) == ("hsn0", "x9000c3r3b0")


# 2. The line that collects the kernel logs is commented out: nothing is there, and all nodes pass.


@pytest.mark.parametrize("log", [None, Output(error="Operation not permitted"), Output("", status=0)])
def test_2_a_log_that_was_not_collected_passes_no_check(log: Output | None) -> None:
    blind = host("n1", kernel_log=log) if log else host("n1")
    results = [one for one in judge(Fleet([blind])).results if one.check.startswith("log.")]
    assert results
    assert {one.outcome for one in results} == {Outcome.SKIP}
    assert all(one.message for one in results)


def test_2_a_log_with_a_fatal_error_makes_a_host_unfit() -> None:
    faulty = host("n1", kernel_log=Output(sample("misc/dmesg-hardware.txt"), status=0))
    assert "n1" in judge(Fleet([faulty])).unfit


# 3. A loopback bandwidth passes if its text begins with ` 18`: 190 Gb/s fails, and so does a NIC of 400 Gb/s, while a
#    node without output passes.


def loopback(name: str, gigabits: str | None, speed: str = "BS_200G") -> Host:
    files = {f"{CXI}/cxi0/device/port/speed": speed, f"{CXI}/cxi0/device/port/link": "up"}
    first = sample("slingshot/cxi_gpu_loopback_bw.txt").partition("cxi1")[0]
    text = "" if gigabits is None else first.replace("186.37", gigabits)
    return host(name, files, commands={"cxi_gpu_loopback_bw/cxi0": text})


@pytest.mark.parametrize(("gigabits", "speed"), [("186.37", "BS_200G"), ("190.02", "BS_200G"), ("372.10", "CK_400G")])
def test_3_a_good_loopback_passes_whatever_its_digits(gigabits: str, speed: str) -> None:
    hosts = [loopback(f"n{index}", gigabits, speed) for index in range(3)]
    assert {one.outcome for one in said("tool.cxi.loopback", *hosts)} == {Outcome.PASS}


@pytest.mark.parametrize(("gigabits", "speed"), [("97.12", "BS_200G"), ("18.20", "BS_200G"), ("186.37", "CK_400G")])
def test_3_a_slow_loopback_fails_though_its_digits_look_good(gigabits: str, speed: str) -> None:
    usual = "372.10" if speed == "CK_400G" else "186.37"
    hosts = [loopback("n1", usual, speed), loopback("n2", gigabits, speed), loopback("n3", usual, speed)]
    assert detections(said("tool.cxi.loopback", *hosts)) == ["n2/cxi0"]


def test_3_a_loopback_without_output_is_no_pass() -> None:
    hosts = [loopback("n1", "186.37"), loopback("n2", None), loopback("n3", "186.37")]
    silent = [one.outcome for one in said("tool.cxi.loopback", *hosts) if one.host == "n2"]
    assert silent
    assert Outcome.PASS not in silent


# 4. Only the first NIC is used and only the launching node's counters are read, and a counter that starts again at 0 is
#    a negative number.


def test_4_counters_of_every_nic_of_every_host_are_read_and_may_wrap() -> None:
    path = f"{CXI}/cxi1/device/telemetry/hni_pcs_uncorrected_cw"
    good = sysroot("cxi-2rail-good")
    assert path in good
    wrapped = host("n2", {**good, path: f"{(1 << 56) - 3}@{NOW:.9f}"}, later={path: f"500@{NOW + 4:.9f}"})
    results = said("cxi.ber.ucw", host("n1", good), wrapped, host("n3", good))
    assert detections(results) == ["n2/cxi1"]
    assert {one.name for one in results} >= {f"n{index}/cxi{device}" for index in (1, 2, 3) for device in (0, 1)}


# 5. A loop whose warnings are counted in a subshell: the program ends with status 0 all the same.


def test_5_warnings_count_though_the_program_ended_well() -> None:
    files = sysroot("cxi-2rail-good")
    text = sample("slingshot/slingshot-diag-aer.txt")
    warned = host("n1", files, commands={"slingshot-diag/hsn0": Output(text, status=0)}, root=True)
    assert detections(said("tool.ss.diag", warned)) == ["n1/hsn0"]


# 6. One active port is enough for a node with several, and the message does not say what was wrong.


def test_6_every_port_counts_and_its_state_is_reported() -> None:
    good = sysroot("mlx5-2rail-good")
    port = f"{MLX5}/mlx5_1/ports/1"
    down = {**good, f"{port}/state": "1: DOWN", f"{port}/phys_state": "2: Polling"}
    results = said("ib.port.state", host("n1", good), host("n2", down), host("n3", good))
    assert detections(results) == ["n2/mlx5_1/1"]
    (message,) = [one.message for one in results if one.outcome in WRONG]
    assert "DOWN" in message
    assert "Polling" in message


# 7. Flaps are looked for by dates and words of the system log, which may be unreadable or written otherwise.


@pytest.mark.parametrize("log", [Output(error="Operation not permitted"), Output("[  1.0] nothing", status=0)])
def test_7_flaps_are_seen_without_any_log(log: Output) -> None:
    times = {f"{CXI}/cxi0/device/link_restarts/time_{index}": f"{NOW - 300 * index - 60:.0f}" for index in range(6)}
    flapping = host("n1", {**sysroot("cxi-2rail-good"), **times}, kernel_log=log)
    assert detections(said("cxi.flaps", flapping)) == ["n1/cxi0"]


def test_7_a_carrier_that_was_lost_is_counted() -> None:
    count = "/sys/class/net/hsn0/carrier_down_count"
    files = nic("hsn0", carrier_down_count="1")
    assert detections(said("net.link.flaps", host("n1", files, later={count: "9"}))) == ["n1/hsn0"]
    assert detections(said("net.link.flaps", host("n1", files))) == []


# 8. Totals since the driver was loaded: one old error warns for ever.


def test_8_old_errors_are_no_news_and_new_ones_are() -> None:
    path = f"{MLX5}/mlx5_0/ports/1/counters/symbol_error"
    files = {**sysroot("mlx5-2rail-good"), path: "4000"}
    assert detections(said("ib.errors", host("n1", files))) == []
    assert detections(said("ib.errors", host("n1", files, later={path: "4600"}))) == ["n1/mlx5_0/1"]


def test_8_errors_since_the_last_time_count_too() -> None:
    path = f"{MLX5}/mlx5_0/ports/1/counters/symbol_error"
    files = {**sysroot("mlx5-2rail-good"), path: "4000"}
    now, kept = host("n1", files), host("n1", {**files, path: "1000"})
    now.before = {"time": NOW - 3600, "counters": kept.snapshot.counters}
    assert detections(said("ib.errors", now)) == ["n1/mlx5_0/1"]
