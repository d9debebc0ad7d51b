"""Modes of a sample of effects: do the members of one kind fall into several populations?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from fablint.analyse.data.robust_stats import robust_sd

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

FEWEST_MEMBERS = 3  # of a mode
MOST_MODES = 3
MEMBER = 2.5  # spreads of the larger mode, within which the core of the smaller one lies
GAP = 2.0  # spreads between the nearest members of two modes: three normal values of 1,000 leave none so wide
FEW, FAR = 6, 8.0  # members of a small mode, and how far it must be: outliers that agree by chance are not a mode
DISTANCE = 4.0  # spreads between the centres: Ashman's D (Ashman, Bird and Zepf 1994) asks for 2
CANDIDATES = 12  # widest gaps that are tried


@dataclass(frozen=True)
class Modes:
    """Which members belong together. Label 0 has the smallest effects; -1: the effect is not known."""

    label: Labels  # (n,)
    centre: Floats  # (modes,) median effect

    @property
    def count(self) -> int:
        """How many modes there are."""
        return int(self.centre.size)


def modes_of(effect: Floats, error: float, least: float) -> Modes:
    """Split a sample at its gaps, as long as both sides have three members that agree.

    Parameters
    ----------
    effect
        (n,) effects, NaN where unknown.
    error
        Standard error of an effect: members closer than that are not distinguished.
    least
        Smallest distance of two modes that matters.

    Notes
    -----
    Members that lie outside of the core of their mode are its outliers, not a reason against it: a fast host or a
    faulty one does not hide that there are two generations of hosts.
    """
    known = np.flatnonzero(~np.isnan(effect))
    order = known[np.argsort(effect[known], kind="stable")]
    value = np.asarray(effect, dtype=np.float64)[order]
    bounds = [0, value.size]
    while len(bounds) - 1 < MOST_MODES:
        splits = [(first, _split(value[first:last], error, least)) for first, last in pairwise(bounds)]
        found = [first + split for first, split in splits if split is not None]
        if not found:
            break
        bounds = sorted({*bounds, found[0]})
    label = np.full(len(effect), -1, dtype=np.int64)
    for number, (first, last) in enumerate(pairwise(bounds)):
        label[order[first:last]] = number
    centre = [float(np.median(value[a:b])) if b > a else 0.0 for a, b in pairwise(bounds)]
    return Modes(label, np.array(centre))


def _split(value: Floats, error: float, least: float) -> int | None:
    """Where sorted values fall into two modes: the widest gap between two that agree each; None: nowhere."""
    if value.size < 2 * FEWEST_MEMBERS:
        return None
    gaps = np.diff(value)
    inner = np.arange(FEWEST_MEMBERS - 1, value.size - FEWEST_MEMBERS)
    for at in inner[np.argsort(-gaps[inner], kind="stable")][:CANDIDATES]:
        if gaps[at] <= GAP * error:
            return None
        if _apart(value[: at + 1], value[at + 1 :], float(gaps[at]), error, least):
            return int(at) + 1
    return None


def _apart(low: Floats, high: Floats, gap: float, error: float, least: float) -> bool:
    """Are these two modes: each with a core, far apart for the spread of the larger one?"""
    large, small = (low, high) if low.size >= high.size else (high, low)
    spread = max(robust_sd(large), error)
    distance = float(np.median(high) - np.median(low))
    asked = FAR if small.size < FEW else DISTANCE
    if distance < max(least, asked * spread) or gap < GAP * spread:
        return False
    core = np.count_nonzero(np.abs(small - np.median(small)) <= MEMBER * spread)
    return bool(core >= FEWEST_MEMBERS and 2 * core > small.size)
