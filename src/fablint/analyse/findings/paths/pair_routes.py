"""Findings about single pairs of hosts: slow routes, and pairs that are faster than all others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

import numpy as np

from fablint.analyse.explain.outlier_pairs import SlowPair
from fablint.analyse.explain.view import ViewResult
from fablint.analyse.findings.common_causes import CommonCause
from fablint.analyse.findings.detection_text import relative, seen_in
from fablint.analyse.findings.paths.slow_pairs import MOST_NAMED, SlowPairs
from fablint.analyse.findings.paths.slow_paths_claimed import SlowPaths
from fablint.analyse.phrasing import next_step
from fablint.analyse.settings import FEWEST_INDEPENDENT, Settings
from fablint.model import ComponentRef, Finding, Placement, State
from fablint.text import actions as advise, evidence as seen
from fablint.text.units import percent
from fablint.topology.routing import Routes

_Sides = tuple[Sequence[int], Sequence[int]]  # codes of the hosts at both sides of slow pairs


def slow_routes(
    views: Sequence[ViewResult], placement: Placement, reported: set[int], settings: Settings
) -> list[Finding]:
    """Slow pairs that nothing explains, folded where a set of hosts is slow with the same other hosts.

    A pair is SUSPECT. A pair or direction that was slow in one moment only is NOT JUDGED: a moment of load looks the
    same. Pairs that something explains have a note (`SlowPairs.notes`).

    `reported`: codes of the hosts that other findings are about.
    """
    slow = SlowPairs.of(views, placement, reported, settings).unexplained(settings)
    findings = _unidirectional_routes(slow.one_way, placement)
    for state in (State.SUSPECT, State.NOT_JUDGED):
        ends_of_state = [ends for ends, (pair, _) in slow.both.items() if _state(pair) is state]
        blocks = [
            (sides, [slow.both[ends] for ends in ends_of_state if ends[0] in sides[0] and ends[1] in sides[1]])
            for sides in _blocks(ends_of_state)
        ]
        if state is State.SUSPECT or len(blocks) < 2:
            findings += [_bidirectional_route(inside, sides, placement) for sides, inside in blocks]
        else:
            findings.append(_routes_of_bursts(blocks, placement))
    return findings + _faster(views, placement)


def _state(pair: SlowPair) -> State:
    """SUSPECT; NOT JUDGED if it was measured in one moment, or only while others sent."""
    return State.NOT_JUDGED if pair.beside or pair.once else State.SUSPECT


def _bidirectional_route(pairs: Sequence[tuple[SlowPair, ViewResult]], sides: _Sides, placement: Placement) -> Finding:
    """The finding about all pairs between two sets of hosts, which the slowest of them represents."""
    slowest, view = max(pairs, key=lambda case: case[0].loss)
    component = ComponentRef.of("route", *([placement.hosts[host] for host in side] for side in sides))
    kind = seen.slow_block_once if _state(slowest) is State.NOT_JUDGED else seen.slow_block
    return Finding(
        state=_state(slowest),
        components=(component,),
        quantity=view.quantity,
        effect=relative(slowest.loss, view.quantity),
        evidence=(seen_in(view, kind(len(pairs), len(sides[0]) * len(sides[1]))),),
        next_step=next_step(component),
    )


def _routes_of_bursts(
    blocks: Sequence[tuple[_Sides, Sequence[tuple[SlowPair, ViewResult]]]], placement: Placement
) -> Finding:
    """One finding about the pairs of several blocks, slow in one moment each.

    A burst of load slows many pairs: each of them would be a finding of its own.
    """
    components = tuple(
        ComponentRef.of("route", *([placement.hosts[host] for host in side] for side in sides)) for sides, _ in blocks
    )
    pairs = sorted((case for _, inside in blocks for case in inside), key=lambda case: -case[0].loss)
    slowest, view = pairs[0]
    names = ["=".join(placement.hosts[placement.host[rank]] for rank in pair.ranks) for pair, _ in pairs[:MOST_NAMED]]
    effects = [relative(pair.loss, view_of_pair.quantity) for pair, view_of_pair in pairs[:MOST_NAMED]]
    shown = ", ".join(f"{name} {percent(effect)}" for name, effect in zip(names, effects, strict=True))
    shown += ", ..." if len(pairs) > MOST_NAMED else ""
    return Finding(
        state=_state(slowest),
        components=components,
        quantity=view.quantity,
        effect=relative(slowest.loss, view.quantity),
        evidence=(seen_in(view, seen.slow_pairs_once(len(pairs), shown)),),
        next_step=advise.measure_routes_again(),
    )


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
    of it, by name. A SUSPECT path explains routes that are no FAULT. A route that loses more than the path by the loss
    in scope has a reason of its own.
    """
    at_fault = SlowPaths.of(claims, {State.FAULT}, designed, routes)
    suspected = SlowPaths.of(claims, {State.FAULT, State.SUSPECT}, designed, routes)
    switches_of_host = dict(zip(placement.hosts, placement.host_switches, strict=True)) if suspected else {}
    for claim in claims if switches_of_host else ():
        if claim.component != "route" or claim.quantity != "bandwidth" or claim.effect is None:
            continue
        slow_paths = at_fault if claim.state is State.FAULT else suspected
        slow = []
        for a, b in claim.directions:
            paths = product(
                switches_of_host.get(a, ()), switches_of_host.get(b, ())
            )  # several between hosts with NICs on several switches
            slow.append(min((loss for path in paths if (loss := slow_paths.loss(path)) is not None), default=None))
        most = [loss for loss in slow if loss is not None]
        if len(most) == len(slow) > 0 and 1 + claim.effect >= (1 + max(most)) * (1 - settings.loss_in_scope):
            yield CommonCause((claim,))


