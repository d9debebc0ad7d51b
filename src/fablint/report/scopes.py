"""What was measured by distance: edge, local and global tables, the bisection, and the thresholds beside them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fablint.model import SCOPES, Medium, Placement, Row, Run, Scope
from fablint.model.figures.distinct_codes import distinct_values
from fablint.model.figures.pair_metrics import PairMetrics, figures_of, quotable
from fablint.model.limits.thresholds import Compared, Comparison
from fablint.report.survey.row_survey import SizeSurvey
from fablint.text import units

BISECTION = "bisection"  # rows of that purpose or pattern are a table of their own: their pairs share the bottleneck
HEADINGS = {Scope.UNKNOWN: "between hosts"}
HEAD = ("distance", "kernel", "size", "pairs", "min", "avg", "max")


@dataclass(frozen=True)
class ScopeLine:
    """Figures of one kernel and size over the pairs of a scope, or across the bisection: seconds, or bytes/s.

    `per_host` is what a host sends (with a kernel that sends both ways: and receives) when all of its ranks do at once,
    on average; None where it has but one. `sums` are lowest, mean and highest sum over all pairs of a round.
    """

    section: str
    kernel: str
    size: int
    quantity: str
    pairs: int
    low: float
    mean: float
    high: float
    per_host: float | None = None
    sums: tuple[float, float, float] | None = None
    medium: str = ""  # where the run has several

    def words(self, value: float) -> str:
        """A figure of this line."""
        return units.rate(value) if units.is_rate(self.quantity) else units.duration(value)

    @property
    def cells(self) -> tuple[str, ...]:
        """Return the cells of a table, as `HEAD`."""
        figures = (self.words(value) for value in (self.low, self.mean, self.high))
        kernel = f"{self.kernel} ({self.medium})" if self.medium else self.kernel
        return (self.section, kernel, units.size(self.size), f"{self.pairs:,}", *figures)

    @property
    def beside(self) -> str:
        """Return what a host and all pairs do at once, in words; empty where that is not known."""
        words = [f"{self.words(self.per_host)} per host"] if self.per_host is not None else []
        if self.sums is not None:
            low, mean, high = (self.words(value) for value in self.sums)
            bare = (value.partition(" ")[0] for value in (low, mean))
            words.append(f"all pairs at once {' / '.join((*bare, high))}")
        return ", ".join(words)

    def facts(self) -> dict[str, Any]:
        """Return the facts for programs."""
        return vars(self)


def scope_lines(
    run: Run, placement: Placement, surveys: Mapping[str, Sequence[SizeSurvey]] | None = None
) -> list[ScopeLine]:
    """Lines by distance, near ones first, then the bisection; none where nothing is known but pairs of one kind.

    Rows of rounds are read; of matrices, which may be large, the `surveys` are used (by row name), if there are any.
    """
    by_medium: dict[Medium, _Sums] = defaultdict(dict)
    for row in quotable(run):
        sums = by_medium[row.medium]
        for size in row.sizes:
            if row.layout == "list":
                _add_list(sums, row, size, figures_of(row, size, placement), placement)
        for item in (surveys or {}).get(row.name, ()) if row.layout == "matrix" else ():
            _add_survey(sums, item)
    labels = {medium: medium.label if len(by_medium) > 1 else "" for medium in by_medium}
    sum_lines = [one.line(*key, labels[medium]) for medium, sums in by_medium.items() for key, one in sums.items()]
    lines = [line for line in sum_lines if line is not None]
    sections = {line.section for line in lines}
    if not sections - {_heading(Scope.INTRA_NODE), _heading(Scope.UNKNOWN)}:
        return []
    order = [*map(_heading, SCOPES), BISECTION]
    kernels = list(dict.fromkeys(line.kernel for line in lines))
    return sorted(lines, key=lambda line: (order.index(line.section), kernels.index(line.kernel), line.size))


def short_lines(lines: Sequence[ScopeLine]) -> Iterator[tuple[str, str]]:
    """Return, for a few columns, each section with its figures at the sizes that tell, `edge`, `latency 1.93 us,
    ...`.
    """
    for section in dict.fromkeys(line.section for line in lines):
        section_lines = [line for line in lines if line.section == section]
        words = []
        for kernel in dict.fromkeys(line.cells[1] for line in section_lines):
            kernel_lines = [line for line in section_lines if line.cells[1] == kernel]
            typical = kernel_lines[-1] if units.is_rate(kernel_lines[0].quantity) else kernel_lines[0]
            words.append(f"{kernel} {typical.words(typical.mean)}")
        yield section, ", ".join(words)


# ------------------------------------------------------------------------------------------------ thresholds

THRESHOLD_HEAD = ("distance", "kernel", "size", "threshold", "pairs", "min", "median", "max", "outside", "")


def threshold_cells(item: Compared) -> tuple[str, ...]:
    """A threshold and what became of it, as `THRESHOLD_HEAD`."""
    threshold = item.threshold
    words = units.rate if units.is_rate(threshold.quantity) else units.duration
    limits = (("at least", threshold.lowest), ("at most", threshold.highest))
    promised = ", ".join(f"{word} {words(limit)}" for word, limit in limits if limit is not None)
    figures = (words(value) for value in (item.least, item.median, item.most))
    size = units.size(threshold.size)
    return (
        _heading(item.scope),
        threshold.kernel,
        size,
        promised,
        f"{item.pairs:,}",
        *figures,
        f"{item.outside:,}",
        item.verdict,
    )


def threshold_words(comparison: Comparison) -> str:
    """`3 of 4 met; missed: edge bandwidth 1 MiB (2 of 48 pairs)`; empty where there are none."""
    compared = comparison.compared
    missed = [one for one in compared if one.verdict == "missed"]
    names = ", ".join(
        f"{_heading(item.scope)} {item.threshold.kernel} {units.size(item.threshold.size)}"
        f" ({item.outside:,} of {units.plural(item.pairs, 'pair')})"
        for item in missed
    )
    if not compared:
        return ""
    return f"{len(compared) - len(missed)} of {len(compared)} met" + (f"; missed: {names}" if names else "")


# ------------------------------------------------------------------------------------------------ sums


@dataclass
class _Sum:
    """Figures of one line while they are added up."""

    quantity: str
    cells: int = 0
    total: float = 0.0
    low: float = np.inf
    high: float = -np.inf
    whole: int = 0  # pairs of matrices
    pairs: list[np.ndarray] = field(default_factory=list)  # of lists, by their ranks
    hosts: list[np.ndarray] = field(default_factory=list)  # what hosts did at once
    rounds: list[np.ndarray] = field(default_factory=list)  # what all pairs of a round did at once

    def add(self, cells: int, total: float, low: float, high: float) -> None:
        self.cells, self.total = self.cells + cells, self.total + total
        self.low, self.high = min(self.low, low), max(self.high, high)

    def line(self, section: str, kernel: str, size: int, medium: str) -> ScopeLine | None:
        if not self.cells:
            return None
        pairs = self.whole + (distinct_values(np.concatenate(self.pairs)).size if self.pairs else 0)
        mean = self.total / self.cells
        each = float(np.concatenate(self.hosts).mean()) if self.hosts else None
        sums = np.concatenate(self.rounds) if self.rounds else np.zeros(0)
        at_once = (float(sums.min()), float(sums.mean()), float(sums.max())) if sums.size else None
        return ScopeLine(section, kernel, size, self.quantity, pairs, self.low, mean, self.high, each, at_once, medium)


_Sums = dict[tuple[str, str, int], _Sum]


def _add_list(sums: _Sums, row: Row, size: int, figures: PairMetrics, placement: Placement) -> None:
    """A row of rounds: what ranks of a host, and pairs of a round, did at once can be added up."""
    across = _is_bisection(row)
    at_once = row.facts.schedule.order == "parallel" and units.is_rate(row.quantity)
    ranks = placement.host.size
    for code in np.unique(figures.scope).tolist() if not across else [-1]:
        scope_figures = figures if across else figures.where(figures.scope == code)
        if not scope_figures.value.size:
            continue
        section = BISECTION if across else _heading(SCOPES[code])
        item = sums.setdefault((section, row.kernel, size), _Sum(row.quantity))
        item.add(
            scope_figures.value.size,
            float(scope_figures.value.sum()),
            float(scope_figures.value.min()),
            float(scope_figures.value.max()),
        )
        item.pairs.append(scope_figures.src.astype(np.int64) * ranks + scope_figures.dst)
        if at_once and across:
            directions = 1 if row.directions == "single" else 2  # each pair has a cell for each direction
            _, place = np.unique(scope_figures.round, return_inverse=True)
            item.rounds.append(np.bincount(place, scope_figures.value) / directions)
        if at_once and section != _heading(Scope.INTRA_NODE):
            host = placement.host[scope_figures.src].astype(np.int64)
            _, place, together = np.unique(scope_figures.round * ranks + host, return_inverse=True, return_counts=True)
            if together.max() > 1:
                item.hosts.append(np.bincount(place, scope_figures.value))


def _add_survey(sums: _Sums, size_survey: SizeSurvey) -> None:
    """A matrix, by the distribution of its times."""
    row, rate = size_survey.row, units.is_rate(size_survey.row.quantity)
    times = row.counted_bytes(size_survey.size)
    for scope in size_survey.distribution.scopes():
        section = BISECTION if _is_bisection(row) else _heading(scope)
        total = sums.setdefault((section, row.kernel, size_survey.size), _Sum(row.quantity))
        cells = size_survey.distribution.pairs(scope)
        low, high = (size_survey.distribution.quantile(share, scope) for share in (0.0, 1.0))
        mean = size_survey.distribution.mean(scope, inverse=rate)
        low, high, mean = (times / high, times / low, times * mean) if rate else (low, high, mean)
        total.add(cells, cells * mean, low, high)
        total.whole += cells


def _is_bisection(row: Row) -> bool:
    """Return whether the pairs of a row cross the bisection: by its purpose, as in a suite, or by its pattern."""
    return BISECTION in (row.purpose, row.pattern)


def _heading(scope: Scope) -> str:
    return HEADINGS.get(scope, str(scope))
