"""Resolution of measured times: tools print a limited number of digits, and clocks have ticks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FEWEST_VALUES = 30
BULK = (0.05, 0.95)  # quantiles of the values that are compared
SAME = 1e-5  # difference of log times: closer values are equal before a conversion of units
REPEATED = 3.0  # values per distinct value, from which the steps are visible


def find_step(value: npt.NDArray[np.float32]) -> float:
    """Return the smallest step between distinct log times in the bulk of a sample; 0 if hardly any value occurs
    twice.
    """
    known = np.sort(value[~np.isnan(value)].astype(np.float64))
    if known.size < FEWEST_VALUES:
        return 0.0
    low, high = np.quantile(known, BULK, method="nearest")
    bulk = known[(known >= low) & (known <= high)]
    distinct = 1 + int(np.count_nonzero(np.diff(bulk) > SAME))
    if bulk.size < REPEATED * distinct:
        return 0.0
    steps = np.diff(known)
    steps = steps[(steps > SAME) & (known[1:] > low - 1e-9)]
    return float(steps.min()) if steps.size else 0.0
