"""The findings of a run, step by step: each step reads the findings of the steps before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fablint.analyse.concerned import ACCUSED
from fablint.analyse.explain.view import ViewResult
from fablint.analyse.findings.detected import detected_findings, named_hosts, suspected
from fablint.analyse.findings.late_components import late_messages
from fablint.analyse.findings.paths.assumed_paths import through_neighbours
from fablint.analyse.findings.paths.declared_speeds import ByDesign, by_design
from fablint.analyse.findings.paths.healthy_paths import healthy_paths
from fablint.analyse.findings.paths.merged_findings import without_geometry
from fablint.analyse.findings.paths.pair_routes import off_slow_paths
from fablint.analyse.findings.paths.path_streams import PathFindings, about_paths
from fablint.analyse.findings.paths.uplinks import uplinks_together
from fablint.analyse.findings.population_findings import populations
from fablint.analyse.findings.retransmissions import Retransmissions, joined
from fablint.analyse.findings.share_findings import second_modes, slow_shares
from fablint.analyse.findings.unreported_components import unreported_findings
from fablint.analyse.null_model.recorded_facts import Facts
from fablint.analyse.observations.samples import UsableRow
from fablint.analyse.other_questions.across_transports import compared_over_transports
from fablint.analyse.other_questions.confounders import confounded
from fablint.analyse.other_questions.engine_findings import damaged, lost
from fablint.analyse.other_questions.intra_node import slow_gpus, slow_inside
from fablint.analyse.other_questions.root_cause import fuse_run
from fablint.analyse.phrasing import (
    between_switches,
)
from fablint.analyse.settings import FEWEST_PEERS, Settings
from fablint.model import (
    Finding,
    Note,
    Placement,
    Run,
    State,
    Topology,
)
from fablint.topology.routing import Routes


@dataclass(frozen=True)
class JudgedRun:
    """A run whose views were judged one by one, and what they were judged with."""

    run: Run
    topology: Topology | None
    placement: Placement
    routes: Routes | None
    settings: Settings
    others: Sequence[Finding]  # of other stages
    facts: Facts  # what is recorded of the hosts
    rows: Sequence[UsableRow]
    views: Sequence[ViewResult]
    resent: Retransmissions
    peer_copies: frozenset[str]  # names of the rows of copies between the GPUs of a host

    @property
    def clearing(self) -> list[ViewResult]:
        """Views that show healthy components as well. Follow-up measurements alone judge what they were made for."""
        healthy = [view for view in self.views if view.is_evidence_of_health]
        healthy = [view for view in healthy if not view.isolates] or healthy
        return [view for view in healthy if not (self.placement.shared_machines and view.quantity == "latency")]


def slow_components(judged: JudgedRun, misplaced: Sequence[Finding]) -> tuple[list[Finding], list[Note]]:
    """Return what the engine reported and what the views show; notes on kinds of hosts and on longer cables."""
    run, views, placement = judged.run, judged.views, judged.placement
    slow = _ranked(detected_findings(views, placement, judged.peer_copies), judged)
    findings = [*damaged(run), *lost(run), *misplaced, *slow]
    findings += suspected(views, placement, findings, judged.settings)
    kinds, kind_notes = populations(views, placement, judged.facts, judged.settings)
    findings, geometry = without_geometry([*findings, *kinds], views)
    return findings, [*kind_notes, *geometry]


def slow_paths(judged: JudgedRun, findings: Sequence[Finding]) -> tuple[list[Finding], PathFindings, ByDesign]:
    """Return the findings with those about paths, and without those that the design or another path explains."""
    placement, routes, settings = judged.placement, judged.routes, judged.settings
    faulty = named_hosts([finding for finding in findings if finding.state is State.FAULT], placement)
    paths = about_paths(judged.views, placement, routes, faulty)
    compared = routes is not None and len(routes.ends) >= 2 * FEWEST_PEERS
    findings = [*findings, *_unnamed(paths.findings, findings, compared=compared)]
    designed = by_design(findings, routes, placement, settings)
    remaining = off_slow_paths(designed.findings, designed.effects, placement, routes, settings)
    remaining = through_neighbours(uplinks_together(remaining, placement, routes), judged.topology)
    return _without_doubles(remaining), paths, designed


def other_measurements(judged: JudgedRun, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings with what late messages, retransmissions, GPUs, shares of time and other transports show."""
    views, placement, settings = judged.views, judged.placement, judged.settings
    late = late_messages(judged.rows, placement, judged.routes, settings)
    inside = [*slow_inside(judged.rows, placement, settings), *slow_gpus(judged.run.rows, placement, settings)]
    findings = [*findings, *_not_named([*late, *inside], findings)]
    findings = joined(_ranked(judged.resent.findings, judged), findings)
    reported = [finding for finding in judged.others if finding.state in ACCUSED and finding.quantity is not None]
    findings += slow_shares(views, placement, [*findings, *reported])
    findings += second_modes(views, placement)
    return compared_over_transports(findings, views, {row.name: row.medium for row in judged.run.rows}, placement)


