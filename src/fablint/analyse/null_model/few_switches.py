"""Usual time between three or four switches, of which one may be slow.

Two thirds of the pairs between three switches touch each of them: the median of all pairs is that of a slow switch. So
each switch is left out in turn; a switch without which the other switches agree does not count for the usual time.
"""

from __future__ import annotations

import numpy as np

from fablint.analyse.settings import FEWEST_PEERS, FEWEST_VALUES, MOST_FEW
from fablint.model.arrays import Codes, Values


def usual_without_slow_switch(value: Values, a: Codes, b: Codes, usual: float, least: float) -> float:
    """Return the median of the pairs that do not touch one slow switch, if there is one; else `usual`.

    Parameters
    ----------
    value
        (k,) log times of pairs between switches.
    a, b
        (k,) codes of their switches.
    usual
        Median of all.
    least
        Smallest log-effect that matters.
    """
    switches = np.unique(np.concatenate([a, b]))
    if not FEWEST_PEERS <= switches.size <= MOST_FEW:
        return usual
    lowest = usual
    for switch in switches:
        touches = (a == switch) | (b == switch)
        if min(np.count_nonzero(touches), np.count_nonzero(~touches)) < FEWEST_VALUES:
            continue
        rest, slow = value[~touches], value[touches]
        low, high = np.quantile(rest, (0.25, 0.75))
        gap = float(np.quantile(slow, 0.25) - high)  # most pairs of the switch are slower than most other pairs
        if gap > 0 and np.median(slow) - np.median(rest) > max(least, float(high - low)):
            lowest = min(lowest, float(np.median(rest)))
    return lowest
