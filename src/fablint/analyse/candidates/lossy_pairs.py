"""Components that the segments of a directed pair of hosts cross from the sender to the receiver."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal, Protocol

import numpy as np

from fablint.analyse.candidates.late_pairs import BETWEEN_SWITCHES, CandidateBuilder, add_switches, named
from fablint.model import ComponentRef, Direction, Placement
from fablint.model.arrays import Codes
from fablint.topology.routed_placement import links_crossed
from fablint.topology.routing import Routes

SIDES: tuple[tuple[int, Direction], ...] = ((0, "tx"), (1, "rx"))


class DirectedPairs(Protocol):
    """Directed pairs of hosts: (u, 2) sender and receiver."""

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


def directed_candidates(pairs: DirectedPairs, placement: Placement, routes: Routes | None) -> CandidateBuilder:
    """Return hosts as senders, as receivers, and as both; links and cables, paths between switches, and switches."""
    builder = CandidateBuilder()
    add_ends(builder, "host", placement.hosts, pairs.hosts)
    if placement.switches:
        links: tuple[Codes, Codes] = np.zeros(0, np.int64), np.zeros(0, np.int64)
        if routes is not None:
            pair, link = links = _links(pairs, placement, routes)
            count = len(routes.ends)
            builder.add("cable", count, routes.component, pair, link)
            builder.add("cable", count, routes.cable_component, pair, link - link % 2)
        _add_paths(builder, pairs, placement)
        add_switches(builder, pairs.switches, placement, routes, links)
    return builder


def add_ends(builder: CandidateBuilder, kind: Literal["host", "nic"], names: Sequence[str], ends: Codes) -> None:
    """Add hosts or NICs as senders, as receivers, and as both.

    Parameters
    ----------
    builder
        Collector of candidates.
    kind
        Kind of the components.
    names
        Name of each component.
    ends
        (u, 2) code of the sender and of the receiver.
    """
    every = np.arange(len(ends))
    for side, direction in SIDES:
        builder.add(kind, *named(kind, names), every, ends[:, side], direction)
    builder.add(kind, *named(kind, names), np.tile(every, 2), ends.T.ravel(), "both")


def _links(pairs: DirectedPairs, placement: Placement, routes: Routes) -> tuple[Codes, Codes]:
    """Return flat lists: pair, and directed link that its messages cross; empty if no path is known."""
    nothing = np.zeros(0, np.int64)
    if not len(routes.ends) or routes.routing.kind in ("adaptive", "ecmp"):
        return nothing, nothing
    here, there = pairs.switches.T
    pair, link = links_crossed(routes, here, there, placement.location[pairs.ranks[:, 1]], placement.switches)
    return pair.astype(np.int64), link.astype(np.int64)


def _add_paths(builder: CandidateBuilder, pairs: DirectedPairs, placement: Placement) -> None:
    """Add paths from one switch to another, and all pairs on several switches."""
    here, there = pairs.switches.T
    far = np.flatnonzero((here >= 0) & (there >= 0) & (here != there))
    size = len(placement.switches)
    for directed, a, b in (
        (True, here[far], there[far]),
        (False, np.minimum(here, there)[far], np.maximum(here, there)[far]),
    ):
        known, code = np.unique(a * size + b, return_inverse=True)
        paths = [tuple(placement.switches[end] for end in divmod(one, size)) for one in known.tolist()]
        component = partial(_path, paths, directed)
        builder.add("path", known.size, component, far, code.ravel())
    builder.add("scope", 1, lambda _: BETWEEN_SWITCHES, far, np.zeros(far.size, np.int64))


def _path(paths: Sequence[tuple[str, ...]], directed: bool, number: int) -> ComponentRef:
    """Return a path between two switches."""
    return ComponentRef.of("route", *paths[number], directed=directed)
