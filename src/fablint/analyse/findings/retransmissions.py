"""Components on which TCP segments are lost: a share of those that cross it is sent again, and of others hardly any.

Losses are counted by the sender, for each receiver: so a finding has a direction. Short messages that travel alone
fill no queue: what is lost of them is not lost to congestion, and may be a FAULT. Streams lose segments on healthy
networks as well: what only they show is at most SUSPECT, and only of hosts. A count of zero proves nothing: MPI may not
use TCP.

Which component it is, is found as for late messages (explain/explanation.py): a pair counts as lossy above a share,
and of several shares the one whose explanation scores most is the run's. So retransmissions that all pairs have are
those of no component: they are a note.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fablint.analyse.candidates.candidate import Candidate, ambiguity_group
from fablint.analyse.candidates.crossed_components import SIDES, candidates_of
from fablint.analyse.explain.explanation import BoundedSearch, Member
from fablint.analyse.findings.common_causes import CommonCause
from fablint.analyse.observations.segments import Segments, read_segments
from fablint.analyse.phrasing import next_step
from fablint.analyse.settings import (
    FEWEST_LOST,
    HALF,
    LOSSY,
    LOSSY_STREAMS,
    QUARTER,
    SHARE_OF_PAIRS,
    Settings,
)
from fablint.model import ComponentRef, Endpoint, EvidenceRecord, Finding, Note, Placement, Run, State
from fablint.model.arrays import Codes
from fablint.model.verdict import Action
from fablint.text import actions as advise, evidence as seen, notes as noted
from fablint.topology.routing import Routes

BOUNDS = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1)  # share of its segments that are lost, above which a pair is lossy


@dataclass(frozen=True)
class Retransmissions:
    """What retransmissions say of a run."""

    findings: Sequence[Finding]
    lost: Mapping[ComponentRef, int]  # segments that were lost at the hosts and NICs of these
    notes: Sequence[Note] = ()  # about a loss that all paths share


def retransmissions(run: Run, placement: Placement, routes: Routes | None, settings: Settings) -> Retransmissions:
    """Components on which segments are lost, by what TCP sent again."""
    findings: list[Finding] = []
    lost: dict[ComponentRef, int] = {}
    notes: list[Note] = []
    for calm in (True, False):
        segments = read_segments(run, placement, calm=calm)
        evidence = _evidence_of(segments, placement, routes, settings) if segments is not None else None
        losses = [] if evidence is None else evidence.findings(calm=calm)
        named = {finding.components for finding in findings}
        findings += [one for one, _ in losses if one.components not in named]
        for item, loss in losses:
            lost[item.components[0]] = lost.get(item.components[0], 0) + loss.lost
        if segments is not None and not notes:
            notes += _shared_loss(segments, [loss.pairs for _, loss in losses], calm=calm)
    return Retransmissions(findings, lost, notes)


def _shared_loss(segments: Segments, explained: Sequence[Codes], *, calm: bool) -> list[Note]:
    """A note on segments that are lost between all hosts, beside those of the components that are named."""
    others = np.ones(len(segments.hosts), bool)
    for pairs in explained:
        others[pairs] = False
    lossy = others & (segments.lost > 0)
    lost = int(segments.lost[lossy].sum())
    total = segments.total - int(segments.sent[~others].sum())
    if lost < FEWEST_LOST or lost < (LOSSY if calm else LOSSY_STREAMS) * total:
        return []
    fewest = HALF * len(np.unique(segments.hosts))
    if min(len(np.unique(segments.hosts[lossy, side])) for side, _ in SIDES) < fewest:
        return []
    directions, lossy_directions = int(np.count_nonzero(others)), int(np.count_nonzero(lossy))
    return [noted.shared_loss(lost=lost, sent=total, lossy=lossy_directions, directions=directions, streams=not calm)]


def counted_losses(claims: Sequence[Finding]) -> Iterator[CommonCause]:
    """Yield each component about which retransmissions and other measurements speak.

    A FAULT of another measurement takes the evidence of the retransmissions, and their direction where it has none.
    What is not as grave, or as grave and of no direction, such as late messages, is evidence for their finding.
    """
    resent = [claim for claim in claims if seen.tcp_resent.among(claim.evidence)]
    for loss in resent:
        others = [claim for claim in claims if claim.name == loss.name and claim not in resent]
        others = [claim for claim in others if claim.state in (State.FAULT, State.SUSPECT)]
        is_sure = loss.state is State.FAULT
        fault = next((one for one in others if one.state is State.FAULT and (one.direction or not is_sure)), None)
        if fault is not None:
            yield CommonCause((fault, loss), (_with_evidence(fault, loss),))
        elif weaker := [claim for claim in others if claim.direction is None and claim.component == loss.component]:
            yield CommonCause((loss, *weaker), (_with_evidence(loss, *weaker),))


def _with_evidence(finding: Finding, *others: Finding) -> Finding:
    evidence = [record for other in (finding, *others) for record in other.evidence]
    direction = finding.direction or next((other.direction for other in others if other.direction), None)
    return finding.model_copy(update={"evidence": tuple(evidence), "direction": direction})


# ------------------------------------------------------------------------------------------------ which component


@dataclass(frozen=True)
class _Loss:
    """What a component loses."""

    member: Member
    candidate: Candidate
    pairs: Codes  # that cross it
    lossy: Codes  # of these, that lose segments
    sent: int  # segments of the lossy pairs
    lost: int
    spurious: int

    @property
    def share(self) -> float:
        return self.lost / max(self.sent, 1)

    def with_other(self, other: _Loss) -> _Loss:
        """Return a copy with the loss of the host in the other direction."""
        return _Loss(
            self.member,
            replace(self.candidate, direction="both"),
            np.union1d(self.pairs, other.pairs),
            np.union1d(self.lossy, other.lossy),
            self.sent + other.sent,
            self.lost + other.lost,
            self.spurious + other.spurious,
        )


@dataclass(frozen=True)
class _SegmentEvidence:
    """The components of an explanation, and what speaks for them."""

    segments: Segments
    best: BoundedSearch
    placement: Placement
    settings: Settings

    def findings(self, *, calm: bool) -> list[tuple[Finding, _Loss]]:
        """Findings, and what each component lost."""
        members = self.best.members()
        if not calm:
            members = [one for one in members if self._candidate(one).kind == "host"]
            if len({self._candidate(one).component for one in members}) > max(1, QUARTER * len(self.placement.hosts)):
                return []
        losses = _merge_directions([self._loss(member) for member in members])
        return [(finding, loss) for loss in losses if (finding := self._finding(loss, calm=calm)) is not None]

    def _candidate(self, member: Member) -> Candidate:
        return self.best.search.candidates.candidate[member.number]

    def _loss(self, member: Member) -> _Loss:
        """Return what a component loses; of a host that loses far more in one direction, what it loses in that."""
        whole = self._of(member, self._candidate(member), member.pairs)
        if whole.candidate.direction != "both":
            return whole
        code = self.placement.hosts.index(whole.candidate.component.label)
        sides = [
            self._of(
                member,
                replace(whole.candidate, direction=direction),
                member.pairs[self.segments.hosts[member.pairs, side] == code],
            )
            for side, direction in SIDES
        ]
        clear, other = sorted(sides, key=lambda one: one.share, reverse=True)
        return clear if other.share <= QUARTER * clear.share else whole

    def _of(self, member: Member, candidate: Candidate, pairs: Codes) -> _Loss:
        lossy = pairs[self.segments.lost[pairs] > 0]
        sums = (int(one[lossy].sum()) for one in (self.segments.sent, self.segments.lost, self.segments.spurious))
        return _Loss(member, candidate, pairs, lossy, *sums)

    def _finding(self, loss: _Loss, *, calm: bool) -> Finding | None:
        """None where too little is lost to be localised, or all paths lose as much."""
        candidate = loss.candidate
        smallest = LOSSY if calm else LOSSY_STREAMS
        if candidate.is_scope or loss.lost < FEWEST_LOST or loss.share < smallest:
            return None
        doubts = self._doubts(loss, calm=calm)
        interfaces = self._interfaces(candidate, loss.lossy)
        nic = len(interfaces) == 1 and len(self._used(candidate)) > 1
        component = candidate.component
        if nic:
            component = ComponentRef.of("nic", Endpoint(nodes=component.hosts, part=interfaces[0]))
        return Finding(
            state=State.SUSPECT if doubts else State.FAULT,
            components=(component,),
            direction=candidate.direction,
            evidence=(self._loss_evidence(loss, () if nic else interfaces), *doubts),
            ambiguity_group=ambiguity_group(candidate, self.best.search.others(loss.member)),
            next_step=_next_step(candidate, component),
        )

    def _loss_evidence(self, loss: _Loss, interfaces: Sequence[str]) -> EvidenceRecord:
        others = np.ones(len(self.segments.hosts), bool)
        others[loss.pairs] = False
        return seen.tcp_resent(
            lost=loss.lost,
            sent=loss.sent,
            spurious=loss.spurious,
            direction=loss.candidate.direction,
            lossy=int(loss.lossy.size),
            pairs=int(loss.pairs.size),
            over=tuple(interfaces),
            others_lost=int(self.segments.lost[others].sum()),
            others_lossy=int(np.count_nonzero(self.segments.lost[others])),
            others=int(np.count_nonzero(others)),
        )

    def _doubts(self, loss: _Loss, *, calm: bool) -> list[EvidenceRecord]:
        """Return why it is not sure that the component is faulty; empty where it is."""
        settings, candidate, member = self.settings, loss.candidate, loss.member
        bar = math.log(len(self.best.search.candidates.candidate) * len(BOUNDS) / settings.alpha_of("retransmissions"))
        over = self.segments.share[loss.pairs] > self.best.bound
        pairs = np.sort(self.segments.hosts[loss.pairs[over]], axis=1)
        partners = len(np.unique(pairs, axis=0))
        scope = self.placement.scopes(*self.segments.ranks.T)
        is_compared = self.best.search.is_compared(member, scope, settings.min_partners)
        doubts = [
            (seen.may_be_chance(), member.gain < bar),
            (seen.few_pairs_of_hosts(settings.min_partners), partners < settings.min_partners),
            (seen.small_share(SHARE_OF_PAIRS), np.count_nonzero(over) < SHARE_OF_PAIRS * over.size or not over.size),
            (seen.streams_only(), not calm),
            (seen.spurious_unknown(), not self.segments.knows_spurious),
            (seen.nothing_to_compare(), candidate.kind != "host" and not is_compared),
        ]
        return [doubt for doubt, holds in doubts if holds]

    def _side(self, candidate: Candidate) -> list[int]:
        """Ends of a pair at which a host is, by its direction."""
        return {"tx": [0], "rx": [1]}.get(candidate.direction or "", [0, 1])

    def _used(self, candidate: Candidate) -> frozenset[str]:
        return self.segments.interfaces[self.placement.hosts.index(candidate.component.label)]

    def _interfaces(self, candidate: Candidate, lossy: np.ndarray) -> list[str]:
        """Return of a host: its interfaces at which segments are lost."""
        if candidate.kind != "host":
            return []
        code = self.placement.hosts.index(candidate.component.label)
        return sorted(
            {
                ends[side]
                for pair in lossy.tolist()
                for side in self._side(candidate)
                if self.segments.hosts[pair, side] == code
                for ends in self.segments.lossy[pair]
            }
        )


def _evidence_of(
    segments: Segments, placement: Placement, routes: Routes | None, settings: Settings
) -> _SegmentEvidence | None:
    """The explanation by the bound at which it scores most; None where there is nothing to explain."""
    if not segments.lost.any():
        return None
    candidates = candidates_of(segments, placement, routes, directed=True).candidates(len(segments.hosts))
    weight = np.ones(len(segments.hosts))
    best = BoundedSearch.of(candidates, BOUNDS, lambda bound: (segments.share > bound).astype(np.float64), weight)
    return None if best is None else _SegmentEvidence(segments, best, placement, settings)


def _merge_directions(losses: Sequence[_Loss]) -> list[_Loss]:
    """Return the same with one loss for a host that loses what it sends and what it receives, in similar shares."""
    merged: dict[ComponentRef, _Loss] = {}
    for loss in losses:
        other_direction = merged.get(loss.candidate.component)
        if other_direction is None:
            merged[loss.candidate.component] = loss
            continue
        clear, other = sorted((other_direction, loss), key=lambda each: each.share, reverse=True)
        merged[loss.candidate.component] = clear if other.share <= QUARTER * clear.share else clear.with_other(other)
    return list(merged.values())


# ------------------------------------------------------------------------------------------------ words


def _next_step(candidate: Candidate, component: ComponentRef) -> tuple[Action, ...]:
    if candidate.kind != "host":
        return next_step(component)
    return advise.read_cable_drops(component, direction=candidate.direction)
