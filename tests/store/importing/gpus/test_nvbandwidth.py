"""nvbandwidth: text and JSON of all releases."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from import_cases import FIXTURES

from fablint.analyse import diagnose
from fablint.errors import UsageError
from fablint.model import Run, State
from fablint.report import Options, console_summary, render_table
from fablint.store import import_run
from fablint.workflows import analysis

FOLDER = FIXTURES / "nvbandwidth"
TEXT = (FOLDER / "nvbandwidth-0.8.txt").read_text()
JSON = (FOLDER / "nvbandwidth-0.8.json.txt").read_text()
SMALL, LARGE = 64 << 20, 512 << 20


def run_of(name: str, hosts: list[str] | None = None) -> Run:
    return import_run([FOLDER / name], hosts or [])


def written(folder: Path, text: str, hosts: list[str] | None = None) -> Run:
    path = folder / "output.txt"
    path.write_text(text)
    return import_run([path], hosts or [])


def rates(run: Run, name: str) -> np.ndarray:
    """GB/s of a row: of each pair, or of each GPU."""
    row = run.row(name)
    times = np.asarray(row.arrays["time_mean"], np.float64)
    times = times[0, :, :, 0] if row.layout == "matrix" else times[:, 0, 0]
    return row.counted_bytes(row.sizes[0]) / times / 1e9


def test_copies_between_gpus_are_pairs() -> None:
    run = run_of("nvbandwidth-0.8.txt")
    assert (run.state, run.hosts, run.ranks) == ("complete", ["gpu-node-a"], 4)
    assert list(run.facts.rank_gpu) == ["gpu0", "gpu1", "gpu2", "gpu3"]
    assert run.facts.imported.tool == "nvbandwidth 0.8"
    row = run.row("device_to_device_memcpy_read_ce")
    assert (row.kernel, row.payload, row.sizes) == ("get_bandwidth", "dst", (LARGE,))
    assert rates(run, row.name)[0, 3] == pytest.approx(21.95)  # GPU 0 reads from GPU 3
    assert rates(run, row.name)[3, 0] == pytest.approx(21.82)
    assert np.isnan(rates(run, row.name)).sum() == 4


def test_both_directions_at_once_are_counted_together() -> None:
    run = run_of("nvbandwidth-0.8.txt")
    row = run.row("device_to_device_bidirectional_memcpy_write_ce")
    assert row.kernel == "bibandwidth"
    assert rates(run, row.name)[0, 1] == pytest.approx(50.10)
    parts = [line for line in run.facts.imported.lines_left_out if "one direction of the total" in line.why]
    assert len(parts) == 2


def test_copies_of_a_gpu_and_its_host() -> None:
    run = run_of("nvbandwidth-0.8.txt")
    copies = {
        "host_to_device_memcpy_ce": "to-device",
        "device_to_host_memcpy_ce": "to-host",
        "device_local_copy": "within-device",
    }
    assert {name: run.row(name).facts.sampling.copy for name in copies} == copies
    assert {run.row(name).kernel for name in copies} == {"gpu_loopback"}
    assert rates(run, "host_to_device_memcpy_ce") == pytest.approx([26.45, 26.44, 26.46, 13.21])
    table = render_table(run, "gpu_copies", Options(), ["host_to_device_memcpy_ce"]).text
    assert "13210" in table and "gpu3" in table
    assert "at once" not in table


def test_copies_of_all_gpus_at_once(tmp_path: Path) -> None:
    run = written(tmp_path, TEXT.replace("host_to_device_memcpy_ce", "host_to_all_memcpy_ce"))
    assert "by all 4 ranks at once" in render_table(run, "gpu_copies", Options(), ["host_to_all_memcpy_ce"]).text


def test_a_slow_gpu_is_reported() -> None:
    """GPU 3 receives half of what the others do: one of two widths of its slot."""
    (finding,) = [
        one for one in analysis.diagnose(run_of("nvbandwidth-0.8.txt")).verdict.findings if one.component == "gpu"
    ]
    assert (finding.name, finding.state) == ("gpu-node-a/gpu3", State.SUSPECT)


def test_latencies_are_named_and_not_read() -> None:
    (line,) = [one for one in run_of("nvbandwidth-0.8.txt").facts.imported.lines_left_out if "latency" in one.text]
    assert line.why == "a load of memory and no copy"


def test_old_releases() -> None:
    run = run_of("nvbandwidth-0.2.txt", ["n1"])
    assert (run.state, run.hosts) == ("complete", ["n1"])
    assert {size for row in run.rows for size in row.sizes} == {SMALL}
    assert rates(run, "host_to_device_bidirectional_memcpy_ce") == pytest.approx([11.24, 14.42])  # to the GPU alone
    assert rates(run, "device_to_device_bidirectional_memcpy_write_sm")[0, 1] == pytest.approx(40.10)
    assert run.row("device_to_device_bidirectional_memcpy_write_sm").kernel == "bibandwidth"
    assert run_of("nvbandwidth-0.2.txt").hosts == ["host"]


def test_processes_of_several_hosts() -> None:
    run = run_of("nvbandwidth-0.7-multinode.txt")
    assert (run.state, run.hosts, run.rank_host) == ("complete", ["tray-1", "tray-2"], ["tray-1"] * 2 + ["tray-2"] * 2)
    assert list(run.facts.rank_gpu) == ["gpu0", "gpu1"] * 2
    assert rates(run, "multinode_device_to_device_memcpy_read_ce")[2, 3] == pytest.approx(312.50)
    bisection = run.row("multinode_bisect_write_ce")
    assert (bisection.pattern, bisection.facts.schedule.rounds) == ("bisection", 1)
    assert np.asarray(bisection.arrays["dst"])[:, 0].tolist() == [2, 3, 0, 1]
    assert rates(run, bisection.name) == pytest.approx([612.30, 613.40, 610.10, 611.20])  # of the sender
    with pytest.raises(UsageError, match="the file names its hosts"):
        run_of("nvbandwidth-0.7-multinode.txt", ["a", "b", "c", "d"])


def test_json() -> None:
    run = run_of("nvbandwidth-0.8.json.txt")
    assert (run.state, run.hosts, run.ranks) == ("complete", ["gpu-node-a"], 2)
    assert rates(run, "device_to_device_memcpy_write_ce")[1, 0] == pytest.approx(189.5)
    both = run.row("device_to_device_bidirectional_memcpy_read_sm")
    assert (both.kernel, rates(run, both.name)[0, 1]) == ("bibandwidth", pytest.approx(703))


def test_processes_of_json_need_hosts(tmp_path: Path) -> None:
    text = JSON.replace("device_to_device_memcpy_write_ce", "multinode_device_to_device_memcpy_write_ce")
    text = text.replace('"0: NVIDIA H200 (00000008:06:00): (gpu-node-a)",', "").replace(
        '"1: NVIDIA H200 (00000009:06:00): (gpu-node-a)"', ""
    )
    with pytest.raises(UsageError, match="the hosts of its 2 processes are not named"):
        written(tmp_path, text)
    assert written(tmp_path, text, ["t1", "t2"]).rank_host[:2] == ["t1", "t2"]


def test_outputs_of_several_hosts_are_one_run(tmp_path: Path) -> None:
    paths = []
    for host in ("gpu-node-a", "gpu-node-b", "gpu-node-c"):
        paths.append(tmp_path / host)
        paths[-1].write_text(TEXT.replace("gpu-node-a", host))
    run = import_run(paths)
    assert (run.state, run.hosts, run.ranks) == ("complete", ["gpu-node-a", "gpu-node-b", "gpu-node-c"], 12)
    assert rates(run, "host_to_device_memcpy_ce").shape == (12,)
    console_summary(run, analysis.diagnose(run))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            TEXT[TEXT.index(" 2     26.34     26.35       N/A     22.36") :],
            "",
            "device_to_device_memcpy_read_ce has no complete",
        ),
        (TEXT[TEXT.index("2.36\n") :], "2.", "device_to_device_memcpy_read_ce has no complete"),
        (
            TEXT[TEXT.index("memcpy CE GPU(row) -> GPU") : TEXT.index("Running device_to_device_bidirectional")],
            " Invalid value when checking the pattern at 0x70a640000000\n Current offset : 11136 \n",
            "device_to_device_memcpy_read_ce: payloads arrived damaged",
        ),
        (
            TEXT[TEXT.index("memcpy local GPU") : TEXT.index("Running host_device_latency")],
            "[CUDA_ERROR_ILLEGAL_ADDRESS] an illegal memory access was encountered in expression cuStreamSynchronize\n",
            "device_local_copy: the test failed",
        ),
        (TEXT[TEXT.index("Running device_local_copy") + 30 :], "", "device_local_copy has no complete result"),
    ],
)
def test_a_test_without_a_result_makes_a_file_incomplete(tmp_path: Path, old: str, new: str, reason: str) -> None:
    run = written(tmp_path, TEXT.replace(old, new))
    assert run.state == "interrupted"
    assert reason in run.facts.imported.missing[0]


WRONG = " Invalid value when checking the pattern at 0x70a640000000\n Current offset : 11136 \n"
OLD_WRONG = " Invalid value when checking the pattern at <0x7f3a00000004>\n Current offset [ 4/67108864]\n"


@pytest.mark.parametrize("wrong", [WRONG, OLD_WRONG, WRONG + "ASSERT in expression h_errorFlag == 0 in void check\n"])
@pytest.mark.parametrize(
    "test",
    ["device_to_device_memcpy_read_ce", "all_to_host_memcpy_ce", "device_local_copy", "host_device_latency_sm"],
)
def test_wrong_payloads_are_a_fault_of_the_host(tmp_path: Path, test: str, wrong: str) -> None:
    head = TEXT[: TEXT.index("Running ")]
    for text in (f"{head}Running {test}.\n{wrong}", f"{TEXT}Running {test}.\n{wrong}"):
        run = written(tmp_path, text)
        assert (diagnose(run).verdict.exit_code, run.state) == (1, "interrupted")
        (row,) = (row for row in run.rows if row.facts.result.corrupt)
        assert [entry.size for entry in row.facts.result.corrupt] == [512 << 20]
        assert row.name.startswith(test)
        (fault,) = (finding for finding in diagnose(run).verdict.findings if finding.state == "FAULT")
        assert "gpu-node-a" in fault.components[0].label
        assert f"{test}: payloads arrived damaged" in run.facts.imported.missing[0]


def test_wrong_payloads_in_json_are_a_fault(tmp_path: Path) -> None:
    document = json.loads(JSON[JSON.index("{") :])
    case = document["nvbandwidth"]["testcases"][0]
    del case["bandwidth_matrix"]
    case |= {"status": "Error", "error": " Invalid value when checking the pattern at <0x7f> Current offset [ 4/8]"}
    run = written(tmp_path, json.dumps(document, indent=1))
    assert (diagnose(run).verdict.exit_code, run.state) == (1, "interrupted")
    case["error"] = "[CUDA_ERROR_ILLEGAL_ADDRESS] in expression cuStreamSynchronize"
    run = written(tmp_path, json.dumps(document, indent=1))
    assert (diagnose(run).verdict.exit_code, run.state) == (3, "interrupted")


def test_a_gpu_without_a_figure_stays(tmp_path: Path) -> None:
    run = written(tmp_path, TEXT.replace("     13.21", "       N/A"))
    assert np.isnan(rates(run, "host_to_device_memcpy_ce")).tolist() == [False, False, False, True]
    assert run.row("host_to_device_memcpy_ce").facts.state == "interrupted"


def test_hosts_of_one_machine(tmp_path: Path) -> None:
    text = TEXT.replace("gpu-node-a\n", "")
    with pytest.raises(UsageError, match="--hosts names 2 hosts for the GPUs of one"):
        written(tmp_path, text, ["a", "b"])
    assert written(tmp_path, text, ["a"]).hosts == ["a"]


def test_an_error_of_the_whole_program_in_json(tmp_path: Path) -> None:
    """The program writes the error of a check beside the list of tests."""
    wrong = "Invalid value when checking the pattern at <0x7f>: Current offset [ 4/8]"
    document = json.JSONDecoder().raw_decode(JSON, JSON.index("{"))[0]
    document["nvbandwidth"]["error"] = wrong
    run = written(tmp_path, json.dumps(document))
    assert (run.state, [bool(row.facts.result.corrupt) for row in run.rows].count(True)) == ("interrupted", 1)
    document["nvbandwidth"]["error"] = "[CUDA_ERROR_LAUNCH_FAILED] in expression x"
    run = written(tmp_path, json.dumps(document))
    assert (run.state, any(row.facts.result.corrupt for row in run.rows)) == ("interrupted", False)
    for tests in ({}, {"testcases": []}):
        failed = {"nvbandwidth": {"version": "v0.8", "error": "NVML_ERROR: [Driver mismatch]", **tests}}
        with pytest.raises(UsageError, match="nvbandwidth has failed: NVML_ERROR"):
            written(tmp_path, json.dumps(failed))
