"""What tables say of transport, memory and device of their rows: figures over two of them differ."""

from __future__ import annotations

import re

import pytest
from table_cases import row, run_of

from fablint.report import Options, render_table
from pinned import pinned_by

PINNED = pinned_by("report.toml", __file__)

PAIR = {(0, 1, 0): [1e-6], (1, 0, 0): [1e-6]}
VICTIMS = {(0, 1, 0): [1e-6], (0, 1, 1): [2e-6]}
CASES = {
    "osu": ("latency", "pair", PAIR, 1),
    "bench": ("latency", "all-pairs", PAIR, 1),
    "pairs": ("latency", "all-pairs", PAIR, 1),
    "linktest": ("latency", "all-pairs", PAIR, 1),
    "latency_test": ("latency", "all-pairs", PAIR, 1),
    "bisec_bw": ("exchange", "pairs", PAIR, 1),
    "net_sanitizer": ("bandwidth", "all-pairs", PAIR, 1),
    "congestion": ("latency", "victim-aggressor", VICTIMS, 2),
}


@pytest.mark.parametrize("name", CASES)
def test_tables_name_the_transport_with_its_device_and_memory(name):
    kernel, pattern, cells, rounds = CASES[name]
    medium = {"transport": "tcp", "memory": "host-huge", "device": "hsn0", "streams": 2}
    over_tcp = row(kernel, pattern, cells, ranks=4, rounds=rounds, **medium)
    comments = [line for line in render_table(run_of(over_tcp), name, Options()).text.splitlines() if line[:1] == "#"]
    assert sum("over tcp host-huge hsn0 2 streams" in line.replace("the transport ", "") for line in comments) == 1
    over_mpi = row(kernel, pattern, cells, ranks=4, rounds=rounds)
    assert not re.search(" over (the transport|mpi)", render_table(run_of(over_mpi), name, Options()).text)


def test_memory_is_stated_of_mpi_too():
    text = render_table(run_of(row("latency", "pair", PAIR, memory="host-numa:1")), "osu", Options()).text
    assert PINNED["messages over the transport"] in text


def test_windows_over_two_transports_share_no_matrix():
    def column(window, **medium):
        made = row("bandwidth", "pairs", {(0, 1, 0): [1e-6]}, windows=[window], barrier="sample", **medium)
        return type(made)(f"bandwidth-{window}-{made.medium.label}", made.facts, made.arrays)

    tcp = [column(1, transport="tcp"), column(2, transport="tcp")]
    assert PINNED["messages over the transport tcp"] in render_table(run_of(*tcp), "osu", Options()).text
    mixed = render_table(run_of(column(1), column(2, transport="tcp")), "osu", Options())
    assert len(mixed.as_dict()["tables"]) == 2


def test_a_table_of_gpu_memory_has_the_title_of_osu_and_the_line_of_its_buffers():
    run = run_of(row("bandwidth", "pair", PAIR, memory="cuda", peer_memory="host", gpu_path="direct"))
    text = render_table(run, "osu", Options()).text
    head = [line for line in text.splitlines() if line.startswith("#") and "fablint" not in line]
    assert head == [
        "# OSU MPI-CUDA Bandwidth Test v7.4",
        "# Datatype: MPI_CHAR.",
        PINNED["Send Buffer on"],
        "# Size      Bandwidth (MB/s)",
    ]
