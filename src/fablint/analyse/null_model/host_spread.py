"""By how much healthy components of a fabric differ, and whether a slow host differs by more.

The sample is the effects of the hosts that are faster, each with the error of its measurement: what few noisy pairs of
a host add to its effect is not what hosts differ by. Student's t distributions from 3 degrees of freedom (heavy tails)
to the normal distribution, of all scales, are weighted by the likelihood of the sample. A slow host is beyond the
spread if fewer than `alpha` hosts as slow are expected among as many healthy hosts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, gammaln, stdtr

from fablint.analyse.observations.robust_stats import MAD_EFFICIENCY, MEDIAN_ERROR, robust_sd
from fablint.analyse.settings import CHANCE, FEWEST_OF_SPREAD, FINEST_NOISE
from fablint.model.arrays import Floats, Mask, Values

FREEDOMS = np.array([3.0, 4.0, 6.0, 10.0, 30.0, 1000.0])  # the last is practically normal
MOST_EFFECTS = 5_000  # effects to which the distributions are fitted
SCALES = 48  # of each distribution, from FINEST_NOISE to the largest effect
FEW_PARTS = 5  # number of components whose spread is doubled; of more components it is widened less
_LOG_RANGE = 15.0  # around the scales, in which the loss of a count is found


def spread_beyond_noise(effect: Floats | Values, noise: float, pairs: float) -> float:
    """Return the robust standard deviation of components of one type, beyond the noise of a median of `pairs` values.

    The spread of few components varies. What noise alone shows in all but 1 % of runs, of senders and receivers
    together, is noise; what remains may be far too small by chance, and is widened for that.
    """
    components = max(2, int(np.count_nonzero(~np.isnan(effect))))
    free = MAD_EFFICIENCY * (components - 1)
    of_noise = (MEDIAN_ERROR * noise) ** 2 / pairs * chdtri(free, CHANCE / 2) / free
    spread = np.sqrt(max(0.0, robust_sd(effect) ** 2 - of_noise))
    return widened_spread(float(spread), components)


def widened_spread(spread: float, components: int) -> float:
    """Return the spread of so few components as it may be: by chance, theirs may be far too small."""
    return spread * (1 + FEW_PARTS / components)


@dataclass(frozen=True)
class MeasuredEffects:
    """Effects of components of one type, and how accurately each was measured."""

    effect: Floats  # (k,) log-effects, around 0 for healthy components; NaN where unknown
    error: Floats  # (k,) standard error of each

    @classmethod
    def exact(cls, effect: Floats) -> MeasuredEffects:
        """Return effects whose errors are part of what they differ by."""
        return cls(effect, np.zeros_like(effect))

    @property
    def of_both_sides(self) -> MeasuredEffects:
        """Return the means of senders and receivers, from (2, n) effects."""
        return MeasuredEffects(self.effect.mean(axis=0), np.sqrt((self.error**2).sum(axis=0)) / 2)

    @property
    def flat(self) -> MeasuredEffects:
        """Return the effects that are not NaN, in one dimension."""
        return self.of(np.isfinite(self.effect))

    def of(self, chosen: Mask) -> MeasuredEffects:
        """Return some of the effects, in one dimension."""
        return MeasuredEffects(self.effect[chosen], self.error[chosen])


def are_within_spread(losses: Sequence[float], others: MeasuredEffects, alpha: float) -> list[bool]:
    """Return for each log-effect of a slow host whether healthy hosts may have it.

    Parameters
    ----------
    losses
        Least log-effect of each slow host (lower bound of its interval), in any order.
    others
        Effects of all other hosts, as senders and as receivers.
    alpha
        Expected number of healthy hosts as slow, above which a host is within the spread.
    """
    others = others.flat
    within = [False] * len(losses)
    if others.effect.size < FEWEST_OF_SPREAD:
        return within
    for position in np.argsort(losses):
        loss = losses[position]
        faster = others.effect < loss
        if np.count_nonzero(faster) < FEWEST_OF_SPREAD:
            faster[:] = True  # it is among the fast ones
        within[position] = FittedTails.of(others.of(faster)).count_expected_beyond(loss) > alpha
        if not within[position]:
            break  # slower hosts are beyond as well
        others = MeasuredEffects(np.append(others.effect, loss), np.append(others.error, 0.0))
    return within


@dataclass(frozen=True)
class FittedTails:
    """Student's t distributions, as likely as a sample of effects makes them; all arrays have one length."""

    size: int  # of the sample
    freedoms: Floats
    scales: Floats
    weights: Floats  # their sum is 1

    @classmethod
    def of(cls, sample: MeasuredEffects) -> FittedTails:
        """Weight the distributions by the likelihood of the sample, whose effects vary by their errors as well."""
        order = np.argsort(sample.effect)
        kept = order[np.linspace(0, order.size - 1, min(order.size, MOST_EFFECTS)).astype(np.int64)]
        effect, error = sample.effect[kept], sample.error[kept]
        largest = max(float(np.abs(effect).max()), 2 * FINEST_NOISE)
        scales = np.geomspace(FINEST_NOISE, largest, SCALES)
        spread = np.hypot(scales[:, None], error)
        likelihood = np.concatenate([_log_likelihood(effect, freedom, spread) for freedom in FREEDOMS.tolist()])
        weight = np.exp(likelihood - likelihood.max())
        freedoms, scales = np.repeat(FREEDOMS, SCALES), np.tile(scales, FREEDOMS.size)
        return cls(sample.effect.size, freedoms, scales, weight / weight.sum())

    def count_expected_beyond(self, loss: float) -> float:
        """Return the expected number of effects of at least `loss` in a sample like the fitted one."""
        return float(self.size * (self.weights * stdtr(self.freedoms, -loss / self.scales)).sum())

    def loss_of_count(self, count: float) -> float:
        """Return the loss that as many effects of such a sample are expected to have at least: less than half of it."""
        from scipy.optimize import brentq

        low, high = np.log(self.scales.min()) - _LOG_RANGE, np.log(self.scales.max()) + _LOG_RANGE
        return float(np.exp(brentq(lambda loss: self.count_expected_beyond(np.exp(loss)) - count, low, high)))


def _log_likelihood(values: Floats, freedom: float, scale: Floats) -> Floats:
    """Return the (k,) log-likelihoods of the values under Student's t with the scales of each row of (k, n)."""
    constant = gammaln((freedom + 1) / 2) - gammaln(freedom / 2) - np.log(np.sqrt(freedom * np.pi))
    log_density = constant - np.log(scale) - (freedom + 1) / 2 * np.log1p((values / scale) ** 2 / freedom)
    return np.asarray(log_density.sum(axis=1))
