"""Findings from the detections and candidates of the views: one per component, with the evidence of every view."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from fablint.analyse.explain.ambiguity import GroupMember
from fablint.analyse.explain.circumstances import ENDPOINT_KINDS
from fablint.analyse.explain.search import Detection
from fablint.analyse.explain.view import ViewResult
from fablint.analyse.findings.alpha_beta import explain
from fablint.analyse.findings.detection_text import detection_evidence, relative, relative_interval, seen_in
from fablint.analyse.findings.paths.pair_routes import slow_routes
from fablint.analyse.findings.paths.uplinks import cables_of
from fablint.analyse.phrasing import next_step
from fablint.analyse.settings import FEWEST_VALUES, GEOMETRY_S, NEARLY_ALL, Settings
from fablint.model import ComponentRef, Direction, EvidenceRecord, Finding, Placement, State
from fablint.model.arrays import Codes
from fablint.model.component import cause, in_series
from fablint.model.registry import is_duplex
from fablint.model.verdict import Action
from fablint.text import actions as advise, evidence as seen
from fablint.topology.routing import Routes

Charge = tuple[ViewResult, Detection]


def detected_findings(
    views: Sequence[ViewResult],
    placement: Placement,
    routes: Routes | None = None,
    peer_copies: frozenset[str] = frozenset(),
) -> list[Finding]:
    """Findings for the faulty components, those with the largest loss first.

    `peer_copies` are the names of rows of copies between the GPUs of a host: no CPU moves the bytes, so that a slow GPU
    is a fault although all ranks share the CPUs of one host.
    """
    cases: dict[tuple[str, ComponentRef], list[Charge]] = defaultdict(list)
    for view in views:
        for detection in view.detections:
            if not _of_a_slower_switch(detection, view, placement):
                cases[detection.kind, detection.whole].append((view, detection))
    findings = [
        _with_uplinks(_finding(charges, views, placement, peer_copies), charges[0][1], routes)
        for charges in cases.values()
    ]
    return sorted(findings, key=lambda finding: -abs(finding.effect or 0))


def _of_a_slower_switch(detection: Detection, view: ViewResult, placement: Placement) -> bool:
    """Tell whether a cable or host at a switch is at fault and loses as much. Few pairs may not show one direction."""
    if detection.kind in ("host", "nic"):
        codes = np.unique(placement.switch[detection.ranks])
        ends = [placement.switches[code] for code in codes if code >= 0]
        most = view.host_tolerance  # a host may differ by that from the others of its switch
    else:
        ends, most = sorted(detection.whole.nodes) if detection.kind == "cable" else [], 0.0
    return any(
        case.kind == "switch" and case.name in ends and case.loss[1] + most >= detection.loss[1]
        for case in view.detections
    )


def _finding(
    charges: list[Charge], views: Sequence[ViewResult], placement: Placement, peer_copies: frozenset[str]
) -> Finding:
    """One finding for one component. Views of one direction show its direction; the largest loss is quoted."""
    view, main = max(charges, key=lambda charge: charge[1].loss[1])
    informative = [detection for judged, detection in charges if judged.one_way]
    sides = {side for detection in informative for side in detection.sides}
    direction: Direction | None = (
        None if not informative else "both" if len(sides) == 2 else "rx" if 1 in sides else "tx"
    )
    component = main.component(direction)
    isolated = _partners_in_isolation(charges, views, placement)
    state = State.CONFOUNDED if isolated else _state(charges, placement, peer_copies)
    effect, interval = relative_interval(main.loss, view.quantity)
    ambiguity_group = _common_alternatives(charges)
    evidence = [one for charge in charges for one in detection_evidence(*charge)]
    if not informative:
        evidence.append(seen.no_direction())
    if state is State.CONFOUNDED and main.kind not in ENDPOINT_KINDS and _is_geometry(view, main):
        evidence.append(seen.longer_path(view.added_s(main) * 1e9))
    evidence += [*_slopes(charges, views), *_only_at_once(charges, views)]
    evidence += [seen.fast_in_isolation(isolated)] if isolated else []
    if state is State.SUSPECT and all(detection.usual for _, detection in charges):
        evidence.append(seen.heterogeneous_hosts())
    if main.kind == "uplinks":
        evidence.insert(0, seen.slow_uplinks())
    if main.kind == "rank":
        evidence.insert(0, seen.single_rank(main.whole.ends[0].rank))
    return Finding(
        state=state,
        components=(component,),
        direction=direction if _has_sides(component, placement) else None,
        quantity=view.quantity,
        effect=effect,
        interval=interval,
        evidence=tuple(evidence),
        ambiguity_group=(*_in_series(main, placement), *ambiguity_group, *_load_of_others(main)),
        log10_e=round(max(detection.log_e for _, detection in charges) / math.log(10), 1),
        next_step=advise.measure_component(component) if isolated else _next_step(state, component),
    )


def _with_uplinks(finding: Finding, detection: Detection, routes: Routes | None) -> Finding:
    """Name the declared cables of a switch whose uplinks are slow: which of them a message crosses is not known."""
    if detection.kind != "uplinks":
        return finding
    switch = detection.whole
    cables = cables_of(switch.nodes, routes)[switch.label] if routes is not None else ()
    others = sorted(set().union(*(cable.nodes for cable in cables)) - switch.nodes)
    unnamed, *group = finding.ambiguity_group
    named = ComponentRef.of("cable", switch.label, others) if others else unnamed
    next_step = advise.inspect_uplinks(switch) if finding.state is State.FAULT else finding.next_step
    return finding.model_copy(update={"ambiguity_group": (named, *group), "next_step": next_step})


def _load_of_others(main: Detection) -> tuple[ComponentRef, ...]:
    """Return the load of other jobs, which slows cables and switches for a share of the time as faults of them do."""
    count = main.share
    if count is None or main.kind in ENDPOINT_KINDS or count.slow >= NEARLY_ALL * count.measured:
        return ()
    return (cause("other jobs that load it now and then"),)


def _partners_in_isolation(charges: Sequence[Charge], views: Sequence[ViewResult], placement: Placement) -> int:
    """Return the number of partners with which isolated measurements show that a host or NIC is as fast as others.

    0 if there are none, too few, or if its upper bound in them is a loss beyond the tolerance. Of rows that several
    pairs share at a time, the load may be the cause.
    """
    if charges[0][1].kind not in ("host", "nic") or any(view.isolates for view, _ in charges):
        return 0
    ranks = np.unique(np.concatenate([detection.ranks for _, detection in charges]))
    quantities = {view.quantity for view, _ in charges}
    partners = []
    for view in views:
        if view.isolates and view.quantity in quantities:
            count = int(view.nic_partners[placement.nic_or_host[ranks]].min())
            upper = view.bounds[2, ranks]
            is_fast = not np.isnan(upper).any() and bool((upper <= view.host_tolerance).all())
            partners.append(count if is_fast and count >= FEWEST_VALUES else 0)
    return min(partners, default=0)


def _has_sides(component: ComponentRef, placement: Placement) -> bool:
    """Tell whether the component sends and receives. A link has one direction by its name, a switch without hosts
    none.
    """
    return component.kind != "link" and (component.kind != "switch" or component.label in placement.switches)


def _slopes(charges: list[Charge], views: Sequence[ViewResult]) -> list[EvidenceRecord]:
    """Return for each row with several sizes whether the message takes longer, or the byte."""
    slopes = []
    for row in dict.fromkeys(view.row for view, _ in charges):
        sizes = [view for view in views if view.row == row and view.fit.class_time]
        loss = {view.size: case.loss for view, case in charges if view.row == row}
        losses = [loss.get(view.size) or _bounds(view, charges[0][1].ranks) for view in sizes]
        healthy = [float(np.median(list(view.fit.class_time.values()))) for view in sizes]
        lower, middle, upper = np.array(losses).T
        slope = explain([view.size for view in sizes], healthy, middle, (lower, upper))
        if slope is not None:
            slopes.append(slope.evidence(row))
    return slopes


def _bounds(view: ViewResult, ranks: Codes) -> tuple[float, float, float]:
    """Bounds of the loss of a component that a view did not detect, from its ranks."""
    with np.errstate(all="ignore"):
        lower, middle, upper = np.median(view.bounds[:, ranks], axis=1).tolist()
    return lower, middle, upper


def _only_at_once(charges: list[Charge], views: Sequence[ViewResult]) -> list[EvidenceRecord]:
    """Return evidence of a loss only while both directions are busy, if streams of one direction were measured too."""
    if not all(is_duplex(view.fit.kernel) for view, _ in charges):
        return []
    if not any(view.one_way for view in views):
        return []
    return [seen.duplex_only()]


def _common_alternatives(charges: list[Charge]) -> tuple[ComponentRef, ...]:
    """Components that no view distinguishes from the faulty one: pairs that only one view has split a class."""
    by_view: dict[int, list[GroupMember]] = defaultdict(list)
    for view, detection in charges:  # both links of a cable may be detections of their own
        by_view[id(view)] += detection.ambiguity_group.all
    first, *others = ([*_both_directions(ambiguity_group)] for ambiguity_group in by_view.values())
    return tuple(fromkey for fromkey in dict.fromkeys(first) if all(fromkey in members for members in others))


def _both_directions(ambiguity_group: Sequence[GroupMember]) -> Iterator[ComponentRef]:
    """The components; of both links of a cable the cable."""
    there = {member.number for member in ambiguity_group if member.component == "link"}
    for member in ambiguity_group:
        if member.component != "link" or member.number ^ 1 not in there:
            yield member.reference
        elif member.number % 2 == 0:
            yield ComponentRef.of("cable", *member.reference.ends)


def _state(charges: list[Charge], placement: Placement, peer_copies: frozenset[str]) -> State:
    """FAULT, unless something else than the fabric explains it as well."""
    ranks = np.unique(np.concatenate([detection.ranks for _, detection in charges]))
    shares_cpus = len(placement.hosts) == 1 and not all(view.row in peer_copies for view, _ in charges)
    if shares_cpus or placement.oversubscribed[placement.host[ranks]].mean() > 0.5:
        return State.CONFOUNDED
    if charges[0][1].kind == "rank":
        return State.SUSPECT
    if all(np.isin(detection.ranks, view.hubs).any() for view, detection in charges):
        return State.SUSPECT  # everybody's partner: its load is the pattern's
    if charges[0][1].kind not in ENDPOINT_KINDS:
        charges = [charge for charge in charges if not _is_geometry(*charge)]
        if not charges:
            return State.CONFOUNDED
    if not any(detection.lasting for _, detection in charges):
        return State.SUSPECT  # another job's traffic does the same, until a later measurement confirms it
    if all(detection.usual for _, detection in charges):
        return State.SUSPECT
    return State.FAULT


def _is_geometry(view: ViewResult, detection: Detection) -> bool:
    """Tell whether it is a latency that a longer cable or more switches add. That is design until bandwidth is lost as
    well.
    """
    if view.quantity != "latency" or detection.share is not None:
        return False
    return view.added_s(detection) <= (view.geometry_s if detection.kind == "cable" else GEOMETRY_S)


def _in_series(detection: Detection, placement: Placement) -> tuple[ComponentRef, ...]:
    """Components that every message of the faulty component crosses as well."""
    ends, component = detection.whole.ends, ComponentRef.of
    if detection.kind == "cable":
        return (component("port", *ends), component("port", *ends[::-1]))
    if detection.kind in ("uplinks", "switch", "group"):
        return (component("cable", *ends, title="uplinks" if detection.kind == "uplinks" else "all cables"),)
    if detection.kind == "rank":
        return (component("host", *ends, title="CPU cores"), component("nic", *ends, title="NIC"))
    if detection.kind == "gpu":
        return (component("gpu", *ends, title="PCIe slot"),)
    (host,) = ends[0].nodes
    gpus = _only_gpu(detection, placement)
    switches = np.unique(placement.switch[detection.ranks])
    switch = int(switches[0])
    if switches.size > 1:  # no cable and no port is crossed by all of its messages
        return (*gpus, component("nic", host, title="NIC")) if detection.kind == "host" else gpus
    if switch < 0:
        nic, *others = in_series(host)
        return (*gpus, nic, *others) if detection.kind == "host" else (*gpus, *others)
    behind = placement.switches[switch]
    nics = (component("nic", host, title="NIC"),) if detection.kind == "host" else ()
    alone = np.unique(placement.host[placement.switch == switch]).size == 1
    return (
        *gpus,
        *nics,
        component("cable", host, behind),
        component("port", behind, host),
        *((component("switch", behind),) if alone else ()),
    )


def _only_gpu(detection: Detection, placement: Placement) -> tuple[ComponentRef, ...]:
    """The GPU of the ranks of a host or NIC, if they have one and the same."""
    gpus = np.unique(placement.gpu[detection.ranks]) if placement.gpus else np.empty(0, np.int64)
    if gpus.size != 1 or gpus[0] < 0:
        return ()
    return (ComponentRef.device("gpu", placement.gpus[gpus[0]]),)


def _next_step(state: State, component: ComponentRef) -> tuple[Action, ...]:
    if state is State.CONFOUNDED and component.kind in ("link", "cable", "switch", "group"):
        return advise.compare_path_lengths(component)
    if state is State.CONFOUNDED:
        return advise.measure_own_cpus()
    if state is State.SUSPECT:
        return advise.measure_more_partners_of(component)
    return next_step(component)


def suspected(
    views: Sequence[ViewResult], placement: Placement, reported_findings: Sequence[Finding], settings: Settings
) -> list[Finding]:
    """Parts and routes to be retested. `reported_findings` are those of the components."""
    if len(placement.hosts) == 1:
        return []
    findings: list[Finding] = []
    named = {component for finding in reported_findings for component in finding.components}
    reported = set(named_hosts(reported_findings, placement).tolist())
    for view in views:
        for case in view.candidates:
            component = case.component()
            if component in named or (case.kind in ENDPOINT_KINDS and reported & set(placement.host[case.ranks])):
                continue
            named.add(component)
            findings.append(_suspect_part(view, case, component))
            reported |= set(named_hosts(findings[-1:], placement).tolist())
        for host, loss in view.slow_hosts:
            if host not in reported:
                reported.add(host)
                findings.append(_suspect_host(view, host, loss, placement))
    return findings + slow_routes(views, placement, reported, settings)


def named_hosts(findings: Sequence[Finding], placement: Placement) -> Codes:
    """Hosts that findings are about."""
    codes = {name: code for code, name in enumerate(placement.hosts)}
    names = [name for finding in findings if finding.component in ("host", "nic") for name in finding.hosts]
    return np.array([codes[name] for name in names if name in codes], dtype=np.int64)


def _suspect_part(view: ViewResult, case: Detection, component: ComponentRef) -> Finding:
    effect, interval = relative_interval(case.loss, view.quantity)
    return Finding(
        state=State.SUSPECT,
        components=(component,),
        quantity=view.quantity,
        effect=effect,
        interval=interval,
        log10_e=round(case.log_e / math.log(10), 1),
        evidence=(*detection_evidence(view, case), seen.weak()),
        ambiguity_group=case.ambiguity_group.references,
        next_step=_next_step(State.SUSPECT, component),
    )


def _suspect_host(view: ViewResult, host: int, loss: float, placement: Placement) -> Finding:
    component = ComponentRef.of("host", placement.hosts[host])
    state = State.CONFOUNDED if placement.oversubscribed[host] else State.SUSPECT
    return Finding(
        state=state,
        components=(component,),
        quantity=view.quantity,
        effect=relative(loss, view.quantity),
        evidence=(seen_in(view, seen.weak_host()),),
        next_step=_next_step(state, component),
    )
