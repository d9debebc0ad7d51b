"""Slow pairs: those of each finding, those that were slow every time, and single slow measurements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fablint.report import finding_order
from fablint.report.drawings.finding_charts import cells_of
from fablint.report.survey.report_source import CellSet, ReportSource
from fablint.text import units

OF_A_FINDING = 5
REPEATED = 50
_BEYOND = 6.0  # robust standard deviations from which a measurement is slow
_LEAST = 0.05  # of the logarithm


@dataclass(frozen=True)
class PairLine:
    """A pair of a finding: sender, receiver, figure and deviation in words."""

    src: str
    dst: str
    measured: str
    deviation: str


def of_findings(source: ReportSource) -> dict[int, list[PairLine]]:
    """The slowest measurements of each finding, by its place among the faulty findings."""
    places = {id(finding): place for place, finding in enumerate(finding_order.faulty(source.found))}
    lists = {}
    for finding, pairs in source.crossings.drawn():
        cell_set = cells_of(finding, source)
        if cell_set is None:
            continue
        crossing_cells = source.positions_of(pairs, cell_set)
        crossing_cells = crossing_cells[np.isfinite(cell_set.cells.residual[crossing_cells])]
        slowest = crossing_cells[np.argsort(-cell_set.cells.residual[crossing_cells], kind="stable")[:OF_A_FINDING]]
        if slowest.size:
            lists[places[id(finding)]] = [_line(cell_set, int(cell), source) for cell in slowest]
    return lists


def _line(cell_set: CellSet, cell: int, source: ReportSource) -> PairLine:
    names = source.run.rank_host
    src, dst = names[cell_set.cells.src[cell]], names[cell_set.cells.dst[cell]]
    if cell_set.row.payload == "dst":
        src, dst = dst, src
    change = units.change(cell_set.row.quantity, float(cell_set.cells.residual[cell]))
    measured = units.figure(cell_set.row, cell_set.size, float(np.exp(cell_set.cells.time[cell])))
    return PairLine(src, dst, measured, units.percent(change))


def repeated(cell_set: CellSet, source: ReportSource) -> list[tuple[int, int, float, float, int]]:
    """Pairs that no finding explains and that were slow in all of at least two measurements.

    Sender, receiver, seconds and deviation of the fastest of them, and their number.
    """
    cells = cell_set.cells
    fit = source.fit_of(cell_set.row, cell_set.size)
    if fit is None or not cells.src.size:
        return []
    limit = max(_BEYOND * fit.noise if np.isfinite(fit.noise) else 0.0, _LEAST)
    key = cells.src.astype(np.int64) * source.run.ranks + cells.dst
    is_left = (source.explained(cell_set) < 0) & np.isfinite(cells.residual)
    slow_pairs, times = np.unique(key[is_left & (cells.residual > limit)], return_counts=True)
    left = np.flatnonzero(is_left & np.isin(key, slow_pairs[times > 1]))
    if not left.size:
        return []
    _, group, count = np.unique(key[left], return_inverse=True, return_counts=True)
    order = np.lexsort((cells.residual[left], group))
    fastest = left[order[np.cumsum(count) - count]]
    slow = np.flatnonzero(cells.residual[fastest] > limit)
    slow = slow[np.argsort(-cells.residual[fastest[slow]], kind="stable")[:REPEATED]]
    return [
        (
            int(cells.src[cell]),
            int(cells.dst[cell]),
            float(np.exp(cells.time[cell])),
            float(cells.residual[cell]),
            int(count[item]),
        )
        for item, cell in zip(slow, fastest[slow], strict=True)
    ]
