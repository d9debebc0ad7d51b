"""Components that the segments of a directed pair of hosts cross from the sender to the receiver."""

from __future__ import annotations

import numpy as np

from fablint.analyse.data.pair_matrix import Codes
from fablint.analyse.data.segments import Segments
from fablint.analyse.detect.lateness.late_pairs import BETWEEN_SWITCHES, Candidate, CandidateBuilder, Candidates
from fablint.model import ComponentRef, Direction, Placement
from fablint.topology.routed_placement import links_crossed
from fablint.topology.routing import Routes

SIDES: tuple[tuple[int, Direction], ...] = ((0, "tx"), (1, "rx"))


def directed_candidates(segments: Segments, placement: Placement, routes: Routes | None) -> Candidates:
    """Return hosts as senders, as receivers, and as both; links and cables, paths between switches, and switches."""
    builder = CandidateBuilder()
    every = np.arange(len(segments.hosts))
    for side, direction in SIDES:
        first = len(builder.named)
        builder.entries.append((every, segments.hosts[:, side] + first))
        builder.named += [Candidate(ComponentRef.of("host", name), "host", direction) for name in placement.hosts]
    both = len(builder.named)
    builder.entries += [(every, segments.hosts[:, side] + both) for side, _ in SIDES]
    builder.named += [Candidate(ComponentRef.of("host", name), "host", "both") for name in placement.hosts]
    if placement.switches:
        if routes is not None:
            pair, link = _links(segments, placement, routes)
            links = range(len(routes.ends))
            builder.add("cable", [routes.component(number) for number in links], pair, link)
            builder.add("cable", [routes.cable_component(number) for number in links[::2]], pair, link // 2)
        _add_paths(builder, segments, placement)
        _add_switches(builder, segments, placement)
    return builder.candidates(every.size)


def _links(segments: Segments, placement: Placement, routes: Routes) -> tuple[Codes, Codes]:
    """Return flat lists: pair, and directed link that its segments cross; empty if no path is known."""
    nothing = np.zeros(0, np.int64)
    if not len(routes.ends) or routes.routing.kind in ("adaptive", "ecmp"):
        return nothing, nothing
    here, there = segments.switches.T
    pair, link = links_crossed(routes, here, there, placement.location[segments.ranks[:, 1]], placement.switches)
    return pair.astype(np.int64), link.astype(np.int64)


def _add_paths(builder: CandidateBuilder, segments: Segments, placement: Placement) -> None:
    """Add paths from one switch to another, and all pairs on several switches."""
    here, there = segments.switches.T
    far = np.flatnonzero((here >= 0) & (there >= 0) & (here != there))
    size = len(placement.switches)
    for directed, a, b in (
        (True, here[far], there[far]),
        (False, np.minimum(here, there)[far], np.maximum(here, there)[far]),
    ):
        known, code = np.unique(a * size + b, return_inverse=True)
        ends = [[placement.switches[end] for end in divmod(one, size)] for one in known.tolist()]
        paths = [ComponentRef.of("route", *names, directed=directed) for names in ends]
        builder.add("path", paths, far, code.ravel())
    builder.add("scope", [BETWEEN_SWITCHES], far, np.zeros(far.size, np.int64))


def _add_switches(builder: CandidateBuilder, segments: Segments, placement: Placement) -> None:
    """Add each switch with all pairs that begin or end on it."""
    every = np.arange(len(segments.hosts))
    switches = [ComponentRef.of("switch", name) for name in placement.switches]
    builder.add("switch", switches, np.tile(every, 2), segments.switches.T.ravel())
