"""Rounds that a resumed measurement has to measure."""

from __future__ import annotations

import numpy as np

from fablint.model import Row
from fablint.store.layout import block, source_blocks


def missing_rounds(row: Row) -> list[int]:
    """Rounds of which at least one cell is missing, ascending.

    A cell (a directed pair in one round) is measured when every size of it has a count above 0 and whatever the row
    stores about cells is known: times, start, partner. A round is missing when the number of its measured cells is not
    its `cells_per_round`. Reads the row in blocks of source ranks.
    """
    rounds = row.facts.schedule.rounds
    measured = np.zeros(rounds, np.int64)
    for sources in source_blocks(row):
        cells = _measured_cells(row, sources)
        if row.layout == "list":
            measured += cells.sum(axis=0)
        else:
            numbers = block(row, "round", sources)[cells]
            measured += np.bincount(numbers[(numbers >= 0) & (numbers < rounds)], minlength=rounds)
    planned = np.asarray(row.facts.schedule.planned_cells, np.int64)
    return [int(index) for index in np.flatnonzero(measured != planned)]


def _measured_cells(row: Row, sources: slice) -> np.ndarray:
    """(repeat, src, dst) or (src, round): whether the cell is complete."""
    cells = (block(row, "count", sources) > 0).all(axis=-1)
    for statistic in row.statistics:
        cells &= ~np.isnan(block(row, f"time_{statistic}", sources)).any(axis=-1)
    if "started" in row.arrays:
        cells &= ~np.isnan(block(row, "started", sources))
    if row.layout == "list" and row.pattern != "world":  # in `world` all ranks are partners
        cells &= block(row, "dst", sources) >= 0
    return np.asarray(cells)
