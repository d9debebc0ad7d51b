"""`fablint bench` with the real engine under each MPI."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from fablint.model.registry import KERNELS, PATTERNS, SYNCS, WINS
from fablint.model.registry.option_values import parse_sizes
from fablint.store import read_run
from fablint.workflows import benchmark
from fablint_command import COMMAND, Fablint
from pinned import pinned_by

PINNED = pinned_by("cli.toml", __file__)

FEW = "-i 4 -x 1"
HOST = socket.gethostname()

# Line -> rows, and a line of the table.
TABLES = {
    f"osu_latency --sizes 0,8 {FEW} -c": (["osu_latency"], r"0 .*Pass"),
    f"osu_latency --sizes 8,64K --transport tcp {FEW} -c": (
        ["osu_latency"],
        r"# fablint: messages over the transport tcp",
    ),
    f"osu_bw --sizes 256K --transport tcp --streams 3 {FEW} -c": (["osu_bw"], r"262144 .*Pass"),
    "osu_latency --sizes 8 --transport mpi,tcp -i 2 -c": (
        ["osu_latency-mpi-1", "osu_latency-tcp-1", "osu_latency-tcp-2", "osu_latency-mpi-2"],
        r"# Size +mpi \(us\) +tcp \(us\) +tcp / mpi",
    ),
    f"bibw --sizes 64K {FEW} -c -z 50,99": (["osu_bibw"], r"65536 .*Pass .*"),
    f"osu_put_bw --sizes 1K {FEW} -c -w create -s lock": (
        ["osu_put_bw"],
        r"# Synchronization: MPI_Win_lock/unlock",
    ),
    f"osu_latency_mt --sizes 8 {FEW} -t 2": (["osu_latency_mt"], r"# Number of Receiver threads: 2 ?"),
    f"osu_alltoall -n 3 -m 8:16 {FEW} -f -c": (["osu_alltoall"], r"16 .* 4 .*"),
    f"mbw_mr -n 4 -V --sizes 8 {FEW}": ([f"osu_mbw_mr-window-{1 << step}" for step in range(8)], r"8 .*"),
    f"osu_mbw_mr -p 2 --sizes 8 {FEW}": (["osu_mbw_mr"], r"# \[ pairs: 2 \] \[ window size: 64 \]"),
    "linktest -n 3 --size-messages 1K --num-messages 4 --num-slowest 2 --all-to-all": (
        ["linktest", "linktest_alltoall", "linktest-retest"],
        r"RESULT: Avg Time Stest: .*",
    ),
    "net_sanitizer -n 3 --nservers 1 --bsize 1K --niters 24": (
        ["netsan_put", "netsan_get"],
        r"#nservers=1 nclients=2 niters=24 nflight=12 .*",
    ),
    "net_sanitizer -n 3 --bsize 1K --niters 24 --verbose": (["netsan_alltoall"], r".*Und +1024 .*"),
    f"bisec_bw -n 4 --sizes 1K {FEW}": (["bisec_bw"], r"4 Ranks, Msg Size: +1024 bytes, .*"),
    f"latency_test -n 3 --sizes 0,8 {FEW}": (["latency_test"], rf"{HOST}\S*,{HOST}\S*"),
    "osu_init": (["osu_init"], r"nprocs: 2, min: \d+ ms, max: \d+ ms, avg: \d+ ms"),
    "osu_hello -n 3": (["osu_hello"], "This is a test with 3 processes"),
    "congestion -n 4 --budget 0.1": (
        ["congestion_latency", "congestion_bandwidth"],
        r"\| +Congestion Impact Factor +\|",
    ),
}


@pytest.fixture
def fablint(fablint_in_process: Fablint) -> Fablint:
    return fablint_in_process


@pytest.fixture
def chosen(mpicxx) -> list[str]:
    return ["--mpicxx", str(mpicxx)] if mpicxx else []


@pytest.fixture
def bench(fablint, chosen):
    def call(line: str):
        return fablint("-q", "bench", *line.split(), *chosen)

    return call


def rows_of(path: Path) -> dict[str, dict]:
    """Attributes of the rows of a run."""
    names = json.loads((path / "zarr.json").read_text())["attributes"]["rows"]
    return {name: json.loads((path / name / "zarr.json").read_text())["attributes"] for name in names}


@pytest.mark.parametrize("line", TABLES)
def test_a_benchmark_prints_its_table(bench, tmp_path, line):
    rows, pattern = TABLES[line]
    done = bench(f"{line} -o x.run")
    assert (done.returncode, done.stderr) == (0, "")
    assert any(re.fullmatch(pattern, shown.rstrip()) for shown in done.stdout.splitlines()), done.stdout
    found = rows_of(tmp_path / "x.run")
    assert sorted(found) == sorted(rows)
    assert {row["state"] for row in found.values()} == {"complete"}


@pytest.mark.parametrize("words", ["--sizes 1K", "--sizes 1K --num-slowest 0", "--sizes 1K,2K"])
def test_the_log_of_linktest_is_printed_once(bench, words):
    """Of two ranks, whose row is written by size; the slowest pairs are measured again after the row."""
    done = bench(f"linktest --num-messages 4 {words}")
    lengths = re.findall(r"^linktest: Message length: +(\d+) Bytes$", done.stdout, re.MULTILINE)
    assert (done.returncode, lengths) == (0, ["1024", "2048"][: len(words.split(","))])


def test_a_transport_that_does_not_start_does_not_end_the_others(bench, tmp_path):
    alone = bench("latency --sizes 8 --samples 5 --transport ofi --ofi-provider nonesuch")
    assert (alone.returncode, alone.stdout) == (2, "")
    reason = alone.stderr.strip()
    assert len(reason.splitlines()) == 1
    assert "libfabric" in reason
    done = bench("latency --sizes 8 --samples 5 --transport ofi,tcp --ofi-provider nonesuch -o x.run")
    assert done.returncode == 3
    assert done.stderr.strip().startswith(reason)
    assert PINNED["fablint latency over 1 transport"].begins(done.stdout)
    measured = [json.loads(path.read_text())["attributes"] for path in (tmp_path / "x.run").glob("latency-*/zarr.json")]
    assert {(row["transport"], row["state"]) for row in measured} == {("tcp", "complete")}


def test_a_row_that_cannot_start_is_not_to_be_resumed(fablint, chosen):
    row = ("-r", "latency --sizes 8 --samples 5", "--transport", "ofi,tcp", "--ofi-provider", "nonesuch")
    done = fablint("-q", "measure", "-n", "2", *row, "-o", "x.run", *chosen)
    assert (done.returncode, done.stdout) == (3, "x.run: interrupted\n")
    (line,) = done.stderr.splitlines()
    assert "libfabric" in line and "fablint resume" not in line


def test_a_kernel_prints_its_table_and_keeps_nothing(bench, tmp_path):
    line = "latency --sizes 8,1K --samples 50 --percentiles 50,99.9"
    done = bench(line)
    figures = [shown.split() for shown in done.stdout.splitlines() if shown[:1].isdigit()]
    assert (done.returncode, done.stderr) == (0, "")
    assert [cells[0] for cells in figures] == ["8", "1024"]
    assert {len(cells) for cells in figures} == {4}
    facts = json.loads(bench(f"{line} --json").stdout)
    assert [size["size"] for size in facts["sizes"]] == [8, 1024]
    assert all({"figure", "P50", "P99.9"} <= size.keys() for size in facts["sizes"])
    assert list(tmp_path.iterdir()) == []


def test_sizes_are_printed_when_they_are_measured_and_ctrl_c_keeps_them(chosen, tmp_path):
    """The second size takes longer than the test may; without -o no run is left, and no advice to resume it."""
    words = ["bench", "osu_latency", "--sizes", "8,64M", "-i", "20,100000", *chosen]
    process = subprocess.Popen(
        [*COMMAND, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    lines = iter(process.stdout.readline, "")
    first = next(line for line in lines if line[:1].isdigit())
    assert re.fullmatch(r"8 +\d+\.\d\d\n", first)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    kept = [line for line in out.splitlines() if "waited for a CPU" not in line]  # on a busy machine
    assert (process.returncode, kept) == (130, ["# fablint: not measured: 64 MiB"])
    assert err.splitlines()[-1:] == ["fablint: interrupted"]
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_before_a_transport_is_measured_prints_no_table(chosen, tmp_path):
    words = ["bench", "latency", "--transport", "mpi,tcp", "--sizes", "64M", "-i", "100000", "-o", "x.run", *chosen]
    process = subprocess.Popen(
        [*COMMAND, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not (tmp_path / "x.run/latency-mpi-1/zarr.json").exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == PINNED["interrupted; measured rounds"]


def test_counts_are_kept_exactly(bench, tmp_path):
    assert bench("osu_latency --sizes 8K,16K -i 40,20 -x 3 -o x.run").returncode == 0
    row = rows_of(tmp_path / "x.run")["osu_latency"]
    assert (row["stop"]["iterations"], row["warmups"], row["directions"]) == ([40, 20], [3, 3], "single")


def test_ranks_go_to_the_hosts_of_the_list(bench, tmp_path):
    done = bench(f"osu_bw --hosts {HOST} --ppn 2 --sizes 8 {FEW} -o x.run")
    assert (done.returncode, done.stderr) == (0, "")
    assert list(read_run(tmp_path / "x.run").rank_host) == [HOST, HOST]
    served = bench(f"net_sanitizer --servers {HOST} --clients {HOST} --clients-nranks 2 --bsize 8")
    assert served.returncode == 0
    assert "#nservers=1 nclients=2 " in served.stdout


@pytest.mark.skipif(HOST.startswith("localhost"), reason="this host calls itself localhost")
def test_a_host_that_calls_itself_otherwise_is_reported(bench):
    done = bench(f"osu_bw --hosts localhost --ppn 2 --sizes 8 {FEW}")
    assert (done.returncode, done.stdout) == (3, "")
    assert re.match(rf"fablint: rank 0 ran on {HOST}\S* and not on localhost: ", done.stderr)


def test_a_row_of_a_plan_may_be_a_benchmark(fablint, tmp_path, chosen):
    row = "osu_bw --pattern all-pairs --sizes 8 --iterations 4 --warmup 1"
    done = fablint("-q", "measure", "-n", "3", "-r", row, "-o", "x.run", *chosen)
    assert (done.returncode, done.stdout) == (0, "x.run: complete\n")
    (attributes,) = rows_of(tmp_path / "x.run").values()
    assert (attributes["kernel"], attributes["pattern"], attributes["windows"]) == ("bandwidth", "all-pairs", [64])


def test_a_benchmark_that_was_kept_can_be_looked_at_and_needs_no_resume(bench, fablint, chosen):
    assert bench(f"osu_bw --sizes 8 {FEW} -o x.run").returncode == 0
    assert fablint("resume", "x.run", *chosen).stdout == "x.run: nothing is missing\n"
    assert json.loads(fablint("show", "x.run", "--json").stdout)["rows"]["osu_bw"]["options"].split()[:3] == [
        "bandwidth",
        "--name",
        "osu_bw",
    ]


def test_planning_and_the_engine_know_the_same_words(fablint, chosen):
    engine = fablint("engine", "path", *chosen).stdout.strip()
    listed = json.loads(subprocess.run([engine, "--list"], capture_output=True, text=True, check=True).stdout)
    planned = [
        {
            "name": name,
            "description": kernel.description,
            "quantity": kernel.quantity,
            "payload": kernel.payload,
            "windowed": kernel.is_windowed,
            "bidirectional": kernel.bidirectional,
            "empty": kernel.accepts_size(0),
            "sizes": kernel.default_sizes,
            "pattern": kernel.default_pattern,
        }
        for name, kernel in KERNELS.items()
    ]
    for kernel in listed["kernels"]:
        del kernel["requires"]  # capabilities of the transport: the front end refuses by the table
        kernel["sizes"] = parse_sizes(kernel["sizes"])
    assert planned == listed["kernels"]
    assert [*PATTERNS] == [pattern["name"] for pattern in listed["patterns"]]
    assert {*SYNCS} == {sync["name"] for sync in listed["syncs"]}
    assert {*WINS} == {win["name"] for win in listed["wins"]}
    expected = [(one.name, one.family, one.row, one.what) for one in benchmark.benchmark_registry().values()]
    assert expected == [tuple(entry.values()) for entry in listed["benchmarks"]]