def with_unreported(
    judged: JudgedRun, findings: Sequence[Finding], designed: ByDesign
) -> tuple[list[Finding], list[Note], list[Note]]:
    """Return the findings with confounders and components without a fault, notes on paths, and notes on confounders."""
    clearing, placement, settings = judged.clearing, judged.placement, judged.settings
    confounders, confounder_notes = confounded(judged.run, placement, [view.sample for view in clearing], settings)
    findings = [*findings, *confounders]
    findings += unreported_findings(clearing, placement, judged.routes, findings, settings, designed.effects)
    of_paths, path_notes = healthy_paths(clearing, placement, findings, settings)
    return [*findings, *of_paths], path_notes, confounder_notes


def _ranked(findings: Sequence[Finding], judged: JudgedRun) -> list[Finding]:
    """The same, where counters and other findings say which of the parts behind a slow host to look at first."""
    run, topology, known = judged.run, judged.topology, (*judged.others, *findings)
    result = []
    for finding in findings:
        if finding.state is State.FAULT and finding.component in ("link", "cable"):
            advice = between_switches(finding.components[0], finding.ambiguity_group, run, topology)
            finding = finding.model_copy(update={"next_step": advice})
        elif (
            finding.state is State.FAULT
            and finding.component in ("host", "nic")
            and finding.components[0].ends[0].rank is None
        ):
            component, beside = finding.components[0], [one for one in known if one != finding]
            segments = judged.resent.lost.get(component, 0)
            ranking = fuse_run(run, topology, component, finding.direction, beside, segments)
            evidence = (*finding.evidence, *ranking.reasons)
            finding = finding.model_copy(update={"evidence": evidence, "next_step": ranking.next_step})
        result.append(finding)
    return result


def _unnamed(found: Sequence[Finding], known: Sequence[Finding], *, compared: bool) -> list[Finding]:
    """Those about paths that no link, cable or switch at fault explains.

    By its ends it would be the reason; where `compared` links are declared, any of them may be.
    """
    faults = [one for one in known if one.state is State.FAULT and one.component in ("link", "cable", "switch")]
    if compared and faults:
        return []
    ends = frozenset().union(*(fault.nodes for fault in faults))
    return [one for one in found if not ends & one.nodes]


def _not_named(found: Sequence[Finding], known: Sequence[Finding]) -> list[Finding]:
    """Those about other parts than the known faults."""
    faults = [one for one in known if one.state is State.FAULT]
    named = {name for fault in faults for name in (fault.name, *(fault.hosts if fault.component == "nic" else ()))}
    return [one for one in found if one.name not in named]


def _without_doubles(findings: Sequence[Finding]) -> list[Finding]:
    """The same without `SUSPECT` ones about what is a `FAULT` by another measurement of the same quantity."""
    faults = {(finding.components, finding.quantity) for finding in findings if finding.state is State.FAULT}
    return [
        finding
        for finding in findings
        if finding.state is not State.SUSPECT or (finding.components, finding.quantity) not in faults
    ]
