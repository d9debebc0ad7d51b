"""Percentiles of the time of a message that a row stores of each pair: as statistics, and in arrays of their own."""

from __future__ import annotations

import numpy as np

from fablint.model.run import Row

Statistic = str | float  # `min median mean p99 max`, or another percentile of the time: 90.0
STATISTICS_AT = {0.0: "min", 50.0: "median", 99.0: "p99", 100.0: "max"}


def stored_percentiles(row: Row) -> dict[float, Statistic]:
    """Return the percentiles of a row in order, each with what `times_at` reads it from; histograms know others."""
    statistics: dict[float, Statistic] = {at: at for at in own_percentiles(row)}
    statistics |= {percentile: name for percentile, name in STATISTICS_AT.items() if name in row.statistics}
    return dict(sorted(statistics.items()))


def times_at(row: Row, statistic: Statistic, place: tuple[int | slice, ...]) -> np.ndarray:
    """Return the times of cells.

    An imported row has percentiles that are no statistics in the array `percentile_time`, whose last dimension is
    `percentile`.

    Parameters
    ----------
    row
        A row of a run.
    statistic
        `median`, `min` and the like, or a percentile.
    place
        Index into an array of the cells: (src, round, size) or longer.

    Returns
    -------
    array
        Seconds, NaN where nothing was measured.
    """
    if isinstance(statistic, str):
        return np.asarray(row.arrays[f"time_{statistic}"][place], dtype=np.float64)
    values = row.arrays["percentile_time"][(*place, own_percentiles(row).index(statistic))]
    return np.asarray(values, dtype=np.float64)


def own_percentiles(row: Row) -> list[float]:
    """Return the percentiles of a row that are no statistics, in the order of `percentile_time`."""
    return [float(at) for at in row.arrays["percentile"][:]] if "percentile" in row.arrays else []
