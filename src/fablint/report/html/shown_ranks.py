"""The ranks that a page names: all of a run, or of very many the slowest and those of findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fablint.model import SCOPES
from fablint.model.arrays import Codes
from fablint.report.html.node_sets import behind
from fablint.report.html.packing import packed
from fablint.report.html.pair_lists import repeated
from fablint.report.survey.report_source import ReportSource
from fablint.report.survey.row_survey import SizeSurvey
from fablint.text import units

MOST_SLOWEST = 1000  # ranks with the largest effects, of each row and size


@dataclass(frozen=True)
class ShownRanks:
    """Ranks of a page, which numbers them from 0 on, and their places in the order of all."""

    ranks: Codes  # (k,) ascending
    places: Codes  # (k,) ascending
    is_whole: bool

    @classmethod
    def of(cls, source: ReportSource, marks: Sequence[Mapping[str, Any]]) -> Self:
        """Return all ranks, or of more than MOST_RANKS those of the tables of the page and of its marks (facts)."""
        if source.is_whole:
            everyone = np.arange(source.run.ranks)
            return cls(everyone, everyone, True)
        chosen = [
            source.order[[first, end - 1]]
            for mark in marks
            for end_of_mark in mark["ends"]
            for first, end in end_of_mark["runs"]
        ]
        for surveys in source.surveys.values():
            chosen += [ranks for size_survey in surveys for ranks in _outliers(size_survey)]
        for cell_set in source.cells.values():
            chosen += [np.array([pair[:2] for pair in repeated(cell_set, source)], dtype=np.int32).ravel()]
        ranks = np.unique(np.concatenate(chosen)) if chosen else np.zeros(0, np.int32)
        return cls(ranks, np.sort(source.place[ranks]), False)

    def facts(self, source: ReportSource) -> dict[str, Any]:
        """Return names, switches and groups of the ranks for the page."""
        placement = source.placement
        codes = {"host": placement.host, "switch": placement.switch, "group": placement.group}
        names = {"host": source.run.hosts, "switch": placement.switches, "group": placement.groups}
        facts: dict[str, Any] = {}
        for what, plural in (("host", "hosts"), ("switch", "switches"), ("group", "groups")):
            used = np.unique(np.append(-1, codes[what][self.ranks]))[1:] if not self.is_whole else None
            facts[plural] = names[what] if used is None else [names[what][code] for code in used.tolist()]
            shown = codes[what][self.ranks]
            places = shown if used is None else np.where(shown < 0, -1, np.searchsorted(used, shown))
            facts[what] = packed(places, "<i4")
        hosts = frozenset(facts["hosts"])
        return facts | {
            "ranks": self.ranks.size,
            "numbers": None if self.is_whole else packed(self.ranks, "<i4"),
            "one_rank_per_host": len(source.run.hosts) == source.run.ranks,
            "order": packed(np.searchsorted(self.ranks, source.order[self.places]), "<i4"),
            "scopes": [str(scope) for scope in SCOPES],
            "behind": sorted(hosts & behind(source)),
        }

    def places_of(self, places: Sequence[int]) -> Codes:
        """Return places among the shown ranks of places among all: of the next shown rank."""
        return np.searchsorted(self.places, np.asarray(places))

    def pairs(self, pairs: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Return pairs, which begin with two ranks, with the numbers of the page."""
        return [(*np.searchsorted(self.ranks, pair[:2]).tolist(), *pair[2:]) for pair in pairs]

    def mark(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Return a mark with the places of the page. Frames are those of maps of all pairs."""
        if self.is_whole:
            return dict(facts)
        ends = [end | {"runs": [tuple(self.places_of(run).tolist()) for run in end["runs"]]} for end in facts["ends"]]
        return {**facts, "ends": ends, "frames": ""}


def _outliers(size_survey: SizeSurvey) -> list[Codes]:
    """Ranks of the slowest pairs, and those with the largest effects."""
    pairs = np.concatenate(size_survey.worst_ends)
    fit = size_survey.fit
    if fit is None:
        return [pairs]
    effect = np.nan_to_num(np.maximum(fit.tx, fit.rx), nan=-np.inf)
    return [pairs, np.argsort(-effect, kind="stable")[:MOST_SLOWEST]]


def left_out(source: ReportSource) -> str:
    """Return what a page of very many ranks does not have; empty for other pages."""
    if source.is_whole:
        return ""
    return (
        f"Of {units.plural(source.run.ranks, 'rank')} this page names the {MOST_SLOWEST:,} slowest of each row and"
        " size, those of the slowest pairs, and the first and last of each finding's component. It has no map of"
        " rounds and no table of all pairs: fablint export writes all measurements."
    )
