"""Candidates: components, or sets of links with a name, that may delay or lose messages, and the pairs they explain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fablint.analyse.settings import FEWEST_INDEPENDENT
from fablint.model import ComponentKind, ComponentRef, Direction
from fablint.model.arrays import Codes, Floats, Mask


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
        known = np.flatnonzero(count >= FEWEST_INDEPENDENT)
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
