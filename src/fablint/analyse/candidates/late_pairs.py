"""Pairs of hosts, the unit of evidence of late messages, and the components that their round trips cross."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fablint.analyse.observations.mean_ratios import MeanRatios
from fablint.model import ComponentKind, ComponentRef, Direction, Endpoint, Placement
from fablint.model.arrays import Codes, Floats, Mask
from fablint.topology.routed_placement import links_crossed
from fablint.topology.routing import Routes, codes_of

FEWEST_PAIRS = 2  # late pairs of a candidate: a single late pair is not a component


@dataclass(frozen=True)
class MeasuredHostPairs:
    """Pairs of hosts. With several switches per host, a pair of hosts has an entry for each two switches."""

    hosts: Codes  # (u, 2)
    ranks: Codes  # (u, 2) a measured rank of each host
    switches: Codes  # (u, 2) -1 where unknown
    weight: Floats  # (u,) the entries of a pair of hosts sum to 1
    of_cell: Codes  # (k,) entry of each cell

    def share(self, cells: Mask) -> Floats:
        """Return the (u,) share of each entry's cells that are in the mask."""
        return np.bincount(self.of_cell, weights=cells, minlength=self.weight.size) / np.bincount(self.of_cell)


def host_pairs_of(cells: MeanRatios, placement: Placement) -> MeasuredHostPairs:
    """Return the unordered pairs of hosts that exchanged messages, one entry per pair of NICs or switches.

    Parameters
    ----------
    cells
        (k,) measured cells: the ranks `src` and `dst`.
    placement
        Host and switch of each rank.
    """
    turned = placement.host[cells.src] > placement.host[cells.dst]
    ranks = np.stack([np.where(turned, cells.dst, cells.src), np.where(turned, cells.src, cells.dst)], axis=1)
    hosts, switches = placement.host[ranks], placement.switch[ranks]
    names, size = len(placement.hosts), len(placement.switches) + 1
    of_hosts = hosts[:, 0] * names + hosts[:, 1]
    key = (of_hosts * size + switches[:, 0] + 1) * size + switches[:, 1] + 1
    _, first, of_cell = np.unique(key, return_index=True, return_inverse=True)
    _, same, count = np.unique(of_hosts[first], return_inverse=True, return_counts=True)
    return MeasuredHostPairs(hosts[first], ranks[first], switches[first], 1.0 / count[same], of_cell.ravel())


BETWEEN_SWITCHES = ComponentRef(kind="config", title="paths between switches")
BETWEEN_GROUPS = ComponentRef(kind="config", title="paths between groups")


@dataclass(frozen=True)
class Candidate:
    """A component, or a set of links with a name, that may delay messages."""

    component: ComponentRef
    kind: str  # host nic cable path exits switch scope
    direction: Direction | None = None  # of a host or NIC: whether it sends or receives; None: either
    number: int = 0  # position among the components that were added with it: code of a host, NIC, switch or link

    @property
    def is_scope(self) -> bool:
        """Whether it stands for all pairs of a distance, and not for a component."""
        return self.kind == "scope"


@dataclass(frozen=True)
class Candidates:
    """Candidates and the pairs that cross them. The arrays are flat, in the order of candidates."""

    candidate: tuple[Candidate, ...]
    same: tuple[tuple[Candidate, ...], ...]  # other candidates that exactly the same pairs cross
    pair: Codes  # (e,)
    of: Codes  # (e,) candidate that the pair crosses

    def pairs(self, number: int) -> Codes:
        """Return the codes of the pairs that cross candidate `number`, (k,) ascending."""
        first, last = np.searchsorted(self.of, (number, number + 1))
        return self.pair[first:last]

    def others(self, number: int) -> tuple[ComponentRef, ...]:
        """Return the components that exactly the pairs of candidate `number` cross as well."""
        first = self.candidate[number].component
        members = (one.component for one in self.same[number] if one.component != first and not one.is_scope)
        return tuple(dict.fromkeys(members))


@dataclass(frozen=True)
class _Block:
    """Candidates that were added together: of a kind, with consecutive codes."""

    first: int  # code of the first
    count: int
    kind: str
    component: Callable[[int], ComponentRef]
    direction: Direction | None


class CandidateBuilder:
    """Collector of candidates and of the pairs that cross them. Components are made for those that are kept."""

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._entries: list[tuple[Codes, Codes]] = []

    @property
    def size(self) -> int:
        """Number of candidates."""
        return sum(block.count for block in self._blocks)

    def add(
        self,
        kind: str,
        count: int,
        component: Callable[[int], ComponentRef],
        pair: Codes,
        code: Codes,
        direction: Direction | None = None,
    ) -> None:
        """Add `count` candidates of a kind, and the pairs that cross them.

        Entry e of `pair` crosses component `component(code[e])`; -1: none. Both arrays are (e,).
        """
        known = code >= 0
        self._entries.append((pair[known].astype(np.int64), code[known].astype(np.int64) + self.size))
        self._blocks.append(_Block(self.size, count, kind, component, direction))

    def sums(self, values: Floats) -> Floats:
        """Return the (candidates,) sum of (u,) values over the pairs of each; those that cross it twice count twice."""
        total = np.zeros(self.size)
        for pair, of in self._entries:
            total += np.bincount(of, weights=values[pair], minlength=self.size)
        return total

    def candidates(self, pairs: int, chosen: Mask | None = None) -> Candidates:
        """Return the candidates that enough pairs cross; of candidates with the same pairs, the first that was added.

        Parameters
        ----------
        pairs
            Number of pairs, whose codes are below it.
        chosen
            (candidates,) mask of those to return; None: all.
        """
        pair, of = (np.concatenate(column) for column in zip(*self._entries, strict=True))
        if chosen is not None:
            pair, of = pair[chosen[of]], of[chosen[of]]
        key = np.unique(of * pairs + pair)
        of, pair = key // pairs, key % pairs
        count = np.bincount(of, minlength=self.size)
        random = np.random.default_rng(1).random(pairs)
        signature = np.bincount(of, weights=random[pair], minlength=self.size)
        known = np.flatnonzero(count >= FEWEST_PAIRS)
        _, first, group = np.unique(signature[known], return_index=True, return_inverse=True)
        members: list[list[int]] = [[] for _ in first]
        for position, number in zip(group.ravel().tolist(), known.tolist(), strict=True):
            members[position].append(number)
        members.sort()
        new = np.full(self.size, -1)
        new[[own[0] for own in members]] = np.arange(len(members))
        kept = new[of] >= 0
        every = [[self._candidate(number) for number in own] for own in members]
        return Candidates(
            tuple(own[0] for own in every), tuple(tuple(own[1:]) for own in every), pair[kept], new[of[kept]]
        )

    def _candidate(self, code: int) -> Candidate:
        block = next(block for block in self._blocks if code < block.first + block.count)
        number = code - block.first
        return Candidate(block.component(number), block.kind, block.direction, number)


