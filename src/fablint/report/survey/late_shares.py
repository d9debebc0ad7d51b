"""The share of late messages of each pair: where messages choose among paths, a slow link delays only some of them."""

from __future__ import annotations

import numpy as np

from fablint.model import Row, Topology
from fablint.model.arrays import Values
from fablint.report.survey.measured_cells import MeasuredCells

USUALLY_LATE = 0.05  # share of all messages beyond the limit
FAR = 0.75  # distances of the quartiles above the upper one: from there, or from that share, a message is late
LEAST_LATE = 1.05  # of a pair's usual time: what is later may be called late
_SAMPLED = 2000  # cells from which the limit is taken
_BLOCK = 1 << 25  # counts that are read at a time


def has_late_messages(row: Row, topology: Topology | None) -> bool:
    """Tell whether the messages of a pair take several paths, and their times are stored."""
    return "histogram" in row.arrays and topology is not None and topology.routing.kind == "adaptive"


def late_shares(row: Row, size: int, cells: MeasuredCells) -> tuple[Values, float]:
    """(k,) share of the messages of each cell that are late, and the limit as a multiple of the pair's usual time.

    That is the model's time, and without a model the pair's own median: where most messages of a pair cross a slow
    link, its own median is slow.
    """
    edges = np.asarray(row.arrays["bucket"][:], dtype=float)
    index, buckets = row.sizes.index(size), edges.size
    usual = np.exp(cells.time.astype(float) - np.nan_to_num(cells.residual.astype(float)))
    sampled = np.unique(np.linspace(0, usual.size - 1, min(usual.size, _SAMPLED)).astype(int))
    grid = np.geomspace(0.5, 50, 1000)
    pooled = np.zeros(grid.size - 1)
    for first in range(0, sampled.size, 200):
        positions = sampled[first : first + 200]
        counts = _counts(row, index, tuple(one[positions] for one in cells.at))
        place = np.clip(np.searchsorted(grid, edges / usual[positions][:, None]) - 1, 0, pooled.size - 1)
        pooled += np.bincount(place.ravel(), counts.ravel(), pooled.size)
    below = np.cumsum(pooled) / max(pooled.sum(), 1)
    places = np.searchsorted(below, (0.25, 0.75, 1 - USUALLY_LATE)) + 1
    lower, upper, rare = grid[np.minimum(places, grid.size - 1)].tolist()
    limit = max(LEAST_LATE, min(rare, upper + FAR * (upper - lower)))
    share = np.zeros(usual.size, dtype=np.float32)
    step = max(1, _BLOCK // buckets)
    for first in range(0, usual.size, step):
        positions = np.arange(first, min(first + step, usual.size))
        counts = _counts(row, index, tuple(one[positions] for one in cells.at))
        above = edges[None, :] >= (limit * usual[positions])[:, None]
        share[positions] = (counts * above).sum(axis=1) / np.maximum(counts.sum(axis=1), 1)
    return share, limit


def _counts(row: Row, index: int, at: tuple[np.ndarray, ...]) -> Values:
    """(k, buckets) messages of cells. Reads the rows between the first and the last."""
    array = row.arrays["histogram"]
    line = at[-2]
    low, high = int(line.min()), int(line.max()) + 1
    counts = np.zeros((line.size, array.shape[-1]), dtype=np.float32)
    for first in range(low, high, 64):
        positions = np.flatnonzero((line >= first) & (line < first + 64))
        if not positions.size:
            continue
        where = slice(first, min(first + 64, high))
        block = np.asarray(array[where, :, index] if row.layout == "list" else array[:, where, :, index])
        picked = tuple(one[positions] - (first if axis == len(at) - 2 else 0) for axis, one in enumerate(at))
        counts[positions] = block[picked]
    return counts
