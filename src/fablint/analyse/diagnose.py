"""The judgement of a whole run: every size of every row is a view; the views together give one verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict

from fablint.analyse.claims import Claims
from fablint.analyse.damage import damages_of
from fablint.analyse.decide import verdict_of
from fablint.analyse.findings.detected import named_hosts
from fablint.analyse.findings.healthy import rarely_crossed_links
from fablint.analyse.findings.judged_run import JudgedRun, judge_run
from fablint.analyse.findings.missing.missing_cells import missing_cells
from fablint.analyse.findings.missing.run_coverage import coverage_of, why_not_judged
from fablint.analyse.findings.missing.unmeasured_nics import unmeasured_nics
from fablint.analyse.findings.named_limits import limits_of
from fablint.analyse.findings.notes_of_run import notes_of_run
from fablint.analyse.findings.paths.healthy_paths import healthy_paths
from fablint.analyse.findings.paths.slow_pairs import explained_pairs
from fablint.analyse.findings.proposed_measurements import ProposedMeasurements
from fablint.analyse.findings.unreported_components import unreported_findings
from fablint.analyse.null_model.recorded_facts import HostFacts
from fablint.analyse.other_questions.confounders import confounded
from fablint.analyse.other_questions.gpu_coverage import gpu_notes
from fablint.analyse.other_questions.joined_runs import joined_run_findings, joined_run_notes
from fablint.analyse.other_questions.nic_kind_notes import nic_kind_notes
from fablint.analyse.other_questions.unfit_runs import unfit_runs
from fablint.analyse.other_questions.wiring import wiring_of
from fablint.analyse.phrasing import is_resumable, with_possible_steps
from fablint.analyse.settings import Settings
from fablint.model import (
    Coverage,
    Diagnosis,
    Finding,
    FollowUp,
    Note,
    Run,
    State,
    Topology,
)

_REPORTED = {State.FAULT, State.SUSPECT, State.CONFOUNDED}


def diagnose(
    run: Run,
    topology: Topology | None = None,
    settings: Settings | None = None,
    others: Sequence[Finding] = (),
    host_facts: HostFacts | None = None,
    step: Callable[[int, int], None] | None = None,
) -> Diagnosis:
    """Name the components that are slow, with the certainty of each, and what cannot be judged.

    docs/explanation/how-it-decides.md has the method.

    Parameters
    ----------
    run
        The run to judge.
    topology
        Switches and links, which can then be named.
    settings
        Numbers that decide; None: the default ones.
    others
        Findings of other stages (loopback tests, preflight): they localise no fault by themselves, but distinguish
        components in series.
    host_facts
        CPU model, firmware, driver and image of the hosts, which separate populations.
    step
        Function that gets the number of measurements that are judged, and that of all, after each size of a row.

    Returns
    -------
    Diagnosis
        Findings with their state and evidence, notes, and the verdict.
    """
    settings = settings or Settings()
    wiring = wiring_of(run, topology.named_as(run.hosts) if topology is not None else None, settings)
    judged, left_out = judge_run(run, wiring.topology, wiring.placement, settings, others, host_facts or {}, step)
    placement, clearing, settings = judged.placement, judged.clearing, judged.settings
    claims = Claims.of(judged, wiring.misplaced)
    missing = missing_cells(run, placement, others)
    confounders, confounder_notes = confounded(run, placement, [view.sample for view in clearing], settings)
    findings = [*claims.results(judged), *missing.findings, *unfit_runs(placement), *confounders]
    findings += joined_run_findings(run, judged.views, settings.tolerance)
    findings += unreported_findings(clearing, placement, judged.routes, findings, settings, claims.designed)
    of_paths, path_notes = healthy_paths(clearing, placement, findings, settings)
    findings += of_paths
    reported = set(named_hosts([finding for finding in findings if finding.state in _REPORTED], placement).tolist())
    coverage = coverage_of(missing, clearing, placement, judged.routes, settings, findings)
    notes = [
        *notes_of_run(judged),
        *joined_run_notes(run, judged.views, topology),
        *wiring.notes,
        *claims.notes,
        *path_notes,
        *explained_pairs(judged.views, placement, reported, settings, measurable=is_resumable(run)),
        *confounder_notes,
        *rarely_crossed_links(clearing, judged.routes),
        *nic_kind_notes(clearing, placement, settings.tolerance),
        *unmeasured_nics(run, settings),
        *gpu_notes(run, clearing, placement, settings),
        *left_out,
    ]
    return _diagnosis(judged, findings, coverage, notes, claims.follow_ups)


def _diagnosis(
    judged: JudgedRun,
    findings: Sequence[Finding],
    coverage: Coverage,
    notes: Sequence[Note],
    distances: Sequence[FollowUp],
) -> Diagnosis:
    """Decide the verdict, and return it with the measurements that would settle what is open."""
    run, views, settings = judged.run, judged.views, judged.settings
    fits = tuple(view.fit for view in views)
    is_judged = bool(coverage.hosts_judged) or any(finding.state in _REPORTED for finding in findings)
    is_of_one_host = run.facts.imported is not None and len(run.hosts) == 1  # its user meant to measure a network
    possible = {"complete": judged.is_complete, "has_all_partners": all(view.has_all_partners for view in views)}
    damages = damages_of(findings, run, judged.placement, judged.routes, fits)
    findings = [
        with_possible_steps(finding, run, **possible).model_copy(update={"damage": damage} if damage else None)
        for finding, damage in zip(findings, damages, strict=True)
    ]
    return Diagnosis(
        verdict_of(
            findings,
            coverage,
            complete=bool(judged.clearing) and judged.is_complete and not is_of_one_host,
            limits=limits_of(judged.clearing, settings),
            notes=tuple(notes),
            not_judged="" if is_judged else why_not_judged(judged, coverage),
        ),
        fits=fits,
        topology=judged.topology,
        settings=asdict(settings),
        **vars(ProposedMeasurements.of(judged, distances)),
    )
