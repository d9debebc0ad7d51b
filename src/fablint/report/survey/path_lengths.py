"""Deviations between pairs of the same distance: what one more switch on the path adds is not a burst."""

from __future__ import annotations

import numpy as np

from fablint.model.arrays import Values
from fablint.model.figures.grouped_values import GroupedValues
from fablint.report.survey.report_source import FEWEST_OF_DISTANCE, CellSet, ReportSource

MOST_SWITCH_PAIRS = 400_000  # whose paths are followed


def deviations(cell_set: CellSet, source: ReportSource) -> Values:
    """(k,) residual of each cell, less the median of the cells that cross as many links between switches."""
    residual, routes, place = cell_set.cells.residual, source.routes, source.placement
    if routes is None or not residual.size:
        return residual
    code = np.append(routes.codes(place.switches), np.int32(-1))
    count = len(routes.switches) + 1
    ends = code[place.switch[cell_set.cells.src]].astype(np.int64) * count + code[place.switch[cell_set.cells.dst]]
    pairs, which = np.unique(ends, return_inverse=True)
    if pairs.size > MOST_SWITCH_PAIRS:
        return residual
    query, _, share = routes.exposure((pairs // count).astype(np.int32), (pairs % count).astype(np.int32))
    lengths = np.bincount(query, share, pairs.size).round(3)
    group = np.unique(lengths, return_inverse=True)[1][which]
    usual = GroupedValues.of(residual, group, int(group.max()) + 1).medians(FEWEST_OF_DISTANCE)
    return np.asarray(residual - np.nan_to_num(usual)[group], dtype=np.float32)
