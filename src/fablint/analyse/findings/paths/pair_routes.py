"""Findings about single pairs of hosts: slow routes, and pairs that are faster than all others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from fablint.analyse.explain.outlier_pairs import SlowPair
from fablint.analyse.explain.view import ViewResult
from fablint.analyse.findings.common_causes import CommonCause
from fablint.analyse.findings.detection_text import relative, seen_in
from fablint.analyse.findings.paths.pair_moments import ends_of, slow_at_two_times
from fablint.analyse.phrasing import next_step
from fablint.analyse.settings import Settings
from fablint.model import ComponentRef, EvidenceRecord, Finding, Note, Placement, State
from fablint.model.component import cause
from fablint.text import actions as advise, evidence as seen, notes as noted
from fablint.topology.routing import Routes

_Sides = tuple[Sequence[int], Sequence[int]]  # codes of the hosts at both sides of slow pairs

MEDIAN_SHARE = 0.4  # of the messages of a pair: so many on a slow link can make the median of its messages slow
MOST_NAMED = 6  # pairs in the name of a finding


def slow_routes(
    views: Sequence[ViewResult], placement: Placement, reported: set[int], settings: Settings
) -> list[Finding]:
    """Slow pairs that no part explains, folded where a set of hosts is slow with the same other hosts.

    A pair is CONFOUNDED if its time explains it in each view that shows it, else SUSPECT. A pair or direction that was
    slow in one moment only is NOT JUDGED: a moment of load looks the same. A direction that moments of load of the run
    explain has a note (`moments_of_load`) and no finding, and so have pairs of a host with too many slow pairs.

    `reported`: codes of the hosts that other findings are about.
    """
    repeated = slow_at_two_times(views, placement, settings.route_rate)
    both: dict[tuple[int, int], tuple[SlowPair, ViewResult]] = {}
    one_way: dict[tuple[int, int], tuple[SlowPair, ViewResult]] = {}
    for view in views:
        hosts_of_shares = {share.candidate.number for share in view.shares if share.candidate.kind == "host"}
        for pair in view.slow_pairs:
            a, b = (int(placement.host[rank]) for rank in pair.ranks)
            if a in reported or b in reported or placement.oversubscribed[[a, b]].any() or pair.loss < 0:
                continue
            if _is_moment_of_load(pair) or (pair.once and not hosts_of_shares.isdisjoint((a, b))):
                continue
            known, ends = (one_way, (a, b)) if pair.one_way else (both, ends_of(pair.ranks, placement))
            if not pair.one_way and ends in repeated:
                pair = replace(pair, once=False)
            if ends not in known or _weight(pair) > _weight(known[ends][0]):
                known[ends] = pair, view
    findings = [
        _unidirectional_route(view, pair, placement)
        for ends, (pair, view) in one_way.items()
        if (min(ends), max(ends)) not in both
    ]
    for state in (State.SUSPECT, State.NOT_JUDGED, State.CONFOUNDED):
        ends_of_state = [ends for ends, (pair, _) in both.items() if _state(pair) is state]
        blocks = [
            (sides, [both[ends] for ends in ends_of_state if ends[0] in sides[0] and ends[1] in sides[1]])
            for sides in _blocks(ends_of_state)
        ]
        if state is State.SUSPECT or len(blocks) < 2:
            findings += [_bidirectional_route(inside, sides, placement) for sides, inside in blocks]
        else:
            findings.append(_routes_of_bursts(blocks, placement))
    return findings + _faster(views, placement)


def moments_of_load(views: Sequence[ViewResult], placement: Placement, *, measurable: bool) -> list[Note]:
    """Notes on directions that moments of load explain: most are slow in their only measurement.

    Where fablint can measure (`measurable`: neither a simulated fabric nor files of another tool) they say how.
    """
    notes = []
    for view in views:
        pairs = [pair for pair in view.slow_pairs if _is_moment_of_load(pair)]
        names = [">".join(placement.hosts[placement.host[rank]] for rank in pair.ranks) for pair in pairs]
        effects = [relative(pair.loss, view.quantity) for pair in pairs]
        if pairs:
            note = noted.moments_of_load(
                directions=len(pairs),
                pairs=tuple(names[:MOST_NAMED]),
                effects=tuple(effects[:MOST_NAMED]),
                measurable=measurable,
            )
            notes.append(seen_in(view, note))
    return notes


def _is_moment_of_load(pair: SlowPair) -> bool:
    """Return whether moments of load explain a slow direction, which no load of others at its time does."""
    return pair.moments > 0 and pair.loss > 0 and pair.meanwhile is None


def _weight(pair: SlowPair) -> tuple[bool, bool, float]:
    """Sort key of the results of several views about one pair: one that no other cause explains counts first."""
    return pair.meanwhile is None, not pair.once, pair.loss


def _state(pair: SlowPair) -> State:
    """SUSPECT, unless the time of its measurement, or the load of others, may explain a slow pair."""
    if pair.meanwhile is not None:
        return State.CONFOUNDED
    return State.NOT_JUDGED if pair.beside or pair.once else State.SUSPECT


def _bidirectional_route(pairs: Sequence[tuple[SlowPair, ViewResult]], sides: _Sides, placement: Placement) -> Finding:
    """The finding about all pairs between two sets of hosts, which the slowest of them represents."""
    slowest, view = max(pairs, key=lambda found: found[0].loss)
    component = ComponentRef.of("route", *([placement.hosts[host] for host in side] for side in sides))
    kind = seen.slow_block_once if _state(slowest) is State.NOT_JUDGED else seen.slow_block
    evidence = seen_in(view, kind(len(pairs), len(sides[0]) * len(sides[1])))
    return Finding(
        components=(component,),
        quantity=view.quantity,
        effect=relative(slowest.loss, view.quantity),
        next_step=next_step(component),
        **_cause(slowest, view, evidence),
    )


def _routes_of_bursts(
    blocks: Sequence[tuple[_Sides, Sequence[tuple[SlowPair, ViewResult]]]], placement: Placement
) -> Finding:
    """One finding about the pairs of several blocks, slow in one moment each or while others were slow.

    A burst of load slows many pairs: each of them would be a finding of its own.
    """
    components = tuple(
        ComponentRef.of("route", *([placement.hosts[host] for host in side] for side in sides)) for sides, _ in blocks
    )
    pairs = sorted((found for _, inside in blocks for found in inside), key=lambda found: -found[0].loss)
    slowest, view = pairs[0]
    names = ["=".join(placement.hosts[placement.host[rank]] for rank in pair.ranks) for pair, _ in pairs[:MOST_NAMED]]
    effects = [relative(pair.loss, of.quantity) for pair, of in pairs[:MOST_NAMED]]
    shown = ", ".join(f"{name} {effect:+.0%}" for name, effect in zip(names, effects, strict=True))
    shown += ", ..." if len(pairs) > MOST_NAMED else ""
    kind = seen.slow_pairs_once if slowest.meanwhile is None else seen.slow_pairs_meanwhile
    return Finding(
        components=components,
        quantity=view.quantity,
        effect=relative(slowest.loss, view.quantity),
        next_step=advise.measure_routes_again(),
        **_cause(slowest, view, seen_in(view, kind(len(pairs), shown))),
    )


def _cause(pair: SlowPair, view: ViewResult, evidence: EvidenceRecord) -> dict[str, Any]:
    """State, evidence and ambiguity group of a finding about a slow pair: whether its time explains it as well."""
    others = pair.meanwhile
    if others is None:
        return {"state": _state(pair), "evidence": (evidence,)}
    meanwhile = seen.slow_meanwhile(
        others.slow, others.measured, others.slow_at_other_times, others.measured_at_other_times
    )
    return {
        "state": _state(pair),
        "evidence": (evidence, seen_in(view, meanwhile)),
        "ambiguity_group": (cause("another load at that time"),),
    }


def routes_on_slow_paths(
    claims: Sequence[Finding],
    designed: Mapping[ComponentRef, float],
    placement: Placement,
    routes: Routes | None,
    settings: Settings,
) -> Iterator[CommonCause]:
    """Yield each route between hosts whose streams lose what their path loses.

    That is the path between their switches, or with adaptive routing the shortest one, where it crosses a link, cable
    or switch at fault. The path is at fault, or its cable is `designed` so: the effect of each such cable, or direction
    of it, by name. A route that loses more than the path by the loss in scope has a reason of its own.
    """
    losses = _losses_of_links(claims, routes) if routes is not None and routes.routing.kind == "adaptive" else {}
    effects = {path: effect for component, effect in designed.items() for path in component.directions}
    for claim in claims:
        at_fault = claim.state is State.FAULT and claim.component in ("link", "cable")
        if at_fault and claim.quantity == "bandwidth" and claim.effect is not None:
            effects |= dict.fromkeys(claim.directions, claim.effect)
    of = dict(zip(placement.hosts, placement.host_switches, strict=True)) if effects or losses else {}
    for claim in claims if of else ():
        if claim.component != "route" or claim.quantity != "bandwidth" or claim.effect is None:
            continue
        slow = []
        for a, b in claim.directions:
            paths = product(of.get(a, ()), of.get(b, ()))  # several between hosts with NICs on several switches
            known = [effects.get(path, _shortest_path_loss(path, losses, routes)) for path in paths]
            slow.append(min((loss for loss in known if loss is not None), default=None))
        most = [loss for loss in slow if loss is not None]
        if len(most) == len(slow) > 0 and 1 + claim.effect >= (1 + max(most)) * (1 - settings.loss_in_scope):
            yield CommonCause((claim,))


def _losses_of_links(findings: Sequence[Finding], routes: Routes) -> dict[int, float]:
    """Effect of each link between switches that a finding of bandwidth says is at fault, the largest of several."""
    losses: dict[int, float] = {}
    for finding in findings:
        if finding.state is not State.FAULT or finding.quantity != "bandwidth" or finding.effect is None:
            continue
        links = {f"{a}>{b}" for a, b in finding.directions}
        switches = finding.nodes if finding.component == "switch" else frozenset()
        for number, name in enumerate(routes.names):
            if name in links or not switches.isdisjoint(name.split(">")):
                losses[number] = min(losses.get(number, 0.0), finding.effect)
    return losses


def _shortest_path_loss(path: tuple[str, str], losses: Mapping[int, float], routes: Routes | None) -> float | None:
    """The largest loss of the links that enough messages between two switches cross to set their median; None: none."""
    if routes is None or not losses:
        return None
    src, dst = (routes.codes((name,)) for name in path)
    _, links, shares = routes.exposure(src, dst)
    return min((losses[link] for link in links[shares >= MEDIAN_SHARE].tolist() if link in losses), default=None)


def _unidirectional_route(view: ViewResult, pair: SlowPair, placement: Placement) -> Finding:
    source, target = (placement.hosts[placement.host[rank]] for rank in pair.ranks)
    component = ComponentRef.of("route", source, target, directed=True)
    kind = seen.one_direction_shared if pair.beside else seen.one_direction_once if pair.once else seen.one_direction
    evidence = seen_in(view, kind())
    return Finding(
        components=(component,),
        quantity=view.quantity,
        effect=relative(pair.loss, view.quantity),
        next_step=advise.inspect_direction(component),
        **_cause(pair, view, evidence),
    )


def _blocks(pairs: Iterable[tuple[int, int]]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Pairs as blocks left x right: hosts with the same slow partners together."""
    partners: dict[int, list[int]] = defaultdict(list)
    for a, b in sorted(pairs):
        partners[a].append(b)
    blocks: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for host, others in partners.items():
        blocks[tuple(others)].append(host)
    return [(tuple(hosts), others) for others, hosts in blocks.items()]


