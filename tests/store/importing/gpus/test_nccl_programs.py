"""Tables of nccl-tests that do not name their program or their ranks: a name only where no other program prints them.

Headings and shares of bandwidth are those of the sources of NVIDIA/nccl-tests, 2.9 to 2.19.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fablint.errors import UsageError
from fablint.model import Run
from fablint.report import Options, render_table
from fablint.store import import_run

LATE = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong"
OPERATION = "# size count type redop time algbw busbw error time algbw busbw error"
BARE = "# size count type time algbw busbw error time algbw busbw error"
ROOT = "# size count type root time algbw busbw error time algbw busbw error"
END = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1.0\n#\n"
SIZE, TIME = 1 << 28, 1000.0  # 268.44 GB/s


def table(heading: str, kind: str, share: float, checks: tuple[str, ...], ranks: int) -> str:
    """A run of `ranks` GPUs, eight of a host."""
    devices = "".join(
        f"#  Rank {rank} Group 0 Pid 7 on n{rank // 8} device {rank % 8} [0x0f] A\n" for rank in range(ranks)
    )
    rate = SIZE / TIME / 1e3
    halves = " ".join(f"{TIME:.1f} {rate:.2f} {rate * share:.2f} {check}" for check in checks)
    return (
        f"# nThread 1 nGpus 1 minBytes 8 \n# Using devices\n{devices}{heading}\n{SIZE} 67108864 {kind} {halves}\n{END}"
    )


def imported(folder: Path, text: str, hosts: list[str] | None = None) -> Run:
    path = folder / "output"
    path.write_text(text)
    return import_run([path], hosts or [])


BOTH, NONE, OUT = ("0", "0"), ("N/A", "N/A"), ("0", "N/A")  # places in which results are checked


@pytest.mark.parametrize(
    ("test", "heading", "kind", "share", "checks", "ranks"),
    [
        ("alltoall", LATE, "float none -1", 7 / 8, OUT, 8),
        ("all_gather", LATE, "float none -1", 7 / 8, BOTH, 8),
        ("unknown", LATE, "float none -1", 7 / 8, NONE, 8),
        ("alltoall", OPERATION, "float", 7 / 8, NONE, 8),
        ("all_gather", BARE, "float", 7 / 8, NONE, 8),
        ("hypercube", LATE, "float -1", 1.0, OUT, 8),
        ("all_reduce", LATE, "float sum -1", 1.0, BOTH, 2),
        ("sendrecv", LATE, "float sum -1", 1.0, OUT, 2),
        ("unknown", LATE, "float sum -1", 1.0, NONE, 2),
        ("all_reduce", OPERATION, "float sum", 1.0, NONE, 2),
        ("sendrecv", LATE, "float sum -1", 1.0, OUT, 16),
        ("reduce", LATE, "float sum 0", 1.0, BOTH, 8),
        ("broadcast", LATE, "float none 0", 1.0, BOTH, 64),
        ("broadcast", ROOT, "float 0", 1.0, NONE, 8),
        ("unknown", LATE, "float none 0", 63 / 64, BOTH, 64),  # gather, or scatter
        ("reduce_scatter", LATE, "float sum -1", 63 / 64, BOTH, 64),
        ("unknown", LATE, "float sum -1", 0.8, BOTH, 8),
    ],
)
def test_programs_are_named_where_no_other_prints_the_table(
    tmp_path: Path, test: str, heading: str, kind: str, share: float, checks: tuple[str, str], ranks: int
) -> None:
    run = imported(tmp_path, table(heading, kind, share, checks, ranks))
    assert [row.facts.variant for row in run.rows] == [test] * 2
    assert (run.ranks, run.state) == (ranks, "complete")


@pytest.mark.parametrize(
    ("group", "hosts"),
    [
        (lambda rank: rank % 8, 2),  # NCCL_TESTS_SPLIT=MOD 8
        (lambda rank: rank // 8, 2),  # DIV 8
        (lambda rank: rank & 1, 2),  # NCCL_TESTS_SPLIT_MASK=1
    ],
)
def test_ranks_are_counted_over_all_groups(tmp_path: Path, group: object, hosts: int) -> None:
    """All releases print the number of a rank in MPI_COMM_WORLD beside its group."""
    text = table(LATE, "float sum -1", 1.0, BOTH, 16)
    for rank in range(16):
        text = text.replace(f"Rank {rank} Group 0 ", f"Rank {rank} Group {group(rank)} ")  # type: ignore[operator]
    run = imported(tmp_path, text)
    assert (run.ranks, run.hosts) == (16, ["n0", "n1"][:hosts])
    assert "groups" in (run.rows[0].facts.variant or "")


@pytest.mark.parametrize("gone", [(0,), (1, 2), (0, 1, 2, 3)])
def test_no_host_is_invented_for_ranks_that_are_not_named(tmp_path: Path, gone: tuple[int, ...]) -> None:
    lines = table(LATE, "float sum -1", 1.5, BOTH, 4).splitlines(keepends=True)
    text = "".join(line for line in lines if not any(f"Rank {rank} " in line for rank in gone))
    with pytest.raises(UsageError, match=r"names? (?:no ranks|every rank)"):
        imported(tmp_path, text)
    assert imported(tmp_path, text, hosts=["a", "b", "c", "d"]).hosts == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("shared", "addresses"),
    [
        (True, ["0000:0f:00", "0000:1f:00"] * 2),  # two hosts with one name
        (False, ["0000:0f:00", "0000:1f:00", "0000:2f:00", "0000:3f:00"]),
        (False, ["0x00"] * 4),  # until 2.14 the bus only, and virtual machines have one
    ],
)
def test_two_ranks_on_a_gpu_are_two_hosts_of_one_name(tmp_path: Path, shared: bool, addresses: list[str]) -> None:
    devices = "".join(
        f"#  Rank {rank} Group 0 Pid {rank} on localhost device 0 [{address}] A\n"
        for rank, address in enumerate(addresses)
    )
    whole = table(LATE, "float sum -1", 1.5, BOTH, 4).splitlines(keepends=True)
    text = "".join([*whole[:2], devices, *whole[6:]])
    if not shared:
        assert imported(tmp_path, text).rank_host == ["localhost"] * 4
        return
    with pytest.raises(UsageError, match="several hosts have the name localhost"):
        imported(tmp_path, text)
    assert imported(tmp_path, text, ["a", "a", "b", "b"]).rank_host == ["a", "a", "b", "b"]


@pytest.mark.parametrize(
    ("places", "names"),
    [
        ("#                      in-place          ", ["allreduce-in-place"]),  # rccl-tests without the other place
        ("#                  out-of-place          ", ["allreduce"]),
        ("#", ["allreduce"]),
    ],
)
def test_figures_of_one_place_are_of_the_place_above_them(tmp_path: Path, places: str, names: list[str]) -> None:
    heading = f"{places}\n# size count type redop root time algbw busbw #wrong"
    text = table(heading, "float sum -1", 1.5, ("0",), 4)
    assert [row.name for row in imported(tmp_path, text).rows] == names


def document(processes: list[tuple[int, str, int]], gpus: int, share: float) -> str:
    """What -J writes: of each process the first GPU."""
    rate = SIZE / TIME / 1e3
    half = {"time": TIME, "alg_bw": rate, "bus_bw": rate * share, "nwrong": 0.0}
    devices = [
        {"rank": rank, "group": 0, "pid": 1, "hostname": host, "device": device} for rank, host, device in processes
    ]
    line = {"size": SIZE, "count": 8, "type": "float", "redop": "sum", "root": "-1"}
    return json.dumps(
        {
            "version": 1,
            "args": ["./all_reduce_perf"],
            "nccl_version": 22803,
            "config": {"nthreads": 1, "ngpus": gpus, "devices": devices},
            "results": [{**line, "out_of_place": half, "in_place": half}],
            "out_of_bounds": {"count": 0},
        }
    )


@pytest.mark.parametrize(
    ("processes", "gpus", "ranks", "hosts"),
    [
        ([(0, "n1", 0)], 8, 8, ["n1"]),
        ([(0, "n1", 0), (8, "n2", 0)], 8, 16, ["n1", "n2"]),
        ([(0, "n1", 0), (4, "n1", 4), (8, "n2", 0), (12, "n2", 4)], 4, 16, ["n1", "n2"]),
        ([(rank, "n1", rank) for rank in range(8)], 8, 8, ["n1"]),  # all are there
        ([(rank, f"n{rank}", 0) for rank in range(3)], 1, 3, ["n0", "n1", "n2"]),
    ],
)
def test_json_lists_the_first_gpu_of_each_process(
    tmp_path: Path, processes: list[tuple[int, str, int]], gpus: int, ranks: int, hosts: list[str]
) -> None:
    share = 2 * (ranks - 1) / ranks
    run = imported(tmp_path, document(processes, gpus, share))
    assert (run.ranks, run.hosts) == (ranks, hosts)
    first = render_table(run, "nccl_tests", Options()).as_dict()["sizes"][0]["out_of_place"]
    assert first["bus_bandwidth"] == pytest.approx(SIZE / TIME * 1e6 * share, rel=1e-3)
