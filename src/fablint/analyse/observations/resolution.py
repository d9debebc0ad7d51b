"""Resolution of measured times: tools print a limited number of digits, and clocks have ticks.

Printed times, or printed rates, are whole multiples of a step. The step of the logarithm is that step over the value.
"""

from __future__ import annotations

import numpy as np

from fablint.analyse.observations.pair_matrix import Pairs
from fablint.analyse.settings import (
    COARSE_STEP,
    FEWEST_LEVELS,
    FEWEST_POOL,
    FEWEST_VALUES,
    MOST_STEPS,
    NEARLY_ALL,
)
from fablint.model.arrays import Codes, Floats, Values

MIDDLE_HALF = (0.25, 0.75)  # quantiles
FINEST_STEP = 2e-3  # smaller steps are not visible in log times of 32 bits, and do not matter
LEVELS_OF_STEP = 30  # most frequent distinct values, from which the step is computed
ROUNDING_NOISE = 12**-0.5  # standard deviation of rounding, in steps
ONE_STEP = 1.05  # steps up to which a difference of medians is rounding
SAME = 1e-5  # difference of log times: closer values are equal before a conversion of units


def find_step(log_time: Floats | Values, at: float = 0.5) -> float:
    """Return the step of the times over a quantile of them; 0 if the times have no visible resolution.

    Either the times or the rates, which are their inverses, are multiples of the step.

    Parameters
    ----------
    log_time
        (k,) natural logarithms of times in seconds, NaN where nothing was measured.
    at
        Quantile, of times or rates.
    """
    measured = log_time[~np.isnan(log_time)].astype(np.float64)
    if measured.size < FEWEST_POOL:
        return 0.0
    middle = float(np.median(measured))
    times = np.exp(measured - middle)
    # Few distinct values may be multiples of a step as times and as rates: those of times are known in seconds.
    return _step(times, np.exp(middle), at) or _step(1 / times, None, at)


def _step(value: Floats, unit: float | None, at: float) -> float:
    """Return the step of values over a quantile of them, 0 without a step.

    Parameters
    ----------
    value
        (k,) values over their median.
    unit
        The median in seconds, whose decimal digits are printed; None: unknown.
    at
        The quantile.
    """
    low, high = np.quantile(value, MIDDLE_HALF)
    middle = value[(value >= low) & (value <= high)]  # of significant digits, the step grows with the value
    for part in (middle, value):
        levels, count = _levels(part)
        if levels.size >= FEWEST_LEVELS:
            break
    step = _common_divisor(levels[np.argsort(-count, kind="stable")[:LEVELS_OF_STEP]])
    if step > COARSE_STEP and levels.size < FEWEST_LEVELS:
        step = min(step, _decimal(step * unit) / unit) if unit is not None else 0.0
    if step < FINEST_STEP:
        return 0.0
    multiple = levels / step
    is_multiple = np.abs(multiple - np.round(multiple)) <= 2 * SAME * multiple + SAME
    is_step = count[is_multiple].sum() >= NEARLY_ALL * count.sum()
    return float(step / np.quantile(value, at)) if is_step else 0.0


def _levels(value: Floats) -> tuple[Floats, Codes]:
    """Return the distinct values, and how often each occurs."""
    ordered = np.sort(value)
    starts = np.flatnonzero(np.diff(ordered, prepend=-1.0) > SAME * ordered)
    return ordered[starts], np.diff(starts, append=ordered.size)


def _common_divisor(values: Floats) -> float:
    """Return the greatest number of which all values are multiples, below `FINEST_STEP` if there is none.

    It divides their differences. Of many steps, the whole range is more accurate than a difference.
    """
    ordered = np.sort(values)
    differences, width = np.sort(np.diff(ordered)), float(ordered[-1] - ordered[0])
    if not differences.size:
        return float(ordered[0])
    divisor = float(differences[0])
    for difference in differences[1:].tolist():
        divisor = _divisor_of_two(difference, divisor)
        if divisor < FINEST_STEP:
            return 0.0
    divisor = _divisor_of_two(float(ordered[-1]), width / round(width / divisor))
    return float(ordered[-1]) / round(float(ordered[-1]) / divisor) if divisor >= FINEST_STEP else 0.0


def _divisor_of_two(larger: float, smaller: float) -> float:
    """Return the greatest common divisor of two inaccurate numbers, by Euclid's algorithm."""
    while smaller >= FINEST_STEP / 2:
        larger, smaller = smaller, abs(larger - smaller * round(larger / smaller))
    return larger


def _decimal(value: float) -> float:
    """Return the largest power of ten of which the value is a multiple with at most four digits; 0 if there is none."""
    power = 10.0 ** np.floor(np.log10(value) + SAME)
    for _ in range(4):
        if abs(value / power - round(value / power)) <= 2 * SAME * value / power + SAME:
            return float(power)
        power /= 10
    return 0.0


def means_of_rounded(pairs: Pairs) -> tuple[Floats, Floats]:
    """Return the (n,) mean residual of each rank as sender and as receiver, without far values.

    Medians of rounded times are multiples of the step: if most hosts have the same one, no spread of the hosts is
    visible. Sums of the effects of two hosts are rounded to either side of a step by different partners.
    """
    total, count, most = np.zeros((2, pairs.ranks)), np.zeros((2, pairs.ranks)), MOST_STEPS * pairs.step
    for rows in pairs.blocks():
        for side, values in enumerate((pairs.sent(rows), pairs.received(rows))):
            total[side, rows] = np.nansum(np.clip(values, -most, most), axis=1)
            count[side, rows] = np.count_nonzero(~np.isnan(values), axis=1)
    means = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return means[0], means[1]


def are_within_step(means: Floats, step: float) -> bool:
    """Return whether the mean residuals of hosts differ by one step at most, without the far ones.

    Where healthy times lie at the edge of a step, small differences of hosts become large ones of their rounded times.
    """
    measured = means[np.isfinite(means)]
    near = measured[np.abs(measured - np.median(measured)) <= MOST_STEPS * step] if measured.size else measured
    return near.size >= max(FEWEST_VALUES, NEARLY_ALL * measured.size) and float(np.ptp(near)) <= ONE_STEP * step
