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
from fablint.analyse.observations.time_correlation import SameTime
from fablint.analyse.settings import QUARTER, STRETCHES, SlowShares
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

    def evidence(self, own: Mask, settings: SlowShares, chance: float) -> ShareEvidence:
        """Return the evidence of a component.

        Parameters
        ----------
        own
            (k,) measurements of the component that no other one explains.
        settings
            The usual share, and the stretches of time.
        chance
            Probability up to which so many slow measurements are not likely at the times of the component.
        """
        mine, weight = self.measured.of(own), self.weight[own]
        others = self.weight[self.elsewhere & ~own]
        others_slow = float(others[self.measured.slow[self.elsewhere & ~own]].sum())
        middle = float(np.median(mine.left))
        # A component that is slow most of the time has an effect, which counts up to the tolerance: its fast
        # measurements are faster by it.
        is_fast = mine.left < np.where(np.abs(middle) <= mine.limit, middle, -mine.limit) - mine.limit
        slow, fast, count = float(weight[mine.slow].sum()), float(weight[is_fast].sum()), float(weight.sum())
        usual = (others_slow + 0.5) / (float(others.sum()) + 1.0)
        if fast >= QUARTER * slow:  # measurements that scatter are as often fast as slow
            usual = max(usual, fast / count)
        parts = [self._parts(number) for number in (settings.moments, STRETCHES)]
        spreads = [_dispersion(mine, weight, None if part is None else part[own]) for part in parts]
        p, lasting = (float(upper_tail(slow / spread, count / spread, min(usual, 1.0))) for spread in spreads)
        tolerated = float(upper_tail(slow / spreads[0], count / spreads[0], settings.usual))
        stretch, same_time = parts[1], None
        if stretch is not None and p <= chance:
            found = SameTime.of(self.measured.timed, own)
            same_time = found if found.explains(slow / spreads[0], count / spreads[0], usual, chance) else None
        return ShareEvidence(
            int(np.count_nonzero(mine.slow)),
            int(mine.slow.size),
            int(np.unique(mine.host_pair[mine.slow]).size),
            None if stretch is None else int(np.unique(stretch[own][mine.slow]).size),
            -math.log(max(p, TINY)),
            -math.log(max(lasting, TINY)),
            tolerated > settings.tolerated,
            same_time,
        )

    def _parts(self, count: int) -> Codes | None:
        """Return the (k,) part of the time, of `count` equal ones, of each measurement; None if times are unknown."""
        started = self.measured.started
        if not np.isfinite(started).all() or not np.ptp(started):
            return None
        edges = np.quantile(started, np.arange(1, count) / count)
        return np.searchsorted(edges, started, side="right").astype(np.int64)


def _dispersion(mine: SlowMeasurements, weight: Floats, stretch: Codes | None) -> float:
    """Return the variance of the number of slow ones over that of independent measurements, at least 1."""
    share = float(np.average(mine.slow, weights=weight))
    variance = share * (1 - share) * float(weight.sum())
    if variance <= 0:
        return 1.0
    deviation = weight * (mine.slow - share)
    by_pair = _clustered(deviation, mine.host_pair) / variance
    if stretch is None:
        return max(1.0, by_pair)
    by_time = _clustered(deviation, stretch) / variance
    by_both = _clustered(deviation, mine.host_pair * (int(stretch.max()) + 1) + stretch) / variance
    return max(1.0, by_pair, by_time, by_pair + by_time - by_both)


def _clustered(deviation: Floats, cluster: Codes) -> float:
    """Return the variance of the sum of the deviations, if those of different clusters are independent."""
    number = np.unique(cluster, return_inverse=True)[1].ravel()
    total = np.bincount(number, weights=deviation)
    return float((total**2).sum()) * total.size / max(total.size - 1, 1)
