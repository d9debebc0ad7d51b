"""Matrices, frames and charts of the page against simulated faults, whose truth is known."""

from __future__ import annotations

import base64
import functools
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from report_cases import diagnose
from table_cases import row as table_row

from fablint.analyse import diagnose as analysed
from fablint.model import Placement, State
from fablint.plan.schedule.stratified import stratified_rounds
from fablint.report.drawings.finding_charts import strips
from fablint.report.drawings.link_values import all_links
from fablint.report.drawings.scales import bulk_ends, ticks
from fablint.report.drawings.strips import percent_of, timeline
from fablint.report.html.block_maps import BlockCells, Blocks, divisions
from fablint.report.html.charts import RowCharts, host_effects
from fablint.report.html.maps import page_data
from fablint.report.survey import measured_cells
from fablint.report.survey.late_shares import late_shares
from fablint.report.survey.measured_cells import MeasuredCells
from fablint.report.survey.report_source import ReportSource
from fablint.simulate import (
    Fault,
    Noise,
    SimulatedFabric,
    SimulatedRow,
    dragonfly,
    fat_tree,
    full_mesh,
    simulate,
)
from fablint.simulate.rounds import all_rounds
from fablint.text import evidence as seen
from fablint.topology.routed_placement import RoutedPlacement
from fact_cases import with_facts
from finding_cases import component, finding

FABRIC = fat_tree(4, 2)
LINK = finding(State.FAULT, "link", "leaf1>spine2", quantity="bandwidth", effect=-0.4)


@functools.cache
def source(rounds: int | None) -> ReportSource:
    """The run of a tree of 16 hosts with a slow up-link, of all pairs or of some rounds."""
    simulated = SimulatedFabric(FABRIC, (Fault(component("link", "leaf1>spine2"), bandwidth_factor=0.6),), seed=3)
    fits = diagnose(simulated.measure(None), FABRIC.topology, "fault", (LINK,))
    run = simulated.measure(all_rounds(16)[:rounds] if rounds else None)
    return ReportSource(run, fits)


def numbers(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=kind)


def decoded(coded: dict[str, Any]) -> np.ndarray:
    codes = numbers(coded["codes"], "<u2")
    return np.where(codes > 0, coded["low"] + (codes - 1.0) * coded["step"], np.nan)


@pytest.mark.parametrize("rounds", [None, 12])
def test_frames_are_around_the_pairs_that_the_link_slows_and_no_others(rounds):
    data = page_data(source(rounds))
    (mark,) = data["marks"]
    framed = np.zeros((16, 16), dtype=bool)
    for top, bottom, left, right in numbers(mark["frames"], "<i4").reshape(-1, 4):
        framed[top:bottom, left:right] = True
    cells = source(rounds).cells["bandwidth"].cells
    place = source(rounds).place
    inside = framed[place[cells.src], place[cells.dst]]
    assert 0 < inside.sum() < 0.1 * inside.size
    assert np.expm1(-np.median(cells.residual[inside])) == pytest.approx(-0.4, abs=0.05)
    assert abs(np.expm1(-np.median(cells.residual[~inside]))) < 0.02


def test_of_rounds_the_slow_link_is_the_slowest_cell_of_the_matrix_of_links_that_is_shown_first():
    data = page_data(source(12))
    shown = data["maps"][data["first"]]
    assert shown["kind"] == "link" and shown["row"] == "bandwidth"
    worst = int(numbers(shown["at"], "<i4")[np.nanargmax(decoded(shown["residual"]))])
    down, across = divmod(worst, len(shown["names"]))
    assert (shown["names"][down], shown["names"][across]) == ("leaf1", "spine2")
    assert data["marks"][0]["links"] == [(down, across)]


@pytest.mark.parametrize(("most", "kind"), [(20_000, "rounds"), (10, "switch x switch")])
def test_of_more_ranks_than_a_map_has_columns_medians_are_shown_first(most: int, kind: str, monkeypatch) -> None:
    monkeypatch.setattr("fablint.report.html.maps.MOST_COLUMNS", most)
    simulated = SimulatedFabric(FABRIC, (Fault(component("host", "h05"), "tx", bandwidth_factor=0.6),), seed=3)
    slow = finding(State.FAULT, "host", "h05", quantity="bandwidth", effect=-0.4, direction="tx")
    run = simulated.measure(all_rounds(16)[:12])
    shown = page_data(ReportSource(run, diagnose(run, FABRIC.topology, "fault", (slow,))))
    assert shown["maps"][shown["first"]]["label"].endswith(kind)


