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
from fablint.model.arrays import Cells, Codes, Floats, Mask, Values
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

    Where many hosts are slow, most messages across some link have a slow end. An end that is fast on its own switch
    counts as fast. One with too few other cells is as its switch, by the other cells of all ends there; with too few of
    these it counts as fast, unless the link leads to one host only, which explains as much. All ends of a link with
    very many count as fast.
    """
    pairs, placement = effects.residual, effects.classes.placement
    if not cells[0].size:
        return cells
    least = max(HALF * float(np.median(pairs.value[cells])), effects.host_tolerance)
    is_fast = np.ones(cells[0].size, dtype=bool)
    for side, end in enumerate((cells[0], pairs.destination(cells))):
        other = _other_cells(cells, effects, side)
        if other is None:
            continue
        near = placement.scopes(other.cells[0], pairs.destination(other.cells)) == SCOPES.index(Scope.EDGE)
        value, switch = pairs.value[other.cells].astype(np.float64), placement.switch[other.ends]
        of_end = _usual(value, near, other.owner, other.ends.size)
        of_switch = _usual(value, near, switch[other.owner], len(placement.switches))
        is_single = np.unique(placement.host[other.ends]).size == 1
        of_switch = np.append(of_switch, np.nan)  # of ends without a switch
        usual = np.where(np.isnan(of_end), np.inf if is_single else of_switch[switch], of_end)
        is_fast &= ~(usual > least)[np.searchsorted(other.ends, end)]
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


def _usual(value: Floats, near: Mask, owner: Codes, size: int) -> Floats:
    """Return the (size,) log-effect of each owner with the best of its partners, or of the `near` ones if these are
    faster; NaN: it has few partners. Values of the owner -1 count for none.
    """
    has_owner = owner >= 0
    value, near, owner = value[has_owner], near[has_owner], owner[has_owner]
    best = np.fmin(_best(value, owner, size), _best(value[near], owner[near], size))
    return np.where(np.bincount(owner, minlength=size) >= FEWEST_PEERS, best, np.nan)


def _best(value: Floats, owner: Codes, size: int) -> Floats:
    """Return the (size,) quantile `BEST_PARTNERS` of the values of each owner; NaN: it has none."""
    grouped = GroupedValues.of(value, owner, size)
    return grouped.at((BEST_PARTNERS * grouped.count).astype(np.int64))
