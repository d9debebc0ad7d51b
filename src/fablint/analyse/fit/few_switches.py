"""What is usual between three or four switches, of which one may be slow.

Of the pairs between three switches, two thirds touch each of them: the median of all is that of a slow switch. So one
switch at a time is left out, and the switch without which the others agree is not asked what is usual.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fablint.analyse.data.rank_places import Codes

FEWEST_FEW, MOST_FEW = 3, 4  # switches: so few that a slow one decides on the median
FEWEST_PAIRS = 6  # of ranks, that touch a switch and that do not


def usual_without_one(value: npt.NDArray[np.float32], a: Codes, b: Codes, usual: float, least: float) -> float:
    """The median of the pairs that do not touch one slow switch, if there is one; else `usual`.

    Parameters
    ----------
    value
        (k,) log times of pairs between switches.
    a, b
        (k,) codes of their switches.
    usual
        Median of all.
    least
        Smallest difference that matters, log.
    """
    switches = np.unique(np.concatenate([a, b]))
    if not FEWEST_FEW <= switches.size <= MOST_FEW:
        return usual
    found = usual
    for switch in switches:
        touches = (a == switch) | (b == switch)
        if min(np.count_nonzero(touches), np.count_nonzero(~touches)) < FEWEST_PAIRS:
            continue
        rest, slow = value[~touches], value[touches]
        low, high = np.quantile(rest, (0.25, 0.75))
        apart = float(np.quantile(slow, 0.25) - high)  # most pairs that touch the switch are slower than most others
        if apart > 0 and np.median(slow) - np.median(rest) > max(least, float(high - low)):
            found = min(found, float(np.median(rest)))
    return found
