"""What the sections of a report are made of, of the page and of the PDF: a run and its diagnosis, read once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from fablint.model import SCOPES, Diagnosis, Finding, Fit, Placement, Row, Run, Scope, State
from fablint.model.arrays import Codes, Mask
from fablint.report import finding_order, run_facts
from fablint.report.conditions import conditions
from fablint.report.survey.heatmap import block_side, topological_order
from fablint.report.survey.late_shares import has_late_messages, late_shares
from fablint.report.survey.measured_cells import MeasuredCells
from fablint.report.survey.row_survey import SizeSurvey, survey
from fablint.text import units
from fablint.topology.component_pairs import ComponentPairs, FindingPairs
from fablint.topology.routing import Routes, routes_of

MOST_RANKS = 100_000  # of a page that names all ranks, with a column of a map and a line of a table of each
MOST_FINDINGS = 500  # of a page or a PDF
MOST_DRAWN = 40  # findings with frames and charts of their own
FEWEST_OF_DISTANCE = 50  # cells whose median replaces a model


@dataclass(frozen=True)
class CellSet:
    """The cells of the size that says most about a row; `late` are shares of late messages and their limit."""

    row: Row
    size: int
    cells: MeasuredCells
    late: tuple[np.ndarray, float] | None


@dataclass(frozen=True)
class ReportSource:
    """A run and its diagnosis, with what several sections of a report are made of; read when it is needed."""

    run: Run
    diagnosis: Diagnosis
    memo: dict[str, Any] = field(default_factory=dict)  # of the sections, by their own keys

    @cached_property
    def placement(self) -> Placement:
        """Return where the ranks are."""
        return Placement.of(self.run, self.diagnosis.topology)

    @cached_property
    def order(self) -> np.ndarray:
        """(n,) ranks in the order of the axes."""
        return topological_order(self.placement)

    @cached_property
    def place(self) -> np.ndarray:
        """(n,) place of each rank in that order."""
        place = np.empty_like(self.order)
        place[self.order] = np.arange(self.order.size, dtype=place.dtype)
        return place

    @property
    def is_whole(self) -> bool:
        """Return whether the page names all ranks."""
        return self.run.ranks <= MOST_RANKS

    @cached_property
    def found(self) -> list[Finding]:
        """The findings in the order of the report, of very many faulty ones the gravest."""
        findings = finding_order.ordered(self.diagnosis.verdict)
        others = {id(finding) for finding in finding_order.faulty(findings)[MOST_FINDINGS:]}
        return [finding for finding in findings if id(finding) not in others]

    @property
    def further(self) -> str:
        """Return how many findings the report does not have, and where they are; empty if it has all."""
        count = len(finding_order.ordered(self.diagnosis.verdict)) - len(self.found)
        return (
            f"{units.plural(count, 'further finding')}, less grave: fablint analyse --all lists them" if count else ""
        )

    @cached_property
    def routes(self) -> Routes | None:
        """Routes of the topology, where it has cables."""
        topology = self.diagnosis.topology
        return routes_of(topology) if topology is not None and topology.cables else None

    @cached_property
    def crossings(self) -> FindingPairs:
        """Return which pairs use the components of the findings that are drawn."""
        judged = [one for one in finding_order.faulty(self.found) if one.state is not State.NOT_JUDGED]
        return FindingPairs(judged[:MOST_DRAWN], self.placement, self.routes)

    @cached_property
    def rows(self) -> list[Row]:
        """Rows that stored times; a row measured under several conditions as one row for each."""
        return surveyed(self.run)

    @cached_property
    def surveys(self) -> dict[str, list[SizeSurvey]]:
        """Surveys of these rows by name."""
        maps = sum(len(row.sizes) for row in self.rows if has_pairs(row))
        side = block_side(self.run.ranks, maps) if self.is_whole else None
        return {row.name: survey(row, self.fits_of(row), self.placement, self.order, side) for row in self.rows}

    def fits_of(self, row: Row) -> dict[int, Fit]:
        """The models of a row by size, those that are known."""
        return {size: fit for size in row.sizes if (fit := self.fit_of(row, size)) is not None}

    def fit_of(self, row: Row, size: int) -> Fit | None:
        """The model of a row and size, whose distances have the median of what was measured there where it lacks them.

        The same holds where the usual pair of a distance is later than the model, and no finding explains that: the
        model of a distance with paths of several lengths is that of the shortest.
        """
        key = f"fit {row.name} {size}"
        if key not in self.memo:
            fit = run_facts.fit_of(self.diagnosis, row, size)
            self.memo[key] = fit if fit is None or not has_pairs(row) else self._completed(fit, row, size)
        result: Fit | None = self.memo[key]
        return result

    def _completed(self, fit: Fit, row: Row, size: int) -> Fit:
        cells = MeasuredCells.of(row, size, fit, self.placement)
        scope = self.placement.scopes(cells.src, cells.dst)
        is_explained: np.ndarray | None = None
        medians: dict[Scope, float] = {}
        has_model = np.isfinite(cells.residual)
        for code, name in enumerate(SCOPES):
            has_no_model, is_modelled = (scope == code) & ~has_model, (scope == code) & has_model
            if np.count_nonzero(has_no_model) >= FEWEST_OF_DISTANCE:
                medians[name] = float(np.exp(np.median(cells.time[has_no_model])))
            elif _is_beyond_noise(cells.residual[is_modelled], fit):
                if is_explained is None:
                    is_explained = self.are_explained((cells.src, cells.dst), row)
                usual = cells.residual[is_modelled & ~is_explained]
                if _is_beyond_noise(usual, fit):
                    medians[name] = fit.class_time[name] * float(np.exp(np.median(usual)))
        self.memo.setdefault("completed", {})[row.name] = tuple(str(one) for one in medians)
        if medians:
            return replace(fit, class_time={**fit.class_time, **medians})
        if size == run_facts.informative_size(row):
            self.memo[f"cells {row.name}"] = cells
        return fit

    def are_explained(self, ends: tuple[Codes, Codes], row: Row, quantity: str = "") -> Mask:
        """(k,) whether pairs use a component of a finding: of any, or of those that may be about a quantity.

        `ends` are senders and receivers, (k,) each.
        """
        result = np.zeros(ends[0].size, dtype=bool)
        for finding, pairs in self.crossings.drawn():
            if not quantity or finding.quantity in (None, quantity):
                result |= pairs.of(*ends, self.placement.switch, row.payload)
        return result

    @cached_property
    def cells(self) -> dict[str, CellSet]:
        """Cells of the rows of pairs by name."""
        return {row.name: self._cells_of(row) for row in self.rows if has_pairs(row)}

    def _cells_of(self, row: Row) -> CellSet:
        size = run_facts.informative_size(row)
        fit = self.fit_of(row, size)
        cells = self.memo.pop(f"cells {row.name}", None) or MeasuredCells.of(row, size, fit, self.placement)
        several = has_late_messages(row, self.diagnosis.topology) and cells.src.size > 0
        return CellSet(row, size, cells, late_shares(row, size, cells) if several else None)

    def positions_of(self, crossing: ComponentPairs, cell_set: CellSet) -> Codes:
        """Positions of the cells whose messages use the component of a finding."""
        key = f"crossed {cell_set.row.name} {id(crossing)}"
        if key not in self.memo:
            uses = crossing.of(cell_set.cells.src, cell_set.cells.dst, self.placement.switch, cell_set.row.payload)
            self.memo[key] = np.flatnonzero(uses)
        return np.asarray(self.memo[key])

    def explained(self, cell_set: CellSet) -> Codes:
        """(k,) for each cell the place of the first finding that explains it among those with pairs, -1: none does."""
        key = f"explained {cell_set.row.name}"
        if key not in self.memo:
            place = np.full(cell_set.cells.src.size, -1, dtype=np.int32)
            drawn = self.crossings.drawn()
            for index in range(len(drawn) - 1, -1, -1):
                place[self.positions_of(drawn[index][1], cell_set)] = index
            self.memo[key] = place
        return np.asarray(self.memo[key])


def _is_beyond_noise(residual: np.ndarray, fit: Fit) -> bool:
    """Tell whether the usual one of many pairs differs from the model by more than a single pair scatters."""
    return residual.size >= FEWEST_OF_DISTANCE and bool(abs(np.median(residual)) > fit.noise)


def surveyed(run: Run) -> list[Row]:
    """Rows that stored times; a row measured under several conditions as one row for each."""
    return [part for row in run.rows if row.statistic for part in conditions(row)]


def drawn_rows(run: Run) -> list[Row]:
    """Rows of pairs that are drawn: not those that measure pairs again, or the network as a whole."""
    return [
        row for row in surveyed(run) if has_pairs(row) and row.purpose == "measure" and not row.facts.schedule.retest_of
    ]


def has_pairs(row: Row) -> bool:
    """Tell whether it has anything to draw a map of. Collectives have no pairs."""
    return row.pattern != "world"
