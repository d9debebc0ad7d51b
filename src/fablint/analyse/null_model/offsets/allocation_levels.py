"""Levels of the allocations that measured a fabric in parts: what all times of one launch have in common.

Two launches differ as a whole: other ranks, other loads of the fabric, other places in memory. The level of an
allocation is what its times have in common beside those of pairs of the same class in other allocations. Hosts that are
in several allocations tie them together: a pair of them takes the same time in each, apart from the level. Where two
such pairs, without a host in common, agree that the hosts of an allocation are slower than its level, the level is what
they show, and the loss of the hosts stays in the data.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fablint.analyse.observations.pair_matrix import Pairs
from fablint.analyse.observations.robust_stats import MEDIAN_ERROR, robust_sd
from fablint.analyse.settings import CLEAR_DISTANCE, FEWEST_INDEPENDENT, FEWEST_OF_CLASS, QUARTER
from fablint.model.arrays import Cells, Codes, Floats, Ints, Mask
from fablint.model.figures.grouped_values import GroupedValues

PASSES = 4  # of the levels of the allocations and the medians of the classes


@dataclass(frozen=True)
class AllocationLevels:
    """What is taken out of the times of each allocation."""

    level: Floats  # (allocations,) log-effect, NaN where too little was measured; the median of all is 0
    confirmed: Mask  # (allocations,) whether hosts that are in another allocation as well show the same level
    allocations: Codes  # (m,) allocation of each column

    @property
    def of_columns(self) -> Floats:
        """(m,) log-effect of each column."""
        return np.nan_to_num(self.level)[self.allocations]


def fit_allocation_levels(
    pairs: Pairs, class_of: Callable[[Cells], Ints], allocations: Codes | None, tolerance: float
) -> AllocationLevels | None:
    """Return the levels of the allocations; None if there is one, or if their levels do not differ.

    Parameters
    ----------
    pairs
        Log times.
    class_of
        Function that returns the (k,) class code of cells.
    allocations
        (m,) allocation that measured each column; None: all the same.
    tolerance
        Log-effect that healthy components may have.
    """
    if allocations is None or np.unique(allocations).size < FEWEST_INDEPENDENT:
        return None
    cells = pairs.sample_cells()
    of_cell, code = allocations[cells[1]], class_of(cells).astype(np.int64)
    value = pairs.value[cells].astype(np.float64)
    tied = _tied_cells(pairs, allocations)
    of_tied, code_of_tied = allocations[tied[1]], class_of(tied).astype(np.int64)
    classes = 1 + max(int(codes.max(initial=0)) for codes in (code, code_of_tied))
    of_class, level = _polished(value, code, of_cell, (classes, int(allocations.max()) + 1))
    left = value - of_class[code] - level[of_cell]
    error = MEDIAN_ERROR * robust_sd(left)
    count = np.maximum(np.bincount(of_cell, minlength=level.size), 1)
    if not np.any(np.abs(level) > CLEAR_DISTANCE * error / np.sqrt(count)):
        return None
    excess = pairs.value[tied] - of_class[code_of_tied] - level[of_tied]
    levels = AllocationLevels(level, np.zeros(level.size, dtype=bool), allocations)
    return _with_ties(levels, pairs, tied, excess, error, tolerance)


def _polished(value: Floats, code: Codes, of_cell: Codes, shape: tuple[int, int]) -> tuple[Floats, Floats]:
    """Return the (classes,) median of each class, and the (allocations,) level of each allocation around 0.

    `shape` is the number of classes and of allocations. A class with few cells shows no level.
    """
    classes, count = shape
    level = np.zeros(count)
    of_class = np.full(classes, np.nan)
    for _ in range(PASSES):
        of_class = GroupedValues.of(value - level[of_cell], code, classes).medians(FEWEST_OF_CLASS)
        level = GroupedValues.of(value - of_class[code], of_cell, count).medians(FEWEST_OF_CLASS)
        level = level - np.nanmedian(level) if not np.isnan(level).all() else level
        level = np.nan_to_num(level)
    return of_class, level


def _tied_cells(pairs: Pairs, allocations: Codes) -> Cells:
    """Return the cells between ranks that are in several allocations."""
    assert pairs.partner is not None
    number = np.zeros(pairs.ranks, dtype=np.int32)
    for allocation in np.unique(allocations):
        number += (pairs.partner[:, allocations == allocation] >= 0).any(axis=1)
    rank = np.flatnonzero(number >= FEWEST_INDEPENDENT)
    partner = pairs.partner[rank]
    is_tied = (partner >= 0) & np.isin(partner, rank) & ~np.isnan(pairs.value[rank])
    row, column = np.nonzero(is_tied)
    return rank[row], column


def _with_ties(
    levels: AllocationLevels, pairs: Pairs, cells: Cells, excess: Floats, error: float, tolerance: float
) -> AllocationLevels:
    """Return the levels that the same pairs in several allocations show.

    Parameters
    ----------
    levels
        Levels by which all pairs of an allocation differ from those of others.
    pairs
        The pairs.
    cells
        Cells between ranks that are in several allocations.
    excess
        (k,) log time of these cells beyond their class and the level of their allocation.
    error
        Standard error of the median of one value.
    tolerance
        Log-effect that healthy components may have.
    """
    times: dict[tuple[int, int], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for src, dst, allocation, value in zip(
        cells[0].tolist(),
        pairs.destination(cells).tolist(),
        levels.allocations[cells[1]].tolist(),
        excess.tolist(),
        strict=True,
    ):
        if value == value:
            times[src, dst][allocation].append(value)
    level, confirmed = levels.level.copy(), levels.confirmed.copy()
    for allocation in range(level.size):
        of_others = {
            pair: [float(np.median(values)) for other, values in by_allocation.items() if other != allocation]
            for pair, by_allocation in times.items()
            if allocation in by_allocation and len(by_allocation) > 1
        }
        if not of_others:
            continue
        differences = [
            float(np.median(times[pair][allocation])) - float(np.median(others)) for pair, others in of_others.items()
        ]
        measured = sum(len(times[pair][allocation]) for pair in of_others)
        hosts = len({rank for pair in of_others for rank in pair})
        shift = _agreed(differences)
        is_clear = abs(shift) > tolerance + CLEAR_DISTANCE * error * np.sqrt(2.0 / measured)
        if is_clear and hosts >= 2 * FEWEST_INDEPENDENT:
            level[allocation] += shift
            confirmed[allocation] = True
        else:
            confirmed[allocation] = abs(float(np.median(differences))) <= tolerance
    return AllocationLevels(level, confirmed, levels.allocations)


def _agreed(differences: list[float]) -> float:
    """Return the difference that three quarters of the pairs reach at least, 0 if they differ in sign."""
    low, high = np.quantile(differences, [QUARTER, 1 - QUARTER])
    return float(low) if low > 0 else float(high) if high < 0 else 0.0


def subtract_allocation_levels(pairs: Pairs, levels: AllocationLevels | None) -> None:
    """Subtract the levels from the log times, in place."""
    if levels is not None:
        of_columns = levels.of_columns.astype(np.float32)
        for rows in pairs.blocks():
            pairs.value[rows] -= of_columns
