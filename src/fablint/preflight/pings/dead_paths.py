"""Paths that explain pairs of hosts without an answer: a host, a switch, or what is between two of these.

Each pair belongs to several components: its hosts, its switches, the paths between a host or a switch and another, the
paths between two groups. A component explains its dead pairs if no pair of it was answered. The component that explains
most of them is named first, then what explains most of the rest. Dead pairs that are left share two switches of which
other pairs are answered, as with several paths between these, or have hosts that fail with the same hosts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Literal, NamedTuple

from fablint.model import Topology

HostPair = frozenset[str]
_LEAST = 2  # dead pairs of a component

Kind = Literal["host", "switch", "route"]


class PathName(NamedTuple):
    """What explains dead pairs. Ends are hosts, switches or groups; of components that explain as many pairs the one
    with the lowest number is named."""

    number: int
    kind: Kind
    ends: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class DeadPath:
    """A component, and the pairs that it keeps from reaching each other."""

    name: PathName
    dead: tuple[HostPair, ...]
    tried: int  # pairs that were pinged
    is_whole: bool = True  # no pair was answered

    @property
    def pairs(self) -> set[HostPair]:
        """Dead pairs, of a path without any answer those that were not tried as well."""
        if not self.is_whole or self.name.kind == "host":
            return set(self.dead)
        sides = self.sides
        return {frozenset(pair) for pair in product(*sides)} if len(sides) == 2 else set(self.dead)

    @property
    def sides(self) -> tuple[frozenset[str], ...]:
        """Hosts at the two ends, where every dead pair joins these; else none."""
        first: set[str] = set()
        second: set[str] = set()
        for item, other in map(sorted, self.dead):
            if item in second or other in first:
                item, other = other, item
            first.add(item)
            second.add(other)
        return () if first & second else (frozenset(first), frozenset(second))


def explain_dead_pairs(answered: Mapping[HostPair, bool], topology: Topology | None) -> list[DeadPath]:
    """Return the paths that explain the dead pairs, those of most pairs first.

    Parameters
    ----------
    answered
        Whether hosts reach each other, of every pair that was pinged.
    topology
        Which host is connected to which switch; None: unknown.
    """
    left = {pair for pair, is_answered in answered.items() if not is_answered}
    if not left or len(left) == len(answered) > 1:
        return []  # without an answer between any hosts, pings may be filtered
    switches = topology.host_switch if topology is not None else {}
    groups = {host: topology.group_of(host) for host in switches} if topology is not None else {}
    result = _explained(left, answered, lambda pair: _components(pair, switches, groups), least_share=1.0)
    result += _explained(left, answered, lambda pair: _between_switches(pair, switches), least_share=0.0)
    partners: dict[str, set[str]] = defaultdict(set)
    for pair in left:
        for host in pair:
            partners[host] |= pair - {host}
    same: dict[frozenset[str], list[str]] = defaultdict(list)
    for host in sorted(partners):
        same[frozenset(partners[host])].append(host)
    twins = {host: tuple(hosts) for hosts in same.values() for host in hosts}
    result += _explained(left, answered, lambda pair: _of_twins(pair, twins), least_share=1.0)
    rest = sorted(map(sorted, left))
    return result + [DeadPath(_route(6, (one,), (other,)), (frozenset((one, other)),), 1) for one, other in rest]


def _explained(
    left: set[HostPair],
    answered: Mapping[HostPair, bool],
    components: Callable[[HostPair], Iterator[PathName]],
    least_share: float,
) -> list[DeadPath]:
    """Name components until none explains two of the dead pairs, which are taken out of `left`."""
    dead: dict[PathName, set[HostPair]] = defaultdict(set)
    tried: dict[PathName, int] = defaultdict(int)
    for pair, is_answered in answered.items():
        for name in components(pair):
            tried[name] += 1
            if not is_answered:
                dead[name].add(pair)
    possible = {name: pairs for name, pairs in dead.items() if len(pairs) >= max(_LEAST, least_share * tried[name])}
    dead_paths: list[DeadPath] = []
    while possible:
        possible = {name: explained for name, pairs in possible.items() if len(explained := pairs & left) >= _LEAST}
        if possible:
            name = max(possible, key=lambda one: (len(possible[one]), -one.number, one.ends))
            pairs = possible.pop(name)
            left -= pairs
            dead_paths.append(
                DeadPath(name, tuple(sorted(pairs, key=sorted)), tried[name], len(dead[name]) == tried[name])
            )
    return dead_paths


def _components(pair: HostPair, switches: Mapping[str, str], groups: Mapping[str, str]) -> Iterator[PathName]:
    """Yield hosts, switches and paths that no message between two hosts avoids."""
    item, other = sorted(pair)
    for host in (item, other):
        yield PathName(0, "host", ((host,),))
    here, there = switches.get(item), switches.get(other)
    if here == there:
        return
    for host, far in ((item, there), (other, here)):
        if host in switches:
            yield PathName(1, "host", ((host,),))  # beyond its switch
        if far is not None:
            yield _route(2, (host,), (far,))
    yield from _between_switches(pair, switches)
    for switch in filter(None, (here, there)):
        yield PathName(4, "switch", ((switch,),))
    if here and there and groups[item] != groups[other]:
        first, second = sorted((groups[item], groups[other]))
        yield _route(5, (first,), (second,))


def _between_switches(pair: HostPair, switches: Mapping[str, str]) -> Iterator[PathName]:
    """Yield the path between the switches of two hosts, if these are known and differ."""
    ends = sorted({switches[host] for host in pair if host in switches})
    if len(ends) == 2:
        yield _route(3, (ends[0],), (ends[1],))


def _of_twins(pair: HostPair, twins: Mapping[str, tuple[str, ...]]) -> Iterator[PathName]:
    """Yield the path between the hosts that fail with the same hosts as one of the pair and those as the other."""
    item, other = (twins.get(host, (host,)) for host in sorted(pair))
    if item != other:
        yield _route(6, *sorted((item, other)))


def _route(number: int, item: tuple[str, ...], other: tuple[str, ...]) -> PathName:
    return PathName(number, "route", (item, other))
