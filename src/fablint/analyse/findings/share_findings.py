"""Components that may be slow for a share of the time, and slow pairs that no component explains, as findings.

A component that was slow in one period only, and fast after it, is NOT JUDGED: load of that period looks the same. One
whose unrelated pairs were slow at the same times is CONFOUNDED. All others are SUSPECT, and never a pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from fablint.analyse.explain.shares.slow_shares import SlowShare
from fablint.analyse.explain.view import ViewResult
from fablint.analyse.findings.detection_text import detection_evidence, relative, relative_interval, seen_in
from fablint.analyse.findings.paths.slow_paths_claimed import SlowPaths
from fablint.analyse.phrasing import next_step
from fablint.analyse.settings import Settings
from fablint.model import ComponentRef, Finding, Placement, State
from fablint.model.component import cause
from fablint.model.verdict import Action
from fablint.text import actions as advise, evidence as seen
from fablint.topology.routing import Routes

ENDED = frozenset({"until", "between"})  # times of slowness after which the component was fast


def slow_shares(
    views: Sequence[ViewResult], placement: Placement, reported_findings: Sequence[Finding], routes: Routes | None
) -> list[Finding]:
    """Return one finding for each component that no other finding (`reported_findings`) is about.

    None whose slow measurements cross, nearly all, a cable or switch that another finding names.
    """
    slow_paths = SlowPaths.of(reported_findings, {State.FAULT, State.SUSPECT}, {}, routes)
    named = {component for finding in reported_findings for component in finding.components}
    hosts = {host for finding in reported_findings if finding.component in ("host", "nic") for host in finding.hosts}
    findings: dict[ComponentRef, Finding] = {}
    for view in views:
        for share in view.shares:
            component = share.detection.component()
            ends = set(component.hosts)
            codes = [code for code, host in enumerate(placement.hosts) if host in ends]
            if component in named or component in findings or ends & hosts or placement.oversubscribed[codes].any():
                continue
            if view.quantity != "bandwidth" or not slow_paths.cause_most(share.slow_ends, placement):
                findings[component] = _finding(view, share)
    return list(findings.values())


def _finding(view: ViewResult, share: SlowShare) -> Finding:
    case, when, same_time = share.detection, share.when, share.evidence.explained_by
    component = case.component()
    has_ended = when is not None and when.kind in ENDED
    times = [seen.period_of_load()] if has_ended else []
    if same_time is not None and not has_ended:
        times.append(seen.others_slow_then(same_time.share))
    is_explained = same_time is not None and not has_ended
    state = State.NOT_JUDGED if has_ended else State.CONFOUNDED if is_explained else State.SUSPECT
    effect, interval = relative_interval(case.loss, view.quantity)
    return Finding(
        state=state,
        components=(component,),
        direction=share.candidate.direction if component.kind in ("host", "nic") else None,
        quantity=view.quantity,
        effect=effect,
        interval=interval,
        log10_e=round(case.log_e / math.log(10), 1),
        evidence=(*detection_evidence(view, case), *times, *(share.doubts if state is State.SUSPECT else ())),
        ambiguity_group=(
            *case.ambiguity_group.references,
            *((cause("another load at that time"),) if is_explained else ()),
        ),
        next_step=_next_step(share, component),
    )


def _next_step(share: SlowShare, component: ComponentRef) -> tuple[Action, ...]:
    kind = share.candidate.kind
    if kind == "exits":
        return advise.read_exit_drops(ComponentRef.of("switch", component.ends[0]))
    return advise.measure_component(component) if kind in ("host", "nic") else next_step(component)


def second_modes(views: Sequence[ViewResult], placement: Placement, settings: Settings) -> list[Finding]:
    """Return one finding if the slow pairs that nothing explains are a second mode of the pairs of a view.

    Pairs that are slower by no more than a component that passes may be are no finding.
    """
    modes = [
        (view, mode)
        for view in views
        if (mode := view.second_mode) and abs(relative(mode.loss, view.quantity)) > settings.loss_in_scope
    ]
    if len(placement.hosts) == 1 or not modes:
        return []
    view, mode = modes[0]
    component = ComponentRef(kind="route", title="pairs of hosts")
    unexplained = seen.unexplained_pairs(mode.slow, mode.pairs, mode.slow / mode.pairs)
    return [
        Finding(
            state=State.SUSPECT,
            components=(component,),
            quantity=view.quantity,
            effect=relative(mode.loss, view.quantity),
            evidence=(seen_in(view, unexplained),),
            next_step=next_step(component),
        )
    ]