def test_of_blocks_of_many_pairs_medians_are_shown_first(monkeypatch) -> None:
    data = page_data(source(None))
    assert data["maps"][data["first"]]["label"] == "bandwidth, 1 MiB: every pair"
    monkeypatch.setattr("fablint.report.html.maps.MOST_SIDE", 0)
    data = page_data(source(None))
    assert data["maps"][data["first"]]["label"] == "bandwidth, 1 MiB: links between switches"


def test_an_axis_keeps_the_name_of_a_link_s_switch_on_its_side_only():
    (mark,) = page_data(source(12))["marks"]
    assert mark["ends"] == [{"runs": [(4, 8)], "name": "leaf1", "side": "tx"}]


def test_a_cable_between_switches_is_not_marked_as_one_of_hosts():
    run, topology = source(12).run, FABRIC.topology
    for label, is_of_hosts in (("leaf1=spine2", False), ("h05=leaf1", True)):
        found = finding(State.FAULT, "cable", label, quantity="bandwidth", effect=-0.4)
        (mark,) = page_data(ReportSource(run, diagnose(run, topology, "fault", (found,))))["marks"]
        assert (mark["hosts"], mark["ends"][0]["name"]) == (is_of_hosts, label if is_of_hosts else "leaf1")


def test_hosts_of_one_finding_keep_their_own_names_on_the_axes() -> None:
    unjudged = finding(State.NOT_JUDGED, "host", "h[01,03-04]")
    run, topology = source(12).run, FABRIC.topology
    (mark,) = page_data(ReportSource(run, diagnose(run, topology, "incomplete", (unjudged,))))["marks"]
    assert mark["ends"] == [{"runs": [(1, 2), (3, 5)], "name": "", "side": None}]


def test_the_two_hosts_of_a_route_keep_their_own_names_on_the_axes() -> None:
    slow = finding(State.SUSPECT, "route", "h01=h05", quantity="bandwidth", effect=-0.4)
    run, topology = source(12).run, FABRIC.topology
    (mark,) = page_data(ReportSource(run, diagnose(run, topology, "fault", (slow,))))["marks"]
    assert [end["name"] for end in mark["ends"]] == ["h01", "h05"]


def test_without_a_finding_a_map_of_deviations_is_shown_first() -> None:
    fabric = dragonfly(3, 3, 2)
    run = SimulatedFabric(fabric, (), seed=3).measure(
        stratified_rounds(RoutedPlacement.on_routes(fabric.hosts, fabric.topology)),
        (SimulatedRow("latency", (8,), histogram=True),),
    )
    unjudged = finding(State.NOT_JUDGED, "link", "g0r0>g0r1", quantity="latency")
    data = page_data(ReportSource(run, diagnose(run, fabric.topology, "incomplete", (unjudged,))))
    assert any("late" in one for one in data["maps"])
    assert "late" not in data["maps"][data["first"]]


def test_a_host_among_many_on_its_switch_is_framed_as_diluted():
    """In a cell of 16 measurements one is of the host: too few for a median, and for a link no frame."""
    pairs, codes = np.arange(64), np.repeat(np.arange(4), 16)
    cells = BlockCells(Blocks("switch", ("a", "b"), (0, 1, 2)), np.arange(4), codes, np.full(4, 16))
    host, link, block = pairs[::16][:2], pairs[::16][:2], pairs[:16]
    frames = cells.frames([(host, True), (link, False), (block, True)]).facts(cells.used)
    assert frames["diluted"] == [True, False, False]
    assert [numbers(one, "<i4").tolist() for one in frames["framed"]] == [[0, 1], [], [0]]


def test_a_matrix_of_switches_has_the_median_of_their_pairs():
    data = page_data(source(12))
    shown = next(one for one in data["maps"] if one.get("kind") == "switch" and one["row"] == "bandwidth")
    cells, switch = source(12).cells["bandwidth"].cells, source(12).placement.switch
    mine = (switch[cells.src] == 1) & (switch[cells.dst] == 3)
    assert shown["names"] == ("leaf0", "leaf1", "leaf2", "leaf3")
    at = numbers(shown["at"], "<i4").tolist().index(1 * 4 + 3)
    assert decoded(shown["time"])[at] == pytest.approx(float(np.median(cells.time[mine])), abs=1e-4)
    assert numbers(shown["pairs"], "<u2")[at] == mine.sum()


