"""Ends of colour scales and axes: set by the bulk of the values, and not by one spike."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

_STEPS = (1, 2, 2.5, 5, 10)
_WIDE = 1.5  # widths of the bulk that the scale goes on beyond it
_NARROWEST = 0.05  # of the logarithm
NARROWEST = 0.1  # end of a scale of deviations: less than the losses that are reported stays pale


def bulk_scale(log_time: np.ndarray) -> list[float]:
    """Ends of a scale of times, as logarithms: the bulk, and as much beyond it as belongs to it."""
    if not log_time.size:
        return [math.log(1e-6), math.log(1.5e-6)]
    low, first, last, high = np.quantile(log_time, (0.005, 0.05, 0.95, 0.999)).tolist()
    return bulk_ends(low, first, last, high)


def bulk_ends(low: float, first: float, last: float, high: float, narrowest: float = _NARROWEST) -> list[float]:
    """Ends of a scale from extremes, and ends of the bulk; `narrowest` is the least width of the bulk."""
    width = max(last - first, narrowest)
    return [max(low, first - _WIDE * width), max(min(high, last + _WIDE * width), first + width)]


def deviation_scale(log_effect: np.ndarray) -> float:
    """End of a scale of deviations, as a logarithm: 8 robust standard deviations, and not less than `NARROWEST`."""
    if not log_effect.size:
        return 0.2
    return float(np.clip(8 * 1.4826 * np.median(np.abs(log_effect - np.median(log_effect))), NARROWEST, 1.0))


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers at equal distances, the first not above `low` and the last not below `high`."""
    span = max(high - low, 1e-12)
    raw = span / max(1, most - 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(
        item * power
        for scale in (1, 10)
        for item in (step * scale for step in _STEPS)
        if math.ceil(high / (item * power) - 1e-9) - math.floor(low / (item * power) + 1e-9) <= most - 1 or item >= 50
    )
    first = math.floor(low / step + 1e-9)
    count = max(1, math.ceil(high / step - 1e-9) - first)
    return [round((first + index) * step, 12) for index in range(count + 1)]


def position(value: np.ndarray, ends: Sequence[float], length: int) -> np.ndarray:
    """Whole pixels of values on an axis, those beyond its ends at its ends."""
    share = (np.asarray(value, dtype=float) - ends[0]) / ((ends[-1] - ends[0]) or 1)
    return np.rint(np.clip(share, 0, 1) * length).astype(int)
