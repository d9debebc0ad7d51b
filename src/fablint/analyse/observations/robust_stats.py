"""Medians with 95 % intervals by order statistics: no distribution is assumed, missing values are ignored."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fablint.model.arrays import Codes, Floats, Values

MEDIAN_ERROR = 1.2533  # standard error of a median of normal values, in standard deviations over sqrt(n)
MAD_EFFICIENCY = 0.37  # of n normal values, `robust_sd` is as accurate as the standard deviation of 0.37 n
GAUSSIAN_MAD = 1.4826  # median absolute deviation of a normal distribution times this is its standard deviation


def interval_ranks(counts: npt.ArrayLike) -> tuple[Codes, Codes]:
    """Return the 0-based ranks of the order statistics that bound the median of `counts` values with 95 % confidence.

    They are those of the binomial distribution with probability 1/2, by its normal approximation with continuity
    correction, which is exact enough from 6 values on (6: smallest and largest, 10: 2nd and 9th, 100: 40th and 61st).
    Fewer values have no 95 % interval: the ranks are those of the extremes.
    """
    counts = np.asarray(counts, dtype=np.int64)
    lower = np.maximum(np.floor((counts + 1 - 1.96 * np.sqrt(counts)) / 2).astype(np.int64) - 1, 0)
    return lower, np.maximum(counts - 1 - lower, 0)


def row_medians(values: Values | Floats) -> Floats:
    """Return the lower bound, median and upper bound of each row of (rows, m) values: (3, rows), NaN for an empty row.

    Sorts `values` in place.
    """
    counts = values.shape[1] - np.isnan(values).sum(axis=1)
    values.sort(axis=1)
    row = np.arange(values.shape[0])
    last = np.maximum(counts - 1, 0)
    lower, upper = interval_ranks(counts)
    middle = (values[row, last // 2].astype(np.float64) + values[row, (last + 1) // 2]) / 2
    return np.stack([values[row, lower], middle, values[row, upper]])


def robust_sd(values: npt.ArrayLike) -> float:
    """Return the standard deviation of the bulk of the values, from the median absolute deviation; 0 if there are
    none.
    """
    measured = np.asarray(values, dtype=np.float64)
    measured = measured[~np.isnan(measured)]
    if not measured.size:
        return 0.0
    return float(GAUSSIAN_MAD * np.median(np.abs(measured - np.median(measured))))


def average_ranks(values: npt.ArrayLike) -> Floats:
    """Return the (n,) ranks of the values, from 1; equal values have the mean of their ranks."""
    _, inverse, count = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count - 1) / 2)[inverse])


def adjust_p_values(p: npt.ArrayLike) -> Floats:
    """Return the (n,) p-values adjusted for the false discovery rate (Benjamini and Hochberg 1995).

    As `scipy.stats.false_discovery_control`, without the import of scipy.stats.
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values)
    ranked = values[order] * (values.size / np.arange(1, values.size + 1))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum.accumulate(ranked[::-1])[::-1]
    return np.clip(adjusted, 0.0, 1.0)


def row_means(values: Floats) -> Floats:
    """Return the (m,) mean of each row of (m, n) values, of which NaN are absent; NaN for a row without values."""
    count = (~np.isnan(values)).sum(axis=1)
    return np.asarray(np.where(count > 0, np.nansum(values, axis=1) / np.maximum(count, 1), np.nan))


def standard_errors(values: Floats) -> Floats:
    """Return the (m,) standard error of the mean of each row of (m, n) values, of which NaN are absent.

    It is 0 for a row with less than two values, and supposes that the values are independent.
    """
    count = np.maximum((~np.isnan(values)).sum(axis=1), 1)
    variance = np.nansum((values - row_means(values)[:, None]) ** 2, axis=1) / np.maximum(count - 1, 1)
    return np.asarray(np.sqrt(variance / count))


def parts_of_time(started: Floats, count: int, times_of_row: Floats | None = None) -> Codes | None:
    """Return the part of the time of each of (k,) measurements, of `count` parts with equally many of all measurements.

    None if the times are unknown, or all are equal. `times_of_row` are the times of all measurements: None: these.
    """
    times_of_row = started if times_of_row is None else times_of_row
    if (
        not np.isfinite(started).all()
        or not np.isfinite(times_of_row).any()
        or not np.ptp(times_of_row[np.isfinite(times_of_row)])
    ):
        return None
    edges = np.nanquantile(times_of_row, np.arange(1, count) / count)
    return np.searchsorted(edges, started, side="right").astype(np.int64)
