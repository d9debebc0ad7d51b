"""Command lines of other programs: the row that each becomes, and what is refused. No engine is started."""

from __future__ import annotations

import re

import pytest
from test_bench_options import bench, refused  # noqa: F401  (fixtures)

from fablint.cli.bench_options import SETTINGS
from fablint.cli.peers import PEERS, peer_of
from fablint.cli.peers.peer_options import PeerOption
from fablint.errors import UsageError
from fablint.workflows.benchmark import benchmark_registry

# Line -> kernel, and fields of its row.
LINES = {
    "osu_bw -m 4194304 -x 10 -i 1000 D D": (
        "bandwidth",
        {"memory": "host", "warmup": (10, 10), "iterations": (1000, 1000)},
    ),
    "osu_latency -m 8 -x 10 -i 1000 H H": ("latency", {"memory": "host", "sizes": (1, 2, 4, 8)}),
    "osu_bw -x 100 -i 1000 -d cuda D D": ("bandwidth", {"memory": "cuda"}),
    "osu_bw -d ROCM d d": ("bandwidth", {"memory": "hip"}),
    "osu_bw -dcuda D D": ("bandwidth", {"memory": "cuda"}),
    "osu_bw --accelerator=cuda D D": ("bandwidth", {"memory": "cuda"}),
    "osu_bw -d cuda D H": ("bandwidth", {"memory": "cuda", "peer_memory": "host"}),
    "osu_multi_lat -d rocm H D": ("latency", {"memory": "host", "peer_memory": "hip", "pattern": "pairs"}),
    "osu_bw -d cuda H H": ("bandwidth", {"memory": "host"}),
    "osu_bw -d cuda": ("bandwidth", {"memory": "host"}),
    "osu_allreduce -m 8 -x 1000 -i 20000 -d cuda": ("allreduce", {"memory": "cuda"}),
    "osu_bw -x 3": ("bandwidth", {"warmup": (3, 3)}),
    "osu_put_latency -w create": ("put_latency", {"win": "create"}),
    "put_latency --win-options=dynamic": ("put_latency", {"win": "dynamic"}),
    "bisec_bw -n 4 -i 3 -x 1": ("exchange", {"warmup": (1, 1)}),
    "osu_ialltoall -t 100 -f": ("ialltoall", {"tests": 100, "compute": "none"}),
    "osu_latency_mt -t 3": ("latency_mt", {"workers": (1, 3)}),
    "osu_allreduce -l": ("allreduce", {"in_place": True}),
    "osu_mbw_mr -R 1 -n 4": ("bandwidth", {"pattern": "pairs"}),
    "broadcast_perf -b 8 -e 64 -f 2 -g 4": ("bcast", {"sizes": (8, 16, 32, 64), "transport": "nccl"}),
    "broadcast_perf -b8 -e16 -i4": ("bcast", {"sizes": (8, 12, 16)}),
    "broadcast_perf -b 1 -e 16 -f 2 -c 0": ("bcast", {"sizes": (4, 8, 16), "validate": False}),
    "broadcast_perf -f 2": ("bcast", {"sizes": (32 << 20,)}),
    "broadcast_perf -b 31M": ("bcast", {"sizes": (31 << 20, 32 << 20)}),
    "broadcast_perf -n 100 -w 7": ("bcast", {"iterations": (100, 100), "warmup": (7, 7), "batch": 100}),
    "broadcast_perf --iters 3 --minbytes=1K --maxbytes=1K": ("bcast", {"sizes": (1024,), "batch": 3}),
    "broadcast_perf -c 1 -z 0 -d float -o sum -r 0 -m 1 -t 1 -p 0": ("bcast", {"validate": True, "batch": None}),
    "broadcast_perf --ranks 8 --validate": ("bcast", {"validate": True}),
    "IMB-MPI1 PingPong -msglog 3:5 -iter 10": ("latency", {"sizes": (8, 16, 32), "iterations": (10, 10)}),
    "IMB-MPI1 pingping -msgsize 0,8 -time 2": ("exchange", {"sizes": (0, 8), "budget": 2.0}),
    "IMB-MPI1 Alltoallv -n 3": ("alltoallv", {"pattern": "world"}),
    "IMB-MPI1 Reduce_scatter": ("reduce_scatterv", {"pattern": "world"}),
    "Bcast": ("bcast", {"iterations": None}),
    "bcast D D": ("bcast", {"memory": "host"}),
    "IMB-P2P PingPong": ("latency", {"pattern": "pair"}),
    "Uniband -n 4": ("bandwidth", {"pattern": "pairs", "window": 256}),
    "Biband -window_size 8": ("bibandwidth", {"window": 8}),
    "IMB-RMA Unidir_put -iter 5": ("put_bandwidth", {"iterations": (5, 5)}),
    "mpiGraph 4096 10 5 -n 4": (
        "bibandwidth",
        {"pattern": "all-pairs", "sizes": (4096,), "iterations": (10, 10), "window": 5},
    ),
    "mpigraph -n 4": ("bibandwidth", {"sizes": (16384,), "iterations": (100, 100), "window": 50}),
    "ib_write_bw -d mlx5_0 -i 2 -x 3": (
        "put_bandwidth",
        {"transport": "verbs", "device": "mlx5_0:2", "gid_index": 3, "sizes": (65536,), "iterations": (40, 40)},
    ),
    "ib_send_bw -b -s 1M -n 100 -t 10": ("bibandwidth", {"sizes": (1 << 20,), "window": 10, "iterations": (10, 10)}),
    "ib_read_lat -a -D 5": ("get_latency", {"iterations": None, "budget": 5.0}),
    "ib_send_lat -m 1024 -S 2 -q 4": ("latency", {"mtu": "1024", "service_level": "2", "streams": 4, "sizes": (2,)}),
    "ib_atomic_lat": ("fop", {"sizes": (8,)}),
}
REFUSED = {
    "osu_bw MD MD": "osu_bw: 'MD MD' are not places of buffers of two ranks: give D D (device) or H H",
    "osu_bw D": "osu_bw: 'D' are not places of buffers of two ranks",
    "osu_bw -d managed D D": "-d managed of OSU is not available: choose cuda or rocm",
    "osu_mbw_mr -R 0": "-R of OSU: '0' is not available: the message rate is a column",
    "osu_bw -d": "-d of OSU requires a value: give it after the option",
    "osu_bw -l": "--in-place does not apply to osu_bw",
    "broadcast_perf -d half": "-d of nccl-tests: 'half' is not available: messages are floats: give float, or omit it",
    "broadcast_perf -z 1": "-z of nccl-tests: '1' is not available",
    "broadcast_perf -e 8192M": "-e of nccl-tests: '8192M' is too large: a message has at most 2 GiB - 1",
    "broadcast_perf -b x": "-b of nccl-tests: 'x' is not a size",
    "broadcast_perf -b 8 -e 4": "broadcast_perf: -b 8 is larger than -e 4",
    "broadcast_perf -b 1 -e 2 -f 2": "broadcast_perf: no size of at least 4 bytes",
    "broadcast_perf -b 8 -e 8M -i 8": "broadcast_perf: more than 1000 sizes from -b to -e: give -f 2",
    "broadcast_perf -b 8 -f 1": "-f 1 of nccl-tests is not a factor",
    "broadcast_perf -b 8 -i 0": "-i 0 of nccl-tests is not a step",
    "broadcast_perf -J x.json": "-J of nccl-tests is not available: --output RUN keeps the figures",
    "broadcast_perf 8": "broadcast_perf takes no word '8'",
    "IMB-MPI1": "IMB-MPI1: one benchmark at a time: name it",
    "IMB-MPI1 Sendrecv": "fablint measures nothing like Sendrecv of IMB: it has",
    "PingPong PingPing": "PingPong takes no word 'PingPing'",
    "PingPong -npmin 2": "-npmin of IMB is not available: all ranks take part",
    "PingPong -msglog 9:3": "-msglog of IMB: '9:3' is not a range of logarithms",
    "PingPong -iter 1,2": "-iter of IMB: '1,2' has limits of volume",
    "mpiGraph 4096": "mpiGraph: 1 words: give SIZE TIMES WINDOW",
    "ib_write_bw server": "ib_write_bw: 'server' is not an option: name both hosts: --hosts HOST,HOST",
    "ib_read_bw -b": "-b of ib_read_bw is not available",
    "ib_send_lat -t 2": "-t of ib_send_lat is not available",
    "ib_write_bw -i 1": "-i of ib_write_bw requires -d",
    "ib_write_bw -F": "-F of perftest is not available: fablint preflight reports",
    "linktest D": "linktest takes no word 'D'",
}
# Line -> what it says on stderr of the difference.
NOTES = {
    "osu_bw D D": "D D without -d: buffers are in host memory",
    "osu_bw -d cuda": "-d without D D: buffers are in host memory, as in OSU",
    "osu_bw D H": "D H without -d: buffers are in host memory",
    "osu_bw -d cuda D D": "",
    "IMB-MPI1 PingPong": "PingPong of IMB is measured as: fablint bench latency; counts",
    "ib_write_lat": "ib_write_lat is measured as: fablint bench put_latency --transport verbs --sizes 2",
    "mpiGraph -n 3": "mpiGraph's ranks send to one rank",
}


