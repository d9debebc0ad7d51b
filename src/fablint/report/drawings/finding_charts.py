"""Charts of the findings: where the pairs of each stand beside the rest."""

from __future__ import annotations

import numpy as np

from fablint.model import Finding
from fablint.model.arrays import Codes
from fablint.report import finding_order
from fablint.report.drawings.plots import Plot
from fablint.report.drawings.strips import strip
from fablint.report.survey.report_source import CellSet, ReportSource
from fablint.text import units
from fablint.topology.component_pairs import ComponentPairs


def cells_of(finding: Finding, source: ReportSource) -> CellSet | None:
    """The cells that show a finding: of the row of its evidence, else of a row of its quantity."""
    rows = [one.row for one in finding.evidence if one.row in source.cells]
    kinds = [name for name, own in source.cells.items() if own.row.quantity == finding.quantity]
    name = next(iter([*rows, *kinds]), None)
    return source.cells[name] if name is not None else None


def strips(source: ReportSource) -> dict[int, Plot]:
    """A chart over time for each finding that has pairs, by its place among the faulty findings."""
    places = {id(finding): place for place, finding in enumerate(finding_order.faulty(source.found))}
    made = {}
    for finding, crossing in source.crossings.drawn():
        own = cells_of(finding, source)
        if own is None or not own.cells.src.size:
            continue
        mine = np.zeros(own.cells.src.size, dtype=bool)
        mine[crossed(crossing, own, source)] = True
        late = own.late[0] if own.late is not None and crossing.through is not None else None
        late = late if units.is_rate(own.row.quantity) else None
        if plot := strip(own.row, own.size, own.cells, mine, explained(own, source), late):
            made[places[id(finding)]] = plot
    return made


def crossed(crossing: ComponentPairs, own: CellSet, source: ReportSource) -> Codes:
    """Positions of the cells whose messages use the component of a finding."""
    key = f"crossed {own.row.name} {id(crossing)}"
    if key not in source.memo:
        uses = crossing.of(own.cells.src, own.cells.dst, source.placement.switch, own.row.payload)
        source.memo[key] = np.flatnonzero(uses)
    return np.asarray(source.memo[key])


def explained(own: CellSet, source: ReportSource) -> Codes:
    """(k,) for each cell the place of the first finding that explains it among those with pairs, -1: none does."""
    key = f"explained {own.row.name}"
    if key not in source.memo:
        place = np.full(own.cells.src.size, -1, dtype=np.int32)
        drawn = source.crossings.drawn()
        for index in range(len(drawn) - 1, -1, -1):
            place[crossed(drawn[index][1], own, source)] = index
        source.memo[key] = place
    return np.asarray(source.memo[key])
