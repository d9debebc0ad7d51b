"""Changes of the time of a healthy pair in each scope between two runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from fablint.analyse.changes.fitted_rows import FitPair, FittedRow
from fablint.analyse.changes.margin_limits import MarginLimits
from fablint.analyse.observations.robust_stats import MEDIAN_ERROR, robust_sd, standard_errors
from fablint.analyse.settings import CONFIDENCE, FEWEST_INDEPENDENT, FEWEST_PEERS, LONG_STRETCHES, NEARLY_ALL, STRETCHES
from fablint.model import SCOPES
from fablint.model.arrays import Floats
from fablint.model.figures.grouped_values import GroupedValues
from fablint.model.run_changes import ChangeState, MeasuredChange


def scope_changes(fits: FitPair, hosts: int, margin: float) -> Iterator[MeasuredChange]:
    """Yield the change of the healthy time of each scope that both runs measured.

    The time is the median over the cells of the scope, without the effects of the hosts. Its standard error has two
    parts: the spread of the effects of the hosts, and the drift of each run between its blocks. The interval contains
    the resolution of the times as well. Variation of the whole fabric from one start of MPI to the next is in none of
    them.

    Parameters
    ----------
    fits
        The row of both runs.
    hosts
        Number of hosts of both runs.
    margin
        Relative loss that is accepted.
    """
    limits = MarginLimits(fits.quantity, margin)
    spread = [robust_sd(values) for side in (fits.old, fits.new) for values in (side.fit.tx, side.fit.rx)]
    of_hosts = [MEDIAN_ERROR * sd / math.sqrt(max(hosts, 1)) for sd in spread]
    for code, scope in enumerate(SCOPES):
        old, new = (_ScopeTime.of(side, code) for side in (fits.old, fits.new))
        if not old.cells or not new.cells:
            continue
        is_known = min(old.cells, new.cells) >= FEWEST_INDEPENDENT
        reach = _half_width(old.drift, new.drift, math.hypot(*of_hosts)) + fits.old.step + fits.new.step
        value = new.median - old.median
        yield MeasuredChange(
            state=limits.state(value - reach, value + reach) if is_known else ChangeState.UNDECIDED,
            row=fits.new.row.name,
            size=fits.new.fit.size,
            quantity=fits.quantity,
            change=limits.interval(value, 0.0)[0],
            interval=limits.interval(value, reach) if is_known else None,
            smallest=limits.smallest(limits.loss + reach),
            scope=scope.value,
        )


@dataclass(frozen=True)
class _Drift:
    """Standard error of the median of a run, and the number of independent blocks that it comes from, minus one."""

    error: float
    degrees: float


def _half_width(old: _Drift, new: _Drift, of_hosts: float) -> float:
    """Half the width of the 95 % interval of a difference, with Satterthwaite's (1946) degrees of freedom."""
    variance = old.error**2 + new.error**2 + of_hosts**2
    of_drift = old.error**4 / old.degrees + new.error**4 / new.degrees
    degrees = variance**2 / of_drift if of_drift else math.inf
    return float(stdtrit(degrees, (1 + CONFIDENCE) / 2)) * math.sqrt(variance)


@dataclass(frozen=True)
class _ScopeTime:
    """Times of the cells of one scope in one run."""

    cells: int
    median: float  # of the log times, without the effects of the hosts
    error: float  # standard error of the median, from the spread of the cells
    blocks: Floats  # (STRETCHES,) the medians of the blocks; NaN for one without cells

    @classmethod
    def of(cls, side: FittedRow, scope: int) -> _ScopeTime:
        """Take the cells of a scope, which is a position in SCOPES.

        The effects are relative to the median host: only their differences are defined.
        """
        cells = side.cells
        within = cells.scope == scope
        tx, rx = (np.nan_to_num(values - np.nanmedian(values)) for values in (side.fit.tx, side.fit.rx))
        log_time = (cells.log_time - tx[cells.sender] - rx[cells.receiver])[within]
        blocks = GroupedValues.of(log_time, cells.block[within], STRETCHES).medians()
        median = float(np.median(log_time)) if log_time.size else math.nan
        return cls(log_time.size, median, MEDIAN_ERROR * float(standard_errors(log_time[None, :])[0]), blocks)

    @property
    def drift(self) -> _Drift:
        """Error of the median, from the medians of the blocks; of few cells from their spread.

        Neighbouring blocks are correlated where the drift is slow, so that they say less than as many independent ones.
        With r the correlation of neighbours, the variance of their mean is (1 + r) / (1 - r) times as large (Bayley and
        Hammersley 1946, for a first-order autoregression). The estimate of r is corrected for the small number of
        blocks (Marriott and Pope 1954).
        """
        if self.cells < 2 * STRETCHES:
            return _Drift(self.error, max(self.cells - 1, 1))
        medians = self.blocks[~np.isnan(self.blocks)]
        rest = medians - medians.mean()
        if medians.size <= LONG_STRETCHES or not rest.any():
            return _Drift(float(standard_errors(self.blocks[None, :])[0]), max(medians.size - 1, 1))
        measured = float((rest[1:] * rest[:-1]).sum() / (rest**2).sum())
        correlation = (medians.size * measured + 1) / (medians.size - 3)
        correlation = min(max(correlation, 0.0), NEARLY_ALL)
        dependence = (1 + correlation) / (1 - correlation)
        error = float(standard_errors(medians[None, :])[0]) * math.sqrt(dependence)
        return _Drift(error, max((medians.size - 1) / dependence, FEWEST_PEERS))
