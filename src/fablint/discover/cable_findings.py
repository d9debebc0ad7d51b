"""Findings about cables: slower than comparable cables, or fewer than comparable switches and pairs of groups have."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from itertools import combinations
from typing import TypeVar

from fablint.model import ComponentRef, Finding, State, Topology
from fablint.model.host_name import NicRef
from fablint.model.names import natural
from fablint.snapshot.cable_speeds import SlowCable, TrainedCable, slow_cables
from fablint.text import actions as advise, evidence as seen

_FEWEST = 3  # comparable switches or pairs of groups
_MOST_EXCEPTIONS = 0.05  # share with one smaller number of cables; if there are more, they are another kind by design
_Item = TypeVar("_Item", bound=Hashable)
_Near = defaultdict[str, Counter[str]]  # number of cables by both of their ends


def judge_cables(trained: Iterable[TrainedCable]) -> list[Finding]:
    """Return a finding for each slow cable: a fault if the comparable cables share an end with it, else a suspect."""
    return [_finding(slow) for slow in slow_cables(trained)]


def _finding(slow: SlowCable) -> Finding:
    cable = slow.cable
    a, b = (NicRef(cable.b).host, cable.a) if cable.to_host else (cable.a, cable.b)
    return Finding(
        state=State.FAULT if slow.is_certain else State.SUSPECT,
        components=(ComponentRef.of("cable", a, b),),
        quantity="bandwidth",
        effect=cable.bytes_per_second / slow.usual - 1,
        evidence=(seen.cable_speed(cable.ends, str(cable.rate), slow.others),),
        next_step=advise.replace_cable(),
    )


def judge_bundles(topology: Topology | None) -> list[Finding]:
    """Return a finding for each pair of groups, leaf or aggregation switch with fewer cables than most of its kind."""
    if topology is None:
        return []
    bundles = [
        _fewer(ComponentRef.of("route", *pair), "global cables", count, usual)
        for pair, count, usual in _exceptions(_between_groups(topology))
    ]
    for what, counts in _cables_of_levels(topology):
        bundles += [
            _fewer(ComponentRef.of("switch", switch), what, count, usual)
            for switch, count, usual in _exceptions(counts)
        ]
    return bundles


def _fewer(component: ComponentRef, what: str, count: int, usual: int) -> Finding:
    return Finding(
        state=State.SUSPECT,
        components=(component,),
        evidence=(seen.fewer_cables(count, what, usual),),
        next_step=advise.check_cable_end(),
    )


def _between_groups(topology: Topology) -> Counter[tuple[str, str]]:
    """Return the number of cables between each two groups with hosts; 0 for pairs without a cable."""
    groups = {topology.switches[switch].group for switch in topology.host_switch.values()} - {""}
    count = Counter(dict.fromkeys(combinations(sorted(groups, key=natural), 2), 0))
    for cable in topology.cables:
        first, second = sorted((topology.switches[end].group for end in (cable.a, cable.b)), key=natural)
        if (first, second) in count:
            count[first, second] += 1
    return count


def _cables_of_levels(topology: Topology) -> Iterator[tuple[str, Counter[str]]]:
    """Yield kind and number of cables to the next level of each leaf, and of each switch above.

    Above the leaves of a dragonfly+ the switches are connected with each other: then the number of these cables.
    Nothing is yielded for other fabrics than trees.
    """
    below, level = frozenset[str](), frozenset(topology.end_switch.values())
    near: _Near = defaultdict(Counter)
    for cable in topology.cables:
        near[cable.a][cable.b] += 1
        near[cable.b][cable.a] += 1
    while level and not any(near[switch].keys() & level for switch in level):
        above = frozenset(other for switch in level for other in near[switch]) - below
        if any(near[switch].keys() & above for switch in above):
            if _is_dragonfly_plus(near, level, above):
                yield "cables to its level", _counts(near, above, above)
            return
        yield "up-links", _counts(near, level, above)
        below, level = level, above


def _is_dragonfly_plus(near: _Near, leaves: frozenset[str], above: frozenset[str]) -> bool:
    """Tell whether all other switches are above the leaves, and have equally many cables to these.

    Of other fabrics whose hosts are known in part, switches have more or fewer cables to those with hosts.
    """
    return leaves | above == near.keys() and len(set(_counts(near, above, leaves).values())) == 1


def _counts(near: _Near, switches: frozenset[str], others: frozenset[str]) -> Counter[str]:
    """Return the number of cables of each of these switches to others."""
    return Counter({switch: sum(near[switch][other] for other in near[switch].keys() & others) for switch in switches})


def _exceptions(counts: Mapping[_Item, int]) -> Iterator[tuple[_Item, int, int]]:
    """Yield the items with fewer than most have, with their number and the usual one."""
    ((usual, holders),) = Counter(counts.values()).most_common(1) or ((0, 0),)
    if holders < _FEWEST or 2 * holders <= len(counts):
        return
    frequency = Counter(counts.values())
    for item, count in counts.items():
        if count < usual and frequency[count] <= max(2, _MOST_EXCEPTIONS * len(counts)):
            yield item, count, usual
