"""The options of `fablint bench`: what they ask the engine for, and what is refused. No engine is started."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from fablint.cli import bench_request, cli
from fablint.cli.bench_options import SETTINGS
from fablint.cli.session import Session
from fablint.errors import UsageError
from fablint.model import Plan, RowSpec, Slots
from fablint.model.registry import OPTIONS
from fablint.workflows import benchmark
from pinned import pinned_by

PINNED = pinned_by("cli.toml", __file__)


class RecordedTable:
    text = "# a table\n"

    def as_dict(self) -> dict[str, Any]:
        return {"table": "recorded"}


@dataclass
class BenchCall:
    """What the verb handed to the workflow."""

    plan: Plan
    name: str
    columns: benchmark.TableColumns
    options: list[str]
    rows: list[RowSpec] = field(init=False)

    def __post_init__(self) -> None:
        self.rows = [row.spec for row in self.plan.rows]

    @property
    def row(self) -> RowSpec:
        (row,) = self.rows
        return row


@pytest.fixture
def bench(monkeypatch):
    """Call `fablint bench` up to the point where it would measure."""
    calls: list[BenchCall] = []

    def record(context, plan, name, columns, output, options, show):
        calls.append(BenchCall(plan, name, columns, options))
        return benchmark.BenchmarkResult(RecordedTable(), 0)

    monkeypatch.setattr(benchmark, "bench", record)
    monkeypatch.setenv("SLURM_JOB_CPUS_PER_NODE", "64(x64)")  # else -n 2048 is confirmed first

    def call(line: str) -> BenchCall:
        cli.main(["-q", "bench", *line.split()], prog_name="fablint", standalone_mode=False, obj=Session())
        return calls.pop()

    return call


@pytest.fixture
def refused(bench):
    def call(line: str) -> str:
        with pytest.raises(UsageError) as caught:
            bench(line)
        assert "\n" not in str(caught.value)
        assert caught.value.hint
        return str(caught.value)

    return call


# Option of a row -> letters that set it, on a benchmark for which it means something, and the value that it gets.
LETTERS = {
    "osu_bw --peer-memory host-huge": ("peer_memory", "host-huge"),
    "osu_bw -T MPI_CHAR -m 4K": ("sizes", tuple(1 << step for step in range(13))),
    "osu_bw -m 2:8": ("sizes", (2, 4, 8)),
    "osu_bw --message-size 2M:": ("sizes", (1 << 21, 1 << 22)),
    "osu_bw --sizes 8,64": ("sizes", (8, 64)),
    "osu_bw -i 7": ("iterations", (7, 7)),
    "osu_bw --iterations 70,7": ("iterations", (70, 7)),
    "osu_bw --warmup 3": ("warmup", (3, 3)),
    "osu_bw -x 0": ("warmup", (0, 0)),
    "osu_bw -W 16": ("window", 16),
    "osu_bw --window-size 16": ("window", 16),
    "osu_bw -c": ("validate", True),
    "osu_bw -b single": ("buffers", "single"),
    "osu_bw -b multiple": ("buffers", "distinct"),
    "osu_bw --buffer-num distinct": ("buffers", "distinct"),
    "osu_bw --budget 2m": ("budget", 120.0),
    "osu_bw --samples 9": ("samples", 9),
    "osu_put_latency -w create": ("win", "create"),
    "osu_put_latency --win dynamic": ("win", "dynamic"),
    "osu_put_latency -s lock_all": ("sync", "lock_all"),
    "osu_allreduce --in-place": ("in_place", True),
    "osu_latency_mt -t 3:4": ("workers", (3, 4)),
    "osu_latency_mp -t 4": ("workers", (1, 4)),
    "linktest --mode mpi": ("transport", "mpi"),
    "linktest --mode tcp": ("transport", "tcp"),
    "linktest --mode ucp": ("transport", "ucx"),
    "linktest --mode psm2": ("ofi_provider", "psm2"),
    "linktest --mode cuda": ("transport", "cuda-p2p"),
    "linktest --num-warmup-messages 4": ("warmup", (4, 4)),
    "linktest --num-warmup-messages 0": ("warmup", (0, 0)),
    "linktest --num-messages 1000": ("iterations", (1000, 1000)),
    "linktest --unidirectional --num-messages 1000": ("iterations", (200, 200)),
    "linktest --size-messages 16777216": ("sizes", (1 << 24,)),
    "linktest --bidirectional": ("kernel", "exchange"),
    "linktest --bidirection": ("kernel", "exchange"),
    "linktest --unidirectional": ("kernel", "bandwidth"),
    "linktest --bisection": ("pattern", "bisection"),
    "linktest --serial-tests": ("order", "serial"),
    "linktest --num-slowest 3": ("retest", 3),
    "linktest --min-iterations 4": ("repeats", 4),
    "linktest --unidirectional --num-multi-buf 2": ("window", 2),
    "netsan_put --nservers 1": ("servers", 1),
    "netsan_alltoall --niters 1024": ("iterations", (86, 86)),
    "netsan_alltoall --niters 100 --nflight 25": ("iterations", (4, 4)),
    "netsan_get --nflight 3": ("window", 3),
    "netsan_get -W 4": ("iterations", (33, 33)),
    "netsan_get --bsize 4194304": ("sizes", (1 << 22,)),
    "netsan_alltoall --sequential": ("order", "serial"),
    "osu_ibcast --tests 5": ("tests", 5),
    "gpu_loopback -n 1 --memory cuda --copy to-host": ("copy", "to-host"),
    "congestion_latency -n 8 --victims 2": ("victims", 2),
    "osu_bw --transport verbs --gid-index 3 --service-level 2 --mtu 1024": ("transport", "verbs"),
    "osu_bw --transport tcp --device 10.1.0.0/16": ("device", "10.1.0.0/16"),
    "osu_bw --transport tcp --streams 4": ("streams", 4),
    "osu_bw --transport ofi --ofi-provider shm": ("ofi_provider", "shm"),
    "osu_bw --memory host-numa:1": ("memory", "host-numa:1"),
    "congestion_latency -n 8 --aggressor all-to-all": ("aggressor", "all-to-all"),
}


@pytest.mark.parametrize(
    ("line", "buffers"),
    [
        ("osu_bw", "single"),
        ("osu_bw -c", "distinct"),
        ("osu_put_bw", "distinct"),
        ("bandwidth", "distinct"),
        ("linktest --unidirectional", "single"),
        ("linktest --unidirectional --num-multi-buf 2", "distinct"),
        ("linktest --unidirectional --num-multi-buf 2 -b single", "single"),
        ("netsan_alltoall", "distinct"),
    ],
)
def test_the_messages_of_a_window_have_the_buffers_of_the_original(bench, line, buffers):
    assert bench(line).row.buffers == buffers


@pytest.mark.parametrize("line", LETTERS)
def test_an_option_reaches_the_row(bench, line):
    option, value = LETTERS[line]
    assert getattr(bench(line).rows[0], option) == value


def test_every_option_that_sets_the_row_is_tried():
    tried = {word for line in LETTERS for word in line.split() if word.startswith("-")}
    untried = [one.spelling for one in SETTINGS.values() if one.row and not tried & {*one.spellings.split()}]
    assert untried == []
    assert {one.row for one in SETTINGS.values() if one.row} <= {*OPTIONS}


def test_a_name_with_or_without_osu(bench):
    for name in ("osu_bibw", "bibw"):
        asked = bench(f"{name} -i 5")
        assert (asked.name, asked.row.name, asked.row.kernel) == ("osu_bibw", "osu_bibw", "bibandwidth")
    asked = bench("put_latency")
    assert (asked.name, asked.row.iterations) == ("put_latency", None)


def test_options_may_come_before_the_name(bench):
    assert bench("-n 8 --window 4 osu_mbw_mr").row.window == 4


@pytest.mark.parametrize(
    ("line", "percentiles", "histogram"),
    [
        ("latency", (50.0, 99.0), True),
        ("latency -z 99.9", (99.9,), True),
        ("osu_latency", (), False),
        ("osu_latency -z", (50.0, 90.0, 99.0), True),
        ("osu_latency -z -c", (50.0, 90.0, 99.0), True),
        ("osu_latency --tail-lat 50,95", (50.0, 95.0), True),
        ("linktest", (), False),
    ],
)
def test_percentiles_are_shown_where_asked_for(bench, line, percentiles, histogram):
    asked = bench(line)
    assert asked.columns.percentiles == percentiles
    assert asked.row.histogram == histogram


@pytest.mark.parametrize(
    ("line", "full"),
    [("osu_alltoall", False), ("osu_alltoall -f", True), ("bisec_bw --verbose", True), ("netsan_put --verbose", True)],
)
def test_more_columns_and_lines(bench, line, full):
    assert bench(line).columns.full == full


def test_windows_of_one_table(bench):
    asked = bench("mbw_mr -n 4 -V -m 8:8")
    assert [row.window for row in asked.rows] == [1, 2, 4, 8, 16, 32, 64, 128]
    assert asked.name == "osu_mbw_mr"


def test_fixed_counts_are_replaced(bench):
    row = bench("osu_latency --adaptive").row
    assert (row.iterations, row.samples, row.directions) == (None, None, "single")


def test_pairs_are_twice_as_many_ranks(bench):
    assert bench("osu_mbw_mr -p 3").plan.ranks == 6
    assert bench("osu_mbw_mr -p 3 -n 6").plan.ranks == 6
    assert bench("bandwidth -p 3").row.pattern == "pairs"
    assert bench("osu_mbw_mr").plan.ranks == 2


def test_composed_benchmarks(bench):
    assert [row.name for row in bench("net_sanitizer -n 3 --nservers 1").rows] == ["netsan_put", "netsan_get"]
    assert [row.kernel for row in bench("net_sanitizer -n 3").rows] == ["bandwidth"]
    assert [row.name for row in bench("linktest -n 4 --all-to-all").rows] == ["linktest", "linktest_alltoall"]
    asked = bench("congestion -n 8 --victims 1")
    assert [row.name for row in asked.rows] == ["congestion_latency", "congestion_bandwidth"]


def test_randomize_takes_the_seed_from_the_clock(bench, monkeypatch):
    from fablint.system import System

    monkeypatch.setattr(System, "now", lambda _: datetime(2026, 1, 2, tzinfo=UTC))
    assert bench("linktest --randomize").row.seed == 1767312000
    assert bench("linktest").row.seed == 1


def test_hosts_in_their_order(bench):
    asked = bench("osu_get_bw --hosts nid[001,003]")
    assert asked.plan.slots == (Slots("nid001", 1), Slots("nid003", 1))
    asked = bench("osu_mbw_mr --hosts b,a --ppn 2")
    assert (asked.plan.ranks, asked.plan.slots) == (4, (Slots("b", 2), Slots("a", 2)))


def test_servers_come_first(bench):
    asked = bench("net_sanitizer --servers server[2-3] --clients client[1-4] --servers-nranks 2")
    assert asked.plan.slots == (
        Slots("server2", 2),
        Slots("server3", 2),
        *(Slots(f"client{number}", 1) for number in (1, 2, 3, 4)),
    )
    assert (asked.plan.ranks, {row.servers for row in asked.rows}) == (8, {4})
    asked = bench("net_sanitizer --clients client{1,5,7} --clients-nranks 2 --verbose --bsize 4194304")
    assert asked.plan.ranks == 6
    assert asked.row.pattern == "all-pairs"


def test_options_of_the_engine(bench):
    assert bench("osu_bw").options == []
    assert bench("osu_bw --counters --ranks-per-nic 4").options == ["--counters", "--ranks-per-nic", "4"]


def test_only_threads_ask_mpi_for_threads(bench):
    assert [row.spec.needs_threads for row in bench("osu_latency_mt").plan.rows] == [True]
    assert [row.spec.needs_threads for row in bench("osu_latency").plan.rows] == [False]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("osu_latncy", "there is no benchmark 'osu_latncy': did you mean osu_latency"),
        ("osu_latency -n 4", "osu_latency measures 2 ranks, not 4"),
        ("osu_latency -W 8", "--window does not apply to osu_latency: the kernel has one message in flight; osu_"),
        ("osu_latency -V", "--vary-window does not apply to osu_latency: it is for osu_mbw_mr"),
        (
            "osu_bw --win create",
            "--win does not apply to osu_bw: the kernel uses no RMA window; osu_bw has",
        ),
        ("osu_bw -s flush", "--sync does not apply to osu_bw: the kernel has no choice of RMA synchronisation"),
        ("osu_bw -t 2:2", "--workers does not apply to osu_bw: only latency_mt and latency_mp have workers"),
        ("osu_bw --all-columns", "--all-columns does not apply to osu_bw: osu_bw is not a collective"),
        ("osu_bw -p 2", "--pairs does not apply to osu_bw: osu_bw does not pair rank i with i + n/2"),
        ("osu_bw --verbose", "--verbose does not apply to osu_bw: it is for net_sanitizer and HPE"),
        ("osu_bw --bisection", "--bisection does not apply to osu_bw: it is for linktest"),
        ("osu_bw --niters 5", "--niters does not apply to osu_bw: it is for net_sanitizer"),
        ("osu_bw --victims 2", "--victims does not apply to osu_bw: it is for GPCNeT"),
        ("linktest_serial --bisection", "--bisection does not apply to linktest_serial: it is for linktest"),
        (
            "linktest --num-multi-buf 2",
            "--num-multi-buf does not apply to linktest: the kernel has one message in flight",
        ),
        ("linktest -z", "--percentiles does not apply to linktest: the table of linktest has none"),
        ("linktest_alltoall --randomize", "--randomize does not apply to linktest_alltoall: in linktest_alltoall all"),
        (
            "linktest_alltoall --serial-tests",
            "--serial-tests does not apply to linktest_alltoall: all groups",
        ),
        (
            "netsan_alltoall --nservers 1",
            "--nservers does not apply to netsan_alltoall: it is for net_sanitizer, netsan_put and",
        ),
        (
            "latency --adaptive",
            "--adaptive does not apply to latency: latency has no fixed counts and stops when the",
        ),
        ("linktest --bidirectional --unidirectional", "--bidirectional and --unidirectional contradict each other"),
        ("osu_bw -m 8 --sizes 8", "--message-size and --sizes are the same option: give one of them"),
        ("linktest --num-messages 5 -i 5", "--num-messages and --iterations are the same option: give one of them"),
        ("osu_mbw_mr -p 3 -n 4", "--pairs 3 means 6 ranks, -n 4: omit one of them"),
        ("osu_mbw_mr --hosts a,b -n 4", "the hosts means 2 ranks, -n 4: omit one of them"),
        ("osu_bw --ppn 2", "--ppn requires --hosts: give --hosts as well"),
        ("net_sanitizer --clients-nranks 2", "--clients-nranks requires --clients: give --clients as well"),
        ("net_sanitizer --servers a", "--servers requires --clients: give --clients as well"),
        ("netsan_put --clients a,b", "--clients requires --servers: give --servers as well"),
        ("net_sanitizer --hosts a,b --clients c", "--hosts and --clients are the same option: give one of them"),
        ("net_sanitizer --nservers 1 --servers a --clients b", "--nservers and --servers are the same option"),
        ("net_sanitizer --clients {1,5,7}", "'{1,5,7}': 1 is a number and no host: put the name before it"),
        ("netsan_put -n 2 --nservers 2", "--servers 2 leaves no client, this run has 2 ranks"),
        ("congestion -n 3", "1 victim pair needs at least 4 ranks, this run has 3"),
        ("osu_put_latency -n 2 -s fence -w nothing", "--win: 'nothing' is unknown: choose create, allocate or dynamic"),
        (
            "osu_put_bibw -s flush",
            "--sync flush does not apply to put_bibandwidth: both ends must take part",
        ),
        (
            "osu_bw -b single -c",
            "--validate excludes --buffers single: the messages of a window",
        ),
        ("osu_mbw_mr -V -W 8", "--vary-window goes through the windows by itself: leave --window out"),
        ("netsan_put --niters 128 -W x", "--window: 'x' is not a count: give a whole number of at least 1"),
        ("netsan_put --niters 128 -W 0", "--window: '0' is not a count"),
        ("netsan_put --niters 128 --sizes x", "--sizes: 'x' is not a size"),
        ("osu_mbw_mr --sizes=-8", "--sizes: '-8' is not a size"),
        ("osu_bw -i 5 --adaptive", "--adaptive excludes --iterations: give one rule"),
        ("osu_bw --transport mpi,tcp,mpi", "--transport mpi,tcp,mpi has an entry twice: give each once"),
        ("osu_bw --transport mpi,tpc", "--transport: 'tpc' is unknown: choose mpi, tcp"),
        (
            "osu_bw --memory host-numa",
            "--memory: 'host-numa' is not complete or has a parameter too many: write host-numa:N",
        ),
        ("osu_bw --transport mpi,tcp --ofi-provider tcp", "--ofi-provider does not apply to transport mpi"),
        ("osu_bw --transport mpi,tcp -z", "--percentiles does not apply to several transports: measure one"),
        ("osu_put_bw --transport mpi,tcp", "put_bandwidth requires a transport with rma, which tcp does not offer"),
        (
            "gpu_loopback --memory cuda --transport mpi,tcp",
            "gpu_loopback sends no message: --transport mpi,tcp compares nothing: leave --transport out",
        ),
        ("linktest --mode tcp --transport tcp", "--mode and --transport are the same option: give one of them"),
        ("linktest --mode psm2 --ofi-provider tcp", "--mode psm2 means --ofi-provider psm2: omit --ofi-provider"),
    ],
)
def test_refused_by_name(refused, line, error):
    assert refused(line).startswith(error)


def test_one_transport_of_a_benchmark_without_messages_is_accepted(bench):
    assert bench("gpu_loopback --memory cuda --transport tcp").row.transport == "tcp"
    assert [row.memory for row in bench("gpu_loopback --memory cuda,hip -i 1").rows] == ["cuda", "hip"]


def test_a_mode_of_linktest_without_a_transport_is_refused(refused, monkeypatch):
    known = {name: info for name, info in bench_request.TRANSPORTS.items() if name in ("mpi", "tcp", "ucx", "ofi")}
    monkeypatch.setattr(bench_request, "TRANSPORTS", known)
    error = "--mode ibverbs: there is no transport verbs: choose mpi, tcp, ucp or psm2"
    assert refused("linktest --mode ibverbs") == error


def test_what_a_benchmark_has_is_named_when_something_else_is_asked_for(refused):
    assert PINNED["osu_bw has --window, --buffers"].ends(refused("osu_bw --win create"))


@pytest.mark.parametrize(
    ("words", "status", "line"),
    [
        (["osu_bw", "--windo", "8"], 2, "No such option"),
        (["osu_bw", "-n", "0"], 2, "Invalid value for '-n' / '--ranks': 0 is not in the range x>=1"),
        (["osu_bw", "-n", "two"], 2, "Invalid value for '-n' / '--ranks': 'two' is not a valid integer range"),
        (["osu_bw", "-b", "few"], 2, "'few' is not one of 'single', 'multiple', 'distinct'"),
        ([], 2, "no benchmark is named: fablint bench --list names them all"),
        (["osu_latncy", "--help"], 2, "there is no benchmark 'osu_latncy': did you mean osu_latency"),
    ],
)
def test_one_line_on_stderr(fablint, words, status, line):
    done = fablint("bench", *words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (status, "", 1)
    assert line in done.stderr


def test_a_name_that_does_not_exist_is_reported_before_its_options(refused):
    assert refused("sendrecv_perf -b 8 -e 128M").startswith("there is no benchmark 'sendrecv_perf'")
