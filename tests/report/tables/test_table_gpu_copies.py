"""The table of gpu_loopback: every GPU by itself, and what is said of messages in GPU memory."""

from __future__ import annotations

from dataclasses import replace

import pytest
from table_cases import row, run_of

from fablint.errors import UsageError
from fablint.report import Options, benchmark_table, render_table
from fact_cases import with_facts
from pinned import pinned_by

PINNED = pinned_by("report.toml", __file__)

COPIES = {(rank, -1, 0): [seconds * 1e-6] for rank, seconds in enumerate((100.0, 200.0, 100.0))}
GPUS = {
    "rank_gpu": ["gpu0", "gpu1", "gpu0"],
    "rank_gpu_pci": ["0000:1b:00.0", "0000:2b:00.0", "0000:1b:00.0"],
    "rank_gpu_model": ["NVIDIA H200"] * 3,
}


def copies(**attributes):
    return row("gpu_loopback", "world", COPIES, ranks=3, sizes=(1 << 20,), quantity="bandwidth", **attributes)


def test_every_gpu_has_a_line_with_its_place_and_speed():
    table = benchmark_table(run_of(copies(copy="to-host"), hosts=["n1"] * 3, **GPUS), "gpu_loopback")
    *comments, head, first, second, _ = table.text.splitlines()
    assert first.split() == ["1048576", "0", "n1", "gpu0", "0000:1b:00.0", "100.00", "10485.76"]
    assert second.split() == ["1048576", "1", "n1", "gpu1", "0000:2b:00.0", "200.00", "5242.88"]
    assert head.split()[:5] == ["#", "size", "rank", "host", "gpu"]
    assert PINNED["from the GPU to pinned memory"] in comments[0]
    assert PINNED["copies of a window (1) one"] in comments[1]
    assert "# fablint: NVIDIA H200" in comments
    assert PINNED["1 GPU shared by several ranks"] in comments[-1]
    assert [gpu["bytes_per_s"] for gpu in table.as_dict()["gpus"]] == pytest.approx(
        [1.048576e10, 5.24288e9, 1.048576e10]
    )


def test_windows_that_differ_between_sizes_are_said():
    made = row("gpu_loopback", "world", {(0, -1, 0): [1e-6, 1e-3]}, ranks=1, sizes=(8, 1 << 20), windows=[64, 16])
    assert PINNED["copies of a window (16"] in benchmark_table(run_of(made), "gpu_loopback").text


def test_other_rows_are_refused_and_other_tables_do_not_show_it():
    with pytest.raises(UsageError, match="needs a row of the kernel gpu_loopback"):
        render_table(run_of(row("barrier", "world", COPIES, ranks=3, sizes=(0,))), "gpu_copies", Options())
    with pytest.raises(UsageError, match="table osu needs"):
        render_table(run_of(copies()), "osu", Options())


@pytest.mark.parametrize(
    ("path", "words"),
    [("staged", "staged through host memory"), ("direct", "given to the library directly")],
)
def test_the_path_of_messages_in_gpu_memory_is_said(path, words):
    made = row("latency", "pair", {(0, 1, 0): [1e-6], (1, 0, 0): [1e-6]}, ranks=2, memory="cuda", gpu_path=path)
    other = replace(with_facts(made, transport="tcp"), name="latency-tcp")
    run = run_of(made, other, hosts=["n1"] * 2, rank_gpu=["gpu0"] * 2)
    shared = "1 GPU shared by several ranks, n1/gpu0 by 2: a rank waits for the others and has a part of its bandwidth"
    alone = render_table(run, "osu", Options()).text
    assert PINNED["messages in memory of GPUs"].filled(words=words) in alone
    assert f"# fablint: {shared}" in alone
    beside_others = render_table(run, "transports", Options()).text
    assert words in beside_others
    assert f"# {shared}" in beside_others
