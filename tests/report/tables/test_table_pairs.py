"""Every pair by itself, and what the other tables share with it."""

from __future__ import annotations

import numpy as np
import pytest
from table_cases import both_ways, row, run_of, stored

from fablint.errors import UsageError
from fablint.report import TABLES, Options, render_table
from fablint.report.tables.cells import blocks
from fablint.report.tables.quantiles import percentile_times

US = 1e-6
TIMES = both_ways(
    {(0, 1): [1 * US], (1, 0): [2 * US], (2, 3): [4 * US], (3, 2): [3 * US], (0, 2): [9 * US], (2, 0): [5 * US]},
    {(0, 2): 1},
)


def test_one_line_per_pair_with_hosts_time_and_rate(tmp_path):
    made = row("bandwidth", "random", TIMES, ranks=4, rounds=2, sizes=(1000,))
    found = render_table(stored(run_of(made), tmp_path), "pairs", Options())
    lines = [line.split() for line in found.text.splitlines() if not line.startswith("#")]
    assert [line[:7] for line in lines] == [
        ["0", "n0", "1", "n1", "1000", "1.00", "1000.00"],
        ["0", "n0", "2", "n2", "1000", "9.00", "111.11"],
        ["1", "n1", "0", "n0", "1000", "2.00", "500.00"],
        ["2", "n2", "0", "n0", "1000", "5.00", "200.00"],
        ["2", "n2", "3", "n3", "1000", "4.00", "250.00"],
        ["3", "n3", "2", "n2", "1000", "3.00", "333.33"],
    ]
    assert lines[0][7:] == ["0.900", "1.50", "2.00", "100"]  # min, p99, max, samples
    assert "payload goes from src to dst" in found.text


@pytest.mark.parametrize("pattern", ["random", "all-pairs"])
def test_the_slowest_come_first_in_either_layout(pattern):
    made = row("latency", pattern, TIMES, ranks=4, rounds=2)
    found = render_table(run_of(made), "pairs", Options(slowest=3)).as_dict()["pairs"]
    assert [(one["src"], one["dst"]) for one in found] == [(0, 2), (2, 0), (2, 3)]
    assert found[0]["seconds"]["mean"] == pytest.approx(9 * US)
    assert "bytes_per_s" not in found[0]


def test_repeats_of_a_pair_are_weighted_with_their_samples():
    cells = {(0, 1, 0): [1 * US], (0, 1, 1): [4 * US]}
    made = row("latency", "random", cells, rounds=2, count={(0, 1, 0): 300, (0, 1, 1): 100})
    (one,) = render_table(run_of(made), "pairs", Options()).as_dict()["pairs"]
    assert one["seconds"] == pytest.approx({"mean": 1.75 * US, "min": 0.9 * US, "p99": 6 * US, "max": 8 * US})
    assert one["samples"] == 400


def test_a_collective_has_no_partner():
    made = row("barrier", "world", {(0, -1, 0): [US], (1, -1, 0): [2 * US]}, sizes=(0,))
    found = render_table(run_of(made), "pairs", Options(slowest=1))
    assert found.as_dict()["pairs"][0]["dst"] is None
    assert found.text.splitlines()[-1].split()[:5] == ["1", "n1", "all", "-", "0"]


def test_victims_alone_and_loaded_are_two_sections():
    cells = {(0, 1, 0): [1 * US], (1, 0, 0): [1 * US], (0, 1, 1): [5 * US], (1, 0, 1): [7 * US]}
    made = row("latency", "victim-aggressor", cells, rounds=2)
    alone, loaded = render_table(run_of(made), "pairs", Options()).as_dict()["tables"]
    assert [one["seconds"]["mean"] for one in alone["pairs"]] == pytest.approx([1 * US, 1 * US])
    assert [one["seconds"]["mean"] for one in loaded["pairs"]] == pytest.approx([5 * US, 7 * US])
    assert (alone["row"], loaded["row"]) == ("latency (alone)", "latency (loaded)")


def test_a_row_in_several_blocks_is_the_same_row(monkeypatch):
    made = row("latency", "all-pairs", TIMES, ranks=4, rounds=2)
    whole = render_table(run_of(made), "pairs", Options()).text
    monkeypatch.setattr("fablint.report.tables.cells.BLOCK_CELLS", 1)
    assert len(list(blocks(made, 0, ["mean"]))) == 4
    assert render_table(run_of(made), "pairs", Options()).text == whole


def test_hostile_host_names_cannot_steer_the_terminal():
    made = row("latency", "pair", {(0, 1, 0): [US]})
    text = render_table(run_of(made, hosts=["a\x1b[2J", "b"]), "pairs", Options()).text
    assert "\x1b" not in text


def test_lost_histograms_leave_a_percentile_unknown():
    made = row("latency", "pair", {(0, 1, 0): [US]}, samples={(0, 1, 0): [US]})
    made.arrays["histogram"][:] = 0
    kept = np.asarray(made.arrays["count"][..., 0]) > 0
    assert percentile_times(made, 0, kept, (50, 99)) == [None, None]
    assert render_table(run_of(made), "osu", Options((50,))).text.splitlines()[-1].split() == ["8", "1.00", "-"]


@pytest.mark.parametrize("name", sorted(TABLES))
def test_no_table_is_made_of_nothing(name):
    """A run without rows, and one whose row was never measured, give one line or an empty table, no traceback."""
    with pytest.raises(UsageError, match="port counters" if name == "counters" else f"table {name} needs"):
        TABLES[name](run_of(row("latency", "pair", {})), [], Options())
    for made in (row("latency", "pair", {}), row("exchange", "pairs", {}), row("latency", "bisection", {})):
        try:
            assert TABLES[name](run_of(made), [made], Options()).text
        except UsageError as error:
            assert "\n" not in str(error)


def test_unknown_tables_and_rows_are_refused():
    run = run_of(row("latency", "pair", {(0, 1, 0): [US]}))
    with pytest.raises(UsageError, match=r"no table 'osv': choose from bench, .*, osu, overlap, pairs"):
        render_table(run, "osv", Options())
    with pytest.raises(UsageError, match="no row 'lat': choose from latency"):
        render_table(run, "pairs", Options(), ["lat"])
