"""Late messages of pairs whose messages may take several paths: slower than the tolerance and rare.

Late is relative to the usual time of this distance and these ends; optionally also relative to the pair's own fast
messages, which removes what delays all messages of a pair (noise or contention).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fablint.analyse.null_model.effects import Effects
from fablint.analyse.settings import FAST, FEWEST_POOL, LATE_DISTANCE, RARE_MESSAGES
from fablint.model.arrays import Cells, Codes, Floats, Ints, Mask

BLOCK = 1 << 15  # cells whose histograms are processed at once
POOL = 8192  # pairs in a sample


@dataclass(frozen=True)
class Tails:
    """Number of late messages of each measured cell."""

    cells: Cells
    messages: Floats  # (k,) number of messages
    late: Floats  # (k,) number of late messages
    excess: Floats  # (k,) median log-effect of the late messages relative to the usual time of this pair, NaN: none
    limit: float  # log of relative time beyond which a message is late


def count_late(
    effects: Effects,
    histograms: tuple[Ints, Floats] | None,
    tolerance: float,
    only: Mask | None,
    *,
    without_common_delay: bool = False,
) -> Tails:
    """Count the late messages per cell, relative to the usual time of the pair's class and ends.

    Parameters
    ----------
    effects
        Fitted model of the view.
    histograms
        (n, m, buckets) counts, and lower edges of the buckets in s; None: the median counts as one message.
    tolerance
        Log-effect that is never late.
    only
        (n, m) cells to count; None: all.
    without_common_delay
        Whether to subtract what delays all messages of a pair.
    """
    pairs = effects.residual
    selected = ~np.isnan(pairs.value)
    if only is not None:
        selected &= only
    row, column = np.nonzero(selected)
    cells = (row, column)
    most = effects.host_tolerance
    to = pairs.destination(cells)
    ends = np.clip(effects.sent, -most, most)[row] + np.clip(effects.received, -most, most)[to]
    if histograms is None:
        left = (pairs.value[cells] - ends).astype(np.float64)
        bound = _late_from(np.sort(left), np.arange(1, left.size + 1), tolerance)
        beyond_it = left > bound
        excess = np.where(beyond_it, left, np.nan)
        return Tails(cells, np.ones(row.size), beyond_it.astype(np.float64), excess, bound)
    counts, edges = histograms
    centre = np.log(np.append(np.sqrt(edges[:-1] * edges[1:]), edges[-1]))
    usual = effects.usual(cells) + ends
    if without_common_delay:
        usual = usual + _common(counts, centre, usual, cells)
    bound = _late_from(*_sampled(counts, centre, usual, cells), tolerance)
    late, messages, excess = np.zeros(row.size), np.zeros(row.size), np.full(row.size, np.nan)
    for first in range(0, row.size, BLOCK):
        block_cells = slice(first, first + BLOCK)
        block = counts[row[block_cells], column[block_cells]].astype(np.float64)
        beyond = centre[None, :] - usual[block_cells, None]
        tail = np.where(beyond > bound, block, 0.0)
        messages[block_cells], late[block_cells] = block.sum(axis=1), tail.sum(axis=1)
        at_half = tail.cumsum(axis=1) >= np.maximum(late[block_cells], 1)[:, None] / 2
        excess[block_cells] = np.where(
            late[block_cells] > 0, np.take_along_axis(beyond, at_half.argmax(axis=1)[:, None], 1)[:, 0], np.nan
        )
    return Tails(cells, messages, late, excess, bound)


def _common(counts: Ints, centre: Floats, usual: Floats, cells: Cells) -> Floats:
    """Return the (k,) log-effect of the fast messages of each cell relative to other cells.

    0 for cells of few messages.
    """
    fast = np.full(usual.size, np.nan)
    for first in range(0, usual.size, BLOCK):
        block_cells = slice(first, first + BLOCK)
        below = counts[cells[0][block_cells], cells[1][block_cells]].cumsum(axis=1, dtype=np.float64)
        enough = below[:, -1] >= FEWEST_POOL
        at = (below >= FAST * below[:, -1:]).argmax(axis=1)
        fast[block_cells] = np.where(enough, centre[at], np.nan) - usual[block_cells]
    return np.nan_to_num(fast - np.nanmedian(fast)) if not np.isnan(fast).all() else np.zeros(usual.size)


def _late_from(values: Floats, below: np.ndarray, tolerance: float) -> float:
    """Return the log of relative time beyond which a message is late.

    It is above the tolerance, and rare or far from the bulk. `values` are sorted; `below` counts the messages up to
    each value.
    """
    if not values.size or below[-1] == 0:
        return tolerance
    shares = (0.25, 0.75, RARE_MESSAGES)
    lower, upper, rare = (float(values[np.searchsorted(below, share * below[-1])]) for share in shares)
    return max(tolerance, min(rare, upper + LATE_DISTANCE * (upper - lower)))


def sample_positions(size: int) -> Codes:
    """Return positions of a sample, equal in each run. Every k-th position would be of the same round."""
    return np.sort(np.random.default_rng(size).permutation(size)[:POOL])


def _sampled(counts: Ints, centre: Floats, usual: Floats, cells: Cells) -> tuple[Floats, Floats]:
    """Return relative log times of a sample of all messages, sorted, and the number of messages up to each."""
    at = sample_positions(usual.size)
    block = counts[cells[0][at], cells[1][at]]
    cell, bucket = np.nonzero(block)  # most buckets are empty
    beyond = centre[bucket] - usual[at[cell]]
    order = np.argsort(beyond)
    return beyond[order], block[cell, bucket][order].cumsum(dtype=np.float64)
