"""Fabrics: hosts, switches, directed links between them, and the paths of messages from switch to switch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Routing = Literal["static", "ecmp", "adaptive"]


@dataclass(frozen=True)
class Fabric:
    """A fabric. An alternative is one path between two switches: the links and the switches in between.

    Attributes:
        host_switch: (n,) the switch of each host.
        groups: the group of each switch.
        links: (A, 2) ends of the directed links; link 2k and link 2k + 1 are the directions of cable k.
        paths: for each pair of switches, its alternatives; each a tuple of directed links.
        routing: `static`: by the destination, as forwarding tables say; `ecmp`: by a hash of both hosts; `adaptive`:
            the messages of a pair take all alternatives in equal shares.
    """

    hosts: tuple[str, ...]
    switches: tuple[str, ...]
    host_switch: Ints
    groups: tuple[str, ...]
    links: Ints
    paths: dict[tuple[int, int], tuple[tuple[int, ...], ...]]
    routing: Routing = "static"

    @property
    def n(self) -> int:
        """The number of hosts."""
        return len(self.hosts)

    def hosts_of(self, switch: int) -> Ints:
        """The hosts on a switch."""
        return np.flatnonzero(self.host_switch == switch)

    def cable(self, number: int) -> str:
        """The name of a cable between switches."""
        a, b = self.links[2 * number]
        return f"{self.switches[a]}={self.switches[b]}"

    def link(self, number: int) -> str:
        """The name of a directed link between switches."""
        a, b = self.links[number]
        return f"{self.switches[a]}>{self.switches[b]}"


@dataclass
class _Cables:
    """Cables while a fabric is put together."""

    ends: list[tuple[int, int]]

    def add(self, a: int, b: int) -> int:
        """A cable more; returns the link a > b, whose opposite is the next number."""
        self.ends += [(a, b), (b, a)]
        return len(self.ends) - 2


def _fabric(
    per_switch: Sequence[int],
    names: Sequence[str],
    groups: Sequence[str],
    cables: _Cables,
    paths: dict[tuple[int, int], tuple[tuple[int, ...], ...]],
    routing: Routing,
) -> Fabric:
    """Name the hosts and put the parts together."""
    total = sum(per_switch)
    hosts = tuple(f"node{number:0{max(2, len(str(total)))}d}" for number in range(1, total + 1))
    host_switch = np.repeat(np.arange(len(per_switch)), per_switch)
    for switch in range(len(names)):
        paths[switch, switch] = ((),)
    links = np.array(cables.ends, np.int64).reshape(-1, 2)
    return Fabric(hosts, tuple(names), host_switch, tuple(groups), links, paths, routing)


def one_switch(hosts: int) -> Fabric:
    """All hosts on one switch."""
    return _fabric([hosts], ["sw1"], ["a"], _Cables([]), {}, "static")


def mesh(per_switch: Sequence[int], parallel: int = 1, routing: Routing = "static", own_groups: bool = False) -> Fabric:
    """A few switches, each joined to each by `parallel` cables."""
    count, cables = len(per_switch), _Cables([])
    paths: dict[tuple[int, int], tuple[tuple[int, ...], ...]] = {}
    for a in range(count):
        for b in range(a + 1, count):
            links = [cables.add(a, b) for _ in range(parallel)]
            paths[a, b] = tuple((link,) for link in links)
            paths[b, a] = tuple((link + 1,) for link in links)
    names = [f"sw{number + 1}" for number in range(count)]
    groups = [f"row{number + 1}" if own_groups else "row1" for number in range(count)]
    return _fabric(per_switch, names, groups, cables, paths, routing)


def leaf_spine(
    leaves: int, spines: int, per_leaf: int | Sequence[int], routing: Routing = "static", own_groups: bool = True
) -> Fabric:
    """Every leaf joined to every spine; a group for each leaf, or one for all."""
    per_switch = [per_leaf] * leaves if isinstance(per_leaf, int) else per_leaf
    cables = _Cables([])
    up = {(leaf, spine): cables.add(leaf, leaves + spine) for leaf in range(leaves) for spine in range(spines)}
    paths = {
        (a, b): tuple((up[a, spine], up[b, spine] + 1) for spine in range(spines))
        for a in range(leaves)
        for b in range(leaves)
        if a != b
    }
    names = [f"leaf{leaf + 1}" for leaf in range(leaves)] + [f"spine{spine + 1}" for spine in range(spines)]
    groups = [f"rack{leaf + 1}" if own_groups else "hall" for leaf in range(leaves)] + ["core"] * spines
    return _fabric(per_switch, names, groups, cables, paths, routing)


def three_level(
    pods: int, leaves: int, aggregations: int, cores: int, per_leaf: int, routing: Routing = "static"
) -> Fabric:
    """Pods of leaves and aggregation switches; `cores` core switches above each aggregation index."""
    lower, cables = pods * leaves, _Cables([])

    def agg(pod: int, index: int) -> int:
        return lower + pod * aggregations + index

    def core(index: int, number: int) -> int:
        return lower + pods * aggregations + index * cores + number

    up: dict[tuple[int, int], int] = {}
    for pod, index in product(range(pods), range(aggregations)):
        for leaf in range(pod * leaves, (pod + 1) * leaves):
            up[leaf, agg(pod, index)] = cables.add(leaf, agg(pod, index))
        for number in range(cores):
            up[agg(pod, index), core(index, number)] = cables.add(agg(pod, index), core(index, number))

    def paths_between(a: int, b: int) -> tuple[tuple[int, ...], ...]:
        pod, other = a // leaves, b // leaves
        if pod == other:
            return tuple((up[a, agg(pod, x)], up[b, agg(pod, x)] + 1) for x in range(aggregations))
        # The alternative of destination d is d mod (aggregations * cores): the index of the aggregation switch
        # varies fastest, so that it is d mod aggregations inside a pod as well as between pods.
        return tuple(
            (
                up[a, agg(pod, x)],
                up[agg(pod, x), core(x, c)],
                up[agg(other, x), core(x, c)] + 1,
                up[b, agg(other, x)] + 1,
            )
            for c, x in product(range(cores), range(aggregations))
        )

    paths = {(a, b): paths_between(a, b) for a, b in product(range(lower), repeat=2) if a != b}
    names = [f"leaf{a + 1}" for a in range(lower)]
    names += [f"agg{a + 1}" for a in range(pods * aggregations)]
    names += [f"core{c + 1}" for c in range(aggregations * cores)]
    groups = [f"pod{a // leaves + 1}" for a in range(lower)]
    groups += [f"pod{a // aggregations + 1}" for a in range(pods * aggregations)] + ["core"] * (aggregations * cores)
    return _fabric([per_leaf] * lower, names, groups, cables, paths, routing)


def dragonfly_like(groups: int, per_group: int, per_switch: int) -> Fabric:
    """Groups of fully joined switches, one cable between each two groups; minimal paths, of which there is one."""
    cables = _Cables([])
    local: dict[tuple[int, int], int] = {}
    for group in range(groups):
        for a in range(per_group):
            for b in range(a + 1, per_group):
                link = cables.add(group * per_group + a, group * per_group + b)
                local[group * per_group + a, group * per_group + b] = link
                local[group * per_group + b, group * per_group + a] = link + 1
    gate: dict[tuple[int, int], int] = {}
    across: dict[tuple[int, int], int] = {}
    for g in range(groups):
        for h in range(g + 1, groups):
            gate[g, h], gate[h, g] = g * per_group + (h - 1) % per_group, h * per_group + g % per_group
            across[g, h] = cables.add(gate[g, h], gate[h, g])
            across[h, g] = across[g, h] + 1

    def hop(a: int, b: int) -> tuple[int, ...]:
        return () if a == b else (local[a, b],)

    paths: dict[tuple[int, int], tuple[tuple[int, ...], ...]] = {}
    total = groups * per_group
    for a in range(total):
        for b in range(total):
            g, h = a // per_group, b // per_group
            if a != b:
                inside = hop(a, b) if g == h else (*hop(a, gate[g, h]), across[g, h], *hop(gate[h, g], b))
                paths[a, b] = (inside,)
    names = [f"r{a + 1}" for a in range(total)]
    return _fabric(
        [per_switch] * total, names, [f"g{a // per_group + 1}" for a in range(total)], cables, paths, "static"
    )


def links_between(fabric: Fabric, a: str, b: str) -> list[int]:
    """The directed links a > b, one for each parallel cable."""
    ends = (fabric.switches.index(a), fabric.switches.index(b))
    return [number for number, pair in enumerate(fabric.links.tolist()) if tuple(pair) == ends]


def switches_on(fabric: Fabric, links: Iterable[int]) -> list[int]:
    """The switches between the links of a path, without its first and last one."""
    return [int(fabric.links[link, 1]) for link in links][:-1]
