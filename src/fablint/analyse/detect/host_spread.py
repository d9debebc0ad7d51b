"""Whether a slow host differs from the others by more than healthy hosts of this fabric differ among each other.

The effects of the hosts that nothing was found at are the sample; Student's t distributions from 3 degrees of freedom
(heavy tails) to the normal one are fitted to it, weighted by their likelihoods. A slow host is beyond the spread where
fewer than `alpha` hosts as slow are expected among as many healthy ones. Slow hosts are no part of the sample, unless
they turn out to be within the spread: from the least slow one on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln, stdtr

from fablint.analyse.data.robust_stats import Floats

FREEDOMS = np.array([3.0, 4.0, 6.0, 10.0, 30.0, 1000.0])  # the last one is as good as normal
FEWEST_EFFECTS = 8  # hosts' effects, of which a spread is known
MOST_EFFECTS = 20_000  # of which it is fitted
FINEST_SPREAD = 1e-3
ITERATIONS = 30


def within_spread(losses: Sequence[float], healthy: Floats, alpha: float) -> list[bool]:
    """Is each of these log-effects of slow hosts one that healthy hosts may have?

    Parameters
    ----------
    losses
        Of each slow host, in any order.
    healthy
        (k,) log-effects of all other hosts, as senders and as receivers, around 0; NaN where unknown.
    alpha
        Expected number of healthy hosts as slow as that, from which a host is within the spread.
    """
    sample = healthy[np.isfinite(healthy)]
    found = [False] * len(losses)
    if sample.size < FEWEST_EFFECTS:
        return found
    for at in np.argsort(losses):
        found[at] = expected_beyond(losses[at], sample) > alpha
        if not found[at]:
            break  # what is slower still is further beyond
        sample = np.append(sample, losses[at])
    return found


def expected_beyond(loss: float, sample: Floats) -> float:
    """How many effects as large as `loss` are expected in a sample like this one."""
    fitted = np.sort(sample)[np.linspace(0, sample.size - 1, min(sample.size, MOST_EFFECTS)).astype(np.int64)]
    scales = np.array([_scale(fitted, freedom) for freedom in FREEDOMS])
    likelihood = np.array(
        [_log_likelihood(fitted, freedom, scale) for freedom, scale in zip(FREEDOMS, scales, strict=True)]
    )
    weight = np.exp(likelihood - likelihood.max())
    beyond = stdtr(FREEDOMS, -loss / scales)
    return float(sample.size * (weight * beyond).sum() / weight.sum())


def _scale(values: Floats, freedom: float) -> float:
    """Scale of Student's t with so many degrees of freedom, by maximum likelihood (expectation and maximisation)."""
    squares = values**2
    variance = max(float(np.median(squares)), FINEST_SPREAD**2)
    for _ in range(ITERATIONS):
        weight = (freedom + 1) / (freedom + squares / variance)
        variance = max(float(np.mean(weight * squares)), FINEST_SPREAD**2)
    return float(np.sqrt(variance))


def _log_likelihood(values: Floats, freedom: float, scale: float) -> float:
    constant = gammaln((freedom + 1) / 2) - gammaln(freedom / 2) - np.log(np.sqrt(freedom * np.pi) * scale)
    return float(np.sum(constant - (freedom + 1) / 2 * np.log1p((values / scale) ** 2 / freedom)))
