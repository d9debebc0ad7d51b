"""What perftest prints beside its figures: memory, checks, samples, raw Ethernet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from import_cases import times_of, written

from fablint.errors import UsageError

BANDWIDTH = " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
LATENCY = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]\n"
RATE = " 65536      5000             600.00             500.00             0.008\n"
TIME = " 2       1000          1.70           9.99         1.73        1.75        0.05\n"


def output(title: str, before: str, table: str, *, connection: str = "RC") -> str:
    line = "-" * 87 + "\n"
    setting = f" Number of qps   : 1\t\tTransport type : IB\n Connection type : {connection}\t\tUsing SRQ      : OFF\n"
    return f"{line}                    {title} Test\n{setting}{line}{before}{table}{line}"


CUDA = """initializing CUDA
Listing all CUDA devices in system:
CUDA device 0: PCIe address is 07:00

Picking device No. 0
[pid = 4711, dev = 0] device name = [NVIDIA H100 80GB HBM3]
creating CUDA Ctx
making it the current CUDA Ctx
cuMemAlloc() of a 131072 bytes GPU buffer
allocated GPU buffer address at 00007f0000000000 pointer=0x7f0000000000
"""
FREED = "deallocating GPU buffer 00007f0000000000\ndestroying current CUDA Ctx\n"


@pytest.mark.parametrize(
    ("lines", "memory"),
    [
        (CUDA, "cuda"),
        ("initializing CUDA\nFinding PCIe BUS 0000:07:00.0\nPicking GPU number 0\n", "cuda"),
        ("Using ROCm Device with ID: 0, Name: AMD, PCI Bus ID: 0x1, GCN Arch: 942\n", "hip"),
        ("initializing MLU\nListing all MLU devices in system:\n", "device"),
        (" Use ROCm memory : ON\n", "hip"),
        ("", "host"),
    ],
)
def test_the_memory_of_a_gpu_is_that_of_the_test(tmp_path: Path, lines: str, memory: str) -> None:
    before = lines + output("Send BW", "", BANDWIDTH + RATE)
    behind = output("Send BW", lines, BANDWIDTH + RATE)
    for text in (before, behind):
        (row,) = written(tmp_path, text).rows
        assert row.medium.memory == memory
        assert times_of(row) == pytest.approx([65536 / (500 * 2.0**20)])
    rows = written(tmp_path, behind + FREED + output("Send BW", "", BANDWIDTH + RATE)).rows
    assert [row.medium.memory for row in rows] == list(dict.fromkeys([memory, "host"]))


def test_two_runs_in_memory_of_a_gpu_are_repeats(tmp_path: Path) -> None:
    second = CUDA.replace("4711", "4812").replace("7f0000", "7f1230")
    (row,) = written(
        tmp_path, "".join(lines + output("Send BW", "", BANDWIDTH + RATE) + FREED for lines in (CUDA, second))
    ).rows
    assert len(times_of(row)) == 2


@pytest.mark.parametrize(
    ("keys", "memory"),
    [
        ({"cuda_device": 0, "Use_ROCm_memory": "OFF", "Use_MUSA_memory": "OFF"}, "cuda"),
        ({"Use_ROCm_memory": "ON", "Use_MUSA_memory": "OFF"}, "hip"),
        ({"musa_device": 1, "Use_ROCm_memory": "OFF", "Use_MUSA_memory": "ON"}, "device"),
        ({"Use_ROCm_memory": "OFF"}, "host"),
    ],
)
def test_the_memory_in_json(tmp_path: Path, keys: dict[str, object], memory: str) -> None:
    info = {"test": "Send_BW_Test", "Connection_type": "RC", **keys}
    results = {"MsgSize": 65536, "n_iterations": 5000, "BW_peak": 0, "BW_average": 500.0, "MsgRate": 0.008}
    (row,) = written(tmp_path, json.dumps({"test_info": info, "results": results})).rows
    assert row.medium.memory == memory
    with pytest.raises(UsageError, match="not a supported test"):
        written(tmp_path, json.dumps({"test_info": {**info, "Connection_type": "RawEth"}, "results": results}))


@pytest.mark.parametrize("role", ["", " (client)"])
def test_payloads_that_fail_the_validation_are_damage(tmp_path: Path, role: str) -> None:
    whole = output("RDMA_Write BW", "", BANDWIDTH + RATE)
    (row,) = written(tmp_path, f"{whole}VALIDATION: FAILED{role} - 3 error(s), first at QP 0, Chunk 1, Offset 2\n").rows
    assert [(each.src, each.dst, each.size) for each in row.facts.result.corrupt] == [(0, 1, 65536)]
    (row,) = written(tmp_path, f"{whole}VALIDATION: PASSED{role} - 100 chunks, 6553600 bytes\n").rows
    assert (row.facts.sampling.validate, list(row.facts.result.corrupt)) == (True, [])


@pytest.mark.parametrize("samples", [0, 1, 500])
def test_samples_of_a_histogram_are_part_of_the_output(tmp_path: Path, samples: int) -> None:
    lines = "#, usec\n" + "".join(f"{number}, {1.7 + number / 100:g}\n" for number in range(1, samples + 1))
    run = written(tmp_path, output("Send Latency", lines, LATENCY + TIME))
    assert (run.state, times_of(run.rows[0])) == ("complete", pytest.approx([1.75e-6]))
    assert run.facts.imported is not None
    assert not run.facts.imported.lines_left_out


@pytest.mark.parametrize("option", ["-H -C", "-HC", "--report-cycles"])
def test_cycles_are_no_times(tmp_path: Path, option: str) -> None:
    with pytest.raises(UsageError, match="its times are CPU cycles"):
        written(tmp_path, f"$ ib_send_lat {option} n2\n" + output("Send Latency", "", LATENCY + TIME))
    with pytest.raises(UsageError, match="its times are CPU cycles"):
        written(tmp_path, output("Send Latency", "#, cycles\n1, 4250\n", LATENCY + TIME))
    assert written(tmp_path, "$ ib_send_lat -c RC n2\n" + output("Send Latency", "", LATENCY + TIME)).rows


@pytest.mark.parametrize("heading", [BANDWIDTH, BANDWIDTH.replace("#bytes  ", "#bytes    #sl  ")])
def test_raw_ethernet_is_not_supported(tmp_path: Path, heading: str) -> None:
    row = RATE if "#sl" not in heading else RATE.replace("65536  ", "65536    3  ")
    with pytest.raises(UsageError, match="not a supported test"):
        written(tmp_path, output("Send BW", "", heading + row, connection="RawEth"))


@pytest.mark.parametrize("line", ["Error: BW result is below bw limit", " Error: Msg rate  is below msg_rate limit"])
def test_a_figure_below_the_limit_of_the_caller_is_named(tmp_path: Path, line: str) -> None:
    run = written(tmp_path, output("Send BW", "", BANDWIDTH + RATE) + line + "\n")
    assert run.facts.imported is not None
    assert ["limit" in each.why for each in run.facts.imported.lines_left_out] == [True]
