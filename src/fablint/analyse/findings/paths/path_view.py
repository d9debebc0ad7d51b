"""Paths between switches in one view, by their judgement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fablint.analyse.explain.paths.judgement import Judgement
from fablint.analyse.explain.paths.view_paths import PathKey, Paths
from fablint.analyse.explain.view import ViewResult
from fablint.analyse.findings.detection_text import relative
from fablint.analyse.findings.paths.path_groups import Path
from fablint.model import ComponentRef, Placement
from fablint.model.arrays import Codes, Mask
from fablint.model.figures.grouped_values import GroupedValues
from fablint.topology.routing import Routes

HEALTHY = (Judgement.FINE, Judgement.DESIGN, Judgement.GEOMETRY)


@dataclass(frozen=True)
class PathView:
    """One view whose messages crossed paths."""

    judged: ViewResult
    paths: Paths
    placement: Placement
    routes: Routes | None
    faulty: Codes  # hosts at fault
    limit: float  # loss in scope

    def populations(self, *, in_scope: bool) -> dict[Path, int]:
        """Entries of paths in one of two populations that differ by more than the loss in scope, or by less."""
        loss = self.paths.judgements.loss
        return {
            path: entry
            for path, entry in self.some(Judgement.POPULATION).items()
            if (abs(relative(float(loss[entry]), self.judged.quantity)) > self.limit) is in_scope
        }

    def some(self, *judgements: Judgement) -> dict[Path, int]:
        """Entries of the paths that were judged so, without those that are slow with hosts at fault only."""
        judgement_of = self.paths.judgements.of
        entries = {path: entry for path, entry in self.paths.best.items() if judgement_of[entry] in judgements}
        return {
            path: entry
            for path, entry in entries.items()
            if judgement_of[entry] in HEALTHY or not self._by_hosts[entry]
        }

    @cached_property
    def _by_hosts(self) -> Mask:
        """(k,) entries whose pairs without hosts at fault are as fast as what they are compared with, or are none."""
        levels, judged = self.paths.levels, self.paths.judgements
        entries = levels.level.size
        if not self.faulty.size:
            return np.zeros(entries, dtype=bool)
        faulty = np.isin(self.paths.hosts[0], self.faulty) | np.isin(self.paths.hosts[1], self.faulty)
        others = GroupedValues.of(levels.left[~faulty], levels.entry[~faulty], entries).medians()
        slow = others - judged.reference > judged.tolerance
        return np.asarray((np.bincount(levels.entry[faulty], minlength=entries) > 0) & ~slow)

    def component(self, path: Path) -> ComponentRef:
        """Return the path as findings name it."""
        return PathKey(*path, directed=not self.paths.levels.bidirectional).component(self.placement)
