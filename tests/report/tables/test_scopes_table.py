"""Tables by distance, of the bisection and of the thresholds."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from report_cases import diagnose, healthy_case, readable

from fablint.analyse.other_questions.missed_thresholds import compare, with_comparison
from fablint.model import Diagnosis, Placement, Run, Scope, Slots
from fablint.model.limits.thresholds import Threshold
from fablint.plan.check.levels import level_stage
from fablint.plan.check.plan_input import PlanInput
from fablint.plan.check.suites import find_suite
from fablint.report import console_summary
from fablint.report.html.page import render
from fablint.report.scopes import scope_lines
from fablint.report.survey.row_survey import survey
from fablint.simulate import Noise, SimulatedFabric, SimulatedRow, fat_tree
from fact_cases import attributes_of, run_facts, with_facts
from pinned import pinned_by

PINNED = pinned_by("report.toml", __file__)

FABRIC = fat_tree(4, 3)
SILENT = Noise(scale=0.0, spike_share=0.0, host_spread=0.0, link_spread=0.0, message_scale=0.0)
KERNELS = {"latency": (8,), "bandwidth": (1 << 16, 1 << 20), "bibandwidth": (1 << 20,)}


def suite_run(each: int = 1, suite: str = "acceptance") -> Run:
    """The levels between hosts of a suite, measured on the simulated fabric."""
    asked = PlanInput(64 * each, tuple(Slots(host, each) for host in FABRIC.hosts), FABRIC.topology)
    fabric = SimulatedFabric(FABRIC, noise=SILENT, ranks_per_host=each)
    rows, root = [], {}
    for level in find_suite(suite).levels[1:]:
        stage = level_stage(level, asked, asked.placement())
        assert stage is not None
        (rounds,) = stage.rounds.values()
        run = fabric.measure(rounds[:6], tuple(SimulatedRow(kernel, sizes) for kernel, sizes in KERNELS.items()))
        purpose = {"purpose": level.rows[0].purpose}
        rows += [replace(with_facts(row, **purpose), name=f"{level.name}-{row.kernel}") for row in run.rows]
        root = attributes_of(run)
    return Run(None, run_facts({**root, "rows": [row.name for row in rows]}), tuple(rows))


def judged(run: Run, *thresholds: Threshold) -> tuple[Diagnosis, object]:
    diagnosis = diagnose(run, FABRIC.topology)
    comparison = compare(run, thresholds, diagnosis)
    return with_comparison(diagnosis, comparison), comparison


def limit(scope: Scope | None, value: float) -> Threshold:
    return Threshold(scope, "bandwidth", 1 << 20, "bandwidth", value, 0.9 * value, None, "site.toml: threshold 1")


def test_each_distance_has_its_figures():
    run = suite_run()
    lines = scope_lines(run, Placement.of(run, FABRIC.topology))
    assert [line.section for line in lines if line.kernel == "latency"] == ["edge", "local", "global", "bisection"]
    assert [(line.kernel, line.size) for line in lines if line.section == "edge"] == [
        ("latency", 8),
        ("bandwidth", 1 << 16),
        ("bandwidth", 1 << 20),
        ("bibandwidth", 1 << 20),
    ]
    edge, local, far = (line for line in lines if line.kernel == "latency" and line.section != "bisection")
    assert edge.low <= edge.mean <= edge.high < local.low < far.low
    assert edge.pairs == 64 * 3
    one_way, both = (
        next(line for line in lines if (line.section, line.kernel, line.size) == ("edge", kernel, 1 << 20))
        for kernel in ("bandwidth", "bibandwidth")
    )
    assert 1.5 * one_way.mean < both.mean <= 2.01 * one_way.mean
    assert {line.per_host for line in lines} == {None}
    assert json.loads(json.dumps([line.facts() for line in lines]))[0]["section"] == "edge"


def test_what_ranks_of_a_host_send_at_once_is_added_up():
    run = suite_run(2)
    lines = scope_lines(run, Placement.of(run, FABRIC.topology))
    line = next(line for line in lines if (line.section, line.kernel) == ("edge", "bandwidth"))
    assert line.per_host == pytest.approx(2 * line.mean, rel=0.01)
    assert "per host" in line.beside
    assert {line.per_host for line in lines if line.kernel == "latency"} == {None}


def test_the_bisection_is_added_up_by_round():
    run = suite_run(suite="bisection")
    (line,) = (
        line
        for line in scope_lines(run, Placement.of(run, FABRIC.topology))
        if (line.section, line.kernel) == ("bisection", "bibandwidth")
    )
    assert line.pairs == 2 * 6 * 32
    low, mean, high = line.sums
    assert low <= mean <= high
    assert mean == pytest.approx(32 * line.mean)
    assert "all pairs at once" in line.beside


def test_a_matrix_is_described_by_its_survey():
    run, diagnosis = healthy_case()
    placement = Placement.of(run, diagnosis.topology)
    order = np.arange(run.ranks)
    surveys = {row.name: survey(row, {}, placement, order, 1) for row in run.rows}
    assert scope_lines(run, placement) == []
    lines = scope_lines(run, placement, surveys)
    line = next(line for line in lines if (line.section, line.kernel) == ("local", "bandwidth"))
    row = run.row("bandwidth")
    sent = np.asarray(row.arrays["time_median"])[0, :, :, 0]
    src, dst = np.nonzero(sent > 0)
    mine = placement.scopes(src, dst) == list(Scope).index(Scope.LOCAL)
    rates = row.sizes[0] / sent[src[mine], dst[mine]]
    assert line.pairs == mine.sum()
    assert (line.low, line.mean, line.high) == pytest.approx((rates.min(), rates.mean(), rates.max()), rel=1e-3)


def test_without_a_topology_there_is_no_table():
    run = suite_run()
    assert scope_lines(run, Placement.of(run)) != []  # the bisection is one by itself
    near = replace(run, rows=tuple(row for row in run.rows if not row.name.startswith("bisection")))
    assert scope_lines(near, Placement.of(near)) == []


def test_each_distance_and_kernel_has_a_line():
    run = suite_run()
    lines = scope_lines(run, Placement.of(run, FABRIC.topology))
    assert len(lines) == 16
    assert lines[0].section == "edge"


def test_the_console_tells_distances_and_thresholds():
    run = suite_run()
    diagnosis, _ = judged(run, limit(None, 1e9), limit(Scope.EDGE, 1e12))
    words = console_summary(run, diagnosis)
    assert "edge: latency " in words
    assert "bisection: " in words
    assert PINNED["thresholds 2 of 3 met; missed"] in words
    assert "thresholds" not in console_summary(run, diagnose(run, FABRIC.topology))
    assert len(words.splitlines()) <= 25


def test_the_page_shows_them_resolved():
    run = suite_run()
    diagnosis, _ = judged(run, limit(None, 1e9), limit(Scope.EDGE, 1e12))
    page = readable(render(run, diagnosis))
    assert "Thresholds of the site" in page
    assert page.count('class="met"') == 2
    assert page.count('class="missed"') == 1
    assert "By distance" in page
    assert "all pairs at once" in page
    assert "at least 900 GB/s" in page
    assert "Thresholds of the site" not in render(run, diagnose(run, FABRIC.topology))
