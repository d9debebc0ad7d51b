"""Change points: the stated rate of false alarms on noise of several kinds, and changes that are found."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fablint.history.change_points import LEAST_RUNS, change_points

SERIES = 150
FALSE_ALARM = 0.01


def _autoregressive(random: np.random.Generator, n: int) -> np.ndarray:
    """Autoregressive noise: correlation 0.5 of consecutive values."""
    own = random.standard_normal(n)
    values = np.zeros(n)
    for index in range(n):
        values[index] = own[index] + (0.5 * values[index - 1] if index else 0.0)
    return values


@pytest.mark.parametrize("n", range(2 * LEAST_RUNS))
def test_a_series_that_is_too_short_has_no_change_point(n: int) -> None:
    assert change_points(np.where(np.arange(n) < n // 2, 1.0, 2.0)) == []


@pytest.mark.parametrize(
    ("noise", "most"),
    [
        (lambda random, n: random.standard_normal(n), FALSE_ALARM),
        (lambda random, n: random.standard_cauchy(n), FALSE_ALARM),
        (lambda random, n: random.exponential(size=n), FALSE_ALARM),
        (_autoregressive, 2 * FALSE_ALARM),
    ],
    ids=["normal", "cauchy", "exponential", "autoregressive"],
)
@pytest.mark.parametrize("n", [12, 60])
def test_series_without_a_change_have_a_change_point_as_rarely_as_stated(
    noise: Callable[[np.random.Generator, int], np.ndarray], most: float, n: int
) -> None:
    random = np.random.default_rng(n)
    alarms = sum(bool(change_points(100.0 + noise(random, n))) for _ in range(SERIES))
    assert alarms <= most * SERIES + 2 * np.sqrt(most * SERIES)


def test_changes_are_found_where_they_are() -> None:
    random = np.random.default_rng(1)
    levels = np.repeat([12.5, 11.7, 12.5], [60, 50, 50])
    found = change_points(levels * (1 + 0.01 * random.standard_t(3, levels.size)))
    assert [change.index for change in found] == pytest.approx([60, 110], abs=3)
    assert [change.change for change in found] == pytest.approx([-0.064, 0.068], abs=0.01)


def test_equal_values_and_short_series_have_none() -> None:
    assert change_points(np.full(50, 3.0)) == []
    assert change_points(np.array([1.0, 1.0, 1.0, 1.0, 9.0, 9.0, 9.0, 9.0])) == []
