"""Components across which some messages are much later than the others: what is lost is sent again.

The median of a pair does not show it, and a stream recovers. The mean of small messages does: one in a hundred that
waits for a timeout of 10 ms makes a mean of 100 us of a median of 2. So a measurement is late when its mean is a
multiple of its median, compared with what is usual in the run. Hosts, cables, switches and paths compete to explain
which pairs of hosts are late (explain/explanation.py). How large the multiple has to be is not fixed: of several bounds
the one whose explanation scores most is the run's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fablint.analyse.candidates.candidate import Candidate, Candidates
from fablint.analyse.candidates.crossed_components import MeasuredHostPairs, candidates_of, host_pairs_of
from fablint.analyse.explain.explanation import LateSearch, Member, ScoredCandidates
from fablint.analyse.observations.mean_ratios import MeanRatios, read_mean_ratios
from fablint.analyse.observations.samples import UsableRow
from fablint.analyse.phrasing import next_step
from fablint.analyse.settings import Settings
from fablint.model import ComponentRef, EvidenceRecord, Finding, Placement, State
from fablint.model.arrays import Floats, Mask
from fablint.model.component import cause, in_series
from fablint.model.verdict import Action
from fablint.text import actions as advise, evidence as seen
from fablint.topology.routing import Routes

BOUNDS = tuple(1.5 * 2**step for step in range(7))  # times the usual mean by median, beyond which a cell may be late
SPEAKS = 1.5  # nats beyond the log of the number of candidates, from which a component is named: 4 hosts give no more
LOSS = 3.0  # mean by median of late pairs that a loss or a timeout explains; less is as likely noise of the host
SHARE = 0.3  # of a component's pairs are late in a FAULT: of fewer, some paths across it are as good a reason
STRETCHES = 8  # equal parts of the time that the measurement took
FEWEST_STRETCHES = 2  # in which a faulty component makes messages late


def late_messages(
    rows: Sequence[UsableRow], placement: Placement, routes: Routes | None, settings: Settings
) -> list[Finding]:
    """Components whose small messages are late in a good share of their pairs."""
    cells = read_mean_ratios(rows, placement)
    if cells is None or not np.any(cells.ratio > BOUNDS[0]):
        return []
    pairs = host_pairs_of(cells, placement)
    candidates = candidates_of(pairs, placement, routes, directed=False).candidates(pairs.weight.size)
    if not candidates.candidate:
        return []
    judgement = _judged(cells, pairs, candidates)
    if judgement is None:
        return []
    evidence = _Evidence(cells, pairs, candidates, judgement.late, placement, routes, settings)
    return [
        finding
        for member in judgement.search.members(judgement.explanation, SPEAKS)
        if (finding := evidence.finding(member)) is not None
    ]


@dataclass(frozen=True)
class _Judgement:
    """Which cells are late, and the components that explain them."""

    late: Mask
    search: LateSearch
    explanation: ScoredCandidates


def _judged(cells: MeanRatios, pairs: MeasuredHostPairs, candidates: Candidates) -> _Judgement | None:
    """The judgement by the bound whose explanation scores most; None where nothing is to be explained."""
    price = math.log(len(candidates.candidate)) + SPEAKS
    best: _Judgement | None = None
    for bound in BOUNDS:
        late = np.asarray(cells.ratio > bound)
        if not late.any():
            break
        search = LateSearch(candidates, pairs.share(late), pairs.weight, price)
        explanation = search.best()
        if explanation.chosen and (best is None or explanation.score > best.explanation.score):
            best = _Judgement(late, search, explanation)
    return best


@dataclass(frozen=True)
class _Evidence:
    """What speaks for the components of an explanation."""

    cells: MeanRatios
    pairs: MeasuredHostPairs
    candidates: Candidates
    late: Mask  # (k,) cells
    placement: Placement
    routes: Routes | None
    settings: Settings

    def finding(self, member: Member) -> Finding | None:
        """What is said of a component; None where all pairs of a scope are somewhat later than others."""
        candidate = self.candidates.candidate[member.number]
        share = self.pairs.share(self.late)
        cells = np.isin(self.pairs.of_cell, member.pairs)
        ratio = float(np.median(self.cells.ratio[cells & self.late]))
        if candidate.is_scope and ratio < LOSS:
            return None
        doubts = self._doubts(member, candidate, share, cells, ratio)
        # A little later, without a peer, and measured by itself: noise of the hosts at that time does the same.
        is_of_its_time = {"small_ratio", "nothing_to_compare"} <= {
            doubt.kind for doubt in doubts
        } and self._at_own_time(cells)
        is_confounded = candidate.is_scope or is_of_its_time
        state = State.CONFOUNDED if is_confounded else State.SUSPECT if doubts else State.FAULT
        load = (cause("another load at that time"),) if is_of_its_time else ()
        return Finding(
            state=state,
            components=(candidate.component,),
            quantity="latency",
            effect=float(self.cells.ratio[cells].mean()) - 1.0,
            evidence=(self._late_evidence(member, share, ratio), *doubts),
            ambiguity_group=(*self._ambiguity_group(member, candidate), *load),
            next_step=_next_step(candidate),
        )

    def _at_own_time(self, cells: Mask) -> bool:
        """Return whether hardly any other cell was measured between the first and the last of these."""
        started = self.cells.started
        own, others = started[cells & np.isfinite(started)], started[~cells & np.isfinite(started)]
        if not own.size or not others.size:
            return False
        return int(np.count_nonzero((others >= own.min()) & (others <= own.max()))) < self.settings.min_partners

    def _doubts(
        self, member: Member, candidate: Candidate, share: Floats, cells: Mask, ratio: float
    ) -> list[EvidenceRecord]:
        """Why it is not sure that the component is faulty; empty where it is."""
        settings = self.settings
        bar = math.log(len(self.candidates.candidate) * len(BOUNDS) / settings.alpha_of("late messages"))
        own = share[member.pairs]
        late = self.pairs.hosts[member.pairs[own > 0]]
        partners = np.unique(late[:, 0] * len(self.placement.hosts) + late[:, 1]).size
        stretches = self._stretches(cells & self.late)
        doubts = [
            (seen.may_be_chance(), member.gain < bar),
            (seen.few_pairs_of_hosts(settings.min_partners), partners < settings.min_partners),
            (seen.one_stretch(), stretches is not None and stretches < FEWEST_STRETCHES),
            (seen.small_ratio(LOSS), ratio < LOSS),
            (seen.small_share(SHARE), np.average(own, weights=self.pairs.weight[member.pairs]) < SHARE),
            (seen.nothing_to_compare(), candidate.kind != "host" and not self._compared(member)),
            (seen.cables_unknown(), candidate.kind in ("path", "exits") and not self._paths_known()),
        ]
        return [doubt for doubt, holds in doubts if holds]

    def _compared(self, member: Member) -> bool:
        """Are there pairs as far apart as its own that do not cross it?"""
        scope = self._scopes()
        own = np.zeros(scope.size, bool)
        own[self.candidates.pairs(member.number)] = True
        others = ~own & np.isin(scope, np.unique(scope[member.pairs]))
        return float(self.pairs.weight[others].sum()) >= self.settings.min_partners

    def _scopes(self) -> np.ndarray:
        """(u,) 0: one switch, 1: one group, 2: two groups."""
        groups, switches = self.placement.group[self.pairs.ranks], self.pairs.switches
        return np.where(switches[:, 0] == switches[:, 1], 0, np.where(groups[:, 0] == groups[:, 1], 1, 2))

    def _paths_known(self) -> bool:
        """Is a path between two switches a component, or is it made of cables that the routing chooses from?"""
        return self.routes is None or self.routes.routing.kind not in ("adaptive", "ecmp")

    def _stretches(self, cells: Mask) -> int | None:
        """In how many stretches of time these cells were measured; None where it is not known, or there is but one."""
        started = self.cells.started
        known = np.isfinite(started)
        if not known[cells].all() or not known.any():
            return None
        begin, end = float(started[known].min()), float(started[known].max())
        if end <= begin:
            return None
        stretch = np.minimum((started[cells] - begin) / (end - begin) * STRETCHES, STRETCHES - 1)
        return int(np.unique(stretch.astype(np.int64)).size)

    def _ambiguity_group(self, member: Member, candidate: Candidate) -> tuple[ComponentRef, ...]:
        """Components that the same pairs cross, or nearly the same."""
        own = in_series(candidate.component.label) if candidate.kind == "host" else ()
        alternatives = [
            (self.candidates.candidate[alternative], self.candidates.others(alternative))
            for alternative in member.alternatives
            if np.isin(self.candidates.pairs(alternative), member.pairs).any()
        ]
        others = [
            one
            for alternative, same in alternatives
            for one in (alternative.component, *same)
            if not alternative.is_scope
        ]
        group = dict.fromkeys((*own, *self.candidates.others(member.number), *others))
        return tuple(one for one in group if one != candidate.component)

    def _late_evidence(self, member: Member, share: Floats, ratio: float) -> EvidenceRecord:
        explained = np.zeros(share.size, bool)
        explained[member.pairs] = True
        late = share >= 0.5
        here, there = int(np.count_nonzero(late & explained)), int(np.count_nonzero(late & ~explained))
        pairs = int(member.pairs.size)
        others = int(share.size) - pairs
        return seen.late_messages(ratio, here, pairs, there, others)


def _next_step(candidate: Candidate) -> tuple[Action, ...]:
    if candidate.kind == "host":
        return advise.read_cable_drops(candidate.component)
    if candidate.kind == "exits":
        return advise.read_exit_drops(ComponentRef.of("switch", candidate.component.ends[0]))
    if candidate.is_scope:
        return advise.measure_serially()
    return next_step(candidate.component)