@pytest.mark.parametrize("line", LINES)
def test_a_line_becomes_a_row(bench, line):  # noqa: F811
    kernel, fields = LINES[line]
    row = bench(line).rows[0]
    assert (row.kernel, {name: getattr(row, name) for name in fields}) == (kernel, fields)


@pytest.mark.parametrize("line", REFUSED)
def test_what_fablint_does_not_have_is_refused_by_name(refused, line):  # noqa: F811
    assert refused(line).startswith(REFUSED[line])


@pytest.mark.parametrize("line", NOTES)
def test_a_difference_is_named(bench, line, capsys, monkeypatch):  # noqa: F811
    from fablint.cli import cli
    from fablint.cli.session import Session

    cli.main(["bench", *line.split()], standalone_mode=False, obj=Session())
    said = capsys.readouterr().err
    assert NOTES[line] in said and (said == "") == (NOTES[line] == "")


def test_a_letter_is_of_the_program_that_has_it(bench):  # noqa: F811
    """-w: of OSU's one-sided programs the window, else the hosts as in all verbs."""
    assert [slot.host for slot in bench("osu_bw -w n[1-2]").plan.slots] == ["n1", "n2"]
    assert bench("osu_put_bw -w create").plan.slots == ()


def test_ranks_of_nccl_tests_are_gpus(bench):  # noqa: F811
    assert bench("broadcast_perf -g 8 -n 20").plan.ranks == 8


