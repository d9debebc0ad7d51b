"""The components that the segments of a directed pair of hosts cross on their way from the sender to the receiver."""

from __future__ import annotations

import numpy as np

from fablint.analyse.data.rank_places import Codes, Places
from fablint.analyse.data.segments import Segments
from fablint.analyse.detect.lateness.late_pairs import Candidate, CandidateBuilder, Candidates
from fablint.model import Direction
from fablint.topology.routing import Routes

SIDES: tuple[tuple[int, Direction], ...] = ((0, "tx"), (1, "rx"))


def directed_candidates(segments: Segments, places: Places, routes: Routes | None) -> Candidates:
    """Hosts that send, that receive, and both; links and cables, paths between switches, and switches."""
    builder = CandidateBuilder()
    every = np.arange(len(segments.hosts))
    for side, direction in SIDES:
        first = len(builder.named)
        builder.entries.append((every, segments.hosts[:, side] + first))
        builder.named += [Candidate("host", name, "host", direction) for name in places.hosts]
    both = len(builder.named)
    builder.entries += [(every, segments.hosts[:, side] + both) for side, _ in SIDES]
    builder.named += [Candidate("host", name, "host", "both") for name in places.hosts]
    if places.switches:
        if routes is not None:
            pair, link = _links(segments, places, routes)
            cables = [routes.cable(number) for number in range(len(routes.ends))]
            builder.add("cable", "link", list(routes.names), pair, link)
            builder.add("cable", "cable", cables[::2], pair, link // 2)
        _add_paths(builder, segments, places)
        _add_switches(builder, segments, places)
    return builder.candidates(every.size)


def _links(segments: Segments, places: Places, routes: Routes) -> tuple[Codes, Codes]:
    """Flat: pair, directed link that its segments cross; nothing where no path is known."""
    nothing = np.zeros(0, np.int64)
    if not len(routes.ends) or routes.routing.kind in ("adaptive", "ecmp"):
        return nothing, nothing
    code = routes.codes(places.switches)
    ends = np.where(segments.switches >= 0, code[segments.switches], -1).astype(np.int32)
    hops = routes.hops(ends[:, 0], ends[:, 1], places.number[segments.ranks[:, 1]])
    at, step = np.nonzero(hops >= 0)
    return at, hops[at, step].astype(np.int64)


def _add_paths(builder: CandidateBuilder, segments: Segments, places: Places) -> None:
    """Paths from one switch to another, and all pairs that are on several switches."""
    here, there = segments.switches.T
    far = np.flatnonzero((here >= 0) & (there >= 0) & (here != there))
    size = len(places.switches)
    for sign, a, b in (
        (">", here[far], there[far]),
        ("=", np.minimum(here, there)[far], np.maximum(here, there)[far]),
    ):
        known, code = np.unique(a * size + b, return_inverse=True)
        names = [sign.join(places.switches[end] for end in divmod(one, size)) for one in known.tolist()]
        builder.add("path", "route", names, far, code.ravel())
    builder.add("scope", "config", ["paths between switches"], far, np.zeros(far.size, np.int64))


def _add_switches(builder: CandidateBuilder, segments: Segments, places: Places) -> None:
    """A switch with all that begins or ends on it."""
    every = np.arange(len(segments.hosts))
    builder.add("switch", "switch", list(places.switches), np.tile(every, 2), segments.switches.T.ravel())
