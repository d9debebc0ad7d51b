"""The 95 % interval of a median whose values are related: order statistics, with a variance by clusters.

The number of values above the true median has the variance n / 4 if the values are independent. Values of one partner
are related, and so are values of one time. The variance by both is that of Cameron, Gelbach and Miller (2011): the sum
of those by each, less that of values which share both. The variance by time is the mean power of the lowest frequencies
of the signs in order of time, as many as STRETCHES stretches of time have beside their mean (Lazarus, Lewis, Stock and
Watson 2018). Degrees of freedom are those of the smallest number of clusters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fablint.analyse.observations.pair_matrix import unordered
from fablint.analyse.settings import CONFIDENCE, FEWEST_INDEPENDENT, HALF, STRETCHES
from fablint.model.arrays import Codes, Floats


@dataclass(frozen=True)
class RelatedValues:
    """Values of one component, with what relates them."""

    value: Floats  # (k,)
    hosts: Codes  # (2, k) hosts at both ends; -1: a host that all values share
    started: Floats | None = None  # (k,) s; None: unknown

    def of(self, chosen: Codes) -> RelatedValues:
        """Return some of the values."""
        started = None if self.started is None else self.started[chosen]
        return RelatedValues(self.value[chosen], self.hosts[:, chosen], started)

    def median_interval(self) -> tuple[float, float, float]:
        """Return lower 95 % bound, median and upper bound: at most the extremes."""
        ordered, middle = np.sort(self.value), float(np.median(self.value))
        reach = self._error_of_rank(np.sign(self.value - middle) / 2)
        rank = max((ordered.size + 1) / 2 - reach, 1.0) - 1
        lower, upper = np.interp([rank, ordered.size - 1 - rank], np.arange(ordered.size), ordered)
        return float(lower), middle, float(upper)

    def _error_of_rank(self, sign: Floats) -> float:
        """Return the distance in ranks of the 95 % bounds from the median; `sign` is 1/2 above it, -1/2 below."""
        ends, width = self.hosts + 1, int(self.hosts.max()) + 2
        of_pairs = _sums(unordered(ends[0], ends[1], width), sign)
        counted = ends.ravel() > 0
        host, of_end = ends.ravel()[counted], np.tile(sign, 2)[counted]
        clusters = _effective_number(host)
        if clusters < FEWEST_INDEPENDENT:
            return float(sign.size)
        both = host.size / sign.size  # 1: one end is the component; 2: both ends count
        shared = float((of_pairs**2).sum())
        variance = float((_sums(host, of_end) ** 2).sum()) * clusters / (clusters - 1) - (both - 1) * shared
        freedom = clusters / both - 1
        if self.started is not None and np.isfinite(self.started).all():
            variance += _variance_by_time(self.started, sign) - shared
            freedom = min(freedom, STRETCHES - 1)
        least = HALF * float((sign**2).sum())  # of pairs whose directions differ, the sums are 0
        return t_quantile(freedom) * float(np.sqrt(max(variance, least)))


def _sums(cluster: Codes, sign: Floats) -> Floats:
    """Return the sum of the signs of each cluster."""
    sums: Floats = np.bincount(np.unique(cluster, return_inverse=True)[1], weights=sign).astype(np.float64)
    return sums


def _effective_number(cluster: Codes) -> float:
    """Return the number of clusters of equal size that are as informative as these."""
    count = np.unique(cluster, return_counts=True)[1]
    return float(count.sum() ** 2 / (count**2).sum()) if count.size else 1.0


def _variance_by_time(started: Floats, sign: Floats) -> float:
    """Return the variance of the sum of signs that are related in time."""
    moment = np.unique(started, return_inverse=True)[1]
    count = np.bincount(moment)
    phase = (np.cumsum(count) - count / 2)[moment] / sign.size
    waves = np.cos(np.pi * np.arange(1, STRETCHES)[:, None] * phase)
    return float(2 * ((waves @ sign) ** 2).mean())


def t_quantile(freedom: float) -> float:
    """Return the standard errors from the middle to a 95 % bound of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(max(freedom, 1.0), (1 + CONFIDENCE) / 2))
