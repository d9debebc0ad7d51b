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

from fablint.model.arrays import Codes, Floats

CHANCE = 0.05  # largest p; at most 1 % of series of independent values, whatever their distribution, and 2 % of series
# whose consecutive values have a correlation of 0.5, have a change point (tests/history/test_change_points.py)
LEAST_RUNS = 5  # of a part
_BLOCK = 10  # values in which consecutive ranks are compared: few blocks contain a change point


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


def change_points(values: Floats, chance: float = CHANCE) -> list[ChangePoint]:
    """Return the change points of (n,) values in order; none in fewer than 2 `LEAST_RUNS` values."""
    edges = sorted(_divided(values, 0, values.size, chance))
    ends = [0, *(edge for edge, _ in edges), values.size]
    return [
        ChangePoint(edge, float(np.median(values[before:edge])), float(np.median(values[edge:after])), p)
        for (edge, p), before, after in zip(edges, ends, ends[2:], strict=False)
    ]


def _divided(values: Floats, first: int, end: int, chance: float) -> list[tuple[int, float]]:
    """Return index and probability of each change point between two indices."""
    intervals = list(_intervals(end - first))
    if not intervals:
        return []
    part = values[first:end]
    independent = _independent_share(part)
    p, at, offset = min(_strongest(part, length, starts, independent) for length, starts in intervals)
    p = min(1.0, p * sum(starts.size for _, starts in intervals))
    if p > chance:
        return []
    edge = first + offset + at
    return [(edge, p), *_divided(values, first, edge, chance / 2), *_divided(values, edge, end, chance / 2)]


def _intervals(n: int) -> Iterator[tuple[int, Codes]]:
    """Yield the length and the first indices of intervals: the whole, and half the length again and again.

    Intervals of one length begin half a length after each other.
    """
    length, parts = n, 1
    while length >= 2 * LEAST_RUNS:
        yield length, np.linspace(0, n - length, 2 * parts - 1).astype(int)
        length, parts = length // 2, 2 * parts


def _strongest(values: Floats, length: int, starts: Codes, independent: float) -> tuple[float, int, int]:
    """Test intervals of one length.

    Returns
    -------
    tuple
        Of the interval with the largest statistic: the probability of as large a statistic without a change, the first
        index of its second part, and its own first index.
    """
    parts = values[starts[:, None] + np.arange(length)]
    statistic = np.abs(2 * np.cumsum(_ranks(parts), axis=1) - np.arange(1, length + 1) * (length + 1))
    allowed = statistic[:, LEAST_RUNS - 1 : length - LEAST_RUNS]
    interval, at = np.unravel_index(int(np.argmax(allowed)), allowed.shape)
    exponent = 6.0 * float(allowed[interval, at]) ** 2 * independent / (length**3 + length**2)
    return min(1.0, 2.0 * float(np.exp(-exponent))), int(at) + LEAST_RUNS, int(starts[interval])


def _ranks(rows: Floats) -> Floats:
    """Return the ranks from 1 within each row of (m, n) values; equal values have the mean of their ranks.

    scipy.stats, which has the same function, takes longer to import than the history to read.
    """
    order = np.argsort(rows, axis=1)
    ascending = np.take_along_axis(rows, order, axis=1)
    is_new = np.ones(rows.shape, bool)
    is_new[:, 1:] = ascending[:, 1:] != ascending[:, :-1]
    group = np.cumsum(is_new.ravel()) - 1
    edges = np.append(np.flatnonzero(is_new), rows.size)
    mean = (edges[:-1] + edges[1:] - 1) / 2
    ranks = np.empty(rows.shape)
    np.put_along_axis(ranks, order, mean[group].reshape(rows.shape), axis=1)
    return np.asarray(ranks - np.arange(rows.shape[0])[:, None] * rows.shape[1] + 1)


def _independent_share(values: Floats) -> float:
    """Return (1 - c) / (1 + c) for the correlation c >= 0 of consecutive ranks, within blocks of more than 4 values.

    The correlation within blocks of m values, r, is too low: E(r) = c - (1 + 3 c) / (m - 1) (M. G. Kendall, Biometrika
    41, 1954).
    """
    ranks = _ranks(values[None, :])[0]
    block = min(_BLOCK, ranks.size)
    blocks = ranks[: ranks.size // block * block].reshape(-1, block)
    centred = blocks - blocks.mean(axis=1, keepdims=True)
    total = np.sum(centred**2, axis=1)
    varies = total > 0
    if not varies.any():
        return 1.0
    each = np.sum(centred[varies, 1:] * centred[varies, :-1], axis=1) / total[varies]
    bias = 1.0 / (block - 1)
    correlation = (float(np.median(each)) + bias) / (1.0 - 3.0 * bias)
    return (1.0 - correlation) / (1.0 + correlation) if 0.0 < correlation < 0.95 else 1.0 if correlation <= 0 else 0.03
