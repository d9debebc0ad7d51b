"""Every pair of members of different parts once, in about as few rounds as the busiest member has partners."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from fablint.model.arrays import RankPairs
from fablint.plan.schedule.stratified import tournament


@lru_cache(maxsize=256)
def coloured(parts: tuple[int, ...]) -> tuple[RankPairs, ...]:
    """Rounds in which any two members of different parts meet once; at most one round more than the most partners.

    Members are numbered part by part. Parts of one member each play a tournament; equal parts, if their number is
    even, a tournament of parts in which the members of two parts are shifted against each other; else the edges
    are coloured (J. Misra and D. Gries, A constructive proof of Vizing's theorem, Inf. Proc. Lett. 41, 1992).
    """
    sizes = np.array(parts, dtype=np.int32)
    if sizes.size < 2:
        return ()
    if sizes.max() == 1 or (sizes.size % 2 == 0 and np.ptp(sizes) == 0):
        return _shifted(sizes.size, int(sizes[0]))
    part = np.repeat(np.arange(sizes.size), sizes)
    a, b = np.nonzero(part[:, None] < part[None])
    colouring = _Colouring(part.size, int((part.size - sizes).max()) + 1)
    for item, other in zip(a.tolist(), b.tolist(), strict=True):
        colouring.add(item, other)
    return colouring.rounds()


def _shifted(parts: int, members: int) -> tuple[RankPairs, ...]:
    """Equal parts: in each round of their tournament the members of two parts meet in `members` rounds."""
    rounds = []
    number = np.arange(members, dtype=np.int32)
    for turn in range(parts - 1 + parts % 2):
        item, other = tournament(np.arange(parts, dtype=np.int32), turn)
        for shift in range(members):
            a = item[:, None] * members + number
            b = other[:, None] * members + (number + shift) % members
            rounds.append(np.stack([a.ravel(), b.ravel()], axis=1).astype(np.int32))
    return tuple(rounds)


class _Colouring:
    """Colours of the edges added so far: no two edges of a vertex have the same."""

    def __init__(self, vertices: int, colours: int) -> None:
        self._mate = [[-1] * colours for _ in range(vertices)]  # of each vertex and colour
        self._colour = [[-1] * vertices for _ in range(vertices)]

    def rounds(self) -> tuple[RankPairs, ...]:
        """The edges of each colour that was used."""
        mate = np.array(self._mate, dtype=np.int32)
        result = []
        for colour in range(mate.shape[1]):
            low = np.flatnonzero(mate[:, colour] > np.arange(len(mate)))
            if low.size:
                result.append(np.stack([low.astype(np.int32), mate[low, colour]], axis=1))
        return tuple(result)

    def add(self, u: int, v: int) -> None:
        """Colour one more edge, changing colours of others where need be."""
        fan = self._fan(u, v)
        first, last = self._free(u), self._free(fan[-1])
        self._invert(u, first, last)
        end = self._end(u, fan, last)
        moved = [self._colour[u][w] for w in fan[1 : end + 1]] + [last]
        for w in fan[1 : end + 1]:
            self._clear(u, w)
        for w, colour in zip(fan[: end + 1], moved, strict=True):
            self._set(u, w, colour)

    def _free(self, vertex: int) -> int:
        return self._mate[vertex].index(-1)

    def _fan(self, u: int, v: int) -> list[int]:
        """Neighbours of u, each with an edge to u of a colour that its predecessor lacks; as many as go."""
        fan, members = [v], {v}
        while True:
            lacks = self._mate[fan[-1]]
            nexts = (w for colour, w in enumerate(self._mate[u]) if w >= 0 and lacks[colour] < 0 and w not in members)
            neighbour = next(nexts, -1)
            if neighbour < 0:
                return fan
            fan.append(neighbour)
            members.add(neighbour)

    def _end(self, u: int, fan: list[int], colour: int) -> int:
        """Return where the fan, as far as it still is one, may end with that colour."""
        for index, w in enumerate(fan):
            if index and self._mate[fan[index - 1]][self._colour[u][w]] >= 0:
                break
            if self._mate[w][colour] < 0:
                return index
        raise AssertionError("a fan has an end")

    def _invert(self, u: int, first: int, last: int) -> None:
        """Exchange two colours along the path that leaves u, so that u lacks the second."""
        path, at, colour = [], u, last
        while (to := self._mate[at][colour]) >= 0:
            path.append((at, to, first + last - colour))
            at, colour = to, first + last - colour
        for a, b, _ in path:
            self._clear(a, b)
        for a, b, new in path:
            self._set(a, b, new)

    def _set(self, a: int, b: int, colour: int) -> None:
        self._mate[a][colour], self._mate[b][colour] = b, a
        self._colour[a][b] = self._colour[b][a] = colour

    def _clear(self, a: int, b: int) -> None:
        colour = self._colour[a][b]
        self._mate[a][colour] = self._mate[b][colour] = -1
        self._colour[a][b] = self._colour[b][a] = -1