def test_cells_of_a_large_matrix_are_of_all_senders_and_receivers_and_of_all_pairs_of_switches(monkeypatch) -> None:
    monkeypatch.setattr(measured_cells, "MOST_CELLS", 4096)
    monkeypatch.setattr(measured_cells, "_BLOCK", 50_000)
    ranks, hosts_of_switch = 512, 16
    times = np.ones((1, ranks, ranks, 1), np.float32)
    row = table_row("latency", "all-pairs", {(0, 1, 0): [1e-6]})
    started = np.arange(ranks * ranks, dtype=float).reshape(1, ranks, ranks)
    row = replace(row, arrays={**row.arrays, "time_median": times, "count": times, "started": started})
    cells = MeasuredCells.of(row, row.sizes[0], None, source(12).placement)
    assert not cells.complete and (cells.src != cells.dst).all()
    assert set(cells.src) == set(cells.dst) == set(range(ranks))
    of_switches = np.bincount(cells.src // hosts_of_switch * 32 + cells.dst // hosts_of_switch, minlength=32 * 32)
    assert of_switches.min() >= 2 and of_switches.max() <= 2 * of_switches.min()
    assert (cells.started == cells.src * ranks + cells.dst).all()


def test_the_chart_of_a_finding_has_its_pairs_beside_those_that_no_finding_explains():
    plot = strips(source(12))[0]
    own, rest = map(float, re.findall(r"([-+][\d.]+) %", plot.words))
    assert own == pytest.approx(-40, abs=5) and abs(rest) < 2
    assert {layer.kind for layer in plot.layers} == {"band", "dots"}


def test_late_messages_are_counted_against_the_pair_s_own_median():
    cells = {(0, 1, 0): [1e-6], (1, 0, 0): [5e-6]}
    samples = {(0, 1, 0): np.repeat([1e-6, 2e-6], [96, 4]), (1, 0, 0): np.repeat([5e-6, 10e-6], [98, 2])}
    row = table_row("latency", "pairs", cells, samples=samples)
    found = MeasuredCells.of(row, row.sizes[0], None, source(12).placement)
    share, limit = late_shares(row, row.sizes[0], found)
    assert 1.0 < limit < 2.0
    assert share[np.argsort(found.src)] == pytest.approx([0.04, 0.02])


def test_the_slow_link_of_an_adaptive_fabric_has_the_most_late_messages() -> None:
    fabric, row = (
        dragonfly(9, 4, 2),
        SimulatedRow("bandwidth", (1 << 20,), histogram=True, statistics=("median", "p99")),
    )
    faulty = SimulatedFabric(fabric, (Fault(component("link", "g0r1>g0r2"), bandwidth_factor=0.5),), seed=3)
    run = faulty.measure(stratified_rounds(RoutedPlacement.on_routes(fabric.hosts, fabric.topology)), (row,))
    found = ReportSource(run, analysed(run, fabric.topology))
    values = all_links(found)[run.rows[0].name]
    assert values.late is not None and found.routes is not None
    assert found.routes.names[int(np.nanargmax(values.late))] == "g0r1>g0r2"
    own, rest = map(float, re.findall(r"([\d.]+) %", strips(found)[0].words))
    assert own > 30 > 10 > rest
    shown = {one["kind"]: one for one in page_data(found)["maps"] if "late" in one}
    share = decoded(shown["link"]["time"])
    assert np.count_nonzero(share >= shown["link"]["raw_scale"][1] - 1e-3) == 1  # the only one in the last colour
    framed = np.isin(numbers(shown["switch"]["at"], "<i4"), numbers(shown["switch"]["framed"][0], "<i4"))
    assert decoded(shown["switch"]["time"])[framed].max() <= shown["switch"]["raw_scale"][1] + 1e-3


def test_a_host_that_is_not_judged_is_explained_by_no_finding() -> None:
    found = source(None)
    states = (State.FAULT, State.NOT_JUDGED)
    named = [finding(state, "host", f"h{host:02d}") for host, state in enumerate(states)]
    effects = {one.host: one for one in host_effects(found.run, found.diagnosis.fits[0], 240, named)}
    assert {host: effects[host].explained for host in effects.keys() & {"h00", "h01"}} == {
        "h00": "FAULT host h00",
        "h01": "",
    }


def test_a_finding_explains_effects_only_in_rows_where_it_was_seen() -> None:
    found = source(None)
    fit = found.diagnosis.fits[0]
    for row, words in ((fit.row, "FAULT host h00"), ("other", "")):
        record = seen.weak_host().measured_in(row)
        named = finding(State.FAULT, "host", "h00").model_copy(update={"evidence": (record,)})
        assert {one.host: one.explained for one in host_effects(found.run, fit, 240, [named])}["h00"] == words


@pytest.mark.parametrize(("drift", "words"), [(-0.02, "+0.0 %"), (-0.06, "-0.1 %"), (0.24, "+0.2 %")])
def test_nothing_has_no_minus_sign(drift: float, words: str) -> None:
    assert percent_of(drift) == words


def test_a_spike_does_not_set_the_ends_of_a_scale():
    assert bulk_ends(-0.1, 0.0, 0.1, 9.0) == pytest.approx([-0.1, 0.25])
    assert bulk_ends(-0.1, 0.0, 0.1, 0.12) == pytest.approx([-0.1, 0.12])


@pytest.mark.parametrize("ends", [(0.0, 1.0), (-47.3, 3.2), (0.0, 0.0), (99.7, 101.2), (-3e-9, 7e-7)])
def test_ticks_are_few_equally_far_apart_and_cover_the_values(ends):
    found = ticks(*ends)
    assert 2 <= len(found) <= 6
    assert found[0] <= ends[0] + 1e-12 and found[-1] >= ends[1] - 1e-12
    assert np.ptp(np.diff(found)) < 1e-9


@pytest.mark.parametrize("together", [1, 5])
@pytest.mark.filterwarnings("error")
def test_a_timeline_has_medians_of_measurements_of_one_time(together: int) -> None:
    """Measurements far apart in time, as those of a serial row, have no median at any time, and no timeline."""
    row = SimulatedFabric(FABRIC, seed=3).measure(all_rounds(16)[:1]).rows[0]
    count = 60 * together
    ranks = np.arange(count, dtype=np.int32) % 16
    started = np.repeat(np.arange(60.0), together)
    at = (ranks, np.zeros_like(ranks))
    residual = np.zeros(count, np.float32)
    cells = MeasuredCells(ranks, ranks[::-1], residual, residual, started, at)
    plot = timeline(row, row.sizes[0], cells, residual)
    assert (plot is None) == (together == 1)


@pytest.mark.parametrize(("hosts", "is_known"), [(4, False), (6, False), (8, True), (16, True)])
def test_the_scatter_of_pairs_is_stated_where_effects_of_ranks_do_not_explain_it(hosts: int, is_known: bool) -> None:
    """Of 4 hosts a model explained nearly all: pairs that scatter by 2.5 % had a rest of 0.1 to 1 %."""
    fabric = full_mesh(1, hosts)
    stated = []
    for seed in range(4):
        run = simulate(fabric, seed=seed, noise=Noise(spike_share=0.0))
        found = ReportSource(run, analysed(run, fabric.topology))
        name = run.rows[0].name
        stated.append(RowCharts.of(run, run.rows[0], found.surveys[name], ()).noise)
    assert all((one is not None) == is_known for one in stated)
    assert not is_known or np.median(stated) == pytest.approx(0.023, abs=0.008)


def test_the_effect_of_one_host_is_compared_with_nothing() -> None:
    run = source(None).run
    of_one = with_facts(run, hosts=["vm"], rank_host=[0] * run.ranks)
    name = run.rows[0].name
    for one, is_compared in ((run, True), (of_one, False)):
        found = ReportSource(one, source(None).diagnosis)
        charts = RowCharts.of(one, one.rows[0], found.surveys[name], ())
        assert bool(charts.hosts or charts.usual) == is_compared


@pytest.mark.parametrize("loss", [0.0, 0.15])
def test_hosts_whose_effect_is_beyond_the_noise_are_listed_else_a_sentence_says_that_none_is(loss: float) -> None:
    fabric = full_mesh(4, 8)
    faults = (Fault(component("host", "h05"), "tx", bandwidth_factor=1 - loss),) if loss else ()
    run = simulate(fabric, faults=faults, seed=3)
    found = ReportSource(run, analysed(run, fabric.topology))
    row = next(one for one in run.rows if one.quantity == "bandwidth")
    charts = RowCharts.of(run, row, found.surveys[row.name], ())
    assert [one.host for one in charts.hosts] == (["h05"] if loss else [])
    assert (charts.usual is None) == bool(loss)


@pytest.mark.parametrize(
    ("hosts", "names"),
    [
        ([f"n{number:02d}" for number in range(16)], {"n[00-03]", "n[04-07]", "n[08-11]", "n[12-15]"}),
        ([f"n{number**2}" for number in range(16)], {"n0..n9", "n16..n49", "n64..n121", "n144..n225"}),
    ],
)
def test_a_block_of_hosts_is_named_by_all_of_them(hosts: list[str], names: set[str]) -> None:
    placement = replace(Placement.of(simulate(full_mesh(1, 16), seed=1), None), hosts=tuple(hosts))
    (blocks,) = divisions(placement, np.arange(16), 96)
    assert set(blocks.names) == names
    assert divisions(placement, np.arange(16), 24) == []  # two blocks: four medians are no picture
