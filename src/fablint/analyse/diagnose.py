"""The judgement of a whole run: every size of every row is a view; the views together give one verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace

import numpy as np

from fablint.analyse.damage import with_damage
from fablint.analyse.decide import verdict_of
from fablint.analyse.explain.outlier_pairs import SlowPair
from fablint.analyse.explain.view import ViewResult, judge_view
from fablint.analyse.explain.view_search import View
from fablint.analyse.finding_steps import JudgedRun, other_measurements, slow_components, slow_paths, with_unreported
from fablint.analyse.findings.detection_text import seen_in
from fablint.analyse.findings.healthy import rarely_crossed_links
from fablint.analyse.findings.missing.missing_cells import missing_cells
from fablint.analyse.findings.missing.run_coverage import coverage_of
from fablint.analyse.findings.missing.unmeasured_nics import unmeasured_nics
from fablint.analyse.findings.paths.pair_routes import moments_of_load
from fablint.analyse.findings.retransmissions import retransmissions
from fablint.analyse.null_model.recorded_facts import HostFacts, facts_of
from fablint.analyse.observations.samples import select_usable_rows
from fablint.analyse.other_questions.gpu_coverage import gpu_notes
from fablint.analyse.other_questions.miswiring import shortest_round_trips, verify
from fablint.analyse.other_questions.nic_kind_notes import nic_kind_notes
from fablint.analyse.other_questions.topology_inference import infer_topology
from fablint.analyse.phrasing import (
    is_resumable,
    unfinished,
    with_possible_steps,
    without_more_partners,
)
from fablint.analyse.settings import Settings
from fablint.model import (
    ComponentRef,
    Coverage,
    Diagnosis,
    Finding,
    FollowUp,
    Limits,
    Note,
    Placement,
    Run,
    State,
    Topology,
)
from fablint.model.registry import TRANSPORTS
from fablint.text import actions as advise, evidence as seen, notes as noted
from fablint.topology.routing import routes_of

MOST_INFERRED = 5000  # hosts whose switches are inferred
_REPORTED = {State.FAULT, State.SUSPECT, State.CONFOUNDED}
MANY_CULPRITS = 3  # from which they may have a part in common that only a topology names


def diagnose(
    run: Run,
    topology: Topology | None = None,
    settings: Settings | None = None,
    others: Sequence[Finding] = (),
    host_facts: HostFacts | None = None,
) -> Diagnosis:
    """Name the parts that are slow, say how sure that is, and what could not be judged.

    `topology` adds switches and links to the parts that can be named. `others` are findings of other stages (loopback
    tests, preflight): they localise no fault by themselves, but distinguish components in series. `host_facts` (CPU
    model, firmware, driver, image) say what separates populations of hosts. docs/explanation/how-it-decides.md has the
    method.
    """
    topology = topology.named_as(run.hosts) if topology is not None else None
    topology, misplaced, wiring_notes = _wiring(run, topology, settings or Settings())
    judged, left_out = _judge_views(run, topology, settings or Settings(), others, host_facts or {})
    findings, geometry = slow_components(judged, misplaced)
    findings, paths, designed = slow_paths(judged, findings)
    findings = other_measurements(judged, findings)
    missing = missing_cells(run, judged.placement, others)
    findings += [*missing.findings, *_circumstances(judged.placement)]
    findings, path_notes, confounder_notes = with_unreported(judged, findings, designed)
    coverage = coverage_of(missing, judged.clearing, judged.placement, judged.routes, judged.settings, findings)
    notes = [
        *_notes(run, judged.views, judged.placement, judged.topology),
        *wiring_notes,
        *paths.notes,
        *path_notes,
        *moments_of_load(judged.views, judged.placement, measurable=is_resumable(run)),
        *geometry,
        *designed.notes,
        *confounder_notes,
        *judged.resent.notes,
        *rarely_crossed_links(judged.clearing, judged.routes),
        *nic_kind_notes(judged.clearing, judged.placement, judged.settings.tolerance),
        *unmeasured_nics(run, judged.settings),
        *gpu_notes(run, judged.clearing, judged.placement, judged.settings),
        *left_out,
    ]
    return _diagnosis(judged, findings, coverage, notes, paths.follow_ups)


def _judge_views(
    run: Run, topology: Topology | None, settings: Settings, others: Sequence[Finding], host_facts: HostFacts
) -> tuple[JudgedRun, list[Note]]:
    """Judge each size of each row, and return a note for each row that cannot be judged."""
    placement = Placement.of(run, topology)
    routes = routes_of(topology) if topology and topology.cables and placement.switches else None
    rows, left_out = select_usable_rows(run, placement, settings)
    settings = replace(settings, look=max((1 + len(usable.more) for usable in rows), default=1))
    sizes = [(usable, size) for usable in rows for size in usable.row.sizes]
    declared, facts = topology is not None and not topology.inferred, facts_of(run, placement, host_facts)
    of_sizes = [
        View(usable.flows(size, placement), placement, routes, settings, len(sizes), facts) for usable, size in sizes
    ]
    views = [judge_view(view, declared=declared) for view in of_sizes]
    resent = retransmissions(run, placement, routes, settings)
    peer_copies = _peer_copies(run)
    judged = JudgedRun(run, topology, placement, routes, settings, others, facts, rows, views, resent, peer_copies)
    return judged, left_out


def _diagnosis(
    judged: JudgedRun,
    findings: Sequence[Finding],
    coverage: Coverage,
    notes: Sequence[Note],
    distances: Sequence[FollowUp],
) -> Diagnosis:
    """Decide the verdict, and return it with the measurements that would settle what is open."""
    run, views, settings = judged.run, judged.views, judged.settings
    is_complete = _is_complete(run)
    if all(view.has_all_partners for view in views):
        findings = [without_more_partners(finding) for finding in findings]
    findings = [with_possible_steps(finding, run, complete=is_complete) for finding in findings]
    fits = tuple(view.fit for view in views)
    findings = with_damage(findings, run, judged.placement, judged.routes, fits)
    slow_pairs = [pair for view in views for pair in view.slow_pairs]
    is_judged = bool(judged.clearing) or any(finding.state in _REPORTED for finding in findings)
    return Diagnosis(
        verdict_of(
            findings,
            coverage,
            complete=bool(judged.clearing) and is_complete and not _is_imported_of_one_host(run),
            limits=Limits(reported=settings.tolerance, passed=settings.loss_in_scope),
            notes=tuple(notes),
            not_judged="" if is_judged else _not_judged(run),
        ),
        fits=fits,
        topology=judged.topology,
        settings=asdict(settings),
        follow_ups=_once(follow_up for view in views for follow_up in view.follow_ups),
        retests=_once(follow_up for view in views for follow_up in view.retests),
        distances=_once(distances),
        routes=_once(_about_route(pair, judged.placement) for pair in slow_pairs if pair.loss > 0),
    )


def _peer_copies(run: Run) -> frozenset[str]:
    """Names of the rows of copies between the GPUs of a host."""
    within_host = {transport.name for transport in TRANSPORTS.values() if transport.is_within_host}
    return frozenset(row.name for row in run.rows if row.facts.carrier.transport in within_host)


def _is_imported_of_one_host(run: Run) -> bool:
    """Whether another tool measured one host: its user meant to measure a network."""
    return run.facts.imported is not None and len(run.hosts) == 1


def _once(follow_ups: Iterable[FollowUp]) -> tuple[FollowUp, ...]:
    """One follow-up measurement per component: that of the first view that proposes one."""
    found: dict[ComponentRef, FollowUp] = {}
    for follow_up in follow_ups:
        found.setdefault(follow_up.component, follow_up)
    return tuple(found.values())


def _about_route(pair: SlowPair, placement: Placement) -> FollowUp:
    ends = [placement.hosts[placement.host[rank]] for rank in pair.ranks]
    component = ComponentRef.of("route", *(ends if pair.one_way else sorted(ends)), directed=pair.one_way)
    return FollowUp(component, np.array([pair.ranks, pair.ranks[::-1]]))


def _wiring(
    run: Run, topology: Topology | None, settings: Settings
) -> tuple[Topology | None, list[Finding], list[Note]]:
    """The topology to judge by: checked where it was declared, inferred from the times where these show one.

    Hosts that are connected elsewhere than declared have no switch in it and no neighbours to be compared with.
    """
    round_trips = shortest_round_trips(run)
    if round_trips is None or len(run.hosts) < 2:
        return topology, [], []
    if topology is None:
        found = infer_topology(round_trips, Placement.of(run, None)) if len(run.hosts) <= MOST_INFERRED else None
        if found is None:
            return None, [], []
        return found, [], [noted.inferred_switches(len(found.switches), found.source)]
    placement = Placement.of(run, topology)
    misplaced = verify(round_trips, placement, settings)
    names = {finding.name for finding in misplaced}
    if not names:
        return topology, [], []
    hosts = {host: switch for host, switch in topology.host_switch.items() if host not in names}
    nics = {nic: switch for nic, switch in topology.nic_switch.items() if nic.host not in names}
    return replace(topology, host_switch=hosts, nic_switch=nics), misplaced, []


def _circumstances(placement: Placement) -> list[Finding]:
    """What makes the whole run unfit to judge a fabric by."""
    findings = []
    if len(placement.hosts) == 1:
        findings.append(
            Finding(
                state=State.NOT_JUDGED,
                components=(ComponentRef(kind="config", title="one host"),),
                evidence=(seen.one_host(int(placement.host.size), placement.hosts[0]),),
                next_step=advise.measure_more_hosts(4),
            )
        )
    if placement.oversubscribed.any():
        oversubscribed = [placement.hosts[host] for host in np.nonzero(placement.oversubscribed)[0]]
        findings.append(
            Finding(
                state=State.CONFOUNDED,
                components=(ComponentRef(kind="config", title="more ranks than CPUs"),),
                evidence=(seen.oversubscribed(tuple(oversubscribed)),),
                next_step=advise.measure_own_cpus(),
            )
        )
    return findings


def _notes(run: Run, judged: Sequence[ViewResult], placement: Placement, topology: Topology | None) -> list[Note]:
    """What a reader should know, and what this run could not have shown whatever it measured."""
    imported = run.facts.imported
    about_files = [*imported.missing, *imported.remedies] if imported else []
    texts = dict.fromkeys([*run.notes, *about_files, *run.facts.launch.binding.notes])
    notes = [noted.message(text) for text in texts]
    if placement.shared_machines:
        notes.append(noted.shared_machines(run.facts.launch.machines or 0))
    notes += unfinished(run)
    if not topology and any(len(view.detections) >= MANY_CULPRITS for view in judged):
        notes.append(noted.several_faults())
    if not topology and len(placement.hosts) > 1:
        notes.append(noted.no_topology())
    if topology and (unknown := np.unique(placement.host[placement.switch < 0])).size:
        notes.append(noted.unnamed_hosts(tuple(placement.hosts[host] for host in unknown)))
    if topology and len(placement.hosts) > 1:
        compared = {kind for view in judged for kind in view.compared}
        if "switch" not in compared:
            notes.append(noted.few_switches(len(placement.switches)))
        followed = topology.routing.kind not in ("adaptive", "ecmp")
        if topology.cables and "cable" not in compared and followed:
            notes.append(noted.few_cables())
    notes += _contention(judged)
    if topology and topology.routing.kind == "adaptive" and not any(view.link_pairs.any() for view in judged):
        shared = any("histogram" in row.arrays for row in run.rows)
        notes.append(noted.adaptive_shared() if shared else noted.adaptive_unjudged())
    if judged and not any(view.one_way for view in judged) and len(placement.hosts) > 1:
        notes.append(noted.no_streams())
    return notes


def _not_judged(run: Run) -> str:
    """Return why the complete files of another tool allow no judgement; empty where they allow one."""
    reasons = run.facts.imported.not_judged if run.facts.imported else ()
    return "; ".join(reasons) if _is_complete(run) else ""


def _is_complete(run: Run) -> bool:
    states = {run.state, *(row.facts.state for row in run.rows)}
    return states == {"complete"} and not run.damaged


def _contention(judged: Sequence[ViewResult]) -> list[Note]:
    """How much longer pairs took that shared a link with others than those that did not."""
    sharing = [(view, *view.sharing) for view in judged if view.sharing is not None]
    return [seen_in(view, noted.contention(low=float(low), high=float(high))) for view, low, high in sharing]
