"""Binomial probabilities as in `scipy.stats.binom`, whose import takes longer than the analysis of a small run."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, bdtrik, betainc

from fablint.model.arrays import Floats, Mask


def upper_tail(successes: npt.ArrayLike, trials: npt.ArrayLike, probability: npt.ArrayLike) -> Floats:
    """Return the probability of so many successes or more; the arguments are broadcast against each other."""
    successes = np.asarray(successes, dtype=np.float64)
    return np.asarray(betainc(successes, np.asarray(trials) - successes + 1, probability))


def chance_of_so_many(is_so: Mask, is_so_elsewhere: Mask) -> float:
    """Return the probability of so many of (k,) cells or more, by the share of the (m,) cells elsewhere."""
    share = (np.count_nonzero(is_so_elsewhere) + 1) / (is_so_elsewhere.size + 2)
    return float(upper_tail(np.count_nonzero(is_so), is_so.size, share))


def quantile(share: float, trials: npt.ArrayLike, probability: npt.ArrayLike) -> Floats:
    """Return the smallest number of successes that is not exceeded with a probability of at least `share`."""
    trials = np.asarray(trials)
    number = np.clip(np.nan_to_num(np.ceil(bdtrik(share, trials, probability))), 0, trials)
    below = np.maximum(number - 1, 0)
    return np.asarray(np.where(bdtr(below, trials, probability) >= share, below, number))
