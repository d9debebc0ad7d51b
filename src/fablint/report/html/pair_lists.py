"""Slow pairs: those of each finding, those that were slow every time, and single slow measurements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fablint.report import finding_order
from fablint.report.drawings.finding_charts import cells_of, crossed, explained
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
        own = cells_of(finding, source)
        if own is None:
            continue
        mine = crossed(pairs, own, source)
        mine = mine[np.isfinite(own.cells.residual[mine])]
        slowest = mine[np.argsort(-own.cells.residual[mine], kind="stable")[:OF_A_FINDING]]
        if slowest.size:
            lists[places[id(finding)]] = [_line(own, int(cell), source) for cell in slowest]
    return lists


def _line(own: CellSet, cell: int, source: ReportSource) -> PairLine:
    names = source.run.rank_host
    src, dst = names[own.cells.src[cell]], names[own.cells.dst[cell]]
    if own.row.payload == "dst":
        src, dst = dst, src
    change = units.change(own.row.quantity, float(own.cells.residual[cell]))
    measured = units.figure(own.row, own.size, float(np.exp(own.cells.time[cell])))
    return PairLine(src, dst, measured, units.percent(change))


def repeated(own: CellSet, source: ReportSource) -> list[tuple[int, int, float, float, int]]:
    """Pairs that no finding explains and that were slow in all of at least two measurements.

    Sender, receiver, seconds and deviation of the fastest of them, and their number.
    """
    cells = own.cells
    fit = source.fit_of(own.row, own.size)
    if fit is None or not cells.src.size:
        return []
    limit = max(_BEYOND * fit.noise if np.isfinite(fit.noise) else 0.0, _LEAST)
    left = np.flatnonzero((explained(own, source) < 0) & np.isfinite(cells.residual))
    pair, group, count = np.unique(
        cells.src[left].astype(np.int64) * source.run.ranks + cells.dst[left], return_inverse=True, return_counts=True
    )
    if not pair.size:
        return []
    order = np.lexsort((cells.residual[left], group))
    fastest = left[order[np.cumsum(count) - count]]
    slow = np.flatnonzero((count > 1) & (cells.residual[fastest] > limit))
    slow = slow[np.argsort(-cells.residual[fastest[slow]], kind="stable")[:REPEATED]]
    return [
        (
            int(cells.src[cell]),
            int(cells.dst[cell]),
            float(np.exp(cells.time[cell])),
            float(cells.residual[cell]),
            int(count[one]),
        )
        for one, cell in zip(slow, fastest[slow], strict=True)
    ]
