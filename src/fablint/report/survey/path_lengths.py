"""Deviations between pairs of the same distance: what one more switch on the path adds is not a burst."""

from __future__ import annotations

import numpy as np

from fablint.model.arrays import Values
from fablint.model.figures.grouped_values import GroupedValues
from fablint.report.survey.report_source import FEWEST_OF_DISTANCE, CellSet, ReportSource


def deviations(cell_set: CellSet, source: ReportSource) -> Values:
    """(k,) residual of each cell, less the median of the cells whose shortest path costs as much."""
    residual, routes, place = cell_set.cells.residual, source.routes, source.placement
    if routes is None or not residual.size:
        return residual
    code = np.append(routes.codes(place.switches), np.int32(-1))
    ends = (code[place.switch[cell]] for cell in (cell_set.cells.src, cell_set.cells.dst))
    group = routes.path_costs(*ends) + 1
    usual = GroupedValues.of(residual, group, int(group.max()) + 1).medians(FEWEST_OF_DISTANCE)
    return np.asarray(residual - np.nan_to_num(usual)[group], dtype=np.float32)
