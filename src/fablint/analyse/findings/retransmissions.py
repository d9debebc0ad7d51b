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

from fablint.analyse.candidates.candidate import Candidate, Candidates
from fablint.analyse.candidates.crossed_components import SIDES, candidates_of
from fablint.analyse.explain.explanation import LateSearch, Member, ScoredCandidates
from fablint.analyse.findings.common_causes import CommonCause
from fablint.analyse.observations.segments import Segments, read_segments
from fablint.analyse.phrasing import next_step
from fablint.analyse.settings import Settings
from fablint.model import ComponentRef, Endpoint, EvidenceRecord, Finding, Note, Placement, Run, State
from fablint.model.arrays import Codes
from fablint.model.component import in_series
from fablint.model.verdict import Action
from fablint.text import actions as advise, evidence as seen, notes as noted
from fablint.topology.routing import Routes

BOUNDS = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1)  # share of its segments that are lost, above which a pair is lossy
SPEAKS = 1.5  # nats beyond the log of the number of candidates, from which a component is named
FEWEST_LOST = 10  # segments of a component
SMALLEST = 0.001  # share of its segments, from which a component is faulty; in streams 10 times as much
STREAMS = 10.0
ONE_WAY = 4.0  # times the share of the other direction: losses of which only this direction is named
SHARE = 0.3  # of a component's pairs are lossy in a FAULT
SPREAD = 0.5  # of the hosts send, and as many receive, what is lost by no component: all paths share it
MOST_HOSTS = 0.25  # of all that lose segments of streams: where there are more, it is the network's congestion


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
        own = [] if evidence is None else evidence.findings(calm=calm)
        named = {known.components for known in findings}
        findings += [one for one, _ in own if one.components not in named]
        for one, loss in own:
            lost[one.components[0]] = lost.get(one.components[0], 0) + loss.lost
        if segments is not None and not notes:
            notes += _shared_loss(segments, [loss.pairs for _, loss in own], calm=calm)
    return Retransmissions(findings, lost, notes)


