"""E-value increments: mean 1 under the null, bounded, and monotone in slowness."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fablint.analyse.explain.evidence import UNITS_PER_NAT, _grid as grid_of, gain_table, levels
from fablint.analyse.observations.robust_stats import interval_ranks, robust_sd, row_medians

POOLS = {
    "normal": lambda rng, n: rng.normal(0, 0.025, n),
    "student3": lambda rng, n: 0.025 * rng.standard_t(3, n),
    "lognormal": lambda rng, n: 0.025 * np.expm1(rng.normal(0, 1, n)),
    "quantised": lambda rng, n: np.round(rng.normal(0, 0.01, n), 2),
    "constant": lambda rng, n: np.zeros(n),
}


@settings(max_examples=60)
@given(name=st.sampled_from(sorted(POOLS)), size=st.integers(30, 3000), seed=st.integers(0, 10_000))
def test_expected_growth_under_the_null_is_at_most_one(name: str, size: int, seed: int) -> None:
    pool = POOLS[name](np.random.default_rng(seed), size).astype(np.float32)
    grid = grid_of(pool)
    gain = gain_table(pool, grid, 0.05).astype(float) / UNITS_PER_NAT
    assert np.mean(np.exp(gain[levels(pool, grid)])) <= 1 + 1e-9
    assert (np.diff(gain) >= 0).all()
    assert np.abs(gain).max() < 4
    assert not (gain == 0).any()


def test_a_value_far_beyond_noise_in_steps_is_evidence() -> None:
    """Several of the slowest times are equal: a bandwidth over TCP that a rate limit keeps within 0.1 %."""
    pool = np.repeat(np.float32([-0.023, -0.006, 0, 0.0045, 0.006]), [4, 30, 200, 90, 14])
    grid = grid_of(pool)
    gain = gain_table(pool, grid, 0.05)[levels(np.float32([0.92]), grid)] / UNITS_PER_NAT
    assert gain > 2


@pytest.mark.parametrize("name", ["normal", "student3", "lognormal"])
def test_fresh_noise_rarely_reaches_the_evidence_of_a_detection(name: str) -> None:
    rng = np.random.default_rng(1)
    pool = POOLS[name](rng, 20_000).astype(np.float32)
    grid = grid_of(pool)
    gain = gain_table(pool, grid, 0.05).astype(float) / UNITS_PER_NAT
    fresh = POOLS[name](rng, (20_000, 63)).astype(np.float32)
    e_values = gain[levels(fresh, grid)].sum(axis=1)
    assert np.mean(e_values >= np.log(100)) <= 0.01  # Ville's inequality, with room
    slow = gain[levels(fresh + np.float32(0.1), grid)].sum(axis=1)
    assert np.mean(slow >= np.log(1e6)) > 0.99


@pytest.mark.parametrize(
    ("count", "ranks"),
    [(6, (1, 6)), (10, (2, 9)), (20, (6, 15)), (30, (10, 21)), (50, (18, 33)), (100, (40, 61)), (1000, (469, 532))],
)
def test_interval_of_the_median_has_the_published_ranks(count: int, ranks: tuple[int, int]) -> None:
    lower, upper = interval_ranks(count)
    assert (int(lower) + 1, int(upper) + 1) == ranks


def test_intervals_cover_the_median_as_promised() -> None:
    binom = pytest.importorskip("scipy.stats").binom
    counts = np.arange(6, 3000)
    lower, upper = interval_ranks(counts)
    coverage = binom.cdf(upper, counts, 0.5) - binom.cdf(lower, counts, 0.5)
    assert coverage.min() > 0.945
    assert (lower + upper == counts - 1).all()


def test_row_medians_leave_out_what_is_missing() -> None:
    values = np.array([[3, np.nan, 1, 2], [np.nan] * 4, [1, 2, 3, 4]], dtype=np.float32)
    bounds = row_medians(values)
    np.testing.assert_array_equal(bounds, np.array([[1, np.nan, 1], [2, np.nan, 2.5], [3, np.nan, 4]]))


def test_robust_sd_is_that_of_the_bulk() -> None:
    values = np.concatenate([np.random.default_rng(1).normal(5, 2, 20_000), np.full(2000, 1e6), [np.nan]])
    assert robust_sd(values) == pytest.approx(2, rel=0.15)
    assert robust_sd([]) == 0
