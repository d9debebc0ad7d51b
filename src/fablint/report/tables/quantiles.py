"""Percentiles of the samples of many cells: from their histograms, else from what was stored of each cell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fablint.errors import UsageError
from fablint.model import Row
from fablint.model.figures.percentiles import Statistic, stored_percentiles, times_at


def checked(percentiles: Sequence[float]) -> tuple[float, ...]:
    """Return a tuple; raises UsageError for a text that is not a percentile."""
    for percentile in percentiles:
        if not 0 <= percentile <= 100:
            raise UsageError(f"percentile {percentile:g} is not between 0 and 100", "give a list such as 50,90,99.9")
    return tuple(float(percentile) for percentile in percentiles)


def quantiles(counts: np.ndarray, edges: np.ndarray, shares: Sequence[float]) -> np.ndarray:
    """Quantiles of binned samples, interpolated inside the bin.

    `counts` (buckets,) and `edges` (buckets,), the lower edge of each, in seconds. Buckets grow by a constant factor
    (128 per octave), which also gives the last one its upper edge.
    """
    upper = np.append(edges[1:], edges[-1] * 2 ** (1 / 128))
    cumulated = np.cumsum(counts, dtype=np.float64)
    targets = np.asarray(shares) * cumulated[-1]
    at = np.searchsorted(cumulated, targets, side="left")
    at = np.where(counts[at] == 0, np.flatnonzero(counts)[0], at)  # share 0 starts at the first filled bucket
    inside = (targets - (cumulated[at] - counts[at])) / counts[at]
    return np.asarray(edges[at] + np.clip(inside, 0, 1) * (upper[at] - edges[at]))


def percentile_times(row: Row, index: int, kept: np.ndarray, percentiles: Sequence[float]) -> list[float | None]:
    """Seconds at each percentile of the samples of the cells that the mask `kept` (shape of a cell array) keeps.

    None where the histograms of these cells are lost. Raises UsageError for a percentile that neither a histogram nor
    a stored statistic knows.
    """
    if not percentiles:
        return []
    if "histogram" in row.arrays:
        counts = np.asarray(row.arrays["histogram"][..., index, :])[kept].sum(axis=0, dtype=np.int64)
        if not counts.any():
            return [None] * len(percentiles)
        times = quantiles(counts, np.asarray(row.arrays["bucket"][:]), [percentile / 100 for percentile in percentiles])
        low = float(stored(row, "min", index)[kept].min()) if "min" in row.statistics else 0.0
        high = float(stored(row, "max", index)[kept].max()) if "max" in row.statistics else np.inf
        return [float(time) for time in np.clip(times, low, high)]
    return [_stored_percentile(row, index, kept, percentile) for percentile in percentiles]


def knows(row: Row, percentile: float) -> bool:
    """Tell whether `percentile_times` has an answer."""
    return "histogram" in row.arrays or percentile in stored_percentiles(row)


def stored(row: Row, statistic: Statistic, index: int) -> np.ndarray:
    """A statistic or percentile of all cells at a size, seconds, NaN where missing."""
    whole_axes = (slice(None),) * (2 if row.layout == "list" else 3)
    return times_at(row, statistic, (*whole_axes, index))


def _stored_percentile(row: Row, index: int, kept: np.ndarray, percentile: float) -> float:
    """From what is stored of the cells: extremes are exact, the others the mean over the cells."""
    percentiles = stored_percentiles(row)
    if percentile not in percentiles:
        have = ", ".join(f"{one:g}" for one in percentiles)
        raise UsageError(
            f"row {row.name} has no histogram, so its percentile {percentile:g} of the time is not known",
            f"measure it with --histogram, or choose from {have or 'none'}",
        )
    combine = {0.0: np.min, 100.0: np.max}.get(percentile, np.mean)
    return float(combine(stored(row, percentiles[percentile], index)[kept]))
