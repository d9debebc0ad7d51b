"""Components across which some messages are much later than the others: what is lost is sent again.

The median of a pair does not show it, and a stream recovers. The mean of small messages does: one in a hundred that
waits for a timeout of 10 ms makes a mean of 100 us of a median of 2. So a measurement is late when its mean is a
multiple of its median, compared with what is usual in the run. Hosts, cables, switches and paths compete to explain
which pairs of hosts are late (explain/explanation.py). How large the multiple has to be is not fixed: of several bounds
the one whose explanation scores most is the run's.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from fablint.analyse.candidates.candidate import Candidate, ambiguity_group
from fablint.analyse.candidates.crossed_components import MeasuredHostPairs, candidates_of, host_pairs_of
from fablint.analyse.explain.explanation import BoundedSearch, Member
from fablint.analyse.null_model.timing import uneven_times
from fablint.analyse.observations.mean_ratios import MeanRatios, read_mean_ratios
from fablint.analyse.observations.robust_stats import parts_of_time
from fablint.analyse.observations.samples import UsableRow
from fablint.analyse.phrasing import next_step
from fablint.analyse.settings import (
    FEWEST_INDEPENDENT,
    HALF,
    NEARLY_ALL,
    SHARE_OF_PAIRS,
    STRETCHES,
    TIMES_USUAL,
    Settings,
)
from fablint.model import ComponentRef, EvidenceRecord, Finding, Placement, State
from fablint.model.arrays import Floats, Mask
from fablint.model.component import cause
from fablint.model.verdict import Action
from fablint.text import actions as advise, evidence as seen
from fablint.topology.routing import Routes

BOUNDS = tuple(1.5 * 2**step for step in range(7))  # times the usual mean by median, beyond which a cell may be late


def late_messages(
    rows: Sequence[UsableRow], placement: Placement, routes: Routes | None, settings: Settings
) -> list[Finding]:
    """Components whose small messages are late in a good share of their pairs."""
    cells = read_mean_ratios(rows, placement)
    if cells is None or not np.any(cells.ratio > BOUNDS[0]):
        return []
    pairs = host_pairs_of(cells, placement)
    candidates = candidates_of(pairs, placement, routes, directed=False).candidates(pairs.weight.size)
    best = BoundedSearch.of(candidates, BOUNDS, lambda bound: pairs.share(cells.ratio > bound), pairs.weight)
    if best is None:
        return []
    evidence = _Evidence(cells, pairs, best, cells.ratio > best.bound, placement, routes, settings)
    return [finding for member in best.members() if (finding := evidence.finding(member)) is not None]


@dataclass(frozen=True)
class _Evidence:
    """What speaks for the components of an explanation."""

    cells: MeanRatios
    pairs: MeasuredHostPairs
    best: BoundedSearch
    late: Mask  # (k,) cells
    placement: Placement
    routes: Routes | None
    settings: Settings

    def finding(self, member: Member) -> Finding | None:
        """Return what is said of a component; None where all pairs of a scope are somewhat later than others."""
        candidate = self.best.search.candidates.candidate[member.number]
        share = self.pairs.share(self.late)
        cells = np.isin(self.pairs.of_cell, member.pairs)
        ratio = float(np.median(self.cells.ratio[cells & self.late]))
        if candidate.is_scope and ratio < TIMES_USUAL:
            return None
        doubts = self._doubts(member, candidate, share, cells, ratio)
        # A little later, without a peer, and measured by itself: noise of the hosts at that time does the same.
        kinds = {doubt.kind for doubt in doubts}
        is_of_its_time = {"small_ratio", "nothing_to_compare"} <= kinds and self._at_own_time(cells)
        is_confounded = candidate.is_scope or is_of_its_time
        state = State.CONFOUNDED if is_confounded else State.SUSPECT if doubts else State.FAULT
        load = (cause("another load at that time"),) if is_of_its_time else ()
        return Finding(
            state=state,
            components=(candidate.component,),
            quantity="latency",
            effect=float(self.cells.ratio[cells].mean()) - 1.0,
            evidence=(self._late_evidence(member, share, ratio), *doubts),
            ambiguity_group=(*ambiguity_group(candidate, self.best.search.others(member)), *load),
            next_step=_next_step(candidate, kinds),
        )

    def _at_own_time(self, cells: Mask) -> bool:
        """Return whether hardly any other cell was measured between the first and the last of these."""
        started = self.cells.started
        times, others = started[cells & np.isfinite(started)], started[~cells & np.isfinite(started)]
        if not times.size or not others.size:
            return False
        return int(np.count_nonzero((others >= times.min()) & (others <= times.max()))) < self.settings.min_partners

    def _doubts(
        self, member: Member, candidate: Candidate, share: Floats, cells: Mask, ratio: float
    ) -> list[EvidenceRecord]:
        """Return why it is not sure that the component is faulty; empty where it is."""
        settings = self.settings
        bar = math.log(len(self.best.search.candidates.candidate) * len(BOUNDS) / settings.alpha_of("late messages"))
        shares = share[member.pairs]
        late = self.pairs.hosts[member.pairs[shares > 0]]
        partners = np.unique(late[:, 0] * len(self.placement.hosts) + late[:, 1]).size
        parts = parts_of_time(self.cells.started[cells & self.late], STRETCHES, self.cells.started)
        scope = self.placement.scopes(*self.pairs.ranks.T)
        has_peers = candidate.kind == "host" or self.best.search.is_compared(member, scope, settings.min_partners)
        is_little = ratio < TIMES_USUAL and not (has_peers and self._stands_alone(member, share, cells))
        doubts = [
            (seen.may_be_chance(), member.gain < bar),
            (seen.few_pairs_of_hosts(settings.min_partners), partners < settings.min_partners),
            (seen.one_stretch(), parts is not None and np.unique(parts).size < FEWEST_INDEPENDENT),
            (seen.small_ratio(TIMES_USUAL), is_little),
            (
                seen.small_share(SHARE_OF_PAIRS),
                np.average(shares, weights=self.pairs.weight[member.pairs]) < SHARE_OF_PAIRS,
            ),
            (seen.nothing_to_compare(), not has_peers),
            (seen.cables_unknown(), candidate.kind in ("path", "exits") and not self._paths_known()),
        ]
        return [doubt for doubt, holds in doubts if holds]

    def _stands_alone(self, member: Member, share: Floats, cells: Mask) -> bool:
        """Return whether nearly all pairs of a component are late, equally at all times, and few others are."""
        is_even = uneven_times(self.cells.started[cells], self.late[cells], self.pairs.of_cell[cells]) is None
        late = np.average(share[member.pairs] >= HALF, weights=self.pairs.weight[member.pairs])
        elsewhere = self.late[~cells].mean() if not cells.all() else 1.0
        return is_even and bool(late >= NEARLY_ALL and elsewhere <= self.settings.shares.usual)

    def _paths_known(self) -> bool:
        """Tell whether a path between two switches is a component; else it is made of cables that the routing chooses
        from.
        """
        return self.routes is None or self.routes.routing.kind not in ("adaptive", "ecmp")

    def _late_evidence(self, member: Member, share: Floats, ratio: float) -> EvidenceRecord:
        explained = np.zeros(share.size, bool)
        explained[member.pairs] = True
        late = share >= HALF
        here, there = int(np.count_nonzero(late & explained)), int(np.count_nonzero(late & ~explained))
        pairs = int(member.pairs.size)
        others = int(share.size) - pairs
        return seen.late_messages(ratio, here, pairs, there, others)


def _next_step(candidate: Candidate, doubts: Collection[str]) -> tuple[Action, ...]:
    if candidate.kind == "host":
        host = advise.inspect_host(candidate.component) if "small_ratio" in doubts else ()
        return host + advise.read_cable_drops(candidate.component)
    if candidate.kind == "exits":
        return advise.read_exit_drops(ComponentRef.of("switch", candidate.component.ends[0]))
    if candidate.is_scope:
        return advise.measure_serially()
    return next_step(candidate.component)
