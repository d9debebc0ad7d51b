"""Which links the messages between two switches cross, where the topology leaves no choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fablint.model import Topology

Index = npt.NDArray[np.int32]
MAX_HOPS = 6  # longer shortest paths are not followed


@dataclass(frozen=True)
class Routes:
    """Directed links (from, to); link 2 k + 1 is the way back of link 2 k. Parallel cables are one."""

    links: tuple[tuple[str, str], ...]
    hops: Index  # (hops, S, S): the links from switch to switch, -1: none; all -1 where the shortest path is not unique

    def crossing(self, link: int) -> npt.NDArray[np.bool_]:
        """(S, S) the pairs of switches whose messages cross this link."""
        return np.asarray((self.hops == link).any(axis=0))


def unique_routes(topology: Topology, switches: Sequence[str]) -> Routes:
    """Routes between these switches along shortest paths.

    Counted hop by hop: paths of d + 1 hops are paths of d hops times one cable.

    Where several shortest paths exist, which one a message takes is the routing's choice and no link is blamed.
    """
    code = {name: index for index, name in enumerate(topology.switches)}
    size = len(code)
    link = np.full((size, size), -1, dtype=np.int32)
    names: list[tuple[str, str]] = []
    for cable in topology.cables:
        a, b = code[cable.a], code[cable.b]
        if link[a, b] < 0:
            link[a, b], link[b, a] = len(names), len(names) + 1
            names += [(cable.a, cable.b), (cable.b, cable.a)]

    joined = (link >= 0).astype(np.float64)
    by_predecessor = joined * np.arange(size)[:, None]
    paths = np.eye(size)
    reached = np.eye(size, dtype=bool)
    hops = np.full((MAX_HOPS, size, size), -1, dtype=np.int32)
    longest = 0
    for hop in range(MAX_HOPS):
        more = np.where(reached, 0.0, paths @ joined)
        if not more.any():
            break
        longest = hop + 1
        start, end = np.nonzero(more == 1)
        before = np.rint((paths @ by_predecessor)[start, end]).astype(np.int64)  # the one switch before the last
        hops[:hop, start, end] = hops[:hop, start, before]
        hops[hop, start, end] = link[before, end]
        reached |= more > 0
        paths = more
    wanted = [code[name] for name in switches]
    return Routes(tuple(names), hops[:longest][:, wanted][:, :, wanted])
