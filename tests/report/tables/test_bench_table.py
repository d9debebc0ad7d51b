"""The bench table: figures, percentiles and units against numbers worked out by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from report_cases import bench_run

from fablint.errors import UsageError
from fablint.report import bench_table
from fablint.report.tables.quantiles import quantiles
from pinned import pinned_by

PINNED = pinned_by("report.toml", __file__)

EDGES = 1e-7 * 2 ** (np.arange(128 * 12) / 128)


def table(kernel="latency", percentiles=(50, 90, 99.9), **arrays):
    run = bench_run(kernel, **arrays)
    return bench_table(run, run.rows[0], percentiles)


@given(st.lists(st.floats(1e-6, 1e-4), min_size=1, max_size=500), st.floats(0, 1))
def test_histogram_quantiles_are_within_half_a_percent_of_the_samples(samples, share):
    counts, _ = np.histogram(samples, bins=np.append(EDGES, np.inf))
    exact = np.quantile(samples, share, method="inverted_cdf")
    assert quantiles(counts, EDGES, [share])[0] == pytest.approx(exact, rel=0.0055)


def test_percentiles_of_a_latency_come_from_the_histogram():
    samples = np.linspace(1e-6, 2e-6, 10_000)
    lines = table(samples=samples).lines
    assert lines[0].mean == pytest.approx(1.5, rel=1e-3)
    assert lines[0].percentiles == pytest.approx((1.5, 1.9, 1.999), rel=5e-3)


def test_p99_of_a_bandwidth_is_the_slow_end():
    samples = np.linspace(1e-6, 2e-6, 10_000)
    line = table("bandwidth", (1, 50, 99), samples=samples).lines[0]
    fast, middle, slow = line.percentiles
    assert fast > middle > slow
    assert slow == pytest.approx(line.size / 1.99e-6 / 1e6, rel=5e-3)
    assert line.mean == pytest.approx(line.size / 1.5e-6 / 1e6, rel=1e-3)


def test_bibandwidth_counts_both_directions():
    samples = np.full(1000, 1e-6)
    one, both = (table(kernel, (50,), samples=samples).lines[0] for kernel in ("bandwidth", "bibandwidth"))
    assert both.mean == pytest.approx(2 * one.mean)


def test_without_a_histogram_the_stored_statistics_answer_and_others_are_refused():
    samples = np.linspace(1e-6, 2e-6, 10_000)
    line = table(percentiles=(0, 50, 99, 100), samples=samples, histogram=False).lines[0]
    assert line.percentiles == pytest.approx((1, 1.5, 1.99, 2), rel=1e-3)
    with pytest.raises(
        UsageError,
        match=r"no histogram, so its percentile 99\.9 of the time is not known: measure it with --histogram",
    ):
        table(percentiles=(99.9,), samples=samples, histogram=False)


@pytest.mark.parametrize("percentile", [-1, 100.5, float("nan")])
def test_impossible_percentiles_are_refused(percentile):
    with pytest.raises(UsageError, match="not between 0 and 100"):
        table(percentiles=(percentile,), samples=np.full(10, 1e-6))


def test_columns_name_their_unit_and_keep_three_significant_digits():
    text = table(samples=np.full(100, 1.23456e-8), percentiles=(50,)).text
    comment, head, line = text.splitlines()
    assert PINNED["fablint latency, 2 directed"].begins(comment)
    assert head.split("  ")[0] == "# Size"
    assert "Avg Latency (us)" in head and "P50 (us)" in head
    assert line.split()[:2] == ["8", "0.0123"]
    assert "Bandwidth (MB/s)" in table("bandwidth", samples=np.full(100, 1e-6)).text


def test_sizes_that_were_not_measured_are_dashes_and_null():
    run = bench_run("latency", samples=np.full(100, 1e-6))
    row = run.rows[0]
    row = replace(row, arrays={**row.arrays, "count": np.zeros_like(row.arrays["count"])})
    empty = bench_table(run, row, (50,))
    assert empty.text.splitlines()[-1].split() == ["8", "-", "-"]
    assert json.loads(json.dumps(empty.as_dict()))["sizes"][0]["mean"] is None


def test_as_dict_is_json_with_named_percentiles():
    found = json.loads(json.dumps(table(samples=np.full(100, 1e-6), percentiles=(50, 99.9)).as_dict()))
    assert found["unit"] == "us"
    assert list(found["sizes"][0]["percentiles"]) == ["P50", "P99.9"]
    assert (found["sizes"][0]["size"], found["sizes"][0]["samples"], found["sizes"][0]["pairs"]) == (8, 200, 2)