EVERY = [pytest.param(peer, option, id=f"{peer.name}{option.spellings}") for peer in PEERS for option in peer.options]


@pytest.mark.parametrize(("peer", "option"), EVERY)
def test_an_option_becomes_options_of_bench_or_a_refusal(peer, option):
    assert option.meaning
    if option.words is None:
        tried = {word for line in [*LINES, *REFUSED] if _is_line_of(peer, line) for word in line.split()}
        assert any(word.startswith(tuple(option.spellings.split())) for word in tried), "no line of this test has it"
        return
    for word in _words(option):
        assert not word.startswith("-") or any(word in setting.spellings.split() for setting in SETTINGS.values())


def _words(option: PeerOption) -> list[str]:
    """Options that it becomes; none where its value is refused or is the only one."""
    assert option.words is not None
    try:
        return option.words("1")
    except UsageError as error:
        assert error.hint and "\n" not in str(error)
        return []


def _is_line_of(peer, line: str) -> bool:
    name = line.split()[0]
    benchmark = benchmark_registry().get(name)
    return peer_of(name, benchmark.family if benchmark else "") is peer


def test_the_page_of_a_benchmark_has_its_letters_once(fablint):
    page = fablint("bench", "all_reduce_perf", "--help").stdout
    assert re.search(r"^  -n, --iters N +--iterations N$", page, re.M)
    assert re.search(r"^  --ranks N ", page, re.M)
    assert "half" not in page and "--output_file" not in page
    assert page.index("nccl-tests options:") < page.index("Common options:")
