"""Variance between connections and within them, of rows that opened their connections anew (`--reconnect`).

The random-effects model of a pair p, a connection c and a pass k over it: log t = m_p + b_pc + w_pck. Its components
come from the mean squares of the analysis of variance (Searle, Casella and McCulloch 1992, Variance Components,
chapter 3); the interval of the component between connections is that of Ting, Burdick, Graybill, Jeyaratnam and Lu
(1990), as in Burdick and Graybill 1992, Confidence Intervals on Variance Components, section 3.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fablint.model import Row
from fablint.model.arrays import Floats

CONFIDENCE = 0.95
FEWEST_CONNECTIONS = 2


@dataclass(frozen=True)
class Deviation:
    """A standard deviation of log times, with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class MeanSquares:
    """Mean squares of the passes of a connection, and degrees of freedom.

    `between` estimates w^2 + passes * b^2, `within` w^2, with b and w the standard deviations between and within
    connections.
    """

    between: float
    between_freedom: float
    within: float
    within_freedom: float
    passes: int

    @classmethod
    def of(cls, log_time: Floats) -> MeanSquares:
        """Take the mean squares of (pairs, connections, passes) log times, each pair around its own mean.

        Pairs share what is common to a start, so that P pairs have fewer degrees of freedom than P independent ones.
        """
        pairs, connections, passes = log_time.shape
        means = log_time.mean(axis=2)
        apart = math.sqrt(passes) * (means - means.mean(axis=1, keepdims=True))
        rest = (log_time - means[..., None]).transpose(0, 2, 1).reshape(pairs, -1)
        rest_freedom = connections * (passes - 1)
        return cls(
            float((apart**2).sum()) / (pairs * (connections - 1)),
            _freedom(apart, connections - 1),
            float((rest**2).sum()) / (pairs * rest_freedom),
            _freedom(rest, rest_freedom),
            passes,
        )

    @cached_property
    def between_connections(self) -> Deviation:
        """Return what connections differ by, beyond the passes over them."""
        value = (self.between - self.within) / self.passes
        low, high = (value - self._reach(upper=False), value + self._reach(upper=True))
        return Deviation(*(math.sqrt(max(one, 0.0)) for one in (value, low, high)))

    @cached_property
    def within_connections(self) -> Deviation:
        """Return what the passes over the same connections differ by."""
        from scipy.special import chdtri

        low, high = (
            self.within * self.within_freedom / float(chdtri(self.within_freedom, tail))
            for tail in ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)
        )
        return Deviation(math.sqrt(self.within), math.sqrt(low), math.sqrt(high))

    @cached_property
    def noise_floor(self) -> float:
        """Difference of the log times of two starts, one pass each, that 95 % of such differences are below.

        Their variance is 2 (b^2 + w^2), whose degrees of freedom are Satterthwaite's (1946).
        """
        from scipy.special import stdtrit

        share = 2 / self.passes
        parts = (share * self.between, self.between_freedom), ((2 - share) * self.within, self.within_freedom)
        variance = sum(part for part, _ in parts)
        squares = sum(part**2 / freedom for part, freedom in parts)
        if not squares:
            return 0.0
        return float(stdtrit(variance**2 / squares, (1 + CONFIDENCE) / 2)) * math.sqrt(variance)

    def _reach(self, *, upper: bool) -> float:
        """Return the distance of a bound from the variance between connections (Ting and others 1990)."""
        from scipy.special import chdtri, fdtri

        tail = (1 - CONFIDENCE) / 2
        first, second = self.between_freedom, self.within_freedom
        if upper:
            between_factor = first / float(chdtri(first, 1 - tail)) - 1
            within_factor = 1 - second / float(chdtri(second, tail))
            ratio = float(fdtri(first, second, tail))
        else:
            between_factor = 1 - first / float(chdtri(first, tail))
            within_factor = second / float(chdtri(second, 1 - tail)) - 1
            ratio = float(fdtri(first, second, 1 - tail))
        mixed = ((ratio - 1) ** 2 - (between_factor * ratio) ** 2 - within_factor**2) / ratio
        a, b = self.between, self.within
        return math.sqrt(max(0.0, (between_factor * a) ** 2 + (within_factor * b) ** 2 + mixed * a * b)) / self.passes


def _freedom(deviations: Floats, each: int) -> float:
    """Return the degrees of freedom of the sum of squares of (pairs, k) deviations, of which a pair has `each`.

    Correlated pairs have (tr C)^2 / tr C^2 times `each`, with C the covariance of the pairs (Box 1954). With the C of a
    sample the result is too small, which widens the intervals.
    """
    total = float((deviations**2).sum())
    squares = float(((deviations.T @ deviations) ** 2).sum())
    return each * total**2 / squares if squares else float(each)


@dataclass(frozen=True)
class ConnectionVariance:
    """The components of one size of a row: of a pair of ranks, and of the mean over all pairs."""

    row: Row
    size: int
    pairs: int
    connections: int
    of_pair: MeanSquares
    of_mean: MeanSquares


def connection_variances(row: Row) -> list[ConnectionVariance]:
    """Return the components of each size of a row; none of a row that kept its connections, or has too few."""
    passes = row.facts.carrier.reconnect or 0
    if passes < 2 or not row.statistic:
        return []
    result = []
    for index, size in enumerate(row.sizes):
        log_time = _complete(_by_repeat(row, index), passes)
        if log_time.shape[0] and log_time.shape[1] >= FEWEST_CONNECTIONS:
            pairs, connections, _ = log_time.shape
            squares_of_mean = MeanSquares.of(log_time.mean(axis=0, keepdims=True))
            result.append(ConnectionVariance(row, size, pairs, connections, MeanSquares.of(log_time), squares_of_mean))
    return result


def _by_repeat(row: Row, index: int) -> Floats:
    """Return (pairs, repeats) log times of the directed pairs; NaN where a pair was not measured."""
    repeats = row.facts.schedule.repeats
    times = np.asarray(row.times[..., index], dtype=np.float64)
    if row.layout == "matrix":
        log_time = np.log(np.where(times > 0, times, np.nan)).reshape(times.shape[0], -1).T
        return log_time[~np.isnan(log_time).all(axis=1)]
    src, number = np.nonzero(times > 0)
    partner = np.asarray(row.arrays["dst"][:])[src, number]
    repeat = number * repeats // times.shape[1]
    pair, code = np.unique(src * (times.shape[0] + 1) + partner + 1, return_inverse=True)
    at = code * repeats + repeat
    total, count = (np.bincount(at, weight, pair.size * repeats) for weight in (np.log(times[src, number]), None))
    with np.errstate(invalid="ignore"):
        return np.asarray((total / count).reshape(pair.size, repeats))


def _complete(log_time: Floats, passes: int) -> Floats:
    """Return (pairs, connections, passes): connections that served all passes, and pairs measured over all of them."""
    pairs, repeats = log_time.shape
    blocks = log_time[:, : repeats // passes * passes].reshape(pairs, -1, passes)
    is_measured = np.asarray(~np.isnan(blocks).any(axis=2))
    used = is_measured.any(axis=0)
    return blocks[:, used][is_measured[:, used].all(axis=1)]
