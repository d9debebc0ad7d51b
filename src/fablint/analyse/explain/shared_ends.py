"""Search for the components that missing cells have in common: ends, pairs of switches, pairs of groups.

The cells of a candidate are missing with a probability of its own, all others with one that they share. As in
`lateness.explanation`, the probability of a candidate is integrated, here over a uniform prior: of n cells of which m
are missing the log-likelihood is -log((n + 1) binomial(n, m)). A candidate is chosen while this exceeds the likelihood
under the shared probability by the logarithm of the number of candidates. Each missing cell is explained by one
candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import gammaln, xlogy

from fablint.analyse.candidates.components import RankGroups, RankHosts
from fablint.analyse.settings import FEWEST_PEERS
from fablint.model import ComponentRef, Placement
from fablint.model.arrays import Cells, Codes, Floats, Ints, Mask
from fablint.model.component import MOST_LINKS

MOST_LISTED = 1 << 24  # missing cells that are kept in memory; more are read again in each step
MOST_STEPS = 32  # largest number of steps of a search

Source = Callable[[], Iterable[Cells]]


@dataclass(frozen=True)
class CandidateType:
    """Candidates of one type: the ends of a type as senders (side 0) or receivers (1), or ordered pairs of them (2).

    `outward` ones have only the cells that leave or enter them.
    """

    ends: RankGroups
    side: int
    outward: bool = False

    @cached_property
    def size(self) -> int:
        """Number of candidates."""
        return len(self.ends) ** 2 if self.side == 2 else len(self.ends)

    def of_cells(self, cells: Cells) -> Codes:
        """Return the candidate of each cell, (k,); -1: none."""
        sender, receiver = self.ends.code[cells[0]], self.ends.code[cells[1]]
        if self.side < 2:
            end = np.asarray((sender, receiver)[self.side], dtype=np.int64)
            return np.where(sender == receiver, -1, end) if self.outward else end
        between = sender.astype(np.int64) * len(self.ends) + receiver
        return np.where((sender >= 0) & (receiver >= 0), between, -1)

    def count(self, cells: Cells) -> Ints:
        """Return the number of cells of each candidate."""
        number = self.of_cells(cells)
        return np.bincount(number[number >= 0], minlength=self.size).astype(np.int64)


@dataclass(frozen=True)
class SharedEnd:
    """A component that missing cells have in common.

    `side` and `outward` are those of its candidate, `counts` its missing and planned cells, `opposite` those of the
    other direction. `partners` are the hosts at the other ends of its missing cells, where others are not missing.
    """

    components: tuple[ComponentRef, ...]
    side: int
    outward: bool
    counts: tuple[int, int]
    opposite: tuple[int, int]
    partners: tuple[str, ...] = ()

    @property
    def is_entire(self) -> bool:
        """True if none of its cells was measured."""
        return self.counts[0] == self.counts[1]


@dataclass
class _Explanation:
    """A set of candidates: those of each step, those of each type, and the sum of their gains."""

    steps: list[tuple[int, Mask]] = field(default_factory=list)
    taken: dict[int, Mask] = field(default_factory=dict)
    score: float = 0.0


@dataclass
class SharedEndSearch:
    """Search over all candidates of a placement for the missing cells of a row.

    `missing` and `planned` yield the cells in blocks. `explained` (n,) are ranks whose cells have another explanation,
    `explained_pairs` pairs of hosts, as codes.
    """

    placement: Placement
    missing: Source
    planned: Source
    explained: Mask
    explained_pairs: Codes
    _taken: dict[int, Mask] = field(default_factory=dict)  # candidates in the explanation, by type

    def __post_init__(self) -> None:
        """Count the cells of all candidates."""
        self.types = candidate_types(self.placement)
        self.planned_of = self._counted(map(self._without_explained, self.planned()))
        self.first = self._counted(self._left())
        total = sum(cells[0].size for cells in self._left())
        if total <= MOST_LISTED:
            listed = list(self._left())
            self.missing = lambda: listed
        self._rate = self._shared_rate(total)

    def members(self) -> list[SharedEnd]:
        """Return the components that explain the missing cells, in the order of the search.

        The better of two searches counts: one takes the best candidate in each step, the other one prefers candidates
        of which no cell was measured.
        """
        if not self.types:
            return []
        searches = [self._search(prefer_entire=prefer) for prefer in (True, False)]
        best = max(searches, key=lambda search: search.score)
        self._taken = {}
        members = [member for number, chosen in best.steps for member in self._named(number, chosen)]
        self._taken = best.taken
        return members

    def unexplained(self) -> Iterator[Cells]:
        """Yield the missing cells that no member explains."""
        return self._left()

    def _search(self, *, prefer_entire: bool) -> _Explanation:
        """Return the explanation of a greedy search."""
        explanation = _Explanation()
        self._taken = explanation.taken
        price = np.log(sum(each.size for each in self.types))
        for _ in range(MOST_STEPS):
            counts = self._counted(self._left())
            gains = [self._gains(number, count) - price for number, count in enumerate(counts)]
            number = max(range(len(gains)), key=lambda number: float(gains[number].max()))
            entire = [np.where(self._is_entire(number), gain, -np.inf) for number, gain in enumerate(gains)]
            if prefer_entire and max(gain.max() for gain in entire) > 0:
                number = max(range(len(gains)), key=lambda number: float(entire[number].max()))
                gains = entire
            best = gains[number].max()
            if best <= 0:
                break
            # CandidateType of a type have no cell in common: those of which no cell was measured need no further step.
            chosen = gains[number] == best
            if entire[number].max() == best:
                chosen = entire[number] > 0
            explanation.score += float(gains[number][chosen].sum())
            explanation.steps.append((number, chosen))
            explanation.taken[number] = explanation.taken.get(number, np.zeros_like(chosen)) | chosen
        return explanation

    # ------------------------------------------------------------------------------------------------ counts

    def _without_explained(self, cells: Cells) -> Cells:
        """Return the cells of no rank and no pair of hosts with another explanation."""
        left = ~(self.explained[cells[0]] | self.explained[cells[1]])
        if self.explained_pairs.size:
            sender, receiver = (self.placement.host[end].astype(np.int64) for end in cells)
            left &= ~np.isin(sender * len(self.placement.hosts) + receiver, self.explained_pairs)
        return cells[0][left], cells[1][left]

    def _left(self) -> Iterator[Cells]:
        """Yield the missing cells that no candidate of the explanation has."""
        for cells in map(self._without_explained, self.missing()):
            left = np.ones(cells[0].size, dtype=bool)
            for number, taken in self._taken.items():
                candidate = self.types[number].of_cells(cells)
                left &= ~(taken[candidate] & (candidate >= 0))
            yield cells[0][left], cells[1][left]

    def _counted(self, blocks: Iterable[Cells]) -> list[Ints]:
        counts: list[Ints] = [np.zeros(each.size, dtype=np.int64) for each in self.types]
        for cells in blocks:
            for each, count in zip(self.types, counts, strict=True):
                count += each.count(cells)
        return counts

    def _is_entire(self, number: int) -> Mask:
        """Return which candidates of a type have no measured cell, and enough of them to be no chance."""
        return np.asarray((self.first[number] == self.planned_of[number]) & (self.first[number] >= FEWEST_PEERS))

    def _shared_rate(self, total: int) -> float:
        """Return the share of missing cells outside of the candidates of which all cells are missing."""
        planned = int(sum(cells[0].size for cells in map(self._without_explained, self.planned())))
        entire = [self._is_entire(number) for number in range(len(self.types))]
        inside = 0
        for cells in self._left():
            within = np.zeros(cells[0].size, dtype=bool)
            for each, whole in zip(self.types, entire, strict=True):
                candidate = each.of_cells(cells)
                within |= whole[candidate] & (candidate >= 0)
            inside += int(np.count_nonzero(within))
        return (total - inside + 0.5) / (planned - inside + 1)

    def _gains(self, number: int, missing: Ints) -> Floats:
        """Return the log-likelihood ratio of each candidate of a type."""
        planned = self.planned_of[number] - (self.first[number] - missing)
        measured = planned - missing
        shared = -xlogy(missing, self._rate) - xlogy(measured, 1 - self._rate)
        choices = gammaln(planned + 1) - gammaln(missing + 1) - gammaln(measured + 1)
        return np.where(missing > 0, shared - choices - np.log(planned + 1), -np.inf)

    # ------------------------------------------------------------------------------------------------ names

    def _named(self, number: int, chosen: Mask) -> list[SharedEnd]:
        """Return the chosen candidates of one type as members; those without a measured cell are one if they agree."""
        each = self.types[number]
        if each.side == 2 and np.count_nonzero(chosen) > MOST_LINKS:
            return [self._many_pairs(number, chosen)]
        members: dict[object, SharedEnd] = {}
        for code in np.flatnonzero(chosen).tolist():
            counts, opposite = self._counts(number, code), self._opposite(number, code)
            partners = self._partners(each, code) if counts[0] < counts[1] and each.side < 2 else ()
            key = (counts, opposite) if each.side < 2 and not partners else code
            components = (*(members[key].components if key in members else ()), self._reference(each, code))
            members[key] = SharedEnd(components, each.side, each.outward, counts, opposite, partners)
        return list(members.values())

    def _many_pairs(self, number: int, chosen: Mask) -> SharedEnd:
        """Return too many pairs to be named one by one: from all of their senders to all of their receivers."""
        each, codes = self.types[number], np.flatnonzero(chosen)
        pairs = [(self._counts(number, code), self._opposite(number, code)) for code in codes.tolist()]
        counts, opposite = np.array(pairs).sum(axis=0).tolist()
        names = ([str(each.ends.names[end]) for end in np.unique(ends)] for ends in divmod(codes, len(each.ends)))
        component = ComponentRef.of("route", *names, directed=True)
        return SharedEnd((component,), each.side, each.outward, tuple(counts), tuple(opposite))

    def _reference(self, each: CandidateType, code: int) -> ComponentRef:
        if each.side < 2:
            return each.ends.reference(code)
        sender, receiver = (str(each.ends.names[end]) for end in divmod(code, len(each.ends)))
        return ComponentRef.of("route", sender, receiver, directed=True)

    def _counts(self, number: int, code: int) -> tuple[int, int]:
        return int(self.first[number][code]), int(self.planned_of[number][code])

    def _opposite(self, number: int, code: int) -> tuple[int, int]:
        each = self.types[number]
        if each.side == 2:
            sender, receiver = divmod(code, len(each.ends))
            return self._counts(number, receiver * len(each.ends) + sender)
        other = next(
            position
            for position, candidate in enumerate(self.types)
            if (candidate.ends, candidate.outward, candidate.side) == (each.ends, each.outward, 1 - each.side)
        )
        return self._counts(other, code)

    def _partners(self, each: CandidateType, code: int) -> tuple[str, ...]:
        ranks: set[int] = set()
        for cells in self._left():
            ranks |= set(np.unique(cells[1 - each.side][each.of_cells(cells) == code]).tolist())
        hosts = np.unique(self.placement.host[sorted(ranks)])
        return tuple(self.placement.hosts[host] for host in hosts.tolist())


def candidate_types(placement: Placement) -> list[CandidateType]:
    """Return the candidates of a placement; of two types with the same ranks the first is one."""
    ranks = np.arange(placement.ranks)
    ends: list[RankGroups] = []
    for entry in (
        RankGroups("host", placement.hosts, placement.host),
        RankGroups("nic", placement.nics, placement.nic),
        RankGroups("rank", RankHosts(placement), ranks),
        RankGroups("switch", placement.switches, placement.switch),
        RankGroups("group", placement.groups, placement.group),
    ):
        if len(entry) > 1 and not any(map(entry.is_same_partition, ends)):
            ends.append(entry)
    wide = [entry for entry in ends if entry.kind in ("switch", "group")]
    return [
        *(CandidateType(entry, side) for entry in ends for side in (0, 1)),
        *(CandidateType(entry, side, outward=True) for entry in wide for side in (0, 1)),
        *(CandidateType(entry, 2) for entry in wide),
    ]
