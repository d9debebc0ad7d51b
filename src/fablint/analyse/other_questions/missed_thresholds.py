"""A run beside what its site promises: which pairs miss it, and which hosts make them.

Faults are not detected by thresholds but by comparison with peers (`diagnose`). A threshold says what a whole
fabric should reach. A single pair that misses it is a SUSPECT route; a host is at fault
only when most of its partners miss it with that host and there are three or more of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fablint.analyse.concerned import NAMED_STATES
from fablint.analyse.decide import amended
from fablint.analyse.other_questions.additional import with_additional
from fablint.analyse.phrasing import next_step
from fablint.analyse.settings import FEWEST_PEERS, HALF, MOST_HOSTS
from fablint.model import (
    SCOPES,
    ComponentRef,
    Diagnosis,
    Direction,
    EvidenceRecord,
    Finding,
    Note,
    Placement,
    Run,
    Scope,
    State,
)
from fablint.model.arrays import Codes, Floats, Mask
from fablint.model.figures.pair_metrics import PairMetrics, figures_of, joined, reference_rows
from fablint.model.limits.thresholds import Compared, Comparison, Threshold
from fablint.text import actions as advise, evidence as seen, notes as noted, units

MOST_ROUTES = 8  # that are named


def compare(run: Run, thresholds: Sequence[Threshold], diagnosis: Diagnosis) -> Comparison:
    """The pairs of each scope beside the threshold that holds for them: its own, else that for any scope.

    Parameters
    ----------
    run
        What was measured.
    thresholds
        Of the site.
    diagnosis
        Of the run: what it names is not named again.
    """
    if not thresholds:
        return Comparison()
    placement = Placement.of(run, diagnosis.topology)
    compared: list[Compared] = []
    findings: list[Finding] = []
    notes: list[Note] = []
    reported = _NamedComponents.by(diagnosis, run, placement)
    for kernel, size in dict.fromkeys((threshold.kernel, threshold.size) for threshold in thresholds):
        view = _view(
            run,
            [threshold for threshold in thresholds if (threshold.kernel, threshold.size) == (kernel, size)],
            placement,
        )
        if view is None:
            continue
        compared += view.compared
        of_view, notes_of_view = _judged(view, run, placement, reported)
        findings += of_view
        notes += notes_of_view
    used = {one.threshold.source for one in compared}
    notes += [
        noted.unmeasured_threshold(source=item.source, scope=item.scope or "any", kernel=item.kernel, size=item.size)
        for item in thresholds
        if item.source not in used
    ]
    return Comparison(tuple(compared), _each_once(findings), tuple(notes))


def with_comparison(diagnosis: Diagnosis, comparison: Comparison) -> Diagnosis:
    """The diagnosis with the findings of the thresholds: they can turn a pass into a fault, and never the reverse."""
    judged = with_additional(diagnosis, comparison.findings)
    before = diagnosis.comparison or Comparison()
    together = Comparison(
        (*before.compared, *comparison.compared),
        (*before.findings, *comparison.findings),
        (*before.notes, *comparison.notes),
    )
    facts = tuple(one.facts() for one in together.compared)
    verdict = amended(judged.verdict, notes=(*judged.verdict.notes, *comparison.notes), thresholds=facts)
    return replace(judged, verdict=verdict, comparison=together)


# ------------------------------------------------------------------------------------------------ one kernel and size


@dataclass(frozen=True)
class _ThresholdPairs:
    """Pairs of one kernel and size for which a threshold holds."""

    compared: tuple[Compared, ...]
    figures: PairMetrics
    outside: Mask
    ratio: Floats  # of each figure to what is promised

    @property
    def threshold(self) -> Threshold:
        return self.compared[0].threshold


def _view(run: Run, thresholds: Sequence[Threshold], placement: Placement) -> _ThresholdPairs | None:
    """None where none of the pairs was measured."""
    kernel, size = thresholds[0].kernel, thresholds[0].size
    rows = [row for row in reference_rows(run) if row.kernel == kernel and size in row.sizes]
    rows = [row for row in rows if row.purpose != "bisection"]  # whose pairs share the bottleneck on purpose
    parts = [figures_of(row, size, placement) for row in rows]
    if not sum(part.value.size for part in parts):
        return None
    figures = joined(parts).by_pair()
    outside = np.zeros(figures.value.size, dtype=bool)
    promised = np.full(figures.value.size, np.nan)
    compared = []
    of_scope = {threshold.scope: threshold for threshold in thresholds}
    for code in np.unique(figures.scope).tolist():
        threshold = of_scope.get(SCOPES[code]) or of_scope.get(None)
        if threshold is None:
            continue
        in_scope = figures.scope == code
        values = figures.value[in_scope]
        promised[in_scope] = threshold.value
        outside[in_scope] = _outside(values, threshold)
        names = tuple(row.name for row, part in zip(rows, parts, strict=True) if (part.scope == code).any())
        middle = float(np.median(values))
        least, most, missed = float(values.min()), float(values.max()), int(outside[in_scope].sum())
        compared.append(Compared(threshold, SCOPES[code], names, values.size, least, middle, most, missed))
    held = promised > 0
    ratio = figures.value[held] / promised[held]
    return _ThresholdPairs(tuple(compared), figures.where(held), outside[held], ratio) if compared else None


def _outside(values: Floats, threshold: Threshold) -> Mask:
    low = -np.inf if threshold.lowest is None else threshold.lowest
    high = np.inf if threshold.highest is None else threshold.highest
    return (values < low) | (values > high)


def _judged(
    view: _ThresholdPairs, run: Run, placement: Placement, reported: _NamedComponents
) -> tuple[list[Finding], list[Note]]:
    """Findings of hosts, then of whole scopes, then of routes; and a note on those that are not reported one by one."""
    src, dst = (placement.host[ranks] for ranks in (view.figures.src, view.figures.dst))
    explained = np.isin(src, reported.hosts) | np.isin(dst, reported.hosts)
    hosts = _hosts(src, dst, view.outside, _within_healthy_scopes(view, src, dst, ~explained & (src != dst)))
    findings = [_of_host(case, view, run, src, dst) for case in hosts]
    codes = [case.host for case in hosts]
    for named in (codes, reported.suspects):
        explained |= np.isin(src, named) | np.isin(dst, named)
    left = view.outside & ~explained
    for item in view.compared:
        in_scope = (view.figures.scope == SCOPES.index(item.scope)) & ~explained
        missed = int(np.count_nonzero(left & in_scope))
        if missed >= FEWEST_PEERS and 2 * missed > np.count_nonzero(in_scope):
            findings.append(_of_scope(item))
            left &= ~in_scope
        if not item.threshold.single_pairs:
            left &= view.figures.scope != SCOPES.index(item.scope)
    routes = [pair for pair in _pairs(view, run, src, dst, left) if not pair.directions & reported.routes]
    kept = [] if reported.between else routes[:MOST_ROUTES]
    if len(kept) == len(routes):
        return findings + kept, []
    kind = noted.explained_pairs_outside if reported.between else noted.more_pairs_outside
    note = kind(len(routes) - len(kept)).measured_in(view.threshold.kernel, view.threshold.size)
    return findings + kept, [note]


def _within_healthy_scopes(view: _ThresholdPairs, src: Codes, dst: Codes, considered: Mask) -> Mask:
    """Return the pairs that are evidence against hosts: none of a scope whose other pairs miss it too."""
    named = [case.host for case in _hosts(src, dst, view.outside, considered)]
    other = considered & ~np.isin(src, named) & ~np.isin(dst, named)
    for code in np.unique(view.figures.scope[other]).tolist():
        pairs = other & (view.figures.scope == code)
        missed = np.count_nonzero(view.outside & pairs)
        if missed >= FEWEST_PEERS and 2 * missed > np.count_nonzero(pairs):
            considered = considered & (view.figures.scope != code)
    return considered


@dataclass(frozen=True)
class _HostOutsideThreshold:
    """A host that misses the threshold with most of its partners, as sender, receiver or both."""

    host: int
    direction: Direction
    partners: int
    missed: int


def _hosts(src: Codes, dst: Codes, outside: Mask, considered: Mask) -> list[_HostOutsideThreshold]:
    """Hosts that miss the threshold, worst first; pairs that a host explains count for no other. Empty if too many."""
    host_outside_thresholds: list[_HostOutsideThreshold] = []
    live = considered.copy()
    most = min(MOST_HOSTS, np.unique(src[live]).size // 2)
    while len(host_outside_thresholds) <= most:
        cases = [_worst(src, dst, outside, live), _worst(dst, src, outside, live)]
        best = max((case for case in cases if case), key=lambda case: (case[2] / case[1], case[2]), default=None)
        if best is None:
            return host_outside_thresholds
        host, partners, missed = best
        sides = [side for side, case in zip(("tx", "rx"), cases, strict=True) if case and case[0] == host]
        direction: Direction = "both" if len(sides) == 2 else "tx" if sides == ["tx"] else "rx"
        host_outside_thresholds.append(_HostOutsideThreshold(host, direction, partners, missed))
        live &= (src != host) & (dst != host)
    return []


def _worst(host_codes: Codes, other: Codes, outside: Mask, live: Mask) -> tuple[int, int, int] | None:
    """Host, its partners, and with how many of them it is outside: the host with the largest share of its partners."""
    if not live.any():
        return None
    width = int(max(host_codes.max(), other.max())) + 1
    pair = host_codes[live].astype(np.int64) * width + other[live]
    pairs, place, cells = np.unique(pair, return_inverse=True, return_counts=True)
    missed = 2 * np.bincount(place, outside[live], pairs.size) > cells
    partners = np.bincount(pairs // width, minlength=width)
    bad = np.bincount(pairs // width, missed, width)
    share = np.where(partners >= FEWEST_PEERS, bad / np.maximum(partners, 1), 0.0)
    host = int(np.lexsort((bad, share))[-1])
    return (host, int(partners[host]), int(bad[host])) if share[host] > HALF else None


# ------------------------------------------------------------------------------------------------ findings


@dataclass(frozen=True)
class _NamedComponents:
    """What a diagnosis names already."""

    hosts: Codes
    suspects: Codes
    routes: frozenset[tuple[str, str]]  # in both directions
    between: bool  # parts between switches

    @classmethod
    def by(cls, diagnosis: Diagnosis, run: Run, placement: Placement) -> _NamedComponents:
        named = [finding for finding in diagnosis.verdict.findings if finding.state in NAMED_STATES]
        sure = [finding for finding in named if finding.state is not State.SUSPECT]
        hosts = _hosts_named(sure, run)
        faulty = _hosts_and_switches(one for one in sure if one.component in ("switch", "group"))
        for container, codes in ((placement.switches, placement.switch), (placement.groups, placement.group)):
            within = [code for code, name in enumerate(container) if name in faulty]
            hosts = np.union1d(hosts, placement.host[np.isin(codes, within)])
        routes = frozenset().union(*(one.directions for one in named if one.component == "route"))
        both = routes | {(b, a) for a, b in routes}
        links = [one for one in sure if one.component in ("link", "cable", "switch")]
        between = any(not link.nodes & set(run.hosts) for link in links)
        return cls(hosts, _hosts_named(named, run), both, between)


def _hosts_named(findings: Sequence[Finding], run: Run) -> Codes:
    names = _hosts_and_switches(findings)
    return np.array([code for code, host in enumerate(run.hosts) if host in names], dtype=np.int64)


def _hosts_and_switches(findings: Iterable[Finding]) -> frozenset[str]:
    """Return the hosts and switches of findings, without those at the ends of routes."""
    return frozenset().union(*(finding.nodes for finding in findings if finding.component not in ("route", "config")))


def _of_host(case: _HostOutsideThreshold, view: _ThresholdPairs, run: Run, src: Codes, dst: Codes) -> Finding:
    sends, receives = src == case.host, dst == case.host
    of_host = {"tx": sends, "rx": receives, "both": sends | receives}[case.direction]
    middle = float(np.median(view.figures.value[of_host & view.outside]))
    threshold = next(one for one in view.compared if (view.figures.scope[of_host] == SCOPES.index(one.scope)).any())
    direction = case.direction if view.threshold.quantity == "bandwidth" else None
    evidence = seen.host_misses(**_fields(threshold), median=middle, missed=case.missed, partners=case.partners)
    effect = float(np.median(view.ratio[of_host & view.outside])) - 1.0
    finding = _finding(State.FAULT, ComponentRef.of("host", run.hosts[case.host]), view, effect, evidence)
    return finding.model_copy(update={"direction": direction})


def _of_scope(item: Compared) -> Finding:
    """Most pairs of a scope miss it: no single component is faulty, and the verdict is not a pass."""
    return Finding(
        state=State.FAULT,
        components=(ComponentRef(kind="config", title=_name(item.scope, item.threshold)),),
        quantity=item.threshold.quantity,
        effect=item.median / item.threshold.value - 1.0,
        evidence=(seen.scope_misses(**_fields(item), median=item.median, outside=item.outside, pairs=item.pairs),),
        next_step=advise.compare_threshold(),
    )


def _pairs(view: _ThresholdPairs, run: Run, src: Codes, dst: Codes, left: Mask) -> list[Finding]:
    """Pairs of hosts by their worse direction, the farthest from the threshold first; a host of its own by itself."""
    worst: dict[tuple[int, int], int] = {}
    away = np.abs(np.log(view.ratio))
    for cell in np.flatnonzero(left)[np.argsort(-away[left], kind="stable")].tolist():
        a, b = sorted((int(src[cell]), int(dst[cell])))
        worst.setdefault((a, b), cell)
    pairs = []
    for (a, b), cell in worst.items():
        item = next(one for one in view.compared if SCOPES.index(one.scope) == view.figures.scope[cell])
        value = float(view.figures.value[cell])
        evidence = seen.pair_misses(**_fields(item), value=value)
        ends = run.hosts[src[cell]], run.hosts[dst[cell]]
        component = ComponentRef.of("host", ends[0]) if a == b else ComponentRef.of("route", *ends, directed=True)
        pairs.append(_finding(State.SUSPECT, component, view, float(view.ratio[cell]) - 1.0, evidence))
    return pairs


def _finding(
    state: State, component: ComponentRef, view: _ThresholdPairs, effect: float, evidence: EvidenceRecord
) -> Finding:
    return Finding(
        state=state,
        components=(component,),
        quantity=view.threshold.quantity,
        effect=effect,
        evidence=(evidence.measured_in(view.threshold.kernel, view.threshold.size),),
        next_step=next_step(component),
    )


def _each_once(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """One finding for each part: the worst, with the evidence of the others."""
    each_once: dict[tuple[ComponentRef, ...], Finding] = {}
    for finding in findings:
        key = finding.components
        if key in each_once:
            both = (*each_once[key].evidence, *finding.evidence)
            finding = each_once[key].model_copy(update={"evidence": both})
        each_once[key] = finding
    return tuple(each_once.values())


def _name(scope: Scope | None, threshold: Threshold) -> str:
    """`edge bandwidth 1 MiB`."""
    return f"{scope or 'any'} {threshold.kernel} {units.size(threshold.size)}"


def _fields(compared: Compared) -> seen.ThresholdFields:
    """Return what evidence says of a threshold and of its pairs."""
    threshold = compared.threshold
    return {
        "scope": str(compared.scope),
        "quantity": threshold.quantity,
        "lowest": threshold.lowest,
        "highest": threshold.highest,
        "source": threshold.source,
    }
