"""Evidence of the slow measurements of one component: as many clusters, and not as many measurements.

s of n measurements are slow. They count as s / d of n / d independent ones in a binomial test against the share of slow
ones elsewhere, and in one against the share that a healthy component may have, which is not one of many tests. The
dispersion d is the variance of s with clusters of pairs of hosts and of stretches of time, over
that of independent measurements (two-way clusters: Cameron, Gelbach and Miller, 2011). One slow pair, or one burst of
load, is one cluster; a component that is slow now and then is slow in many. Short stretches of time (moments) decide
whether it is reported, long ones whether it is faulty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fablint.analyse.explain.shares.slow_measurements import SlowMeasurements
from fablint.analyse.observations.binomial import upper_tail
from fablint.analyse.observations.robust_stats import parts_of_time
from fablint.analyse.observations.time_correlation import SameTime
from fablint.analyse.settings import HALF, QUARTER, STRETCHES, SlowShares
from fablint.model.arrays import Codes, Floats, Mask

TINY = 1e-300  # smallest probability that is distinguished from 0


@dataclass(frozen=True)
class ShareEvidence:
    """What the measurements of one component show.

    Attributes
    ----------
    slow, measured
        Number of measurements.
    host_pairs, stretches
        Clusters with slow measurements; None: times unknown.
    nats
        Evidence for a share above the usual one: -log of the probability of so many slow measurements.
    lasting_nats
        The same if the measurements of a long stretch of time depend on each other; if times are unknown, `nats`.
    is_tolerated
        Whether a healthy component may have as many slow measurements, whatever is slow elsewhere.
    explained_by
        Slow measurements of unrelated pairs at the same times, if these make so many slow ones likely.
    """

    slow: int
    measured: int
    host_pairs: int
    stretches: int | None
    nats: float
    lasting_nats: float
    is_tolerated: bool
    explained_by: SameTime | None

    @property
    def share(self) -> float:
        """Share of slow measurements."""
        return self.slow / self.measured


@dataclass(frozen=True)
class WeighedMeasurements:
    """Measurements of a view, with the weight of each and the share of slow ones that no component explains."""

    measured: SlowMeasurements
    weight: Floats  # (k,)
    elsewhere: Mask  # (k,) measurements that no component explains

    def evidence(self, is_member: Mask, settings: SlowShares, chance: float) -> ShareEvidence:
        """Return the evidence of a component.

        Parameters
        ----------
        is_member
            (k,) measurements of the component that no other one explains.
        settings
            The usual share, and the stretches of time.
        chance
            Probability up to which so many slow measurements are not likely at the times of the component.
        """
        measurements, weight = self.measured.of(is_member), self.weight[is_member]
        others = self.weight[self.elsewhere & ~is_member]
        others_slow = float(others[self.measured.slow[self.elsewhere & ~is_member]].sum())
        is_fast = measurements.left < -_scatter(measurements)
        slow, fast, count = float(weight[measurements.slow].sum()), float(weight[is_fast].sum()), float(weight.sum())
        usual = (others_slow + 0.5) / (float(others.sum()) + 1.0)
        if fast >= QUARTER * slow:  # measurements that scatter are as often fast as slow
            usual = max(usual, fast / count)
        parts = [parts_of_time(self.measured.started, number) for number in (settings.moments, STRETCHES)]
        spreads = [_dispersion(measurements, weight, None if part is None else part[is_member]) for part in parts]
        p, lasting = (float(upper_tail(slow / spread, count / spread, min(usual, 1.0))) for spread in spreads)
        tolerated = float(upper_tail(slow / spreads[0], count / spreads[0], settings.usual))
        stretch, same_time = parts[1], None
        if stretch is not None and p <= chance:
            load = SameTime.of(self.measured.timed, is_member)
            same_time = load if load.explains(slow / spreads[0], count / spreads[0], usual, chance) else None
        return ShareEvidence(
            int(np.count_nonzero(measurements.slow)),
            int(measurements.slow.size),
            int(np.unique(measurements.host_pair[measurements.slow]).size),
            None if stretch is None else int(np.unique(stretch[is_member][measurements.slow]).size),
            -math.log(max(p, TINY)),
            -math.log(max(lasting, TINY)),
            tolerated > settings.tolerated,
            same_time,
        )


def _scatter(measurements: SlowMeasurements) -> Floats:
    """Return the (k,) log-effect by which a fast measurement is as far from the others as the slow ones are, or half as
    far.

    A component that is slow most of the time has an effect, which counts up to the tolerance: its fast measurements are
    faster by it.
    """
    middle = float(np.median(measurements.left))
    usual = np.where(np.abs(middle) <= measurements.limit, middle, -measurements.limit)
    slow = float(np.median(measurements.left[measurements.slow])) if measurements.slow.any() else 0.0
    return np.asarray(np.maximum(measurements.limit, HALF * slow) - usual)


def _dispersion(measurements: SlowMeasurements, weight: Floats, stretch: Codes | None) -> float:
    """Return the variance of the number of slow ones over that of independent measurements, at least 1."""
    share = float(np.average(measurements.slow, weights=weight))
    variance = share * (1 - share) * float(weight.sum())
    if variance <= 0:
        return 1.0
    deviation = weight * (measurements.slow - share)
    by_pair = _clustered(deviation, measurements.host_pair) / variance
    if stretch is None:
        return max(1.0, by_pair)
    by_time = _clustered(deviation, stretch) / variance
    by_both = _clustered(deviation, measurements.host_pair * (int(stretch.max()) + 1) + stretch) / variance
    return max(1.0, by_pair, by_time, by_pair + by_time - by_both)


def _clustered(deviation: Floats, cluster: Codes) -> float:
    """Return the variance of the sum of the deviations, if those of different clusters are independent."""
    number = np.unique(cluster, return_inverse=True)[1].ravel()
    total = np.bincount(number, weights=deviation)
    return float((total**2).sum()) * total.size / max(total.size - 1, 1)
