"""Charts of the findings: where the pairs of each stand beside the rest."""

from __future__ import annotations

import numpy as np

from fablint.model import Finding
from fablint.model.arrays import Codes
from fablint.report import finding_order
from fablint.report.drawings.plots import Plot
from fablint.report.drawings.strips import Background, strip
from fablint.report.survey.report_source import CellSet, ReportSource
from fablint.text import units
from fablint.topology.component_pairs import ComponentPairs


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
        is_of_finding[crossed(crossing, cell_set, source)] = True
        if background and (plot := strip(background, is_of_finding)):
            made[places[id(finding)]] = plot
    return made


def _background(cell_set: CellSet, is_late: bool, source: ReportSource) -> Background | None:
    """Return what the findings of a row are compared with, made once."""
    key = f"background {cell_set.row.name} {is_late}"
    if key not in source.memo:
        late = cell_set.late[0] if is_late and cell_set.late is not None else None
        source.memo[key] = Background.of(cell_set.row, cell_set.size, cell_set.cells, explained(cell_set, source), late)
    background: Background | None = source.memo[key]
    return background


def crossed(crossing: ComponentPairs, cell_set: CellSet, source: ReportSource) -> Codes:
    """Positions of the cells whose messages use the component of a finding."""
    key = f"crossed {cell_set.row.name} {id(crossing)}"
    if key not in source.memo:
        uses = crossing.of(cell_set.cells.src, cell_set.cells.dst, source.placement.switch, cell_set.row.payload)
        source.memo[key] = np.flatnonzero(uses)
    return np.asarray(source.memo[key])


def explained(cell_set: CellSet, source: ReportSource) -> Codes:
    """(k,) for each cell the place of the first finding that explains it among those with pairs, -1: none does."""
    key = f"explained {cell_set.row.name}"
    if key not in source.memo:
        place = np.full(cell_set.cells.src.size, -1, dtype=np.int32)
        drawn = source.crossings.drawn()
        for index in range(len(drawn) - 1, -1, -1):
            place[crossed(drawn[index][1], cell_set, source)] = index
        source.memo[key] = place
    return np.asarray(source.memo[key])
