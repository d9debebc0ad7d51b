"""The ends of the messages across a link: how fast each is with partners that the link does not lead to.

A slow host is slow with its other partners as well, and much of what it sends may cross one link.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fablint.analyse.null_model.effects import Effects
from fablint.analyse.observations.pair_matrix import BLOCK_CELLS
from fablint.analyse.settings import BEST_PARTNERS, FEWEST_PEERS, HALF
from fablint.model import SCOPES, Scope
from fablint.model.arrays import Cells, Codes, Floats, Values
from fablint.model.figures.grouped_values import GroupedValues


class _OtherCells(NamedTuple):
    """Cells of the ends of a link that do not cross the link, and show how fast their ends are."""

    ends: Codes  # (e,) ranks on one side of the link, sorted
    cells: Cells  # (k,) their other cells
    owner: Codes  # (k,) number of the end of each
    partner: Codes  # (k,) rank at the other end of each


def _other_cells(cells: Cells, effects: Effects, side: int) -> _OtherCells | None:
    """Return the other cells of the senders (side 0) or receivers (1) of the cells of a link; None: too many."""
    pairs = effects.residual
    ends, width = np.unique((cells[0], pairs.destination(cells))[side]), pairs.value.shape[1]
    if ends.size * width > BLOCK_CELLS:
        return None
    row, column = pairs.cells_to(ends) if side else pairs.cells_from(ends)
    is_other = ~np.isnan(pairs.value[row, column]) & effects.informative.counts((row, column), "both")
    is_other &= ~np.isin(row.astype(np.int64) * width + column, cells[0].astype(np.int64) * width + cells[1])
    others = (row[is_other], column[is_other])
    of_ends = (others[0], pairs.destination(others))
    return _OtherCells(ends, others, np.searchsorted(ends, of_ends[side]), of_ends[1 - side])


def without_slow_ends(cells: Cells, effects: Effects) -> Cells:
    """Return those cells of a link whose ends are fast with the best of their partners that the link does not lead to.

    Where many hosts are slow, most messages across some link have a slow end. An end that is fast on its own switch, or
    has too few other cells, counts as fast, and so do all ends of a link with very many.
    """
    pairs = effects.residual
    if not cells[0].size:
        return cells
    least = max(HALF * float(np.median(pairs.value[cells])), effects.host_tolerance)
    is_fast = np.ones(cells[0].size, dtype=bool)
    for side, end in enumerate((cells[0], pairs.destination(cells))):
        other = _other_cells(cells, effects, side)
        if other is None:
            continue
        scopes = effects.classes.placement.scopes(other.cells[0], pairs.destination(other.cells))
        near = scopes == SCOPES.index(Scope.EDGE)
        value, count = pairs.value[other.cells].astype(np.float64), other.ends.size
        of_all, of_near = (_best(value[chosen], other.owner[chosen], count) for chosen in (np.ones_like(near), near))
        many = np.bincount(other.owner, minlength=count) >= FEWEST_PEERS
        is_slow = many & (np.fmin(of_all, of_near) > least)
        is_fast &= ~is_slow[np.searchsorted(other.ends, end)]
    return cells[0][is_fast], cells[1][is_fast]


def effect_elsewhere(cells: Cells, effects: Effects, side: int) -> Values:
    """Return the (k,) tolerated effect of each cell's sender (side 0) or receiver, without the cells of the link.

    Much of what an end sends or receives may cross the link, and the loss of the link would be attributed to the end:
    its effect is that of its other pairs, 0 without other pairs. Of a link with many ends in a large run, it is that of
    all pairs.
    """
    pairs, most = effects.residual, effects.host_tolerance
    effect, of_partner = (effects.sent, effects.received)[:: -1 if side else 1]
    other = _other_cells(cells, effects, side)
    if other is not None:
        effect = effect.copy()
        left = pairs.value[other.cells] - np.clip(of_partner, -most, most)[other.partner]
        effect[other.ends] = np.nan_to_num(GroupedValues.of(left, other.owner, other.ends.size).medians())
    end = (cells[0], pairs.destination(cells))[side]
    return np.asarray(np.clip(effect, -most, most)[end], dtype=np.float32)


def _best(value: Floats, owner: Codes, size: int) -> Floats:
    """Return the (size,) quantile `BEST_PARTNERS` of the values of each owner; NaN: it has none."""
    grouped = GroupedValues.of(value, owner, size)
    return grouped.at((BEST_PARTNERS * grouped.count).astype(np.int64))
