"""Ratio of mean to median of the messages of each measured pair: large if some messages are much later than others.

Lists of rounds and full matrices give the same cells. A matrix is read in blocks of rows; of a fabric with more pairs
than are needed, a fixed sample of pairs is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fablint.analyse.observations.samples import UsableRow
from fablint.analyse.settings import FAST, TIMES_USUAL
from fablint.model import Placement, Row
from fablint.model.arrays import Codes, Floats, Mask, Values

MOST_CELLS = 1 << 20  # cells that are kept: 20 for each of 100,000 hosts, more than the 8 that a FAULT needs
MOST_MATRIX_RANKS = 20_000  # of the largest matrix that is read
BLOCK_CELLS = 1 << 22  # cells of a matrix that are read at once


@dataclass(frozen=True)
class MeanRatios:
    """Ratios of measured pairs of ranks on different hosts, one entry per measurement."""

    src: Codes
    dst: Codes
    ratio: Values  # mean / median, divided by its usual value in the row: 1 is healthy
    started: Floats  # s since the run's start, NaN where unknown


@dataclass(frozen=True)
class _Times:
    """Times of cells of one row in seconds; `least` is NaN if the minimum was not stored."""

    src: Codes
    dst: Codes
    mean: Values
    median: Values
    least: Values
    started: Floats


def read_mean_ratios(rows: Sequence[UsableRow], placement: Placement) -> MeanRatios | None:
    """Read the ratios of all latency rows, at their smallest size.

    Parameters
    ----------
    rows
        Rows that can be used for localisation.
    placement
        Hosts of the ranks.

    Returns
    -------
    MeanRatios or None
        None if no row has both means and medians.
    """
    tables = [ratios for usable in rows if (ratios := _ratios(usable, placement)) is not None]
    return MeanRatios(*_columns(tables)) if tables else None


def _ratios(usable: UsableRow, placement: Placement) -> MeanRatios | None:
    """Return the ratios of one measurement; all of its rows share one usual value."""
    rows = [
        row
        for row in (usable.row, *usable.more)
        if row.quantity == "latency" and {"mean", "median"} <= set(row.statistics)
    ]
    times = [block for row in rows for block in _read(row, placement)]
    if not sum(block.mean.size for block in times):
        return None
    joined = _Times(*_columns(times))
    ratio = joined.mean / _base(joined.median, joined.least)
    return MeanRatios(joined.src, joined.dst, (ratio / np.quantile(ratio, FAST)).astype(np.float32), joined.started)


def _base(median: Values, least: Values) -> Values:
    """Return the (k,) time in seconds of a message that is not late.

    It is the median, limited to TIMES_USUAL times the usual ratio of median to minimum times the minimum: if half of
    the messages of a cell or more are late, so is their median.
    """
    has_least = np.isfinite(least) & (least > 0)
    if not has_least.any():
        return median
    usual = np.quantile(median[has_least] / least[has_least], FAST)
    return np.where(has_least, np.minimum(median, TIMES_USUAL * usual * least), median).astype(np.float32)


def _columns(tables: Sequence[MeanRatios] | Sequence[_Times]) -> Iterator[np.ndarray]:
    """Return the columns of several tables, concatenated."""
    names = tables[0].__dataclass_fields__
    return (np.concatenate([getattr(table, name) for table in tables]) for name in names)


# ------------------------------------------------------------------------------------------------ reading


def _read(row: Row, placement: Placement) -> Iterator[_Times]:
    if row.layout == "list":
        yield _of_list(row, placement)
    elif row.arrays["time_mean"].shape[1] <= MOST_MATRIX_RANKS:
        yield from _of_matrix(row, placement)


def _of_list(row: Row, placement: Placement) -> _Times:
    size = min(row.sizes)
    partner = np.asarray(row.arrays["dst"][:], np.int64)
    mean, median, least = (
        np.asarray(row.observations(size, name).sent, np.float32) if name in row.statistics else None
        for name in ("mean", "median", "min")
    )
    assert mean is not None and median is not None
    src, column = np.nonzero((partner >= 0) & (mean > 0) & (median > 0))
    dst = partner[src, column]
    chosen = _chosen(src, dst, placement, src.size)
    at = (src[chosen], column[chosen])
    started = np.asarray(row.arrays["started"][:], np.float64)[at] if "started" in row.arrays else _unknown(at[0])
    lowest = _unknown(at[0]).astype(np.float32) if least is None else least[at]
    return _Times(at[0], dst[chosen], mean[at], median[at], lowest, started)


def _of_matrix(row: Row, placement: Placement) -> Iterator[_Times]:
    index, (repeats, ranks) = row.sizes.index(min(row.sizes)), row.arrays["time_mean"].shape[:2]
    step = max(1, BLOCK_CELLS // ranks)
    for repeat in range(repeats):
        for first in range(0, ranks, step):
            rows = slice(first, min(first + step, ranks))

            def read(name: str, repeat: int = repeat, rows: slice = rows) -> Values:
                return np.asarray(row.arrays[f"time_{name}"][repeat, rows, :, index], np.float32)

            mean, median = read("mean"), read("median")
            src, dst = np.nonzero((mean > 0) & (median > 0))
            chosen = _chosen(src + first, dst, placement, repeats * ranks * (ranks - 1))
            src, dst = src[chosen], dst[chosen]
            least = read("min")[src, dst] if "min" in row.statistics else _unknown(src).astype(np.float32)
            timed = "started" in row.arrays
            started = np.asarray(row.arrays["started"][repeat, rows], np.float64)[src, dst] if timed else _unknown(src)
            yield _Times(src + first, dst, mean[src, dst], median[src, dst], least, started)


def _unknown(like: Codes) -> Floats:
    return np.full(like.size, np.nan)


def _chosen(src: Codes, dst: Codes, placement: Placement, cells: int) -> Mask:
    """Return a mask of pairs on different hosts, of too many pairs a sample.

    The sample has all cells of a pair of hosts, or none.
    """
    a, b = placement.host[src], placement.host[dst]
    between = np.asarray(a != b)
    one_in = -(-cells // MOST_CELLS)
    if one_in <= 1:
        return between
    low, high = np.minimum(a, b).astype(np.uint64), np.maximum(a, b).astype(np.uint64)
    mixed = (low * np.uint64(len(placement.hosts)) + high + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    return np.asarray(between & ((mixed >> np.uint64(33)) % np.uint64(one_in) == 0))
