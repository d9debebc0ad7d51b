"""Binomial probabilities, ranks and adjusted p-values are those of scipy.stats, without its import."""

from types import ModuleType

import numpy as np
import pytest

from fablint.analyse.observations.binomial import quantile, upper_tail
from fablint.analyse.observations.robust_stats import adjust_p_values, average_ranks

RANDOM = np.random.default_rng(7)
TRIALS = RANDOM.integers(0, 3000, 20_000)
SUCCESSES = np.minimum(RANDOM.integers(0, 3000, 20_000), TRIALS)
PROBABILITY = RANDOM.random(20_000) ** RANDOM.integers(1, 6, 20_000)


@pytest.fixture(scope="module")
def stats() -> ModuleType:
    """Return scipy.stats: imported above, it would delay the collection of tests in every worker of pytest-xdist."""
    import scipy.stats

    return scipy.stats


def test_the_upper_tail_is_that_of_scipy_stats(stats: ModuleType) -> None:
    assert np.array_equal(
        upper_tail(SUCCESSES, TRIALS, PROBABILITY), stats.binom.sf(SUCCESSES - 1, TRIALS, PROBABILITY)
    )


@pytest.mark.parametrize("share", [0.5, 0.05, 0.05 / 200, 0.05 / 200_000])
def test_quantiles_are_those_of_scipy_stats(stats: ModuleType, share: float) -> None:
    assert np.array_equal(quantile(share, TRIALS, PROBABILITY), stats.binom.ppf(share, TRIALS, PROBABILITY))


def test_quantiles_at_the_ends_of_the_range(stats: ModuleType) -> None:
    trials, probability = np.array([0, 0, 5, 5, 5]), np.array([0.0, 1.0, 0.0, 0.5, 1.0])
    assert quantile(0.05, trials, probability).tolist() == stats.binom.ppf(0.05, trials, probability).tolist()


def test_equal_values_share_the_mean_of_their_ranks(stats: ModuleType) -> None:
    values = RANDOM.integers(0, 40, 100).astype(float)
    assert np.array_equal(average_ranks(values), stats.rankdata(values))


@pytest.mark.parametrize("size", [1, 2, 500])
def test_adjusted_p_values_are_those_of_scipy_stats(stats: ModuleType, size: int) -> None:
    p = RANDOM.integers(0, 50, size) / 50
    assert np.array_equal(adjust_p_values(p), stats.false_discovery_control(p))