def _of_whole_switches(pairs: Sequence[SlowPair], placement: Placement) -> list[SlowPair]:
    """Those that are, together, all pairs of the hosts of a switch."""
    slow_pairs: list[SlowPair] = []
    for switch in range(len(placement.switches)):
        own = [pair for pair in pairs if all(placement.switch[rank] == switch for rank in pair.ranks)]
        hosts = np.unique(placement.host[placement.switch == switch]).size
        met = {tuple(sorted(int(placement.host[rank]) for rank in pair.ranks)) for pair in own}
        if own and len(met) == hosts * (hosts - 1) // 2:
            slow_pairs += own
    return slow_pairs


def _faster(views: Sequence[ViewResult], placement: Placement) -> list[Finding]:
    """CONFOUNDED where all pairs on a switch are far faster than all others on switches: the majority may be slow."""
    for view in views:
        fast = _of_whole_switches([pair for pair in view.slow_pairs if pair.loss < 0], placement)
        if not fast:
            continue
        names = [">".join(placement.hosts[placement.host[rank]] for rank in pair.ranks) for pair in fast]
        shown = ", ".join(names[:MOST_NAMED]) + (", ..." if len(names) > MOST_NAMED else "")
        gain = relative(max(pair.loss for pair in fast), view.quantity)
        return [
            Finding(
                state=State.CONFOUNDED,
                components=(ComponentRef(kind="config", title="faster pairs"),),
                quantity=view.quantity,
                effect=gain,
                evidence=(seen_in(view, seen.faster_pairs(len(fast), shown)),),
                next_step=advise.compare_nic_speeds(),
            )
        ]
    return []
