"""Messages that are late: later than the bulk, beyond what is tolerated. Of pairs whose messages may go several ways.

Late compared with what is usual at this distance between these ends; or with the pair's own fast messages as well:
what slows all messages of a pair alike, be it noise or a crowd, is then taken out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fablint.analyse.data.pair_matrix import Cells
from fablint.analyse.data.rank_places import Codes
from fablint.analyse.data.robust_stats import Floats
from fablint.analyse.fit.effects import Effects

LATE = 0.985  # quantile of all messages from which one is rare,
FAR = 0.75  # distances of the quartiles beyond the upper one from which it is far from the bulk
FAST = 0.1  # quantile of a pair's messages that no single link slows, where messages go several ways
FEWEST_MESSAGES = 50  # of a pair, to know that quantile
BLOCK = 1 << 15  # cells whose histograms are looked at together
POOL = 8192  # pairs that stand for all

Histograms = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Tails:
    """Messages of each measured cell."""

    cells: Cells
    messages: Floats  # (k,) how many
    late: Floats  # (k,) how many of them were late
    excess: Floats  # (k,) log of how much longer the late ones took than this pair's messages do, NaN: none
    limit: float  # log of relative time beyond which a message is late


def count_late(
    effects: Effects,
    histograms: tuple[Histograms, Floats] | None,
    tolerance: float,
    only: npt.NDArray[np.bool_] | None,
    *,
    own: bool = False,
) -> Tails:
    """Messages per cell that are late, relative to what the pair's class and ends make usual.

    With `own` what slows all messages of a pair is taken out.
    """
    pairs = effects.residual
    looked = ~np.isnan(pairs.value)
    if only is not None:
        looked &= only
    row, column = np.nonzero(looked)
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
    known = np.full(effects.classes.count, np.nan)
    for code, value in effects.class_log_time.items():
        known[code] = value
    usual = known[effects.classes.of_cells(pairs, cells)] + ends
    if own:
        usual = usual + _common(counts, centre, usual, cells)
    bound = _late_from(*_sampled(counts, centre, usual, cells), tolerance)
    late, messages, excess = np.zeros(row.size), np.zeros(row.size), np.full(row.size, np.nan)
    for first in range(0, row.size, BLOCK):
        some = slice(first, first + BLOCK)
        block = counts[row[some], column[some]].astype(np.float64)
        beyond = centre[None, :] - usual[some, None]
        tail = np.where(beyond > bound, block, 0.0)
        messages[some], late[some] = block.sum(axis=1), tail.sum(axis=1)
        half = tail.cumsum(axis=1) >= np.maximum(late[some], 1)[:, None] / 2
        excess[some] = np.where(
            late[some] > 0, np.take_along_axis(beyond, half.argmax(axis=1)[:, None], 1)[:, 0], np.nan
        )
    return Tails(cells, messages, late, excess, bound)


def _common(counts: Histograms, centre: Floats, usual: Floats, cells: Cells) -> Floats:
    """(k,) how much longer than others even the fast messages of each cell took: log time, 0 where there are few."""
    fast = np.full(usual.size, np.nan)
    for first in range(0, usual.size, BLOCK):
        some = slice(first, first + BLOCK)
        below = counts[cells[0][some], cells[1][some]].cumsum(axis=1, dtype=np.float64)
        enough = below[:, -1] >= FEWEST_MESSAGES
        at = (below >= FAST * below[:, -1:]).argmax(axis=1)
        fast[some] = np.where(enough, centre[at], np.nan) - usual[some]
    return np.nan_to_num(fast - np.nanmedian(fast)) if not np.isnan(fast).all() else np.zeros(usual.size)


def _late_from(values: Floats, below: npt.NDArray[np.floating | np.integer], tolerance: float) -> float:
    """Log of relative time beyond which a message is late: beyond what is tolerated, and rare or far from the bulk.

    `values` are sorted, `below` counts the messages up to each.
    """
    if not values.size or below[-1] == 0:
        return tolerance
    lower, upper, rare = (float(values[np.searchsorted(below, share * below[-1])]) for share in (0.25, 0.75, LATE))
    return max(tolerance, min(rare, upper + FAR * (upper - lower)))


def sample_of(size: int) -> Codes:
    """Positions of a sample, the same each time. Not every k-th one: these would all be of the same round."""
    return np.sort(np.random.default_rng(size).permutation(size)[:POOL])


def _sampled(counts: Histograms, centre: Floats, usual: Floats, cells: Cells) -> tuple[Floats, Floats]:
    """Relative log times of a sample of all messages, sorted, and how many there are up to each."""
    at = sample_of(usual.size)
    block = counts[cells[0][at], cells[1][at]].astype(np.float64)
    beyond = (centre[None, :] - usual[at, None]).ravel()
    order = np.argsort(beyond)
    return beyond[order], block.ravel()[order].cumsum()
