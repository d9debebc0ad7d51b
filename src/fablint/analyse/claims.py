"""What the measurements of a run claim, source by source, and the findings that remain of it.

A source reads the judged run and the claims of the sources before it. Geometry and declared speeds explain single
claims: these become notes. Causes explain several claims: what remains is the findings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from fablint.analyse.concerned import NAMED_STATES
from fablint.analyse.findings.common_causes import CommonCause, explained, proven_otherwise
from fablint.analyse.findings.detected import detected_findings, named_hosts, suspected
from fablint.analyse.findings.judged_run import JudgedRun
from fablint.analyse.findings.late_components import late_messages
from fablint.analyse.findings.paths.assumed_paths import through_neighbours
from fablint.analyse.findings.paths.declared_speeds import DeclaredSpeeds
from fablint.analyse.findings.paths.pair_routes import routes_on_slow_paths
from fablint.analyse.findings.paths.path_geometry import Geometry
from fablint.analyse.findings.paths.path_streams import about_paths
from fablint.analyse.findings.paths.uplinks import slow_uplinks
from fablint.analyse.findings.population_findings import populations
from fablint.analyse.findings.retransmissions import counted_losses
from fablint.analyse.findings.share_findings import second_modes, slow_shares
from fablint.analyse.other_questions.across_transports import over_transports
from fablint.analyse.other_questions.engine_findings import damaged, lost
from fablint.analyse.other_questions.intra_node import slow_gpus, slow_inside
from fablint.analyse.other_questions.root_cause import with_part_to_look_at
from fablint.analyse.settings import FEWEST_PEERS
from fablint.model import ComponentRef, Finding, FollowUp, Note, State

Claim = Finding | Note | FollowUp
Source = Callable[[JudgedRun, Sequence[Finding]], Iterable[Claim]]


@dataclass
class Claims:
    """Claims about a run.

    Attributes
    ----------
    findings
        Claims that something may be wrong.
    notes
        What is said of a run beside these.
    follow_ups
        Measurements that would decide.
    designed
        Effect of each cable, or direction of it, that is as slow as it is declared to be.
    """

    findings: list[Finding] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    follow_ups: list[FollowUp] = field(default_factory=list)
    designed: dict[ComponentRef, float] = field(default_factory=dict)

    @classmethod
    def of(cls, judged: JudgedRun, misplaced: Sequence[Finding]) -> Claims:
        """Return the claims of all sources; `misplaced` are hosts that are connected elsewhere than declared."""
        claims = cls(findings=[*damaged(judged.run), *lost(judged.run), *misplaced])
        geometry = Geometry.of(judged.views)
        speeds = DeclaredSpeeds.of(judged.routes, judged.placement, judged.settings)
        for source in SOURCES:
            for claim in [*source(judged, tuple(claims.findings))]:
                claims._add(claim, geometry, speeds)
        return claims

    def _add(self, claim: Claim, geometry: Geometry, speeds: DeclaredSpeeds) -> None:
        """Add a claim; of one that geometry or a declared speed explains, add the note."""
        if isinstance(claim, FollowUp):
            self.follow_ups.append(claim)
            return
        statement = claim if isinstance(claim, Note) else geometry.note(claim) or speeds.explain(claim)
        if isinstance(statement, Finding):
            self.findings.append(statement)
            return
        self.notes.append(statement)
        if isinstance(claim, Finding) and claim.quantity == "bandwidth" and claim.effect is not None:
            self.designed |= dict.fromkeys(claim.components, claim.effect)

    def results(self, judged: JudgedRun) -> list[Finding]:
        """Return the findings: claims that no cause explains, with what other transports show of them."""
        media = {row.name: row.medium for row in judged.run.rows}
        result = explained(self.findings, self._causes(judged))
        more = [over_transports(finding, judged.views, media, judged.placement) for finding in result]
        return [
            finding.model_copy(update={"evidence": (*finding.evidence, *records)}) if records else finding
            for finding, records in zip(result, more, strict=True)
        ]

    def _causes(self, judged: JudgedRun) -> Iterator[CommonCause]:
        """Yield what explains several claims."""
        placement, routes = judged.placement, judged.routes
        yield from proven_otherwise(self.findings)
        yield from counted_losses(self.findings)
        yield from routes_on_slow_paths(self.findings, self.designed, placement, routes, judged.settings)
        uplinks = tuple(slow_uplinks(self.findings, placement, routes))
        yield from uplinks
        yield from through_neighbours(explained(self.findings, uplinks), judged.topology)


# ------------------------------------------------------------------------------------------------ sources


def _components(judged: JudgedRun, claims: Sequence[Finding]) -> Iterator[Claim]:
    """Components that are slow, late, or slow for a share of the time in some view."""
    slow = detected_findings(judged.views, judged.placement, judged.routes, judged.peer_copies)
    yield from (_with_part(finding, slow, judged) for finding in slow)


def _open_components(judged: JudgedRun, claims: Sequence[Finding]) -> Iterator[Claim]:
    """Components and pairs that may be slow, and kinds of hosts."""
    yield from suspected(judged.views, judged.placement, claims, judged.settings)
    kinds, notes = populations(judged.views, judged.placement, judged.facts, judged.settings)
    yield from kinds
    yield from notes


def _paths(judged: JudgedRun, claims: Sequence[Finding]) -> Iterator[Claim]:
    """Paths between switches that no component explains: at fault by its ends, or any where links are compared; a
    suspect link that they may cross.
    """
    faults = [claim for claim in claims if claim.state is State.FAULT]
    paths = about_paths(
        judged.views,
        judged.placement,
        judged.routes,
        named_hosts(faults, judged.placement),
        judged.settings.loss_in_scope,
    )
    between = [fault for fault in faults if fault.component in ("link", "cable", "switch")]
    is_compared = judged.routes is not None and len(judged.routes.ends) >= 2 * FEWEST_PEERS
    ends = frozenset().union(*(fault.nodes for fault in between))
    suspects = [claim for claim in claims if claim.state is State.SUSPECT and claim.component in ("link", "cable")]
    links = {direction for suspect in suspects for direction in suspect.directions}
    for finding in paths.findings:
        may_cross = {direction for component in finding.ambiguity_group for direction in component.directions}
        if not (is_compared and between) and not ends & finding.nodes and not links & may_cross:
            yield finding
    yield from paths.notes
    yield from paths.follow_ups


def _late_and_inside(judged: JudgedRun, claims: Sequence[Finding]) -> Iterator[Claim]:
    """Late messages, and slow copies within hosts, of components that are not at fault already."""
    faults = [claim for claim in claims if claim.state is State.FAULT]
    named = {name for fault in faults for name in (fault.name, *(fault.hosts if fault.component == "nic" else ()))}
    late = late_messages(judged.rows, judged.placement, judged.routes, judged.settings)
    inside = slow_inside(judged.rows, judged.placement, judged.settings)
    gpus = slow_gpus(judged.run.rows, judged.placement, judged.settings)
    yield from (finding for finding in (*late, *inside, *gpus) if finding.name not in named)


def _lost_segments(judged: JudgedRun, claims: Sequence[Finding]) -> Iterator[Claim]:
    """Components on which TCP segments are lost."""
    resent = judged.resent
    yield from (_with_part(finding, resent.findings, judged) for finding in resent.findings)
    yield from resent.notes


def _shares(judged: JudgedRun, claims: Sequence[Finding]) -> Iterator[Claim]:
    """Components that may be slow for a share of the time, and slow pairs that no component explains."""
    reported = [finding for finding in judged.others if finding.state in NAMED_STATES and finding.quantity is not None]
    yield from slow_shares(judged.views, judged.placement, [*claims, *reported], judged.routes)
    yield from second_modes(judged.views, judged.placement, judged.settings)


SOURCES: tuple[Source, ...] = (_components, _open_components, _paths, _late_and_inside, _lost_segments, _shares)


def _with_part(finding: Finding, beside: Sequence[Finding], judged: JudgedRun) -> Finding:
    """Return a finding with the part in series to look at first, by counters and the findings beside it."""
    others = [other for other in (*judged.others, *beside) if other is not finding]
    return with_part_to_look_at(finding, others, judged.run, judged.topology, judged.resent.lost)
