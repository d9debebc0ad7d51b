"""Candidates: components, or sets of links with a name, that may delay or lose messages, and the pairs they explain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fablint.analyse.settings import FEWEST_INDEPENDENT
from fablint.model import ComponentKind, ComponentRef, Direction
from fablint.model.arrays import Codes, Floats, Mask
from fablint.model.component import in_series
from fablint.model.figures.distinct_codes import distinct_values

Crossings = Sequence[tuple[Codes, Codes]]  # flat lists of pairs, and of the component that each crosses; -1: none


@dataclass(frozen=True)
class Candidate:
    """A component, or a set of links with a name, that may delay messages."""

    component: ComponentRef
    kind: str  # host nic cable path exits switch scope
    direction: Direction | None = None  # of a host or NIC: whether it sends or receives; None: either
    number: int = 0  # position among the components that were added with it: code of a host, NIC, switch or link

    @property
    def is_scope(self) -> bool:
        """True if it stands for all pairs of a distance, and not for a component."""
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


@dataclass(frozen=True)
class _Block:
    """Candidates that were added together: of a kind, with consecutive codes."""

    first: int  # code of the first
    count: int
    kind: str
    component: Callable[[int], ComponentRef]
    direction: Direction | None
    crossings: Crossings

    @property
    def codes(self) -> slice:
        """Codes of its candidates."""
        return slice(self.first, self.first + self.count)


class CandidateBuilder:
    """Collector of candidates and of the pairs that cross them. Components are made for those that are kept."""

    def __init__(self) -> None:
        self._blocks: list[_Block] = []

    @property
    def size(self) -> int:
        """Number of candidates."""
        return sum(block.count for block in self._blocks)

    def add(
        self,
        kind: str,
        count: int,
        component: Callable[[int], ComponentRef],
        crossings: Crossings,
        direction: Direction | None = None,
    ) -> None:
        """Add `count` candidates of a kind, number i of which is `component(i)`, and the pairs that cross them."""
        crossed = [
            (pair, code) if code.min(initial=0) >= 0 else (pair[code >= 0], code[code >= 0]) for pair, code in crossings
        ]
        self._blocks.append(_Block(self.size, count, kind, component, direction, crossed))

    def sums(self, values: Floats) -> Floats:
        """Return the (candidates,) sum of (u,) values over the pairs of each; those that cross it twice count twice."""
        total = np.zeros(self.size)
        for block in self._blocks:
            for pair, code in block.crossings:
                total[block.codes] += np.bincount(code, weights=values[pair], minlength=block.count)
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
        key = distinct_values(np.concatenate(list(self._keys(pairs, chosen))))
        code, pair = key // pairs, key % pairs
        count = np.bincount(code, minlength=self.size)
        random = np.random.default_rng(1).random(pairs)
        signature = np.bincount(code, weights=random[pair], minlength=self.size)
        crossed = np.flatnonzero(count >= FEWEST_INDEPENDENT)
        _, first, group = np.unique(signature[crossed], return_index=True, return_inverse=True)
        members: list[list[int]] = [[] for _ in first]
        for position, number in zip(group.ravel().tolist(), crossed.tolist(), strict=True):
            members[position].append(number)
        members.sort()
        new = np.full(self.size, -1)
        new[[equal[0] for equal in members]] = np.arange(len(members))
        kept = new[code] >= 0
        series = [[self._candidate(number) for number in equal] for equal in members]
        return Candidates(
            tuple(equal[0] for equal in series),
            tuple(tuple(equal[1:]) for equal in series),
            pair[kept],
            new[code[kept]],
        )

    def _keys(self, pairs: int, chosen: Mask | None) -> Iterator[Codes]:
        """Yield `code * pairs + pair` of the candidates and the pairs that cross them."""
        for block in self._blocks:
            for pair, code in block.crossings:
                if chosen is not None:
                    is_chosen = chosen[block.codes][code]
                    pair, code = pair[is_chosen], code[is_chosen]
                yield (code.astype(np.int64) + block.first) * pairs + pair

    def _candidate(self, code: int) -> Candidate:
        block = next(block for block in self._blocks if code < block.first + block.count)
        number = code - block.first
        return Candidate(block.component(number), block.kind, block.direction, number)


def named(kind: ComponentKind, names: Sequence[str]) -> tuple[int, Callable[[int], ComponentRef]]:
    """Return the number of components with these names, and the component of each position."""
    return len(names), lambda number: ComponentRef.of(kind, names[number])


def ambiguity_group(candidate: Candidate, others: Sequence[Candidate]) -> tuple[ComponentRef, ...]:
    """Return the components in series with a candidate and those of `others`, without its own and without scopes."""
    attached = in_series(candidate.component.label) if candidate.kind == "host" else ()
    group = dict.fromkeys((*attached, *(other.component for other in others if not other.is_scope)))
    return tuple(component for component in group if component != candidate.component)