def _shared_loss(segments: Segments, explained: Sequence[Codes], *, calm: bool) -> list[Note]:
    """A note on segments that are lost between all hosts, beside those of the components that are named."""
    others = np.ones(len(segments.hosts), bool)
    for pairs in explained:
        others[pairs] = False
    lossy = others & (segments.lost > 0)
    lost = int(segments.lost[lossy].sum())
    total = segments.total - int(segments.sent[~others].sum())
    if lost < FEWEST_LOST or lost < (SMALLEST if calm else STREAMS * SMALLEST) * total:
        return []
    fewest = SPREAD * len(np.unique(segments.hosts))
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
        """With what the host loses in the other direction."""
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
    candidates: Candidates
    bound: float
    search: LateSearch
    explanation: ScoredCandidates
    placement: Placement
    settings: Settings

    def findings(self, *, calm: bool) -> list[tuple[Finding, _Loss]]:
        """Findings, and what each component lost."""
        members = self.search.members(self.explanation, SPEAKS)
        if not calm:
            members = [one for one in members if self._candidate(one).kind == "host"]
            if len({self._candidate(one).component for one in members}) > max(
                1, MOST_HOSTS * len(self.placement.hosts)
            ):
                return []
        losses = _merge_directions([self._loss(member) for member in members])
        return [(one, loss) for loss in losses if (one := self._finding(loss, calm=calm)) is not None]

    def _candidate(self, member: Member) -> Candidate:
        return self.candidates.candidate[member.number]

    def _loss(self, member: Member) -> _Loss:
        """What a component loses; of a host that loses far more in one direction, what it loses in that."""
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
        return clear if clear.share >= ONE_WAY * other.share else whole

    def _of(self, member: Member, candidate: Candidate, pairs: Codes) -> _Loss:
        lossy = pairs[self.segments.lost[pairs] > 0]
        sums = (int(one[lossy].sum()) for one in (self.segments.sent, self.segments.lost, self.segments.spurious))
        return _Loss(member, candidate, pairs, lossy, *sums)

    def _finding(self, loss: _Loss, *, calm: bool) -> Finding | None:
        """None where too little is lost to be localised, or all paths lose as much."""
        candidate = loss.candidate
        smallest = SMALLEST if calm else STREAMS * SMALLEST
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
            ambiguity_group=self._ambiguity_group(loss),
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
        """Why it is not sure that the component is faulty; empty where it is."""
        settings, candidate, member = self.settings, loss.candidate, loss.member
        bar = math.log(len(self.candidates.candidate) * len(BOUNDS) / settings.alpha_of("retransmissions"))
        over = self.segments.share[loss.pairs] > self.bound
        pairs = np.sort(self.segments.hosts[loss.pairs[over]], axis=1)
        partners = len(np.unique(pairs, axis=0))
        doubts = [
            (seen.may_be_chance(), member.gain < bar),
            (seen.few_pairs_of_hosts(settings.min_partners), partners < settings.min_partners),
            (seen.small_share(SHARE), np.count_nonzero(over) < SHARE * over.size or not over.size),
            (seen.streams_only(), not calm),
            (seen.spurious_unknown(), not self.segments.knows_spurious),
            (seen.nothing_to_compare(), candidate.kind != "host" and not self._compared(member)),
        ]
        return [doubt for doubt, holds in doubts if holds]

    def _compared(self, member: Member) -> bool:
        """Are there pairs between switches, or on one, as its own are, that do not cross it?"""
        apart = self.segments.switches[:, 0] != self.segments.switches[:, 1]
        others = np.isin(apart, apart[member.pairs])
        others[self.candidates.pairs(member.number)] = False
        return int(np.count_nonzero(others)) >= self.settings.min_partners

    def _side(self, candidate: Candidate) -> list[int]:
        """Ends of a pair at which a host is, by its direction."""
        return {"tx": [0], "rx": [1]}.get(candidate.direction or "", [0, 1])

    def _used(self, candidate: Candidate) -> frozenset[str]:
        return self.segments.interfaces[self.placement.hosts.index(candidate.component.label)]

    def _interfaces(self, candidate: Candidate, lossy: np.ndarray) -> list[str]:
        """Of a host: its interfaces at which segments are lost."""
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

    def _ambiguity_group(self, loss: _Loss) -> tuple[ComponentRef, ...]:
        component, member = loss.candidate.component, loss.member
        own = in_series(component.label) if component.kind == "host" else ()
        alternatives = [self.candidates.candidate[alternative] for alternative in member.alternatives]
        others = [alternative.component for alternative in alternatives if not alternative.is_scope]
        same = self.candidates.others(member.number)
        return tuple(fromkey for fromkey in dict.fromkeys((*own, *same, *others)) if fromkey != component)


def _evidence_of(
    segments: Segments, placement: Placement, routes: Routes | None, settings: Settings
) -> _SegmentEvidence | None:
    """The explanation by the bound at which it scores most; None where there is nothing to explain."""
    if not segments.lost.any():
        return None
    candidates = candidates_of(segments, placement, routes, directed=True).candidates(len(segments.hosts))
    if not candidates.candidate:
        return None
    price = math.log(len(candidates.candidate)) + SPEAKS
    best: _SegmentEvidence | None = None
    for bound in BOUNDS:
        lossy = (segments.share > bound).astype(np.float64)
        if not lossy.any():
            break
        search = LateSearch(candidates, lossy, np.ones(lossy.size), price)
        found = search.best()
        if found.chosen and (best is None or found.score > best.explanation.score):
            best = _SegmentEvidence(segments, candidates, bound, search, found, placement, settings)
    return best


def _merge_directions(losses: Sequence[_Loss]) -> list[_Loss]:
    """The same with one loss for a host that loses what it sends and what it receives, in similar shares."""
    found: dict[ComponentRef, _Loss] = {}
    for loss in losses:
        known = found.get(loss.candidate.component)
        if known is None:
            found[loss.candidate.component] = loss
            continue
        clear, other = sorted((known, loss), key=lambda each: each.share, reverse=True)
        found[loss.candidate.component] = clear if clear.share >= ONE_WAY * other.share else clear.with_other(other)
    return list(found.values())


# ------------------------------------------------------------------------------------------------ words


def _next_step(candidate: Candidate, component: ComponentRef) -> tuple[Action, ...]:
    if candidate.kind != "host":
        return next_step(component)
    return advise.read_cable_drops(component, direction=candidate.direction)
