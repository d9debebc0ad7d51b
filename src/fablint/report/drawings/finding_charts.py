"""Charts of the findings: where the pairs of each stand beside the rest."""

from __future__ import annotations

import numpy as np

from fablint.model import Finding
from fablint.report import finding_order
from fablint.report.drawings.plots import Plot
from fablint.report.drawings.strips import Background, strip
from fablint.report.survey.report_source import CellSet, ReportSource
from fablint.text import units


def cells_of(finding: Finding, source: ReportSource) -> CellSet | None:
    """The cells that show a finding: of the row of its evidence, else of a row of its quantity."""
    rows = [one.row for one in finding.evidence if one.row in source.cells]
    kinds = [name for name, cell_set in source.cells.items() if cell_set.row.quantity == finding.quantity]
    name = next(iter([*rows, *kinds]), None)
    return source.cells[name] if name is not None else None


def strips(source: ReportSource) -> dict[int, Plot]:
    """A chart over time for each finding that has pairs, by its place among the faulty findings."""
    places = {id(finding): place for place, finding in enumerate(finding_order.faulty(source.found))}
    made = {}
    for finding, crossing in source.crossings.drawn():
        cell_set = cells_of(finding, source)
        if cell_set is None or not cell_set.cells.src.size:
            continue
        may_be_late = crossing.through is not None and units.is_rate(cell_set.row.quantity)
        background = _background(cell_set, may_be_late and cell_set.late is not None, source)
        is_of_finding = np.zeros(cell_set.cells.src.size, dtype=bool)
        is_of_finding[source.positions_of(crossing, cell_set)] = True
        if background and (plot := strip(background, is_of_finding)):
            made[places[id(finding)]] = plot
    return made


def _background(cell_set: CellSet, is_late: bool, source: ReportSource) -> Background | None:
    """Return what the findings of a row are compared with, made once."""
    key = f"background {cell_set.row.name} {is_late}"
    if key not in source.memo:
        late = cell_set.late[0] if is_late and cell_set.late is not None else None
        source.memo[key] = Background.of(cell_set.row, cell_set.size, cell_set.cells, source.explained(cell_set), late)
    background: Background | None = source.memo[key]
    return background
