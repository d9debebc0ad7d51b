# ruff: noqa: E501
"""Every pattern of the tables of drivers, against lines in the formats of the drivers' sources, old and new."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kernel_log_hosts import reported
from preflight_help import host, of, sample

from fablint.preflight.check import Check
from fablint.preflight.checks.gpu.gpu_log import LOG_GPU
from fablint.preflight.checks.host.frequency import LOG_THROTTLE
from fablint.preflight.checks.host.hardware_log import LOG_SLOT
from fablint.preflight.checks.network.network_log import LOG_NIC
from fablint.snapshot.host_snapshot import Output
from fablint.snapshot.parsers import accelerator_messages, amd_gpu_messages, driver_messages, slot_messages
from fablint.snapshot.parsers.kernel_log import Line, Pattern, RecoveryPattern, line_of
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

FILES = {"nics": LOG_NIC, "gpus": LOG_GPU, "slots": LOG_SLOT}
GPU = {"/sys/bus/pci/devices/0000:68:00.0/class": "0x038000"}


def lines(name: str) -> Iterator[tuple[str, str]]:
    for line in sample(f"kernel_log/{name}.txt").splitlines():
        if line and not line.startswith("#"):
            result, _, text = line.partition(" | ")
            yield result, text


LINES = [(FILES[name], result, text) for name in FILES for result, text in lines(name)]


@pytest.mark.parametrize(
    ("check", "result", "line"), LINES, ids=lambda value: value[:60] if isinstance(value, str) else ""
)
def test_lines_of_drivers(check: Check, result: str, line: str) -> None:
    assert reported(check, line, files=GPU) == [result]


@pytest.mark.parametrize(
    ("name", "patterns"),
    [
        ("nics", driver_messages.EVENTS),
        ("gpus", amd_gpu_messages.EVENTS + accelerator_messages.EVENTS),
        ("slots", slot_messages.EVENTS),
    ],
)
def test_every_pattern_has_a_line(name: str, patterns: tuple[Pattern, ...]) -> None:
    every = [Line(text) for _, text in lines(name)] + [Line("mlx5_core 0000:b1:00.0 ib0: Link down")]
    every += [Line("bnxt_en 0000:41:00.0 ens1f0np0: NIC Link is Down")]
    assert [one for one in patterns if not any(list(one.events(line)) for line in every)] == []


AMD = "amdgpu 0000:68:00.0: amdgpu: "
ENDED = [
    (
        LOG_GPU,
        "xe 0000:29:00.0: [drm] *ERROR* CRITICAL: Xe has declared device 0000:29:00.0 as wedged.",
        "[drm] Initialized xe 1.1.0 for 0000:29:00.0 on minor 1",
    ),
    (
        LOG_GPU,
        "accel accel3: Device heartbeat failed! PCI link is healthy",
        "accel accel3: Successfully finished resetting the 0000:19:00.0 device",
    ),
    (LOG_NIC, "ionic 0000:24:00.0: FW heartbeat stalled at 71", "ionic 0000:24:00.0: FW heartbeat restored at 72"),
    (LOG_NIC, "mlx4_core 0000:01:00.0: Internal error detected:", "mlx4_core 0000:01:00.0: device was reset successfully"),
    (LOG_NIC, "ionic 0000:24:00.0: FW Up: LIFs restart failed", "ionic 0000:24:00.0: FW Up: LIFs restarted"),
    (
        LOG_SLOT,
        "pcieport 0000:64:01.0: AER: device recovery failed",
        "pcieport 0000:64:01.0: AER: device recovery successful",
    ),
    (LOG_GPU, AMD + "1 uncorrectable hardware errors detected in umc block", AMD + "GPU reset(1) succeeded!"),
    (LOG_GPU, AMD + "ring gfx timeout, signaled seq=3, emitted seq=4", AMD + "GPU reset(1) succeeded!"),
    (
        LOG_GPU,
        AMD + "Fatal error during GPU init",
        "[drm] Initialized amdgpu 3.40.0 20150101 for 0000:68:00.0 on minor 1",
    ),
    (LOG_GPU, "NVRM: GPU 0000:91:00.0: GPU has fallen off the bus.", "NVRM: loading NVIDIA UNIX x86_64 Kernel Module"),
    (
        LOG_GPU,
        "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout, signaled seq=3, emitted seq=4",
        "amdgpu 0000:68:00.0: GPU reset(2) succeeded!",
    ),
    (LOG_SLOT, "pcieport 0000:64:01.0: pciehp: Slot(12): Link Down", "pcieport 0000:64:01.0: pciehp: Slot(12): Link Up"),
    (
        LOG_SLOT,
        "pcieport 0000:64:01.0: DPC: containment event, status:0x1f01 source:0x0000",
        "pcieport 0000:64:01.0: AER: device recovery successful",
    ),
    (LOG_SLOT, "EEH: Frozen PHB#33-PE#10000 detected", "EEH: Recovery successful."),
    (
        LOG_NIC,
        "bnxt_en 0000:41:00.0: QPLIB: cmdq[0x3c]=0x5 timedout (10000)msec",
        "bnxt_en 0000:41:00.0 ens1f0np0: NIC Link is Up, 400000 Mbps full duplex, Flow control: none",
    ),
    (
        LOG_NIC,
        "bnxt_en 0000:41:00.0 ens1f0np0: Chip temperature has gone above the fatal thermal threshold!",
        "bnxt_en 0000:41:00.0 ens1f0np0: Chip temperature has gone below the fatal thermal threshold!",
    ),
    (LOG_NIC, "ena 0000:00:05.0 eth0: Keep alive watchdog timeout.", "ena 0000:00:05.0: Device reset completed successfully"),
    (LOG_NIC, "gve 0000:00:04.0: AQ commands timed out, need to reset AQ", "gve 0000:00:04.0 ens4: Device link is up."),
    (LOG_NIC, "hfi1 0000:05:00.0: hfi1_0: Lost 8051 heartbeat", "hfi1 0000:05:00.0 hfi1_0: Port: 1 Link ACTIVE"),
    (
        LOG_NIC,
        "mlx5_core 0000:b1:00.0: health_care:156:(pid 981): handling bad device here",
        "mlx5_core 0000:b1:00.0: firmware version: 12.20.1010",
    ),
    (LOG_NIC, "igc 0000:51:00.0 ens5f0: PCIe link lost, device now detached", "igc 0000:51:00.0 ens5f0: NIC Link is Up 2500 Mbps Full Duplex"),
    (
        LOG_GPU,
        AMD + "XGMI: Set topology failure on device 2a, hive 1, ret -121",
        "[drm] Initialized amdgpu 3.57.0 20150101 for 0000:68:00.0 on minor 1",
    ),
    (LOG_NIC, "mlx5_core 0000:b1:00.0 ib0: TX timeout detected", "mlx5_core 0000:b1:00.0 ib0: Link up"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "event", "end"), ENDED)
def test_recoveries(check: Check, event: str, end: str) -> None:
    assert reported(check, event, files=GPU)[0].split()[0] in ("WARN", "FAIL")
    assert {one.split()[0] for one in reported(check, event, end, files=GPU)} == {"PASS"}
    assert reported(check, end, event, files=GPU)[0].split()[0] in ("WARN", "FAIL"), "the recovery was before"


def test_every_recovery_is_one_of_a_known_event() -> None:
    for module in (driver_messages, amd_gpu_messages, slot_messages):
        whats = {pattern.what for pattern in module.EVENTS}
        endings: tuple[RecoveryPattern, ...] = module.ENDINGS
        assert [one for one in endings if not whats.issuperset(one.whats)] == []


def test_a_gpu_that_is_faulty_stays_faulty_after_a_reset() -> None:
    event = AMD + "RAS records:130 exceed threshold:128"
    assert reported(LOG_GPU, event, AMD + "GPU reset(1) succeeded!", files=GPU) == ["FAIL 0000:68:00.0"]


def test_many_corrected_errors_of_a_gpu_warn() -> None:
    line = AMD + "1 new correctable hardware errors detected in umc block"
    assert reported(LOG_GPU, *[line] * 101, files=GPU) == ["WARN 0000:68:00.0"]


def test_a_gpu_off_the_bus_in_three_lines_is_named_once() -> None:
    text = (
        "<6>[ 1843.308145] NVRM: The NVIDIA GPU 0000:b3:00.0\n"
        "               NVRM: (PCI ID: 10de:26b5) installed in this system has\n"
        "               NVRM: fallen off the bus and is not responding to commands.\n"
        "<4>[ 1843.439662] NVRM: The NVIDIA probe routine failed for 1 device(s).\n"
    )
    (result,) = of(LOG_GPU, host("n1", {"/proc/uptime": "5443.3 1.0"}, kernel_log=Output(text, status=0)))
    assert (result.outcome.name, result.target) == ("FAIL", "0000:b3:00")
    assert PINNED["the GPU has fallen off"].begins(result.message)


@pytest.mark.parametrize("address", ["0000:c5:00.1", "c5:00.1"])
def test_refused_accesses_of_other_devices_are_a_note(address: str) -> None:
    files = {f"/sys/bus/pci/devices/0000:c5:00.1/{key}": text for key, text in {"class": "0x0c0330"}.items()}
    fault = f"AMD-Vi: Event logged [IO_PAGE_FAULT device={address} domain=0x0036 address=0x7f2a000 flags=0x0030]"
    assert reported(LOG_SLOT, fault, files=files) == [f"PASS {address}"]
    gpu = {"/sys/bus/pci/devices/0000:c5:00.1/class": "0x030200"}
    assert reported(LOG_SLOT, fault, files=gpu) == [f"WARN {address}"]


NET = "/sys/class/net/ens1f0/"
MLX5_CARD = {"vendor": "0x15b3", "device": "0x1021", "class": "0x020000"}


def card(address: str, **changed: str) -> dict[str, str]:
    return {f"/sys/bus/pci/devices/{address}/{key}": text for key, text in {**MLX5_CARD, **changed}.items()}


@pytest.mark.parametrize(
    ("files", "links", "expected"),
    [
        (card("0000:1a:00.0", **{"class": "0x120000"}), {}, "FAIL 0000:1a:00.0"),
        (card("0000:1a:00.0"), {}, "FAIL 0000:1a:00.0"),  # as the NIC of the fabric
        (card("0000:1a:00.0", device="0x1563"), {}, "WARN 0000:1a:00.0"),
        (card("0000:1a:00.0", **{"class": "0x010802"}), {}, "PASS 0000:1a:00.0"),  # a disk
        (card("0000:1a:00.0"), {"/sys/class/net/ib1/device": "../../../0000:1a:00.0"}, "PASS 0000:1a:00.0"),
        (
            card("0000:1a:00.0", **{"class": "0x120000"}),
            {"/sys/bus/pci/drivers/amdgpu/0000:1a:00.0": "../../../../devices/pci0000:15/0000:1a:00.0"},
            "PASS 0000:1a:00.0",
        ),
    ],
)
def test_a_driver_that_could_not_start(files: dict[str, str], links: dict[str, str], expected: str) -> None:
    usual = {NET + key: text for key, text in {"type": "1", "operstate": "up", "address": "02:11:22:33:44:55"}.items()}
    usual |= {NET + "device/" + key: text for key, text in MLX5_CARD.items()} | card("0000:c1:00.0")
    usual |= {"/proc/uptime": "1843.3 1.0"} | {f"{path}/vendor": "0x15b3" for path in links if "/net/" in path}
    log = Output("<3>[   11.1] some_driver: probe of 0000:1a:00.0 failed with error -110", status=0)
    links = {NET + "device": "../../../0000:c1:00.0", **links}
    (result,) = of(LOG_SLOT, host("n1", {**usual, **files}, kernel_log=log, links=links))
    assert f"{result.outcome.name} {result.target}" == expected


@pytest.mark.parametrize(
    "line",
    [
        "CPU7: Core temperature above threshold, cpu clock throttled (total events = 1)",  # 4.4
        "CPU7: Package temperature is above threshold, cpu clock is throttled (total events = 1)",  # 5.6, 6.18
        "mce: CPU7: Core temperature above threshold, cpu clock throttled (total events = 1)",
    ],
)
def test_throttling_in_old_and_new_kernels(line: str) -> None:
    assert reported(LOG_THROTTLE, line) == ["WARN"]
    assert reported(LOG_THROTTLE, line.partition(" temperature")[0] + " temperature/speed normal") == ["PASS"]


@pytest.mark.parametrize("head", ["[  +0.000006] ", "[May19 19:57] "])
def test_relative_times_are_no_part_of_the_text(head: str) -> None:
    line = line_of(head + "EDAC MC3: 1 UE memory read error")
    assert line is not None
    assert (line.text, line.moment) == ("EDAC MC3: 1 UE memory read error", None)