def _unidirectional_routes(
    slow: Mapping[tuple[int, int], tuple[SlowPair, ViewResult]], placement: Placement
) -> list[Finding]:
    """Findings about slow directions: FAULT of all directions between two sets of hosts that were measured alone.

    A moment of load slows one measurement; with a host for each switch, or if others sent, a set is slow for them.
    """
    proven = [ends for ends, (pair, _) in slow.items() if pair.alone and _state(pair) is State.SUSPECT]
    findings, explained = [], set()
    for sides in _blocks(proven) if not placement.switches else ():
        inside = [ends for ends in product(*sides) if ends in slow]
        if min(map(len, sides)) >= FEWEST_INDEPENDENT:
            findings.append(_slow_directions([slow[ends] for ends in inside], sides, placement))
            explained |= set(inside)
    left = [slow[ends] for ends in slow if ends not in explained]
    return [*findings, *(_unidirectional_route(view, pair, placement) for pair, view in left)]


def _slow_directions(pairs: Sequence[tuple[SlowPair, ViewResult]], sides: _Sides, placement: Placement) -> Finding:
    """FAULT of the directions between two sets of hosts, with their median loss."""
    view = pairs[0][1]
    names = ([placement.hosts[host] for host in side] for side in sides)
    component = ComponentRef.of("route", *names, directed=True)
    return Finding(
        state=State.FAULT,
        components=(component,),
        quantity=view.quantity,
        effect=relative(float(np.median([pair.loss for pair, _ in pairs])), view.quantity),
        evidence=(seen_in(view, seen.slow_directions(len(pairs))),),
        next_step=advise.inspect_direction(component),
    )


def _unidirectional_route(view: ViewResult, pair: SlowPair, placement: Placement) -> Finding:
    source, target = (placement.hosts[placement.host[rank]] for rank in pair.ranks)
    component = ComponentRef.of("route", source, target, directed=True)
    kind = seen.one_direction_shared if pair.beside else seen.one_direction_once if pair.once else seen.one_direction
    return Finding(
        state=_state(pair),
        components=(component,),
        quantity=view.quantity,
        effect=relative(pair.loss, view.quantity),
        evidence=(seen_in(view, kind()),),
        next_step=advise.inspect_direction(component),
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
    """Return those that are, together, all pairs of the hosts of a switch."""
    slow_pairs: list[SlowPair] = []
    for switch in range(len(placement.switches)):
        pairs_of_switch = [pair for pair in pairs if all(placement.switch[rank] == switch for rank in pair.ranks)]
        hosts = np.unique(placement.host[placement.switch == switch]).size
        met = {tuple(sorted(int(placement.host[rank]) for rank in pair.ranks)) for pair in pairs_of_switch}
        if pairs_of_switch and len(met) == hosts * (hosts - 1) // 2:
            slow_pairs += pairs_of_switch
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
