"""By how much healthy components of a fabric differ, and whether a slow host differs by more.

The sample is the effects of hosts without a detection. Student's t distributions from 3 degrees of freedom (heavy
tails) to the normal distribution are fitted to it, weighted by their likelihoods. A slow host is beyond the spread if
fewer than `alpha` hosts as slow are expected among as many healthy hosts. Slow hosts are not in the sample, unless they
are within the spread, beginning with the least slow host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, gammaln, stdtr

from fablint.analyse.observations.robust_stats import MAD_EFFICIENCY, MEDIAN_ERROR, robust_sd
from fablint.analyse.settings import CHANCE, FEWEST_OF_SPREAD, FINEST_NOISE
from fablint.model.arrays import Floats, Values

FREEDOMS = np.array([3.0, 4.0, 6.0, 10.0, 30.0, 1000.0])  # the last is practically normal
MOST_EFFECTS = 20_000  # effects to which the distributions are fitted
ITERATIONS = 30
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


def are_within_spread(losses: Sequence[float], healthy: Floats, alpha: float) -> list[bool]:
    """Return for each log-effect of a slow host whether healthy hosts may have it.

    Parameters
    ----------
    losses
        Log-effect of each slow host, in any order.
    healthy
        (k,) log-effects of all other hosts, as senders and as receivers, around 0; NaN where unknown.
    alpha
        Expected number of healthy hosts as slow, above which a host is within the spread.
    """
    sample = healthy[np.isfinite(healthy)]
    within = [False] * len(losses)
    if sample.size < FEWEST_OF_SPREAD:
        return within
    for position in np.argsort(losses):
        within[position] = count_expected_beyond(losses[position], sample) > alpha
        if not within[position]:
            break  # slower hosts are beyond as well
        sample = np.append(sample, losses[position])
    return within


def count_expected_beyond(loss: float, sample: Floats) -> float:
    """Return the expected number of effects of at least `loss` in a sample like this one."""
    return FittedTails.of(sample).count_expected_beyond(loss)


@dataclass(frozen=True)
class FittedTails:
    """Student's t distributions fitted to a sample of effects; all arrays are as long as FREEDOMS."""

    size: int  # of the sample
    scales: Floats
    weights: Floats  # their sum is 1

    @classmethod
    def of(cls, sample: Floats) -> FittedTails:
        """Fit the scales, and weight the distributions by their likelihoods."""
        fitted = np.sort(sample)[np.linspace(0, sample.size - 1, min(sample.size, MOST_EFFECTS)).astype(np.int64)]
        scales = np.array([_scale(fitted, freedom) for freedom in FREEDOMS])
        likelihood = np.array(
            [_log_likelihood(fitted, freedom, scale) for freedom, scale in zip(FREEDOMS, scales, strict=True)]
        )
        weight = np.exp(likelihood - likelihood.max())
        return cls(sample.size, scales, weight / weight.sum())

    def count_expected_beyond(self, loss: float) -> float:
        """Return the expected number of effects of at least `loss` in a sample like the fitted one."""
        return float(self.size * (self.weights * stdtr(FREEDOMS, -loss / self.scales)).sum())

    def loss_of_count(self, count: float) -> float:
        """Return the loss that as many effects of such a sample are expected to have at least: less than half of it."""
        from scipy.optimize import brentq

        low, high = np.log(self.scales.min()) - _LOG_RANGE, np.log(self.scales.max()) + _LOG_RANGE
        return float(np.exp(brentq(lambda loss: self.count_expected_beyond(np.exp(loss)) - count, low, high)))


def _scale(values: Floats, freedom: float) -> float:
    """Return the maximum-likelihood scale of Student's t with these degrees of freedom (expectation maximisation)."""
    squares = values**2
    variance = max(float(np.median(squares)), FINEST_NOISE**2)
    for _ in range(ITERATIONS):
        weight = (freedom + 1) / (freedom + squares / variance)
        variance = max(float(np.mean(weight * squares)), FINEST_NOISE**2)
    return float(np.sqrt(variance))


def _log_likelihood(values: Floats, freedom: float, scale: float) -> float:
    """Return the log-likelihood of the values under Student's t."""
    constant = gammaln((freedom + 1) / 2) - gammaln(freedom / 2) - np.log(np.sqrt(freedom * np.pi) * scale)
    return float(np.sum(constant - (freedom + 1) / 2 * np.log1p((values / scale) ** 2 / freedom)))
