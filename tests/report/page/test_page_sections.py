"""Sections of the page that are drawings or lists: topology, curves, counters, facts."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from report_cases import bench_run, diagnose, healthy_case
from table_cases import row, run_of

from fablint.model import Scope, State
from fablint.report import write_html
from fablint.report.drawings.curves import curve
from fablint.report.drawings.topology_drawing import drawing
from fablint.report.html.core_pairs import core_pairs
from fablint.report.html.fact_lists import all_facts, changed_counters
from fablint.report.html.maps import page_data
from fablint.report.html.page import timelines
from fablint.report.survey.report_source import ReportSource
from fablint.simulate import SimulatedFabric, dragonfly, fat_tree, simulate
from fablint.simulate.rounds import all_rounds
from fablint.simulate.simulated_rows import CHECK_ROWS
from fact_cases import attributes_of, run_facts, with_facts
from finding_cases import finding


def drawn(fabric, *found):
    run = simulate(fabric, seed=1)
    return drawing(ReportSource(run, diagnose(run, fabric.topology, "fault", found)))


def test_a_tree_has_its_levels_above_each_other_and_faulty_components_in_their_colours():
    host = finding(State.FAULT, "host", "h05")
    cable = finding(State.SUSPECT, "cable", "leaf1=spine2")
    picture = drawn(fat_tree(4, 2), host, cable)
    heights = {dot.name: dot.y for dot in picture.dots}
    assert heights["spine0"] < heights["leaf0"] < heights["h00"] < picture.height
    assert [(dot.name, dot.kind, dot.state) for dot in picture.dots if dot.state] == [("h05", "host", "fault")]
    assert [(state, name) for _, state, name in picture.links] == [("suspect", "leaf1=spine2")]
    names = {(name, state) for _, _, name, state in picture.names}
    assert {("h05", "fault"), ("leaf1=spine2", "suspect"), ("spine0", "")} <= names
    lowest = max(dot.y + dot.size / 2 for dot in picture.dots)
    assert next(y for _, y, name, _ in picture.names if name == "h05") > lowest
    assert len(picture.cables) == 15 and picture.has_few_cables


def test_hosts_are_named_below_their_switch_or_where_one_points_at_it():
    picture = drawn(fat_tree(4, 2), finding(State.FAULT, "host", "h05"))
    names = {name: y for _, y, name, _ in picture.names}
    assert {"h[00-03]", "h[04-07]", "h[08-11]", "h[12-15]", "h05"} <= names.keys()
    assert names["h[04-07]"] > names["h05"] == names["h[00-03]"]
    many = drawn(dragonfly(9, 4, 4))
    assert not any(name.startswith("h") for _, _, name, _ in many.names)
    assert {"g0r0: h[000-003]", "g8r3: h[140-143]", "h000"} <= {dot.title for dot in many.dots}


def test_a_suspect_route_is_a_line_below_its_two_hosts():
    route = finding(State.SUSPECT, "route", "h00>h05")
    block = finding(State.CONFOUNDED, "route", "h[00-01]=h[06-07]")
    unjudged = finding(State.NOT_JUDGED, "route", "h02=h03")
    picture = drawn(fat_tree(4, 2), route, block, unjudged)
    assert [(state, name) for _, state, name in picture.routes] == [
        ("suspect", "h00>h05"),
        ("confounded", "h[00-01]=h[06-07]"),
    ]
    places = {dot.name: (dot.x, dot.y) for dot in picture.dots}
    (points, _, _), _ = picture.routes
    assert (points[0], points[-1]) == (places["h00"], places["h05"])
    assert not picture.links and not any(dot.state for dot in picture.dots)
    assert ("h00>h05", "suspect") in {(name, state) for _, _, name, state in picture.names}
    assert "route has a finding" in picture.words


def test_a_dragonfly_is_boxes_of_groups_with_their_switches_inside():
    picture = drawn(dragonfly(5, 2, 2))
    inside = {
        box.name: {
            dot.name
            for dot in picture.dots
            if box.x < dot.x < box.x + box.width and box.y < dot.y < box.y + box.height and dot.kind == "switch"
        }
        for box in picture.boxes
    }
    assert inside == {f"g{group}": {f"g{group}r0", f"g{group}r1"} for group in range(5)}


def test_the_name_of_a_level_link_does_not_cover_it():
    picture = drawn(dragonfly(5, 2, 2), finding(State.FAULT, "link", "g1r0>g1r1"))
    ((_, level), (_, other)), _, _ = picture.links[0]
    assert level == other
    assert next(y for _, y, name, _ in picture.names if name == "g1r0>g1r1") < level - 8


def test_of_many_cables_only_those_of_findings_are_drawn_and_the_page_says_so(monkeypatch):
    found = finding(State.FAULT, "link", "g1r0>g1r1")
    assert "cables" not in drawn(dragonfly(5, 2, 2), found).words
    monkeypatch.setattr("fablint.report.drawings.topology_drawing.MOST_CABLES", 10)
    picture = drawn(dragonfly(5, 2, 2), found)
    assert picture.words.endswith("; of the cables only those of findings")
    assert not picture.cables and picture.links


@pytest.mark.parametrize(("ranks", "is_table"), [(4, True), (16, False)])
def test_few_ranks_of_one_host_are_a_table_of_pairs_and_no_map(ranks: int, is_table: bool) -> None:
    cells = {(a, b, 0): [1e-6 * (1 + a)] for a in range(ranks) for b in range(ranks) if a != b}
    run = run_of(row("latency", "all-pairs", cells, ranks=ranks))
    run = with_facts(run, hosts=["vm"], rank_host=[0] * ranks, rank_cores=[str(2 * rank) for rank in range(ranks)])
    source = ReportSource(run, diagnose(run, None, "pass", ()))
    found = core_pairs(source)
    assert (found is not None) == is_table == (not page_data(source)["maps"])
    if found is not None:
        assert found.head == ("from", "to", "latency, 8 B") and len(found.lines) == ranks * (ranks - 1)
        assert found.lines[3] == ("core 2", "core 0", "2.00 us")


def test_no_drawing_without_a_topology():
    run, _ = healthy_case()
    assert drawing(ReportSource(run, diagnose(run, None))) is None


def test_a_curve_rises_with_the_size_and_two_sizes_are_none():
    run = bench_run("latency", samples=np.array([1e-6]))
    row = run.rows[0]
    sizes = np.array([8, 1024, 65536])
    grown = {"size": sizes, "time_median": row.arrays["time_median"] * np.array([1, 2, 100])}
    grown |= {"count": np.repeat(row.arrays["count"], 3, axis=2)}
    kept = {name: array for name, array in row.arrays.items() if name in ("dst", "started")}
    run = replace(run, rows=(replace(row, arrays={**kept, **grown}),))
    surveys = ReportSource(run, diagnose(replace(run, rows=()), None)).surveys["latency"]
    plot = curve(surveys)
    assert plot.x_labels == ("8 B", "1 KiB", "64 KiB")
    assert plot.y_labels == ("100 us", "10.0 us", "1.00 us")
    assert next(layer.points for layer in plot.layers if layer.kind == "line") == ((0, 240), (500, 204), (1000, 0))
    assert curve(surveys[:2]) is None


def test_error_counters_that_grew_are_listed_with_the_largest_first():
    run = bench_run("latency", samples=np.array([1e-6]))
    before = {"n0": {"hsn0": {"rx_errors": 5, "rx_bytes": 1, "drops": 0, "link_downed": 2}}}
    after = {"n0": {"hsn0": {"rx_errors": 7, "rx_bytes": 999, "drops": 40, "link_downed": 2}}}
    run = with_facts(run, counters={"before": before, "after": after})
    assert changed_counters(run) == [("n0 hsn0", "drops", "40"), ("n0 hsn0", "rx_errors", "2")]


def test_facts_are_lines_and_equal_values_stand_once():
    run = bench_run("latency", samples=np.array([1e-6]))
    attributes = {**attributes_of(run), "rank_numa": [0, 0], "instrument": {"clock": "tsc"}}
    facts = dict(all_facts(replace(run, facts=run_facts(attributes))))
    assert facts["rank_numa"] == "0 (2 times)" and facts["instrument clock"] == "tsc"
    assert facts["row latency: pattern"] == "pairs"


def test_pairs_that_are_spread_over_time_have_no_time_line():
    """56 pairs, one after the other: no moment has enough of them for a median."""
    fabric = fat_tree(2, 3)
    run = simulate(fabric, rows=[replace(row, order="serial") for row in CHECK_ROWS], seed=1)
    source = ReportSource(run, diagnose(run, fabric.topology, "pass", ()))
    assert set(timelines(source).values()) == {None}


def test_a_distance_whose_model_is_that_of_short_paths_is_compared_with_its_median_if_nothing_explains_it() -> None:
    """The model of such a distance is that of its shortest paths: most healthy pairs would be shown as slow."""
    fabric = fat_tree(4, 2)
    run = simulate(fabric, seed=2)
    measured = diagnose(run, fabric.topology)
    times = {fit.row: fit.class_time[Scope.GLOBAL] for fit in measured.fits}
    fits = tuple(
        replace(fit, class_time={**fit.class_time, Scope.GLOBAL: 0.8 * times[fit.row]}) for fit in measured.fits
    )
    source = ReportSource(run, replace(measured, fits=fits))
    row = source.rows[0]
    assert abs(np.median(source.cells[row.name].cells.residual)) < 0.01
    shown = source.fit_of(row, row.sizes[0])
    assert shown is not None and shown.class_time[Scope.GLOBAL] == pytest.approx(times[row.name], rel=0.02)
    assert {one["completed"] for one in page_data(source)["maps"] if "completed" in one} == {("global",)}
    slow = finding(State.FAULT, "host", "h[00-15]", quantity=row.quantity, effect=-0.2)
    verdict = measured.verdict.model_copy(update={"findings": (slow,)})
    explained = ReportSource(run, replace(measured, verdict=verdict, fits=fits)).fit_of(row, row.sizes[0])
    assert explained is not None and explained.class_time[Scope.GLOBAL] == pytest.approx(0.8 * times[row.name])


@pytest.mark.parametrize(("repeats", "counted"), [(1, "pairs"), (2, "measurements")])
def test_pairs_that_were_measured_twice_are_not_counted_as_pairs(tmp_path, repeats, counted) -> None:
    fabric = fat_tree(4, 2)
    run = SimulatedFabric(fabric, (), seed=2).measure(all_rounds(16)[:6] * repeats)
    write_html(run, diagnose(run, fabric.topology, "pass", ()), tmp_path / "index.html")
    distances, *rows = re.findall(
        r">(pairs|measurements)</th>", (tmp_path / "index.html").read_text().partition('id="facts"')[0]
    )
    assert (distances, set(rows)) == ("pairs", {counted})
