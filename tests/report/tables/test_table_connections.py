"""Variance between connections and within them, of samples with known components and of values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from table_cases import row, run_of

from fablint.errors import UsageError
from fablint.model import Row
from fablint.report import Options, connection_facts, render_table, run_summary
from fablint.report.connection_variance import MeanSquares, connection_variances
from fact_cases import attributes_of, row_facts, with_facts
from pinned import pinned_by

PINNED = pinned_by("report.toml", __file__)


def drawn(rng: np.random.Generator, pairs: int, connections: int, shared: float, own: float, within: float):
    """Log times (pairs, connections, 2): effects that all pairs of a start share, those of a pair, those of a pass."""
    starts = shared * rng.standard_normal((1, connections, 1)) + own * rng.standard_normal((pairs, connections, 1))
    return rng.standard_normal((pairs, 1, 1)) + starts + within * rng.standard_normal((pairs, connections, 2))


def made(log_time: np.ndarray, layout: str = "matrix", passes: int = 2) -> Row:
    """A row of two ranks with (2, repeats) log times of both directions."""
    repeats = log_time.shape[1]
    if layout == "list":
        cells = {(src, 1 - src, at): [math.exp(log_time[src, at])] for src in (0, 1) for at in range(repeats)}
        return row("latency", "pair", cells, rounds=repeats, repeats=repeats, reconnect=passes, transport="tcp")
    times = np.full((repeats, 2, 2, 1), np.nan)
    times[:, [0, 1], [1, 0], 0] = np.exp(log_time).T
    base = row("latency", "all-pairs", {(0, 1, 0): [1.0], (1, 0, 0): [1.0]})
    attributes = {**attributes_of(base), "repeats": repeats, "reconnect": passes, "transport": "tcp"}
    return Row("latency", row_facts(attributes), {**base.arrays, "time_median": times, "time_mean": times})


def test_mean_squares_by_hand():
    """Means of connections 1 and 3, of passes 1 apart."""
    squares = MeanSquares.of(np.array([[[0.5, 1.5], [2.5, 3.5]]]))
    assert (squares.between, squares.within) == (pytest.approx(4.0), pytest.approx(0.5))
    assert (squares.between_freedom, squares.within_freedom) == (1, 2)
    assert squares.between_connections.value == pytest.approx(math.sqrt((4.0 - 0.5) / 2))
    assert squares.within_connections.value == pytest.approx(math.sqrt(0.5))


@pytest.mark.parametrize(
    ("pairs", "connections", "shared", "own", "within"),
    [(1, 4, 0.02, 0.0, 0.01), (12, 8, 0.01, 0.01, 0.02), (30, 6, 0.02, 0.005, 0.02), (12, 4, 0.0, 0.0, 0.02)],
)
def test_known_components_are_in_their_intervals(pairs, connections, shared, own, within):
    rng = np.random.default_rng(7)
    truth = {"pair": math.hypot(shared, own), "mean": math.hypot(shared, own / math.sqrt(pairs))}
    held, samples = dict.fromkeys(("between", "within", "floor", "floor of mean"), 0), 400
    for _ in range(samples):
        log_time = drawn(rng, pairs, connections, shared, own, within)
        squares = MeanSquares.of(log_time)
        of_mean = MeanSquares.of(log_time.mean(axis=0, keepdims=True))
        held["between"] += squares.between_connections.low <= truth["pair"] <= squares.between_connections.high
        held["within"] += squares.within_connections.low <= within <= squares.within_connections.high
        two = drawn(rng, pairs, 2, shared, own, within)[:, :, 0]
        held["floor"] += abs(two[0, 0] - two[0, 1]) <= squares.noise_floor
        held["floor of mean"] += abs(np.diff(two.mean(axis=0))[0]) <= of_mean.noise_floor
    assert min(held.values()) >= 0.92 * samples, held


def test_connections_that_hash_to_two_unequal_paths_have_their_variance_in_the_interval():
    """A path of 50 and one of 30 Mbit/s: the effect of a connection is one of two values, and not normal."""
    rng = np.random.default_rng(7)
    step, samples = math.log(50 / 30), 400
    held = 0
    for _ in range(samples):
        log_time = step * rng.integers(0, 2, (2, 16, 1)) + 0.05 * rng.standard_normal((2, 16, 2))
        between = MeanSquares.of(log_time).between_connections
        held += between.low <= step / 2 <= between.high
        assert between.low > 0.05
    assert held >= 0.92 * samples


@pytest.mark.parametrize("layout", ["matrix", "list"])
def test_both_layouts_have_the_same_components(layout):
    log_time = drawn(np.random.default_rng(3), 2, 5, 0.1, 0.05, 0.01)
    [found] = connection_variances(made(log_time.reshape(2, 10), layout))
    expected = MeanSquares.of(log_time)
    assert (found.pairs, found.connections, found.size) == (2, 5, 8)
    assert found.of_pair.between == pytest.approx(expected.between, rel=1e-4)
    assert found.of_pair.within == pytest.approx(expected.within, rel=1e-3)
    assert found.of_pair.between_connections.low > found.of_pair.within_connections.high


def test_connections_that_were_not_measured_are_left_out():
    log_time = drawn(np.random.default_rng(3), 2, 5, 0.1, 0.05, 0.01).reshape(2, 10)
    log_time[:, 8:] = np.nan  # the run was stopped
    log_time[0, :] += 5.0  # a slower pair is not variance of connections
    [found] = connection_variances(made(log_time))
    assert (found.connections, found.pairs) == (4, 2)
    assert found.of_pair.between_connections.value < 0.5


def test_rows_that_kept_their_connections_have_no_components():
    log_time = drawn(np.random.default_rng(3), 2, 5, 0.1, 0.05, 0.01).reshape(2, 10)
    kept = made(log_time, passes=0)
    assert (connection_variances(kept), connection_facts([kept])) == ([], {})
    assert connection_variances(made(log_time[:, :3])) == []
    with pytest.raises(UsageError, match="table connections needs rows that opened their connections anew"):
        render_table(run_of(kept), "connections", Options())


def test_the_table_and_the_summary_state_what_two_starts_differ_by():
    anew = made(drawn(np.random.default_rng(3), 2, 5, 0.1, 0.05, 0.01).reshape(2, 10))
    run = run_of(with_facts(anew, rounds=10, cells_per_round=2))
    table = render_table(run, "connections", Options())
    of_pair = table.as_dict()["sizes"][0]["pair"]
    [found] = connection_variances(anew)
    assert of_pair["two_starts"] == pytest.approx(found.of_pair.noise_floor)
    two_starts = f"{100 * math.expm1(found.of_pair.noise_floor):.0f} %"
    assert f" {two_starts} " in table.text
    assert PINNED["over 5 sets of tcp connections"] in table.text
    assert PINNED["two starts of a pair differ"].filled(two_starts=two_starts) in run_summary(run)
