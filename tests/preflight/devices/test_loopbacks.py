"""Loopback tests of NICs: bandwidth and latency, of host and GPU memory. Samples: public formats, invented values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from preflight_help import host, of, outcomes, sample, sysroot, wrong

from fablint.model import Answer
from fablint.model.preflight_results import Outcome, Result
from fablint.preflight.check import Check
from fablint.preflight.checks.infiniband import rdma_loopback
from fablint.preflight.checks.slingshot import cxi_loopback
from fablint.preflight.host import Host
from fablint.snapshot import command_to_collect, read_answers
from fablint.snapshot.host_snapshot import Output
from pinned import pinned_by
from rdmavm import RunInVm

PINNED = pinned_by("preflight.toml", __file__)

SLINGSHOT = sysroot("cxi-2rail-good")
ABSENT = Output(error="not installed")
TIMED_OUT = Output(error="no answer in time")

# ------------------------------------------------------------------------------------------------ loopback


def row(gbit: float) -> str:
    head = sample("slingshot/cxi_gpu_loopback_bw.txt").split("\n      524288")[0]
    return f"{head}\n      524288      204800    {gbit:.2f}        11.375122\n----\n"


def loopback(*rates: float, speed: str = "BS_200G") -> list[Result]:
    """Hosts of one NIC each, with these rates."""
    hosts = []
    for number, rate in enumerate(rates):
        files = {"/sys/class/cxi/cxi0/device/port/speed": speed}
        hosts.append(host(f"n{number}", files, commands={"cxi_gpu_loopback_bw/cxi0": row(rate)}))
    return of(cxi_loopback.CXI_LOOPBACK_RATE, *hosts)


@pytest.mark.parametrize(
    ("rate", "speed", "outcome"),
    [
        (186.37, "BS_200G", Outcome.PASS),
        (190.0, "BS_200G", Outcome.PASS),  # a script that looks for ` 18` fails it
        (371.0, "CK_400G", Outcome.PASS),  # and this
        (186.37, "CK_400G", Outcome.FAIL),
        (97.12, "BS_200G", Outcome.FAIL),
        (186.37, "unknown", Outcome.SKIP),
    ],
)
def test_a_loopback_is_compared_with_the_nics_own_speed(rate: float, speed: str, outcome: Outcome) -> None:
    assert outcomes(loopback(rate, speed=speed)) == [outcome]


def test_a_loopback_is_compared_with_the_others() -> None:
    assert wrong(loopback(195.0, 194.0, 196.0, 184.0, 195.0)) == [
        ("n3", "cxi0", Outcome.FAIL, PINNED["184 Gb/s, below 95%"])
    ]
    assert wrong(loopback(97.12)) == [("n0", "cxi0", Outcome.FAIL, "97.12 Gb/s, below 90 % of 200 Gb/s")]


def test_a_loopback_that_printed_no_row_never_passes() -> None:
    blocks = sample("slingshot/cxi_gpu_loopback_bw.txt").split("\ncxi")
    cut = blocks[1].partition("\n      524288")[0]
    said = {"cxi_gpu_loopback_bw/cxi0": cut, "cxi_gpu_loopback_bw/cxi1": blocks[1]}
    results = of(cxi_loopback.CXI_LOOPBACK_RATE, host(files=SLINGSHOT, commands=said))
    assert [(result.target, result.outcome) for result in results] == [("cxi0", Outcome.ERROR), ("cxi1", Outcome.PASS)]
    assert results[0].message == "cxi_gpu_loopback_bw printed no bandwidth"


# ------------------------------------------------------------------------------------------------ RDMA loopback

WRITE_BW = sample("misc/ib_write_bw-rxe0.txt")  # REAL; its row is that of an emulated processor
MEASURED = next(line for line in WRITE_BW.splitlines() if line.startswith(" 65536"))
PORT = "/sys/class/infiniband/mlx5_0/ports/1"
ROCE = {
    f"{PORT}/state": "4: ACTIVE",
    f"{PORT}/rate": "200 Gb/sec (4X HDR)",
    f"{PORT}/link_layer": "Ethernet",
    "/sys/class/infiniband/mlx5_0/node_type": "1: CA",
    "/sys/class/infiniband/mlx5_0/device/vendor": "0x15b3",
}


def written(gbit: float) -> str:
    """The real output, with another average."""
    columns = MEASURED.split()
    return WRITE_BW.replace(MEASURED, MEASURED.replace(columns[3], f"{gbit:.2f}"))


def write_bw(*rates: float, **changed: str) -> list[Result]:
    """Hosts of one device each, with these rates; of the first some files have changed."""
    hosts = []
    for number, rate in enumerate(rates):
        files = {**ROCE, **({} if number else changed)}
        hosts.append(host(f"n{number}", files, commands={"ib_write_bw/mlx5_0": written(rate)}))
    return of(rdma_loopback.IB_LOOPBACK_RATE, *hosts)


def test_the_average_of_a_real_output_is_reported() -> None:
    one = host("n1", ROCE, commands={"ib_write_bw/mlx5_0": WRITE_BW})
    average = float(MEASURED.split()[3])
    (result,) = of(rdma_loopback.IB_LOOPBACK_RATE, one)
    assert 0 < average < 10
    assert (result.outcome, result.value) == (Outcome.WARN, average)


@pytest.mark.parametrize(
    ("rate", "outcome"), [(196.3, Outcome.PASS), (240.0, Outcome.PASS), (101.0, Outcome.PASS), (97.0, Outcome.WARN)]
)
def test_a_device_alone_is_compared_with_its_ports_rate_but_does_not_fail(rate: float, outcome: Outcome) -> None:
    assert outcomes(write_bw(rate)) == [outcome]


def test_a_device_far_below_those_of_like_hosts_fails() -> None:
    assert wrong(write_bw(150.0, 194.0, 195.0, 196.0, 197.0)) == [
        ("n0", "mlx5_0", Outcome.FAIL, PINNED["150 Gb/s, below 80%"])
    ]
    assert wrong(write_bw(160.0, 194.0, 196.0, 197.0)) == []
    assert wrong(write_bw(60.0, 194.0, 196.0))[0][2:] == (Outcome.WARN, PINNED["60 Gb/s, below 80%"])
    assert wrong(write_bw(80.0, 81.0, 82.0)) == [
        (f"n{number}", "mlx5_0", Outcome.WARN, f"8{number} Gb/s, below 50 % of 200 Gb/s") for number in range(3)
    ]


@pytest.mark.parametrize(
    "changed",
    [
        {f"{PORT}/rate": "100 Gb/sec (4X EDR)"},
        {"/sys/class/infiniband/mlx5_0/board_id": "MT_0000000838"},
        {"/sys/devices/virtual/dmi/id/product_name": "another"},
    ],
)
def test_devices_of_another_make_or_rate_or_machine_are_not_compared(changed: dict[str, str]) -> None:
    assert wrong(write_bw(105.0, 194.0, 196.0, 197.0, **changed)) == []


@pytest.mark.parametrize(
    "changed",
    [
        {"/sys/class/infiniband/mlx5_0/device/vendor": "0x8086", f"{PORT}/link_layer": "InfiniBand"},
        {f"{PORT}/rate": "unknown"},
    ],
)
def test_what_the_processor_copies_or_has_no_rate_is_not_judged(changed: dict[str, str]) -> None:
    first, *others = write_bw(3.0, 194.0, 196.0, 197.0, **changed)
    assert (first.outcome, first.message) == (Outcome.SKIP, PINNED["3 Gb/s, no speed or similar"])
    assert outcomes(others) == [Outcome.PASS] * 3


def test_soft_roce_is_not_judged() -> None:
    files = {path: text for path, text in ROCE.items() if "vendor" not in path}
    assert outcomes(
        of(rdma_loopback.IB_LOOPBACK_RATE, host("n1", files, commands={"ib_write_bw/mlx5_0": WRITE_BW}))
    ) == [Outcome.SKIP]


@pytest.mark.parametrize(
    ("said", "outcome", "words"),
    [
        (ABSENT, Outcome.SKIP, "not installed"),
        (Output(error="no access to /dev/infiniband/uverbs0"), Outcome.SKIP, "no access to /dev/infiniband/uverbs0"),
        (TIMED_OUT, Outcome.ERROR, "no answer in time"),
        (Output("", "Couldn't allocate MR", 1), Outcome.ERROR, "no output: Couldn't allocate MR"),
        (
            Output(WRITE_BW.replace(MEASURED, ""), " Completion with error at client", 1),
            Outcome.ERROR,
            "ib_write_bw printed no bandwidth: Completion with error at client",
        ),
    ],
)
def test_a_device_that_wrote_nothing_never_passes(said: Output, outcome: Outcome, words: str) -> None:
    (result,) = of(rdma_loopback.IB_LOOPBACK_RATE, host("n1", ROCE, commands={"ib_write_bw/mlx5_0": said}))
    assert (result.target, result.outcome, result.message) == ("mlx5_0", outcome, words)


@pytest.mark.parametrize(
    "changed", [{f"{PORT}/state": "1: DOWN"}, {"/sys/class/infiniband/mlx5_0/node_type": "4: RNIC"}]
)
def test_a_device_without_an_active_port_and_iwarp_are_skipped(changed: dict[str, str]) -> None:
    (result,) = of(rdma_loopback.IB_LOOPBACK_RATE, host("n1", {**ROCE, **changed}))
    assert (result.outcome, result.message) == (Outcome.SKIP, "no active InfiniBand or RoCE device")


READ_LAT = """\
---------------------------------------------------------------------------------------
                    RDMA_Read Latency Test
 Link type       : IB
 Outstand reads  : 16
