"""Rows that are not matchings of pairs: collectives, stars, victims beside aggressors, gets. Console and page."""

from __future__ import annotations

import json
import re

import pytest
from browser import needs_chromium
from report_cases import diagnose, readable
from table_cases import both_ways, row, run_of, stored

from fablint.model import Row
from fablint.report import console_summary, run_summary, write_html
from fablint.report.conditions import conditions
from fablint.report.html.page import render
from fablint.report.survey.report_source import surveyed
from fact_cases import row_facts
from pinned import pinned_by

PINNED = pinned_by("report.toml", __file__)

US = 1e-6
WORLD = row("barrier", "world", {(rank, -1, 0): [(rank + 1) * US] for rank in range(6)}, ranks=6, sizes=(0,))
STAR = row(
    "bandwidth", "fan-out", {(leaf, 0, 0): [leaf * US] for leaf in range(1, 6)}, ranks=6, sizes=(1000,), payload="dst"
)
VICTIMS = row(
    "latency",
    "victim-aggressor",
    {
        **{(0, 1, number): [2 * US] for number in (0, 2)},
        **{(1, 0, number): [2 * US] for number in (0, 2)},
        **{(0, 1, number): [50 * US] for number in (1, 3)},
        **{(1, 0, number): [50 * US] for number in (1, 3)},
    },
    ranks=6,
    rounds=4,
)


def case(tmp_path, *rows):
    run = stored(run_of(*rows, started="2026-11-20T12:00:00Z"), tmp_path)
    return run, diagnose(run, None)


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_an_old_row_says_what_its_figure_is_by_its_kernel():
    for kernel, quantity, payload in (
        ("latency", "latency", "both"),
        ("exchange", "latency", "both"),
        ("bandwidth", "bandwidth", "src"),
        ("bibandwidth", "bandwidth", "both"),
    ):
        old = Row("r", row_facts({"kernel": kernel, "layout": "list"}), {})
        assert (old.quantity, old.payload, old.directions) == (quantity, payload, "both")


def test_a_new_kernel_is_a_rate_where_its_row_says_so(tmp_path):
    cells = {(1, 0, 0): [2 * US]}
    made = row("rpc_put", "clients-servers", cells, sizes=(1000,))
    assert "rpc_put at 1000 B: 500 MB/s" in console_summary(*case(tmp_path, made))


def test_the_console_tells_victims_alone_and_under_load_apart(tmp_path):
    summary = console_summary(*case(tmp_path, VICTIMS, WORLD, STAR))
    assert PINNED["latency at 8 B: alone 2.00"] in summary
    assert "barrier at 0 B: 3.50 us" in summary
    assert "bandwidth at 1000 B: 333 MB/s" in summary


def test_victims_are_two_rows_of_the_page_and_never_one_distribution(tmp_path):
    run, diagnosis = case(tmp_path, VICTIMS)
    page = readable(render(run, diagnosis))
    assert [part.name for part in surveyed(run)] == ["latency (alone)", "latency (loaded)"]
    assert "26.0 us" not in page  # what a median over both would be
    maps = data_of(render(run, diagnosis))["maps"]
    maps = [one for one in maps if "worst" in one]
    assert [one["label"] for one in maps] == ["latency (alone), 8 B: rounds", "latency (loaded), 8 B: rounds"]
    assert [one["worst"][0][2] for one in maps] == pytest.approx([2 * US, 50 * US])


def test_conditions_keep_their_own_rounds():
    alone, loaded = conditions(VICTIMS)
    assert (alone.facts.schedule.rounds, loaded.facts.schedule.rounds) == (2, 2)
    assert alone.arrays["time_mean"][0, :, 0] == pytest.approx([2 * US] * 2)
    assert loaded.arrays["time_mean"][0, :, 0] == pytest.approx([50 * US] * 2)
    assert conditions(alone) == [alone]
    assert conditions(STAR) == [STAR]


def test_a_collective_has_a_distribution_over_ranks_and_no_map(tmp_path):
    page = render(*case(tmp_path, WORLD))
    assert data_of(page)["maps"] == []
    assert "Distribution over ranks at 0 B" in readable(page)
    assert "all ranks together <span>6 ranks</span>" in page
    for figure in ("1.00 us", "6.00 us"):
        assert f">{figure}<" in readable(page)


def test_a_collective_beside_pairs_leaves_the_map_to_the_pairs(tmp_path):
    pairs = row("latency", "pairs", both_ways({(0, 3): [US], (3, 0): [US], (1, 2): [US], (2, 1): [US]}), ranks=6)
    page = render(*case(tmp_path, WORLD, pairs))
    assert {one["row"] for one in data_of(page)["maps"]} == {"latency"}


def test_the_map_of_a_star_names_leaf_and_hub(tmp_path):
    (one,) = (one for one in data_of(render(*case(tmp_path, STAR)))["maps"] if "worst" in one)
    assert one["worst"][0][:2] == [5, 0]
    assert one["backwards"] and one["rate"]


@needs_chromium
def test_the_arrow_points_where_the_payload_goes(tmp_path, reader):
    path = tmp_path / "index.html"
    write_html(*case(tmp_path, STAR), path)
    page = reader.open(path, "#row=bandwidth&size=1000&src=4&dst=0")
    assert page.inner_text("#readout").startswith("n4 \u2190 n0: 250 MB/s")
    assert "across: receiving rank" in page.inner_text("#axes")
    page.click("#worst-title")
    assert page.locator("#worst tbody tr").first.locator("td").all_inner_texts()[:2] == ["n0", "n5"]


def test_show_counts_cells_of_all_shapes(tmp_path):
    summary = run_summary(case(tmp_path, VICTIMS, WORLD, STAR)[0])
    for words in ("8 of 8 (100 %)", "6 of 6 (100 %)", "5 of 5 (100 %)"):
        assert words in summary
