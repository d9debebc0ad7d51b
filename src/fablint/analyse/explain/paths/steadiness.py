"""Whether the loss of a slow path is steady over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fablint.analyse.explain.paths.judgement import Judgement, Measure, PathJudgements, error_quantile
from fablint.analyse.null_model.timing import error_over_time
from fablint.analyse.observations.binomial import chance_of_so_many
from fablint.analyse.settings import CHANCE, FEWEST_INDEPENDENT, HALF, LONG_STRETCHES
from fablint.model import EvidenceRecord
from fablint.model.arrays import Codes, Floats
from fablint.text import evidence as seen


def judge_steadiness(judgements: PathJudgements, measure: Measure, started: Floats | None) -> None:
    """Judge slow paths that are slow in one stretch of time only, or unevenly: the cause may be the time.

    The loss must exceed the tolerance by more than its median over stretches of time varies. Paths with a common switch
    are judged together: load on the switch varies for all of them. Pairs as fast as those of other paths show that the
    path is not always slow.

    Parameters
    ----------
    judgements
        Judgements of all paths; changed in place.
    measure
        Parameters of the judgement.
    started
        (c,) s, start of each cell of the levels; None: unknown.
    """
    times = None if started is None or np.isnan(started).all() else started
    slow = judgements.entries(Judgement.SLOW)
    for entry in slow:
        cells = _cells_of_neighbours(judgements, entry, slow)
        if times is not None:
            cells = cells[~np.isnan(times[cells])]
        is_unsteady = cells.size and _is_unsteady(judgements, entry, cells, measure, times)
        if is_unsteady or _has_healthy_pairs(judgements, entry):
            judgements.of[entry] = Judgement.ONCE
            judgements.slow_at[entry] = _slowness(judgements, entry, cells, times)


def _cells_of_neighbours(judgements: PathJudgements, entry: int, slow: Sequence[int]) -> Codes:
    """Return the cells of the slow paths that have a switch in common with this path."""
    levels = judgements.levels
    ends = {int(levels.src[entry]), int(levels.dst[entry])}
    neighbours = [
        other
        for other in slow
        if ends & {int(levels.src[other]), int(levels.dst[other])} and levels.shared[other] == levels.shared[entry]
    ]
    return np.flatnonzero(np.isin(levels.entry, neighbours))


def _is_unsteady(
    judgements: PathJudgements, entry: int, positions: Codes, measure: Measure, times: Floats | None
) -> bool:
    """Return whether the loss may be within the tolerance in the long run, or is within one stretch of time."""
    levels = judgements.levels
    excess = levels.left[positions] - levels.level[levels.entry[positions]]
    error = error_over_time(excess, None if times is None else times[positions], levels.noise)
    if error * error_quantile(levels, measure) > float(judgements.loss[entry] - judgements.tolerance[entry]):
        return True
    is_comparable = (~levels.is_path | levels.shared == levels.shared[entry])[levels.entry]
    return times is not None and _at_once(times[positions], times[is_comparable])


def _has_healthy_pairs(judgements: PathJudgements, entry: int) -> bool:
    """Return whether more pairs of a slow path lose less than half of its loss than the noise of others explains."""
    levels = judgements.levels
    excess, of_path = levels.left - levels.level[levels.entry], levels.entry == entry
    is_fast = excess < (HALF - 1) * judgements.loss[entry]
    return chance_of_so_many(is_fast[of_path], is_fast[~of_path]) < CHANCE / int(np.count_nonzero(of_path))


def _slowness(judgements: PathJudgements, entry: int, positions: Codes, times: Floats | None) -> EvidenceRecord:
    """Return text for the time of slowness."""
    levels = judgements.levels
    late = positions[
        levels.left[positions] - judgements.reference[levels.entry[positions]] > judgements.tolerance[entry]
    ]
    if times is None or not late.size:
        return seen.path_varies()
    when = times[late]
    return seen.path_uneven(float(when.min()), float(when.max()))


def _at_once(times: Floats, times_of_row: Floats) -> bool:
    """Return whether all measurements are in one stretch of the time of the row."""
    edges = np.nanquantile(times_of_row, np.linspace(0, 1, LONG_STRETCHES + 1)[1:-1])
    return np.unique(np.searchsorted(edges, times)).size < FEWEST_INDEPENDENT
