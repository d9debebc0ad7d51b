"""The resolution of figures: tools print so many digits, and clocks have ticks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FEWEST_VALUES = 30
BULK = (0.05, 0.95)  # quantiles between which steps are looked at
SAME = 1e-5  # log: values closer than that are one value after a conversion of units
REPEATED = 3.0  # values for each distinct one, from which steps are seen


def step_of(value: npt.NDArray[np.float32]) -> float:
    """Smallest step between distinct log times in the bulk of a sample; 0 where hardly any value occurs twice."""
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
