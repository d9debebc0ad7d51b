"""Rows that two runs have in common, with the fits of their own diagnoses and their cells in blocks of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fablint.analyse.observations.resolution import find_step
from fablint.analyse.settings import STRETCHES
from fablint.model import Diagnosis, Fit, Placement, Row, Run
from fablint.model.arrays import Codes, Floats
from fablint.model.figures.pair_metrics import figures_of
from fablint.model.registry import Quantity


@dataclass(frozen=True)
class RunResult:
    """A run with its diagnosis."""

    run: Run
    diagnosis: Diagnosis

    @cached_property
    def placement(self) -> Placement:
        """Return where the ranks are, by the topology of the diagnosis."""
        return Placement.of(self.run, self.diagnosis.topology)


@dataclass(frozen=True)
class BlockedCells:
    """Measured cells of one size of one row; all arrays are (k,)."""

    sender: Codes  # ranks
    receiver: Codes
    scope: Codes  # index into `SCOPES`
    log_time: Floats
    block: Codes  # 0 to STRETCHES - 1, by the start of the pair; by position where the run has no start times


@dataclass(frozen=True)
class FittedRow:
    """One size of a row of a run, and its fit."""

    row: Row
    fit: Fit
    placement: Placement

    @property
    def is_directed(self) -> bool:
        """True if the row shows the direction of a loss."""
        return self.row.quantity == "bandwidth" and self.row.payload in ("src", "dst")

    @cached_property
    def step(self) -> float:
        """Step between log times; 0 where the times have no visible resolution."""
        return find_step(self.cells.log_time)

    @cached_property
    def cells(self) -> BlockedCells:
        """The measured cells."""
        figures = figures_of(self.row, self.fit.size, self.placement)
        value = np.log(figures.value)
        started = np.arange(figures.src.size, dtype=np.float64)
        if "started" in self.row.arrays:
            of_list = self.row.layout == "list"
            times = np.asarray(self.row.arrays["started"][:] if of_list else self.row.arrays["started"][0])
            started = times[figures.src, figures.round if of_list else figures.dst]
        edges = np.quantile(started, np.arange(1, STRETCHES) / STRETCHES) if started.size else np.zeros(STRETCHES - 1)
        ends = figures.src.astype(np.int64), figures.dst.astype(np.int64)
        sender, receiver = ends[::-1] if self.row.payload == "dst" else ends
        log_time = -value if self.row.quantity == "bandwidth" else value
        return BlockedCells(sender, receiver, figures.scope, log_time, np.searchsorted(edges, started, side="right"))


@dataclass(frozen=True)
class FitPair:
    """Row and size that two runs have in common."""

    old: FittedRow
    new: FittedRow

    @property
    def quantity(self) -> Quantity:
        """The quantity of both."""
        return self.new.row.quantity


def match_fits(old: RunResult, new: RunResult) -> list[FitPair]:
    """Return the rows and sizes that both runs have: rows of the same name, or the only ones of a kernel."""
    by_row = {(fit.row, fit.kernel, fit.size): fit for fit in old.diagnosis.fits}
    pairs = []
    for fit in new.diagnosis.fits:
        match = by_row.get((fit.row, fit.kernel, fit.size))
        match = match or _only_of_kernel(old.diagnosis.fits, new.diagnosis.fits, fit)
        if match is not None:
            pairs.append(FitPair(_fitted(old, match), _fitted(new, fit)))
    return pairs


def _fitted(result: RunResult, fit: Fit) -> FittedRow:
    return FittedRow(result.run.row(fit.row), fit, result.placement)


def _only_of_kernel(old: Sequence[Fit], new: Sequence[Fit], fit: Fit) -> Fit | None:
    """Return the fit of the old run of the kernel and size, if each run has one only."""
    same = [[one for one in fits if (one.kernel, one.size) == (fit.kernel, fit.size)] for fits in (old, new)]
    return same[0][0] if len(same[0]) == len(same[1]) == 1 else None
