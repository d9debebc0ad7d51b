"""Pairs of hosts, the unit of evidence of late messages, and the components that their round trips cross."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fablint.analyse.data.mean_ratios import MeanRatios
from fablint.analyse.data.pair_matrix import Codes
from fablint.model import ComponentRef, Direction, Endpoint, Placement
from fablint.topology.routed_placement import links_crossed
from fablint.topology.routing import Routes, codes_of

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

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
    kind: str  # host cable path exits switch scope
    direction: Direction | None = None  # of a host: whether it sends or receives; None: either

    @property
    def is_scope(self) -> bool:
        """Whether it stands for all pairs of a distance, and not for a component."""
        return self.kind == "scope"


@dataclass(frozen=True)
class Candidates:
    """Candidates and the pairs that cross them. The arrays are flat, in the order of candidates."""

    candidate: tuple[Candidate, ...]
    same: tuple[tuple[ComponentRef, ...], ...]  # other candidates that exactly the same pairs cross
    pair: Codes  # (e,)
    of: Codes  # (e,) candidate that the pair crosses

    def pairs(self, number: int) -> Codes:
        """Return the codes of the pairs that cross candidate `number`, (k,) ascending."""
        first, last = np.searchsorted(self.of, (number, number + 1))
        return self.pair[first:last]


class CandidateBuilder:
    """Collector of candidates and of the pairs that cross them; the candidates of a type have codes of their own."""

    def __init__(self) -> None:
        self.named: list[Candidate] = []
        self.entries: list[tuple[Codes, Codes]] = []

    def add(self, kind: str, components: Sequence[ComponentRef], pair: Codes, code: Codes) -> None:
        """Add candidates of a kind, and the pairs that cross them.

        Entry e of `pair` crosses component `code[e]` of `components`; -1: none. Both arrays are (e,).
        """
        known = code >= 0
        self.entries.append((pair[known], code[known] + len(self.named)))
        self.named += [Candidate(component, kind) for component in components]

    def candidates(self, pairs: int) -> Candidates:
        """Return the candidates that enough pairs cross; of candidates with the same pairs, the first that was added.

        `pairs` is the number of pairs, whose codes are below it.
        """
        pair, of = (np.concatenate(column).astype(np.int64) for column in zip(*self.entries, strict=True))
        key = np.unique(of * pairs + pair)
        of, pair = key // pairs, key % pairs
        count = np.bincount(of, minlength=len(self.named))
        random = np.random.default_rng(1).random(pairs)
        signature = np.bincount(of, weights=random[pair], minlength=len(self.named))
        known = np.flatnonzero(count >= FEWEST_PAIRS)
        _, first, group = np.unique(signature[known], return_index=True, return_inverse=True)
        members: list[list[int]] = [[] for _ in first]
        for position, number in zip(group.ravel().tolist(), known.tolist(), strict=True):
            members[position].append(number)
        members.sort()
        new = np.full(len(self.named), -1)
        new[[own[0] for own in members]] = np.arange(len(members))
        kept = new[of] >= 0
        return Candidates(
            tuple(self.named[own[0]] for own in members),
            tuple(self._others(own) for own in members),
            pair[kept],
            new[of[kept]],
        )

    def _others(self, members: list[int]) -> tuple[ComponentRef, ...]:
        first, *others = (self.named[number] for number in members)
        return tuple(
            dict.fromkeys(one.component for one in others if one.component != first.component and not one.is_scope)
        )


def candidates_of(pairs: MeasuredHostPairs, placement: Placement, routes: Routes | None) -> Candidates:
    """Return hosts, cables, paths between switches, all links of a switch, switches, and all pairs of a scope."""
    builder = CandidateBuilder()
    every = np.arange(pairs.weight.size)
    for end in (0, 1):
        builder.entries.append((every, pairs.hosts[:, end]))
    builder.named = [Candidate(ComponentRef.of("host", name), "host") for name in placement.hosts]
    if not placement.switches:
        return builder.candidates(every.size)
    links = _links(pairs, placement, routes)
    if routes is not None:
        pair, link = links
        cables = [routes.cable_component(number) for number in range(len(routes.ends))]
        builder.add("cable", cables[::2], pair, link // 2)
        builder.add("cable", cables, pair, link)  # one direction of the cable
    _add_paths(builder, pairs, placement)
    _add_switches(builder, pairs, placement, routes, links)
    return builder.candidates(every.size)


def _add_paths(builder: CandidateBuilder, pairs: MeasuredHostPairs, placement: Placement) -> None:
    """Add paths between two switches, all paths of a switch, and all pairs of a distance."""
    here, there = pairs.switches.min(axis=1), pairs.switches.max(axis=1)
    far = np.flatnonzero((here >= 0) & (here != there))
    size = len(placement.switches)
    known, code = np.unique(here[far] * size + there[far], return_inverse=True)
    builder.add("path", [_path(one, placement) for one in known.tolist()], far, code.ravel())
    ends = np.concatenate([pairs.switches[far, end] for end in (0, 1)])
    exits = [ComponentRef.of("route", name, Endpoint()) for name in placement.switches]
    builder.add("exits", exits, np.tile(far, 2), ends)
    builder.add("scope", [BETWEEN_SWITCHES], far, np.zeros(far.size, np.int64))
    groups = placement.group[pairs.ranks[far]]
    apart = far[(groups[:, 0] != groups[:, 1]) & (groups >= 0).all(axis=1)]
    builder.add("scope", [BETWEEN_GROUPS], apart, np.zeros(apart.size, np.int64))


def _path(code: int, placement: Placement) -> ComponentRef:
    """The path between two switches, from the number of the ordered pair."""
    return ComponentRef.of("route", *(placement.switches[end] for end in divmod(code, len(placement.switches))))


def _add_switches(
    builder: CandidateBuilder,
    pairs: MeasuredHostPairs,
    placement: Placement,
    routes: Routes | None,
    links: tuple[Codes, Codes],
) -> None:
    """Add each switch with all pairs that begin or end on it, or cross one of its links."""
    names = list(placement.switches if routes is None else routes.switches)
    code = codes_of(placement.switches, {name: number for number, name in enumerate(names)}).astype(np.int64)
    ends = np.where(pairs.switches >= 0, code[pairs.switches], -1)
    every = np.arange(pairs.weight.size)
    entries = [(every, ends[:, end]) for end in (0, 1)]
    if routes is not None:
        pair, link = links
        entries += [(pair, routes.ends[link, end].astype(np.int64)) for end in (0, 1)]
    pair, of = (np.concatenate(column) for column in zip(*entries, strict=True))
    builder.add("switch", [ComponentRef.of("switch", name) for name in names], pair, of)


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
