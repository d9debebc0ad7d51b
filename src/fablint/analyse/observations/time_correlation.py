"""Correlation in time of slow measurements: as how many independent measurements a set of them counts.

Load slows the measurements of a time, of whatever pairs. Slow measurements that were taken together are therefore less
evidence about what else they have in common than slow measurements of different times. The number of slow ones among m
measurements, each slow with probability p, has the variance p (1 - p) sum over i, j of r(t_i - t_j), with r the
correlation of the slowness of two unrelated pairs at a distance in time. It is that of m / d independent measurements,
with the design effect d = 1 + (m - 1) x mean of r (Kish, Survey Sampling, 1965).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Self

import numpy as np

from fablint.analyse.observations.binomial import upper_tail
from fablint.analyse.settings import FEWEST_POOL
from fablint.model.arrays import Codes, Floats, Mask

MOST_MEASUREMENTS = 1 << 15  # that are compared with each other, and
MOST_OF_SET = 512  # of the set
FINEST = 2.0**-12  # share of the time of all measurements: what begins within it begins at one time
NEAREST, WINDOW = 16, 64  # measurements of unrelated pairs next to one in time, among so many of all pairs


@dataclass(frozen=True)
class TimedMeasurements:
    """Measurements of one row.

    Attributes
    ----------
    started
        (k,) s, begin of each; NaN where unknown.
    slow
        (k,) whether each was slow.
    hosts
        (2, k) codes of its hosts.
    path
        (k,) code of what else it has in common with others: its two switches.
    """

    started: Floats
    slow: Mask
    hosts: Codes
    path: Codes

    def of(self, chosen: Mask | Codes | slice) -> TimedMeasurements:
        """Return some of the measurements; those of a slice are not copied."""
        return TimedMeasurements(self.started[chosen], self.slow[chosen], self.hosts[:, chosen], self.path[chosen])


def order_by_time(measurements: TimedMeasurements) -> Codes:
    """Return the positions of the measurements whose time is known, in the order of their times."""
    timed = np.flatnonzero(np.isfinite(measurements.started))
    order: Codes = timed[np.argsort(measurements.started[timed], kind="stable")]
    return order


@dataclass(frozen=True)
class TimeCorrelation:
    """Correlation of the slowness of two unrelated pairs, by the distance of their measurements in time."""

    edges: Floats  # (b - 1,) s, distances at which the next bin begins
    correlation: Floats  # (b,) falling, from 0 to 1

    @classmethod
    def between(cls, measurements: TimedMeasurements) -> Self:
        """Return the correlation between pairs without a common host and path; 0 where nothing was slow."""
        by_time = order_by_time(measurements)
        step = -(-by_time.size // MOST_MEASUREMENTS)
        # Neighbours in time are kept together, so that short distances remain.
        block = np.arange(by_time.size) // 64 % max(step, 1) == 0
        ordered = measurements.of(by_time[block])
        if ordered.slow.size < 2 or not ordered.slow.any() or ordered.slow.all():
            return cls(np.zeros(0), np.zeros(1))
        wall = float(ordered.started[-1] - ordered.started[0])
        edges = wall * FINEST * 2.0 ** np.arange(int(-np.log2(FINEST)), dtype=np.float64)
        counts = np.zeros((edges.size + 1, 2, 2))  # by distance, and whether the first and the second one is slow
        for offset in _offsets(ordered.slow.size):
            item, other = ordered.of(slice(-offset)), ordered.of(slice(offset, None))
            unrelated = item.path != other.path
            for first, second in product(item.hosts, other.hosts):
                unrelated &= first != second
            number = np.searchsorted(edges, (other.started - item.started)[unrelated], side="right")
            both = 4 * number + 2 * item.slow[unrelated] + other.slow[unrelated]
            counts += np.bincount(both, minlength=counts.size).reshape(counts.shape)
        return cls(np.asarray(edges, dtype=np.float64), _falling(counts))

    def design_effect(self, set_of: TimedMeasurements) -> float:
        """Return the factor by which the number of slow ones of a set varies more than that of independent ones.

        Those of one pair of hosts are one. A set whose measurements of one time are slow independently of each
        other did not have the load of its time: the correlation counts by the part of it that the set itself shows.
        """
        sample = _some(set_of)
        share = float(sample.slow.mean()) if sample.slow.size else 0.0
        if share == 0 or not self.correlation.any():
            return 1.0
        pair = np.sort(sample.hosts, axis=0)
        is_other = (pair[:, :, None] != pair[:, None, :]).any(axis=0)
        distance = np.abs(sample.started[:, None] - sample.started[None, :])
        related = np.where(is_other, self.correlation[np.searchsorted(self.edges, distance, side="right")], 0.0)
        total = float(related.sum())
        if total <= 0:
            return 1.0
        pairs = np.unique(np.sort(set_of.hosts, axis=0), axis=1).shape[1]
        deviation, agreement = sample.slow - share, 1.0
        if share < 1:  # least squares: products of the deviations of two measurements against their correlation
            products = float(deviation @ related @ deviation) / (share * (1 - share)) + total / max(pairs - 1, 1)
            agreement = products / float((related**2).sum())
        return float(1.0 + (pairs - 1) * total / is_other.sum() * np.clip(agreement, 0.0, 1.0))


@dataclass(frozen=True)
class SameTime:
    """Slow measurements of unrelated pairs at the times of a set of measurements."""

    share: float  # of the measurements next to those of the set in time: those that were slow
    effect: float  # design effect of the set

    @classmethod
    def of(cls, measurements: TimedMeasurements, in_set: Mask, by_time: Codes | None = None) -> Self:
        """Return those of a set, by all other measurements.

        `by_time` are the positions in `order_by_time`, of a caller that has several sets of the same measurements.
        """
        order = order_by_time(measurements) if by_time is None else by_time
        others, set_of = measurements.of(order[~in_set[order]]), measurements.of(in_set)
        return cls(_share_nearby(others, set_of), TimeCorrelation.between(others).design_effect(set_of))

    def explains(self, slow: float, pairs: float, usual: float, chance: float) -> bool:
        """Return whether so many slow pairs of a set are likely for pairs that were measured at its times.

        Parameters
        ----------
        slow, pairs
            Slow pairs, and all pairs of the set.
        usual
            Share of slow pairs at all times.
        chance
            Probability up to which they are not likely.
        """
        share = max(usual, self.share)
        return bool(upper_tail(slow / self.effect, pairs / self.effect, share) > chance)


def _share_nearby(others: TimedMeasurements, set_of: TimedMeasurements) -> float:
    """Return the share of slow ones among the unrelated measurements next to those of a set in time; 0 if unknown.

    `others` are in the order of their times.
    """
    sample = _some(set_of)
    if not others.slow.size or not sample.slow.size:
        return 0.0
    middle = np.searchsorted(others.started, sample.started)
    near = middle[:, None] + np.arange(-WINDOW, WINDOW)
    inside = (near >= 0) & (near < others.slow.size)
    near = np.clip(near, 0, others.slow.size - 1)
    related = (others.path[near] == sample.path[:, None]) | (
        (others.hosts[:, None, near] == sample.hosts[None, :, :, None]).any(axis=(0, 1))
    )
    distance = np.where(inside & ~related, np.abs(others.started[near] - sample.started[:, None]), np.inf)
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :NEAREST]
    is_near = np.isfinite(np.take_along_axis(distance, nearest, axis=1))
    slow = np.take_along_axis(others.slow[near], nearest, axis=1)
    return float(slow[is_near].mean()) if is_near.any() else 0.0


def _some(measurements: TimedMeasurements) -> TimedMeasurements:
    """Return measurements whose time is known, evenly spread if there are many."""
    timed = np.flatnonzero(np.isfinite(measurements.started))
    if not timed.size:
        return measurements.of(timed)
    return measurements.of(timed[np.unique(np.linspace(0, timed.size - 1, MOST_OF_SET).astype(np.int64))])


def _offsets(count: int) -> Codes:
    """Return the numbers of positions in order of time by which measurements are compared, all small ones."""
    ladder = np.unique(np.round(2.0 ** (np.arange(0, 4 * 16) / 4)).astype(np.int64))
    return ladder[ladder < count]


def _falling(counts: Floats) -> Floats:
    """Return the (b,) correlations of two flags by their (b, 2, 2) counts in each bin, made to fall from bin to bin."""
    from scipy.optimize import isotonic_regression

    count, both = counts.sum(axis=(1, 2)), counts[:, 1, 1]
    first, second = counts[:, 1].sum(axis=1), counts[:, :, 1].sum(axis=1)
    enough = count >= FEWEST_POOL
    if not enough.any():
        return np.zeros(count.size)
    a, b = first[enough] / count[enough], second[enough] / count[enough]
    spread = np.sqrt(a * (1 - a) * b * (1 - b))
    raw = np.where(spread > 0, (both[enough] / count[enough] - a * b) / np.maximum(spread, 1e-12), 0.0)
    falling = np.clip(isotonic_regression(raw, weights=count[enough], increasing=False).x, 0.0, 1.0)
    filled = np.flatnonzero(enough)
    position = np.minimum(np.searchsorted(filled, np.arange(count.size)), filled.size - 1)
    return np.asarray(falling[position])
