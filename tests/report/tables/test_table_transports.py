"""The table of transports side by side: ratios of blocks and their interval, by hand."""

from __future__ import annotations

import math

import pytest
from report_cases import diagnose
from table_cases import row, run_of

from fablint.errors import UsageError
from fablint.report import Options, benchmark_table, render_table
from fablint.report.html.page import render
from fablint.report.html.transport_sections import transport_sections
from pinned import pinned_by

PINNED = pinned_by("report.toml", __file__)

ONE_WAY = (0, 1, 0)


def block(number: int, transport: str, seconds: list[float], kernel: str = "latency", **attributes):
    made = row(kernel, "pair", {ONE_WAY: seconds}, sizes=(8, 1024)[: len(seconds)], transport=transport, **attributes)
    return type(made)(f"{kernel}-{transport}-{number}", made.facts, made.arrays)


def test_ratios_are_those_of_blocks():
    """Both transports become slower from block to block; the ratio does not change by more than 10 %."""
    rows = [block(1, "mpi", [1e-6, math.nan]), block(1, "tcp", [4e-6, 8e-6])]
    rows += [block(2, "tcp", [8.8e-6, 8e-6]), block(2, "mpi", [2e-6, math.nan])]
    table = render_table(run_of(*rows), "transports", Options())
    facts = table.as_dict()
    mpi, tcp = facts["transports"]
    assert (mpi["transport"], tcp["transport"], facts["unit"], facts["blocks"]) == ("mpi", "tcp", "us", 2)
    assert mpi["figures"][0] == pytest.approx(math.sqrt(2))
    ratio = tcp["ratios"][0]
    assert ratio["value"] == pytest.approx(math.sqrt(4 * 4.4))
    half = 12.706 * (math.log(4.4 / 4) / math.sqrt(2)) / math.sqrt(2)  # Student's t with one degree of freedom
    assert math.log(ratio["high"] / ratio["low"]) == pytest.approx(2 * half, rel=1e-3)
    assert mpi["figures"][1] is None
    assert tcp["ratios"][1] is None
    assert "tcp / mpi" in table.text
    assert "8           1.41" in table.text


def test_a_block_that_was_interrupted_is_not_counted():
    rows = [block(1, "mpi", [1e-6]), block(1, "tcp", [4e-6]), block(2, "tcp", [4e-6]), block(2, "mpi", [math.nan])]
    table = render_table(run_of(*rows), "transports", Options())
    assert table.as_dict()["blocks"] == 1
    assert "blocks" not in table.text
    none_of_tcp = render_table(run_of(rows[0], block(1, "tcp", [math.nan])), "transports", Options())
    assert none_of_tcp.text.splitlines()[-1].split() == ["8", "1.000", "-", "-"]


def test_a_bandwidth_is_a_rate_and_a_single_block_has_no_interval():
    rows = [block(1, "ucx", [1e-6], "bandwidth"), block(1, "ofi", [2e-6], "bandwidth", ofi_provider="tcp")]
    table = benchmark_table(run_of(*rows), "bandwidth")
    ucx, ofi = table.as_dict()["transports"]
    assert (ucx["figures"], ofi["figures"]) == ([pytest.approx(8.0)], [pytest.approx(4.0)])
    assert ofi["ratios"][0] == {"value": pytest.approx(0.5), "low": None, "high": None}
    assert "ofi tcp / ucx" in table.text


def test_other_measurements_are_not_compared():
    rows = [block(1, "mpi", [1e-6]), block(1, "tcp", [1e-6, 1e-6])]
    with pytest.raises(UsageError, match="table transports needs rows that measured the same over several transports"):
        render_table(run_of(*rows), "transports", Options())


def side_by_side():
    """Three sizes over two transports in two blocks; the middle size of tcp is missing."""
    devices = {"devices": {"ipv4/hsn0": "0-1"}}
    rows = []
    for number in (1, 2):
        for transport, seconds in (("mpi", [1e-6, 2e-6, 1e-5]), ("tcp", [1e-5, math.nan, 1e-4])):
            made = row(
                "latency",
                "pair",
                {ONE_WAY: seconds},
                sizes=(8, 1024, 65536),
                transport=transport,
                **(devices if transport == "tcp" else {}),
            )
            rows.append(type(made)(f"latency-{transport}-{number}", made.facts, made.arrays))
    return run_of(*rows)


