"""Pairs of cores of one host as a table: a map of a few ranks shows less than its figures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fablint.model import Run
from fablint.report.survey.report_source import CellSet, ReportSource
from fablint.text import units

MOST_RANKS = 8


@dataclass(frozen=True)
class CorePairs:
    """A table: names of both ends, and of each row the figure of the pair."""

    head: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    shared: str  # cores that all ranks share; empty where ranks are bound to their own


def has_core_pairs(run: Run) -> bool:
    """Return whether the pairs of a run are shown as a table and not as a map."""
    return len(run.hosts) == 1 and run.ranks <= MOST_RANKS


def core_pairs(source: ReportSource) -> CorePairs | None:
    """The pairs of a run of few ranks of one host, in the order of the ranks; None for other runs."""
    shown = [cell_set for cell_set in source.cells.values() if cell_set.cells.src.size]
    if not has_core_pairs(source.run) or not shown:
        return None
    figures = [_figures(cell_set) for cell_set in shown]
    pairs = sorted({pair for column in figures for pair in column})
    cores = list(source.run.facts.rank_cores)
    is_bound = len(set(cores)) == source.run.ranks
    names = [f"core {core}" for core in cores] if is_bound else [f"rank {rank}" for rank in range(source.run.ranks)]
    return CorePairs(
        ("from", "to", *(f"{cell_set.row.name}, {units.size(cell_set.size)}" for cell_set in shown)),
        tuple((names[src], names[dst], *(column.get((src, dst), "-") for column in figures)) for src, dst in pairs),
        cores[0] if cores and not is_bound else "",
    )


def _figures(cell_set: CellSet) -> dict[tuple[int, int], str]:
    """Figures of the pairs of a row, the median of their measurements."""
    src, dst, time = cell_set.cells.src, cell_set.cells.dst, cell_set.cells.time
    ends = sorted(set(zip(src.tolist(), dst.tolist(), strict=True)))
    return {
        (a, b): units.figure(cell_set.row, cell_set.size, float(np.exp(np.median(time[(src == a) & (dst == b)]))))
        for a, b in ends
    }
