"""Modes of a sample of effects: whether the members of one kind form several populations."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fablint.analyse.observations.robust_stats import robust_sd
from fablint.analyse.settings import CLEAR_DISTANCE, CORE, FAR_ALONE, FEWEST_PEERS, FEWEST_VALUES, MODE_GAP, MOST_MODES
from fablint.model.arrays import Codes, Floats

CANDIDATES = 12  # widest gaps that are tried


@dataclass(frozen=True)
class Modes:
    """Assignment of members to modes. Label 0 has the smallest effects; -1: the effect is unknown."""

    label: Codes  # (n,)
    centre: Floats  # (modes,) median effect

    @property
    def count(self) -> int:
        """Number of modes."""
        return int(self.centre.size)


def find_modes(effect: Floats, error: float, least: float) -> Modes:
    """Split a sample at its gaps, as long as both sides have three members that agree.

    Parameters
    ----------
    effect
        (n,) effects, NaN where unknown.
    error
        Standard error of an effect: closer members are not distinguished.
    least
        Smallest distance of two modes that matters.

    Notes
    -----
    Members outside the core of their mode are outliers of the mode, not evidence against it: a fast or faulty host does
    not hide two generations of hosts.
    """
    measured = np.flatnonzero(~np.isnan(effect))
    order = measured[np.argsort(effect[measured], kind="stable")]
    value = np.asarray(effect, dtype=np.float64)[order]
    bounds = [0, value.size]
    while len(bounds) - 1 < MOST_MODES:
        splits = [(first, _split(value[first:last], error, least)) for first, last in pairwise(bounds)]
        cuts = [first + split for first, split in splits if split is not None]
        if not cuts:
            break
        bounds = sorted({*bounds, cuts[0]})
    label = np.full(len(effect), -1, dtype=np.int64)
    for number, (first, last) in enumerate(pairwise(bounds)):
        label[order[first:last]] = number
    centre = [float(np.median(value[a:b])) if b > a else 0.0 for a, b in pairwise(bounds)]
    return Modes(label, np.array(centre))


def _split(value: Floats, error: float, least: float) -> int | None:
    """Return the position at which sorted values fall into two modes; None if there is none.

    It is the widest gap between two sets of values that are modes.
    """
    if value.size < 2 * FEWEST_PEERS:
        return None
    gaps = np.diff(value)
    inner = np.arange(FEWEST_PEERS - 1, value.size - FEWEST_PEERS)
    for at in inner[np.argsort(-gaps[inner], kind="stable")][:CANDIDATES]:
        if gaps[at] <= MODE_GAP * error:
            return None
        if _are_separate(value[: at + 1], value[at + 1 :], float(gaps[at]), error, least):
            return int(at) + 1
    return None


def _are_separate(low: Floats, high: Floats, gap: float, error: float, least: float) -> bool:
    """Return whether these are two modes: each with a core, nearer to it than to the other one, and far apart compared
    with the spread of the larger mode.
    """
    large, small = (low, high) if low.size >= high.size else (high, low)
    spread = max(robust_sd(large), error)
    distance = float(np.median(high) - np.median(low))
    middle = float(np.median(high) + np.median(low)) / 2
    if low[-1] > middle or high[0] < middle:
        return False  # a member beside the gap is nearer to the other mode
    needed = FAR_ALONE if small.size < FEWEST_VALUES else CLEAR_DISTANCE
    if distance < max(least, needed * spread) or gap < MODE_GAP * spread:
        return False
    core = np.count_nonzero(np.abs(small - np.median(small)) <= CORE * spread)
    return bool(core >= FEWEST_PEERS and 2 * core > small.size)
