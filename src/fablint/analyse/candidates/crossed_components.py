"""Pairs of hosts, the unit of evidence of late and lost messages, and the components that their messages cross."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol

import numpy as np

from fablint.analyse.candidates.candidate import CandidateBuilder, named
from fablint.analyse.observations.mean_ratios import MeanRatios
from fablint.model import ComponentRef, Direction, Endpoint, Placement
from fablint.model.arrays import Codes, Floats, Mask
from fablint.model.figures.distinct_codes import distinct_codes
from fablint.topology.routed_placement import links_crossed
from fablint.topology.routing import Routes, codes_of

Links = tuple[Codes, Codes]  # flat lists: pair, and directed link that its messages cross
SIDES: tuple[tuple[int, Direction], ...] = ((0, "tx"), (1, "rx"))
BETWEEN_SWITCHES = ComponentRef(kind="config", title="paths between switches")
BETWEEN_GROUPS = ComponentRef(kind="config", title="paths between groups")


class CrossingPairs(Protocol):
    """Pairs of hosts: arrays are (u, 2); of directed pairs sender and receiver."""

    @property
    def hosts(self) -> Codes:
        """Hosts."""
        ...

    @property
    def ranks(self) -> Codes:
        """One rank of each host."""
        ...

    @property
    def switches(self) -> Codes:
        """Switches, -1 where unknown."""
        ...


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


def candidates_of(
    pairs: CrossingPairs, placement: Placement, routes: Routes | None, *, directed: bool
) -> CandidateBuilder:
    """Return hosts, cables, paths between switches, all links of a switch, switches, and all pairs of a distance.

    Parameters
    ----------
    pairs
        Pairs of hosts.
    placement
        Hosts, switches and groups of the ranks.
    routes
        Links between switches; None if no cables are known.
    directed
        Whether messages cross the network from the first host of a pair to the second only: then each direction of a
        component is a candidate as well.
    """
    builder = CandidateBuilder()
    add_ends(builder, "host", placement.hosts, pairs.hosts, directed=directed)
    if not placement.switches:
        return builder
    links = _links(pairs, placement, routes, directed=directed)
    if routes is not None:
        pair, link = links
        count, single = len(routes.ends), routes.component if directed else routes.cable_component
        builder.add("cable", count, routes.cable_component, [(pair, link - link % 2)])
        builder.add("cable", count, single, [(pair, link)])  # one direction of the cable
    _add_paths(builder, pairs, placement, directed=directed)
    _add_switches(builder, pairs.switches, placement, routes, links)
    return builder


def add_ends(
    builder: CandidateBuilder, kind: Literal["host", "nic"], names: Sequence[str], ends: Codes, *, directed: bool
) -> None:
    """Add hosts or NICs; of directed pairs as senders, as receivers, and as both.

    Parameters
    ----------
    builder
        Collector of candidates.
    kind
        Kind of the components.
    names
        Name of each component.
    ends
        (u, 2) codes of both ends of each pair; of directed pairs the sender first.
    directed
        Whether the pairs are directed.
    """
    pairs = np.arange(len(ends))
    for side, direction in SIDES if directed else ():
        builder.add(kind, *named(kind, names), [(pairs, ends[:, side])], direction)
    both = [(pairs, ends[:, side]) for side, _ in SIDES]
    builder.add(kind, *named(kind, names), both, "both" if directed else None)


def _links(pairs: CrossingPairs, placement: Placement, routes: Routes | None, *, directed: bool) -> Links:
    """Return the links that the messages of the pairs cross, of round trips on both ways; none if paths are unknown."""
    if routes is None or not len(routes.ends) or routes.routing.kind in ("adaptive", "ecmp"):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    ends, location = pairs.switches, placement.location[pairs.ranks]
    crossed = [
        links_crossed(routes, ends[:, src], ends[:, dst], location[:, dst], placement.switches)
        for src, dst in ((0, 1),) + (() if directed else ((1, 0),))
    ]
    pair, link = (np.concatenate(column).astype(np.int64) for column in zip(*crossed, strict=True))
    return pair, link


def _add_paths(builder: CandidateBuilder, pairs: CrossingPairs, placement: Placement, *, directed: bool) -> None:
    """Add paths between two switches, all paths of a switch, and all pairs of a distance."""
    here, there = pairs.switches.T
    far = np.flatnonzero((here >= 0) & (there >= 0) & (here != there))
    size = len(placement.switches)
    low, high = np.minimum(here, there)[far], np.maximum(here, there)[far]
    for is_directed, a, b in ((True, here[far], there[far]), (False, low, high))[0 if directed else 1 :]:
        paths, code, _ = distinct_codes(a * size + b)
        builder.add("path", paths.size, partial(_path, placement, paths, is_directed), [(far, code)])
    exits = [ComponentRef.of("route", name, Endpoint()) for name in placement.switches]
    builder.add("exits", size, exits.__getitem__, [(far, here[far]), (far, there[far])])
    builder.add("scope", 1, lambda _: BETWEEN_SWITCHES, [(far, np.zeros(far.size, np.int64))])
    groups = placement.group[pairs.ranks[far]]
    apart = far[(groups[:, 0] != groups[:, 1]) & (groups >= 0).all(axis=1)]
    builder.add("scope", 1, lambda _: BETWEEN_GROUPS, [(apart, np.zeros(apart.size, np.int64))])


def _path(placement: Placement, paths: Codes, directed: bool, number: int) -> ComponentRef:
    """Return a path between two switches."""
    ends = divmod(int(paths[number]), len(placement.switches))
    return ComponentRef.of("route", *(placement.switches[end] for end in ends), directed=directed)


def _add_switches(
    builder: CandidateBuilder, switches: Codes, placement: Placement, routes: Routes | None, links: Links
) -> None:
    """Add each switch with all pairs that begin or end on it, or cross one of its links."""
    names = placement.switches if routes is None else routes.switches
    code = codes_of(placement.switches, {name: number for number, name in enumerate(names)}).astype(np.int64)
    ends = np.where(switches >= 0, code[switches], -1)
    pairs: Codes = np.arange(len(switches))
    crossings = [(pairs, ends[:, end]) for end in (0, 1)]
    if routes is not None:
        pair, link = links
        crossings += [(pair, routes.ends[link, end]) for end in (0, 1)]
    builder.add("switch", *named("switch", names), crossings)