def named(kind: ComponentKind, names: Sequence[str]) -> tuple[int, Callable[[int], ComponentRef]]:
    """Return the number of components with these names, and the component of each position."""
    return len(names), lambda number: ComponentRef.of(kind, names[number])


def candidates_of(pairs: MeasuredHostPairs, placement: Placement, routes: Routes | None) -> CandidateBuilder:
    """Return hosts, cables, paths between switches, all links of a switch, switches, and all pairs of a scope."""
    builder = CandidateBuilder()
    every = np.arange(pairs.weight.size)
    builder.add("host", *named("host", placement.hosts), np.tile(every, 2), pairs.hosts.T.ravel())
    if not placement.switches:
        return builder
    links = _links(pairs, placement, routes)
    if routes is not None:
        pair, link = links
        count = len(routes.ends)
        builder.add("cable", count, routes.cable_component, pair, link - link % 2)
        builder.add("cable", count, routes.cable_component, pair, link)  # one direction of the cable
    _add_paths(builder, pairs, placement)
    add_switches(builder, pairs.switches, placement, routes, links)
    return builder


def _add_paths(builder: CandidateBuilder, pairs: MeasuredHostPairs, placement: Placement) -> None:
    """Add paths between two switches, all paths of a switch, and all pairs of a distance."""
    here, there = pairs.switches.min(axis=1), pairs.switches.max(axis=1)
    far = np.flatnonzero((here >= 0) & (here != there))
    size = len(placement.switches)
    known, code = np.unique(here[far] * size + there[far], return_inverse=True)
    builder.add("path", known.size, lambda number: _path(int(known[number]), placement), far, code.ravel())
    ends = np.concatenate([pairs.switches[far, end] for end in (0, 1)])
    exits = [ComponentRef.of("route", name, Endpoint()) for name in placement.switches]
    builder.add("exits", size, exits.__getitem__, np.tile(far, 2), ends)
    builder.add("scope", 1, lambda _: BETWEEN_SWITCHES, far, np.zeros(far.size, np.int64))
    groups = placement.group[pairs.ranks[far]]
    apart = far[(groups[:, 0] != groups[:, 1]) & (groups >= 0).all(axis=1)]
    builder.add("scope", 1, lambda _: BETWEEN_GROUPS, apart, np.zeros(apart.size, np.int64))


def _path(code: int, placement: Placement) -> ComponentRef:
    """The path between two switches, from the number of the ordered pair."""
    return ComponentRef.of("route", *(placement.switches[end] for end in divmod(code, len(placement.switches))))


def add_switches(
    builder: CandidateBuilder,
    switches: Codes,
    placement: Placement,
    routes: Routes | None,
    links: tuple[Codes, Codes],
) -> None:
    """Add each switch with all pairs that begin or end on it, or cross one of its links.

    Parameters
    ----------
    builder
        Collector of candidates.
    switches
        (u, 2) switches of the pairs, -1 where unknown.
    placement
        Names of the switches.
    routes
        Links between switches; None if no cables are known.
    links
        Flat lists: pair, and directed link that it crosses.
    """
    names = placement.switches if routes is None else routes.switches
    code = codes_of(placement.switches, {name: number for number, name in enumerate(names)}).astype(np.int64)
    ends = np.where(switches >= 0, code[switches], -1)
    every: Codes = np.arange(len(switches))
    entries = [(every, ends[:, end]) for end in (0, 1)]
    if routes is not None:
        pair, link = links
        entries += [(pair, routes.ends[link, end].astype(np.int64)) for end in (0, 1)]
    pair, of = (np.concatenate(column) for column in zip(*entries, strict=True))
    builder.add("switch", *named("switch", names), pair, of)


def _links(pairs: MeasuredHostPairs, placement: Placement, routes: Routes | None) -> tuple[Codes, Codes]:
    """Return flat lists: pair, and directed link that its round trips cross; empty if no path is known."""
    nothing = np.zeros(0, np.int64)
    if routes is None or not len(routes.ends) or routes.routing.kind in ("adaptive", "ecmp"):
        return nothing, nothing
    ends, hosts = pairs.switches, placement.location[pairs.ranks]
    there, back = (
        links_crossed(routes, ends[:, src], ends[:, dst], hosts[:, dst], placement.switches)
        for src, dst in ((0, 1), (1, 0))
    )
    pair, link = (np.concatenate(column).astype(np.int64) for column in zip(there, back, strict=True))
    return pair, link
