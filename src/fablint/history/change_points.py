"""Change points of a series: the runs after which a figure has another level.

The test is Pettitt's (A. N. Pettitt, Applied Statistics 28, 1979): with ranks r_i of n values, the statistic is
K = max |2 (r_1 + ... + r_t) - t (n + 1)| over t, and p = 2 exp(-6 K^2 / (n^3 + n^2)). It uses ranks only, so that the
noise may have any distribution. Consecutive runs are often similar: K^2 is reduced by (1 - c) / (1 + c), where c is the
correlation of consecutive ranks.

A level that returns to the former one has little effect on the whole series. The test is therefore also applied to
parts of it: seeded intervals (S. Kovacs et al., Biometrika 110, 2023), with p multiplied by their number. The series is
divided at the change point with the smallest p, and both parts are tested again, at half of the probability.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

CHANCE = 0.05  # largest p; at most 1 % of series of independent values, whatever their distribution, and 2 % of series
# whose consecutive values have a correlation of 0.5, have a change point (tests/history/test_change_points.py)
LEAST_RUNS = 5  # of a part
_BLOCK = 10  # values in which consecutive ranks are compared: few blocks contain a change point

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ChangePoint:
    """A change of level between two consecutive values."""

    index: int  # of the first value of the new level
    before: float  # median of the part before
    after: float
    p: float

    @property
    def change(self) -> float:
        """Relative change: -0.1 is 10 % less."""
        return self.after / self.before - 1.0


def change_points(values: Values, chance: float = CHANCE) -> list[ChangePoint]:
    """Return the change points of (n,) values in order; none in fewer than 2 `LEAST_RUNS` values."""
    edges = sorted(_divided(values, 0, values.size, chance))
    ends = [0, *(edge for edge, _ in edges), values.size]
    return [
        ChangePoint(edge, float(np.median(values[before:edge])), float(np.median(values[edge:after])), p)
        for (edge, p), before, after in zip(edges, ends, ends[2:], strict=False)
    ]


def _divided(values: Values, first: int, end: int, chance: float) -> list[tuple[int, float]]:
    """Return index and probability of each change point between two indices."""
    intervals = list(_intervals(end - first))
    if not intervals:
        return []
    part = values[first:end]
    independent = _independent_share(part)
    tests = [(*_pettitt(part[a:b], independent)[::-1], a) for a, b in intervals]
    p, at, offset = min(tests)
    p = min(1.0, p * len(intervals))
    if p > chance:
        return []
    edge = first + offset + at
    return [(edge, p), *_divided(values, first, edge, chance / 2), *_divided(values, edge, end, chance / 2)]


def _intervals(n: int) -> Iterator[tuple[int, int]]:
    """Yield the whole, and intervals of half the length again and again, each half over the next one."""
    length, parts = n, 1
    while length >= 2 * LEAST_RUNS:
        for start in np.linspace(0, n - length, 2 * parts - 1).astype(int).tolist():
            yield start, start + length
        length, parts = length // 2, 2 * parts


def _pettitt(values: Values, independent: float) -> tuple[int, float]:
    """Return the first index of the second part, and the probability of as large a statistic without a change."""
    from scipy.stats import rankdata

    n = values.size
    statistic = np.abs(2 * np.cumsum(rankdata(values)) - np.arange(1, n + 1) * (n + 1))
    at = int(np.argmax(statistic[LEAST_RUNS - 1 : n - LEAST_RUNS])) + LEAST_RUNS
    exponent = 6.0 * float(statistic[at - 1]) ** 2 * independent / (n**3 + n**2)
    return at, min(1.0, 2.0 * float(np.exp(-exponent)))


def _independent_share(values: Values) -> float:
    """Return (1 - c) / (1 + c) for the correlation c >= 0 of consecutive ranks, within blocks.

    The correlation within blocks of m values, r, is too low: E(r) = c - (1 + 3 c) / (m - 1) (M. G. Kendall, Biometrika
    41, 1954).
    """
    from scipy.stats import rankdata

    ranks = rankdata(values)
    block = min(_BLOCK, ranks.size)
    blocks = ranks[: ranks.size // block * block].reshape(-1, block)
    centred = blocks - blocks.mean(axis=1, keepdims=True)
    total = np.sum(centred**2, axis=1)
    known = total > 0
    if not known.any():
        return 1.0
    each = np.sum(centred[known, 1:] * centred[known, :-1], axis=1) / total[known]
    bias = 1.0 / (block - 1)
    correlation = (float(np.median(each)) + bias) / (1.0 - 3.0 * bias)
    return (1.0 - correlation) / (1.0 + correlation) if 0.0 < correlation < 0.95 else 1.0 if correlation <= 0 else 0.03
