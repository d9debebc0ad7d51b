"""Changes of the time of a healthy pair in each scope between two runs."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy import stats

from fablint.analyse.changes.fitted_rows import BLOCKS, BlockedCells, FitPair
from fablint.analyse.changes.margin_limits import MarginLimits
from fablint.analyse.data.robust_stats import MEDIAN_ERROR, robust_sd, standard_errors
from fablint.model import SCOPES
from fablint.model.grouped_values import GroupedValues
from fablint.model.run_changes import MeasuredChange


def scope_changes(fits: FitPair, hosts: int, margin: float) -> Iterator[MeasuredChange]:
    """Yield the change of the healthy time of each scope that both runs measured.

    The standard error has two parts: the spread of the effects of the hosts, and the drift of each run between its
    blocks. The interval contains the resolution of the times as well. Variation of the whole fabric from one start of
    MPI to the next is in none of them.

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
    for scope, seconds in fits.new.fit.class_time.items():
        before = fits.old.fit.class_time.get(scope)
        if not before or not seconds:
            continue
        code = SCOPES.index(scope)
        error = math.hypot(*of_hosts, _drift(fits.old.cells, code), _drift(fits.new.cells, code))
        value = math.log(seconds / before)
        reach = float(stats.t.isf(0.025, 2 * BLOCKS - 2)) * error + fits.old.step + fits.new.step
        yield MeasuredChange(
            state=limits.state(value - reach, value + reach),
            row=fits.new.row.name,
            size=fits.new.fit.size,
            quantity=fits.quantity,
            change=limits.interval(value, 0.0)[0],
            interval=limits.interval(value, reach),
            smallest=limits.smallest(limits.loss + reach),
            scope=scope.value,
        )


def _drift(cells: BlockedCells, scope: int) -> float:
    """Return the standard error of the median log time of a scope, from the medians of the blocks."""
    within = cells.scope == scope
    if np.count_nonzero(within) < 2 * BLOCKS:
        return 0.0
    medians = GroupedValues.of(cells.log_time[within], cells.block[within], BLOCKS).medians()
    return float(standard_errors(medians[None, :])[0])