---------------------------------------------------------------------------------------
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]
Conflicting CPU frequency values detected: 2400.000000 != 1873.463000. CPU Frequency is not max.
 2       1000          1.76           6.12         {0}                1.80             0.06            1.88                    6.12
---------------------------------------------------------------------------------------
"""  # noqa: E501


def loops(check: Check, **outputs: Sequence[str | Output]) -> list[Result]:
    """Hosts of one device each, with these outputs by program."""
    hosts = []
    for number in range(len(next(iter(outputs.values())))):
        commands = {f"{name}/mlx5_0": texts[number] for name, texts in outputs.items()}
        hosts.append(host(f"n{number}", ROCE, commands=commands))
    return of(check, *hosts)


def test_a_device_that_reads_slowly_fails_although_it_writes_at_full_rate() -> None:
    write, read = [written(195.0)] * 5, [written(rate) for rate in (97.0, 190.0, 191.0, 192.0, 193.0)]
    results = loops(rdma_loopback.IB_LOOPBACK_RATE, ib_write_bw=write, ib_read_bw=read)
    assert wrong(results) == [("n0", "mlx5_0", Outcome.FAIL, PINNED["RDMA read: 97 Gb/s, below"])]
    assert len(results) == 5, "one result of each device"
    without_time = Output(error="there was no time left for it")
    results = loops(rdma_loopback.IB_LOOPBACK_RATE, ib_write_bw=write, ib_read_bw=[without_time] * 5)
    assert outcomes(results) == [Outcome.PASS] * 5


def test_a_device_whose_messages_take_longer_than_those_of_like_hosts_warns() -> None:
    usual = [READ_LAT.format(time) for time in ("1.79", "1.80", "1.81", "1.83", "1.85")]
    slow = [READ_LAT.format("3.10"), *usual[1:]]
    check = rdma_loopback.IB_LOOPBACK_LATENCY
    assert wrong(loops(check, ib_write_lat=slow, ib_read_lat=usual)) == [
        ("n0", "mlx5_0", Outcome.WARN, PINNED["RDMA write: 3.1 us, above"])
    ]
    assert wrong(loops(check, ib_write_lat=usual, ib_read_lat=slow))[0][3].startswith("RDMA read: 3.1 us")
    assert outcomes(loops(check, ib_write_lat=usual, ib_read_lat=usual)) == [Outcome.PASS] * 5
    assert outcomes(loops(check, ib_write_lat=slow[:1], ib_read_lat=slow[:1])) == [Outcome.SKIP], "nothing like it"
    old = [text.replace("            0.06            1.88                    6.12", "") for text in slow]
    assert len(wrong(loops(check, ib_write_lat=old, ib_read_lat=old))) == 1, "a release without percentiles"


@pytest.mark.parametrize("end", [*range(0, READ_LAT.index("{0}"), 23), READ_LAT.index("{0}")])
def test_a_latency_that_was_cut_off_is_never_healthy(end: int) -> None:
    texts = [READ_LAT[:end]] + [READ_LAT.format("1.80")] * 4
    results = loops(rdma_loopback.IB_LOOPBACK_LATENCY, ib_write_lat=texts, ib_read_lat=texts)
    assert {one.host: one.outcome for one in results}["n0"] is Outcome.ERROR


# ------------------------------------------------------------------------------------------------ GPU memory


def gpu_loops(tx: Sequence[float], rx: Sequence[float]) -> list[Result]:
    """Hosts of one Slingshot NIC, with these rates from and into GPU memory."""
    files = {"/sys/class/cxi/cxi0/device/port/speed": "BS_200G"}
    hosts = [
        host(
            f"n{number}",
            files,
            commands={"cxi_gpu_loopback_bw-tx/cxi0": row(one), "cxi_gpu_loopback_bw-rx/cxi0": row(other)},
        )
        for number, (one, other) in enumerate(zip(tx, rx, strict=True))
    ]
    return of(cxi_loopback.CXI_GPU_LOOPBACK_RATE, *hosts)


def test_a_nic_that_is_slow_with_gpu_memory_in_one_direction() -> None:
    usual = [186.6, 187.0, 186.9, 186.4, 187.2]
    assert outcomes(gpu_loops(usual, usual)) == [Outcome.PASS] * 5
    assert wrong(gpu_loops([97.1, *usual[1:]], usual)) == [
        ("n0", "cxi0", Outcome.FAIL, PINNED["from GPU memory: 97.1 Gb/s"])
    ]
    assert wrong(gpu_loops(usual, [*usual[:4], 150.0])) == [
        ("n4", "cxi0", Outcome.FAIL, PINNED["into GPU memory: 150 Gb/s"])
    ]
    assert wrong(gpu_loops([90.0], [187.0])) == [("n0", "cxi0", Outcome.WARN, PINNED["from GPU memory: 90 Gb/s"])], (
        "one host alone"
    )
    assert wrong(gpu_loops([150.0] * 5, [151.0] * 5)) == [], "a path through the root complex, on all hosts"


def test_hosts_without_gpus_and_programs_without_gpu_support() -> None:
    files = {"/sys/class/cxi/cxi0/device/port/speed": "BS_200G"}
    (without,) = of(cxi_loopback.CXI_GPU_LOOPBACK_RATE, host("n1", files))
    assert without.outcome is Outcome.SKIP
    unsupported = Output("", "cxi_gpu_loopback_bw: Invalid GPU type or unable to find GPU libraries", 1)
    commands = {f"cxi_gpu_loopback_bw-{side}/cxi0": unsupported for side in ("tx", "rx")}
    (result,) = of(cxi_loopback.CXI_GPU_LOOPBACK_RATE, host("n1", files, commands=commands))
    assert result.outcome is Outcome.ERROR


# ------------------------------------------------------------------------------------------------ a real device


def test_a_soft_roce_device_writes_to_itself(rdmavm: RunInVm, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(command_to_collect("full")[1])
    done = rdmavm(tmp_path, "bash", "-c", f"cd {tmp_path} && python3 program.py full 0.1 60 && ps ax -o comm >after")
    snapshot = read_answers([Answer("node0", done.stdout)]).snapshots["node0"]
    said = snapshot.command("ib_write_bw/rxe0")
    assert said.status == 0, (said, done.stderr)
    assert re.search(r"GID index\s*: 1\b", said.text)
    (result,) = [one for one in of(rdma_loopback.IB_LOOPBACK_RATE, Host(snapshot)) if one.target == "rxe0"]
    assert result.outcome is Outcome.SKIP
    assert PINNED["Gb/s, no speed or similar"].ends(result.message)
    after = (tmp_path / "after").read_text()
    assert "bash" in after
    assert "ib_write_bw" not in after