def test_the_page_has_the_table_the_curves_and_the_devices():
    run = side_by_side()
    [section] = transport_sections(run, run.rows)
    assert section.title == PINNED["latency over 2 transports"]
    assert section.lines[0] == ["Size", "mpi (us)", "tcp (us)", "tcp / mpi"]
    assert section.lines[2] == ["1 KiB", "2.00", "-", "-"]
    assert section.media[1] == ("tcp", "ipv4/hsn0")
    assert "does not report" in section.media[0][1]
    curves = {layer.label: layer.points for layer in section.plot.layers if layer.label}
    assert curves == {"mpi": ((0, 240), (500, 204), (1000, 120)), "tcp": ((0, 120), (1000, 0))}
    page = render(run, diagnose(run, None))
    assert "Transports side by side" in page
    assert "Every block (4 rows)" in page and 'id="row-1"' not in page  # one table of all blocks, no section of each
    assert page.count('class="medium medium-1"') == 2  # the curve and the legend


def test_two_sizes_have_a_table_and_no_curves():
    rows = [block(1, "ucx", [1e-6, 2e-6]), block(1, "ofi", [2e-6, 2e-6])]
    [section] = transport_sections(run_of(*rows), rows)
    assert (section.plot, len(section.lines), section.has_intervals) == (None, 3, False)


def put(number: int, transport: str, win: str, sync: str = "flush"):
    made = block(number, transport, [1e-6], "put_bandwidth", win=win, sync=sync)
    return type(made)(f"{made.name}-{win}-{sync}", made.facts, made.arrays)


def test_transports_without_the_window_of_the_kernel_are_compared_and_the_windows_stated():
    """The default of the kernel is `allocate`, and ofi has `create` only."""
    rows = [put(1, "mpi", "allocate"), put(1, "ucx", "allocate"), put(1, "ofi", "create")]
    table = render_table(run_of(*rows), "transports", Options())
    assert [one["transport"] for one in table.as_dict()["transports"]] == ["mpi", "ucx", "ofi"]
    assert [one["win"] for one in table.as_dict()["transports"]] == ["allocate", "allocate", "create"]
    assert PINNED["RMA windows differ: mpi allocate"] in table.text
    run = run_of(*rows)
    assert "RMA windows differ: mpi allocate, flush;" in render(run, diagnose(run, None))
    same = render_table(run_of(*rows[:2]), "transports", Options())
    assert "RMA windows" not in same.text


def test_windows_of_one_transport_are_measurements_of_their_own():
    rows = [put(1, "mpi", "allocate"), put(1, "mpi", "create"), put(1, "ofi", "create")]
    [compared] = [render_table(run_of(*rows), "transports", Options()).as_dict()]
    assert [one["rows"] for one in compared["transports"]] == [
        ["put_bandwidth-mpi-1-create-flush"],
        ["put_bandwidth-ofi-1-create-flush"],
    ]


def test_victims_alone_and_under_load_are_compared_with_their_names():
    rows = []
    for transport, alone, loaded in (("mpi", 1e-6, 2e-6), ("tcp", 4e-6, 6e-6)) * 2:
        cells = {(0, 1, 0): [alone], (0, 1, 1): [loaded], (0, 1, 2): [alone], (0, 1, 3): [loaded]}
        chosen = {"devices": {"ipv4/hsn0": "0-3"}} if transport == "tcp" else {}
        made = row("latency", "victim-aggressor", cells, ranks=4, rounds=4, transport=transport, **chosen)
        rows.append(type(made)(f"latency-{transport}-{1 + len(rows) // 2}", made.facts, made.arrays))
    run = run_of(*rows)
    text = render_table(run, "transports", Options()).text
    assert PINNED["latency (alone) over 2 transports"] in text
    assert PINNED["latency (loaded) over 2 transports"] in text
    assert "3.00" in text  # 6 us to 2 us
    sections = transport_sections(run, run.rows)
    assert [section.title.split(" over")[0] for section in sections] == ["latency (alone)", "latency (loaded)"]
    assert all(section.media[1] == ("tcp", "ipv4/hsn0") for section in sections)
    assert "Every block (8 rows)" in render(run, diagnose(run, None))


def test_memories_are_counted_as_memories():
    rows = [block(1, "tcp", [1e-6]), block(2, "tcp", [1e-6], memory="host-huge")]
    text = render_table(run_of(*rows), "transports", Options()).text
    assert PINNED["latency over 1 transport"] in text


def test_cells_of_a_collective_are_its_ranks():
    cells = {(0, -1, 0): [1e-6], (1, -1, 0): [1e-6]}
    rows = []
    for transport in ("nccl", "mpi"):
        made = row("allreduce", "world", cells, transport=transport)
        rows.append(type(made)(f"allreduce-{transport}-1", made.facts, made.arrays))
    text = render_table(run_of(*rows), "transports", Options()).text
    assert PINNED["allreduce over 2 transports"] in text
