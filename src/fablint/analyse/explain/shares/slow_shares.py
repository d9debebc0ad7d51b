"""Components that are slow for a share of the time: the score "share of slow measurements" of the search.

Each measurement of a view is slow or not by the noise of its class: first ones, repeats, follow-ups and retests, none
replaced by a better one. Hosts, NICs, links, cables, paths and switches compete to explain which pairs have slow ones
(explain/explanation.py), so that a cable wins over the hosts behind it, and a host over its links. What counts
is the number of clusters of pairs of hosts and of stretches of time (share_evidence.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fablint.analyse.candidates.candidate import Candidate, CandidateBuilder, Candidates
from fablint.analyse.candidates.crossed_components import MeasuredHostPairs, add_ends, candidates_of
from fablint.analyse.explain.evidence import Evidence
from fablint.analyse.explain.explanation import LateSearch, Member
from fablint.analyse.explain.search import Detection
from fablint.analyse.explain.shares.share_bounds import ShareBounds, share_bounds
from fablint.analyse.explain.shares.share_detections import detection_of
from fablint.analyse.explain.shares.share_evidence import ShareEvidence, WeighedMeasurements
from fablint.analyse.explain.shares.slow_measurements import SlowMeasurements, isolated_cells, slow_measurements
from fablint.analyse.null_model.effects import Effects
from fablint.analyse.null_model.timing import PERIODS, SlowTime, find_slow_time
from fablint.analyse.observations.binomial import upper_tail
from fablint.analyse.observations.samples import Flows
from fablint.analyse.settings import (
    CHANCE,
    CLEAR_EVIDENCE,
    FEWEST_INDEPENDENT,
    FEWEST_SLOW,
    LONG_STRETCHES,
    NEARLY_ALL,
    Settings,
)
from fablint.model import EvidenceRecord, Placement
from fablint.model.arrays import Codes, Floats, Mask
from fablint.text import evidence as seen
from fablint.topology.routing import Routes

COMPONENTS = frozenset({"host", "nic", "cable", "switch"})  # kinds that are one component; others are sets of cables
UNIFORM = (1.0, 1.0)  # Beta prior of the share of a component


@dataclass(frozen=True)
class SlowShare:
    """A component that is slow for a share of the time.

    Attributes
    ----------
    candidate
        The component.
    detection
        The same for findings and follow-up measurements.
    evidence
        Its measurements.
    doubts
        Why it is not sure that the component is faulty; none: a FAULT.
    when
        When it was slow; None: unknown.
    slow_ends
        (j, 2) sending and receiving rank of each slow measurement.
    """

    candidate: Candidate
    detection: Detection
    evidence: ShareEvidence
    doubts: tuple[EvidenceRecord, ...]
    when: SlowTime | None
    slow_ends: Codes

    @property
    def is_fault(self) -> bool:
        """True if the component is faulty for sure."""
        return not self.doubts and self.evidence.explained_by is None


def shares_of_view(
    flows: Flows, evidence: Evidence, effects: Effects, settings: Settings, *, views: int
) -> tuple[list[SlowShare], ShareBounds | None]:
    """Return the components that are slow for a share of the time, and the bounds of the others.

    What they explain is removed from `evidence`. Measurements that no other message delayed come first: what all
    measurements show in addition is never a FAULT.

    Parameters
    ----------
    flows
        The view.
    evidence
        Evidence after the search for components that are slow at all times.
    effects
        Fitted model of the view.
    settings
        Error probabilities, and `shares`.
    views
        Number of views of the run, which share the error probability.
    """
    placement, routes = evidence.placement, effects.message_paths.routes
    if flows.is_star or len(placement.hosts) == 1:
        return [], None
    isolated = isolated_cells(flows, effects)
    shares: list[SlowShare] = []
    bounds = None
    for together in (False,) if isolated is None else (False, True):
        measured = slow_measurements(evidence, effects, flows, settings, isolated=isolated, together=together)
        shares_of_pass = _find(measured, placement, routes, settings, views=views)
        bounds = bounds or share_bounds(measured, effects, settings)
        for share in shares_of_pass:
            if share.evidence.explained_by is None:
                cells = share.detection.cells
                live = evidence.gain[cells] != 0
                evidence.remove((cells[0][live], cells[1][live]))
        shares += shares_of_pass
    return shares, bounds


def _find(
    measured: SlowMeasurements | None, placement: Placement, routes: Routes | None, settings: Settings, *, views: int
) -> list[SlowShare]:
    """Return the components that are slow for a share of the time, those with the most evidence first."""
    if measured is None or np.count_nonzero(measured.slow) < FEWEST_SLOW:
        return []
    pairs = measured.pairs
    late = np.bincount(pairs.of_cell, weights=measured.slow) / np.bincount(pairs.of_cell)
    builder = _builder(pairs, placement, routes, one_way=measured.one_way)
    candidates = _likely(builder, pairs, late, measured, settings)
    if candidates is None:
        return []
    price = math.log(builder.size) + CLEAR_EVIDENCE
    search = LateSearch(candidates, late, pairs.weight, price, prior=UNIFORM, mostly=None)
    members = search.members(search.best(), CLEAR_EVIDENCE)
    members = [_with_host(member, members, candidates) for member in members]
    explanation = _ShareExplanation(measured, pairs, search, members, routes, settings, builder.size * views)
    result = [share for member in members if (share := explanation.share(member)) is not None]
    return sorted(result, key=lambda share: -share.evidence.nats)


def _builder(
    pairs: MeasuredHostPairs, placement: Placement, routes: Routes | None, *, one_way: bool
) -> CandidateBuilder:
    """Return all candidates: of streams each direction of a component by itself."""
    builder = candidates_of(pairs, placement, routes, directed=one_way)
    if len(placement.nics) > len(placement.hosts):
        ends = placement.nic[pairs.ranks].astype(np.int64)
        add_ends(builder, "nic", placement.nics, ends, directed=one_way)
    return builder


def _likely(
    builder: CandidateBuilder, pairs: MeasuredHostPairs, late: Floats, measured: SlowMeasurements, settings: Settings
) -> Candidates | None:
    """Return the candidates with more slow measurements than by chance; None if there are none."""
    share = float(np.average(late, weights=pairs.weight))
    count, slow = builder.sums(pairs.weight), builder.sums(pairs.weight * late)
    number = builder.sums(np.bincount(pairs.of_cell, weights=measured.slow).astype(np.float64))
    chosen = (number >= FEWEST_SLOW) & (slow > share * count)
    chosen[chosen] = upper_tail(slow[chosen], count[chosen], share) < CHANCE
    if not chosen.any():
        return None
    candidates = builder.candidates(len(late), chosen)
    return candidates if candidates.candidate else None


def _with_host(member: Member, members: Sequence[Member], candidates: Candidates) -> Member:
    """Return the host or NIC to which a link leads, with the link as an alternative, if it explains as much; or itself.

    What a host has on its own switch does not cross the link: with few such pairs, either may be slow.
    """
    ends = ("host", "nic")
    if candidates.candidate[member.number].kind in ends:
        return member
    for number in member.alternatives:
        pairs = candidates.pairs(number)
        if candidates.candidate[number].kind in ends and np.isin(member.pairs, pairs).all():
            explained = [other.pairs for other in members if other is not member]
            unexplained = pairs[~np.isin(pairs, np.concatenate(explained))] if explained else pairs
            others = tuple(other for other in member.alternatives if other != number)
            return Member(number, member.gain, unexplained, (member.number, *others))
    return member


@dataclass(frozen=True)
class _ShareExplanation:
    """The explanation of a view, and what its members are judged by."""

    measured: SlowMeasurements
    pairs: MeasuredHostPairs
    search: LateSearch
    members: Sequence[Member]
    routes: Routes | None
    settings: Settings
    tests: int  # candidates of all views

    def share(self, member: Member) -> SlowShare | None:
        """Return a member as a component that is slow for a share of the time; None if that may be chance."""
        candidate, settings = self.search.candidates.candidate[member.number], self.settings
        is_member = np.isin(self.pairs.of_cell, member.pairs)
        if candidate.is_scope or not is_member.any() or self._may_share_unknown_links(candidate):
            return None
        weight = (self.pairs.weight / np.bincount(self.pairs.of_cell))[self.pairs.of_cell]
        weighed = WeighedMeasurements(self.measured, weight, self._elsewhere())
        chance = CHANCE / self.tests
        evidence = weighed.evidence(is_member, settings.shares, chance)
        if evidence.nats < -math.log(chance) or evidence.is_tolerated:
            return None
        if not settings.shares.least <= evidence.share < NEARLY_ALL:
            return None
        if evidence.host_pairs < settings.min_partners:
            return None  # slow pairs of hosts are reported by themselves
        measurements = self.measured.of(is_member)
        when = find_slow_time(measurements.started, measurements.slow)
        doubts = self._doubts(member, candidate, evidence, when)
        others = self.measured.of(weighed.elsewhere & ~is_member)
        numbers = {"others_slow": int(others.slow.sum()), "others": int(others.slow.size)}
        nodes = candidate.component.nodes
        same = [other for other in self.search.others(member) if other.component.nodes != nodes]
        same = [other for other in same if other.kind in COMPONENTS]
        detection = detection_of(candidate, measurements, evidence, numbers, same, self.routes)
        if when is not None and when.kind != "now and then":
            detection = replace(detection, circumstances=(when.evidence,))
        return SlowShare(candidate, detection, evidence, doubts, when, measurements.ends[measurements.slow])

    def _may_share_unknown_links(self, candidate: Candidate) -> bool:
        """Return whether hosts without a switch may have sent over the links of a component at the same time."""
        unknown = bool((self.measured.placement.switch < 0).any())
        return self.measured.together and unknown and candidate.kind not in ("host", "nic")

    def _elsewhere(self) -> Mask:
        """Return the (k,) measurements that no member explains."""
        explained = np.zeros(len(self.pairs.ranks), dtype=bool)
        for member in self.members:
            explained[member.pairs] = True
        return np.asarray(~explained[self.pairs.of_cell])

    def _doubts(
        self, member: Member, candidate: Candidate, evidence: ShareEvidence, when: SlowTime | None
    ) -> tuple[EvidenceRecord, ...]:
        """Return why it is not sure that the component is faulty."""
        settings = self.settings
        bar = math.log(self.tests / settings.alpha_of("slow shares"))
        stretches, scope = evidence.stretches, self.measured.placement.scopes(*self.pairs.ranks.T)
        is_compared = self.search.is_compared(member, scope, settings.min_partners)
        doubts = (
            (seen.may_be_chance(), min(evidence.nats, evidence.lasting_nats) < bar),
            (seen.sent_together(), self.measured.together),
            (seen.times_unknown(), stretches is None),
            (seen.one_stretch(), stretches is not None and stretches < FEWEST_INDEPENDENT),
            (seen.one_period(), self._is_period(candidate, when, stretches)),
            (seen.nothing_to_compare(), candidate.kind not in ("host", "nic") and not is_compared),
            (seen.cables_unknown(), candidate.kind not in COMPONENTS),
        )
        return tuple(doubt for doubt, holds in doubts if holds)

    @staticmethod
    def _is_period(candidate: Candidate, when: SlowTime | None, stretches: int | None) -> bool:
        """Return whether load of one period may have slowed the component.

        Messages of other jobs load switches and cables. What slows a host for half of the run and is not over is not
        the load of a while, wherever it comes from.
        """
        if when is None or when.kind not in PERIODS:
            return False
        is_end = candidate.kind in ("host", "nic")
        return not (is_end and when.kind == "since" and (stretches or 0) >= LONG_STRETCHES)
