"""The table of nccl-tests: its columns, its bandwidths, and what the importer reads back."""

from __future__ import annotations

from pathlib import Path

import pytest
from table_cases import row, run_of

from fablint.report import Options, benchmark_table, render_table
from fablint.store.importing.nccl_tests import parse_nccl_tests
from pinned import pinned_by

PINNED = pinned_by("report.toml", __file__)

PRINTED = Path(__file__).parents[2] / "fixtures" / "nccl_tests" / "nccl-tests-2.13-all_reduce-synthetic.txt"
WORLD = {(rank, -1, 0): [seconds * 1e-6] for rank, seconds in enumerate((10.0, 20.0, 30.0, 40.0))}  # 25 us in the mean


def table(*rows):
    return render_table(run_of(*rows), "nccl_tests", Options())


def body(text):
    return [line.split() for line in text.splitlines() if not line.startswith("#")]


def test_head_and_columns_are_those_of_nccl_tests():
    both = [row("allreduce", "world", WORLD, ranks=4, sizes=(1 << 20,), name=str(at), in_place=at) for at in (0, 1)]
    lines = table(*both).text.splitlines()
    printed = PRINTED.read_text().splitlines()
    head = [line for line in printed if "algbw" in line or "out-of-place" in line or "(GB/s)" in line]
    assert [line for line in lines if line in head] == head
    assert lines[-4] == "     1048576        262144     float     sum      -1" + "    25.00   41.94   62.91    N/A" * 2
    assert len(lines[-4]) == len(next(line for line in printed if line.strip().startswith("1048576")))
    assert lines[0] == printed[0]
    assert lines[-2:] == ["# Avg bus bandwidth    : 62.9146 ", "#"]


@pytest.mark.parametrize(
    ("kernel", "words"),
    # 1000 bytes, 4 ranks, 25 us: 0.04 GB/s for a size
    [
        ("allreduce", ["1000", "250", "float", "sum", "-1", "25.00", "0.04", "0.06", "N/A"]),
        ("allgather", ["4000", "250", "float", "none", "-1", "25.00", "0.16", "0.12", "N/A"]),
        ("reduce_scatter", ["4000", "250", "float", "sum", "-1", "25.00", "0.16", "0.12", "N/A"]),
        ("alltoall", ["4000", "250", "float", "none", "-1", "25.00", "0.16", "0.12", "N/A"]),
        ("bcast", ["1000", "250", "float", "none", "0", "25.00", "0.04", "0.04", "N/A"]),
    ],
)
def test_size_and_bandwidths_of_each_collective(kernel, words):
    made = row(kernel, "world", WORLD, ranks=4, sizes=(1000,), transport="nccl", memory="cuda", batch=20)
    printed = table(made).text
    assert body(printed) == [[*words, *["N/A"] * 4]]
    assert PINNED["timed: 20 calls one after"] in printed


def test_wrong_results_are_counted_where_they_were_checked():
    damage = [{"src": -1, "dst": rank, "size": 1000, "message": 4, "offset": 8} for rank in (0, 2)]
    text = table(row("alltoall", "world", WORLD, ranks=4, sizes=(1000,), validate=True, corrupt=damage)).text
    assert body(text)[0][2:9] == ["uint8", "none", "-1", "25.00", "0.16", "0.12", "2"]
    assert "# Out of bounds values : 2 FAILED" in text


def test_the_gpu_of_a_rank_is_named_where_the_run_has_it():
    made = row("allreduce", "world", WORLD, ranks=4, sizes=(8,))
    gpus = {"rank_gpu": ["gpu3"] * 4, "rank_gpu_pci": ["0000:3b:00.0"] * 4, "rank_gpu_model": ["NVIDIA H100"] * 4}
    text = render_table(run_of(made, hosts=["gpu001"] * 4, **gpus), "nccl_tests", Options()).text
    assert PINNED["Rank 2 Group 0 on gpu001"] in text.splitlines()
    assert parse_nccl_tests(text)[0].hosts[0, 2] == ("gpu001", "3")


def test_the_importer_reads_the_table_back():
    both = [row("allgather", "world", WORLD, ranks=4, sizes=(16,), name=str(at), in_place=at) for at in (0, 1)]
    (parsed,) = parse_nccl_tests(table(*both).text)
    assert (parsed.test, parsed.ended, parsed.foreign) == ("all_gather", 1, [])
    assert parsed.hosts == {(0, rank): (f"n{rank}", "-") for rank in range(4)}
    assert [(line.size, *(half.time_us for half in line.halves)) for line in parsed.rows] == [(64, 25.0, 25.0)]


@pytest.mark.parametrize(
    ("name", "transport", "shown"),
    [("allreduce", "nccl", "nccl_tests"), ("allreduce", "mpi", "osu"), ("all_reduce_perf", "mpi", "nccl_tests")],
)
def test_the_table_of_a_collective_is_that_of_its_benchmark_or_transport(name, transport, shown):
    made = row("allreduce", "world", WORLD, ranks=4, sizes=(8,), transport=transport)
    assert benchmark_table(run_of(made), name).as_dict()["table"] == shown
