"""Rounds that answer questions: pairs that would decide about a part, packed into as few rounds as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from fablint.model import Question, Run
from fablint.plan.seats import Codes, Pairs, Seats, crossings, pair_keys

Keys = npt.NDArray[np.int64]

LEAST = 3  # new partners for each part: so often is a suspect connected anew
MOST_ROUNDS = 8
NO_KEYS: Keys = np.zeros(0, np.int64)


def follow_up(
    questions: Sequence[Question],
    seats: Seats,
    measured: Keys = NO_KEYS,
    *,
    least: int = LEAST,
    most_rounds: int = MOST_ROUNDS,
) -> list[Pairs]:
    """Rounds of disjoint pairs that answer the questions: at least `least` new pairs to each, where there are so many.

    Questions take turns, so that none waits for another to be answered. Pairs that were measured already come after
    those that were not. A pair goes to the first round in which both ranks are free and no cable is crossed
    twice in a direction; where there is none, a round is added; at `most_rounds` it goes where it collides least.
    At last what room the rounds have is used for further pairs.

    Args:
        questions: what is open; their pairs with the most telling first.
        seats: where the ranks are.
        measured: keys of the pairs that were measured (`measured_pairs`).
        least: pairs for each question.
        most_rounds: rounds at most; what finds no room is left for the next time.
    """
    turns = _Turns(questions, seats, measured)
    packed = _Packing(seats, turns.pairs)
    for _ in range(least):
        turns.take(lambda pair: packed.add(pair, most_rounds))
    while turns.take(packed.add):
        pass
    return packed.rounds()


def measured_pairs(run: Run, ranks: int) -> Keys:
    """Keys of the pairs that the listed rows of a run have measured; those of matrices are not looked at."""
    found = [NO_KEYS]
    for row in run.rows:
        if row.layout == "list":
            partner = np.asarray(row.arrays["dst"][:])
            src, column = np.nonzero(partner >= 0)
            found.append(pair_keys(np.stack([src, partner[src, column]], axis=1).astype(np.int32), ranks))
    return np.unique(np.concatenate(found))


def with_controls(
    rounds: Sequence[Pairs], seats: Seats, suspects: Sequence[int], each: int, seed: int = 1
) -> list[Pairs]:
    """The same with up to `each` more pairs in every round, of ranks that nobody suspects: what is healthy today.

    They cross no cable that the round crosses in their direction already, and bring new partners together.
    """
    random = np.random.default_rng(seed)
    clean = np.setdiff1d(np.arange(seats.ranks, dtype=np.int32), np.asarray(suspects, dtype=np.int32))
    drawn = [_drawn(clean, pairs, seats, 2 * each, random) for pairs in rounds]
    every = np.concatenate([np.zeros((0, 2), np.int32), *rounds, *drawn])
    packed = _Packing(seats, every)
    at = 0
    for number, pairs in enumerate(rounds):
        packed.place(range(at, at + len(pairs)), number)
        at += len(pairs)
    for number, pairs in enumerate(drawn):
        for pair in range(at, at + len(pairs)):
            if packed.size(number) < len(rounds[number]) + each and packed.fits(pair, number):
                packed.place([pair], number)
        at += len(pairs)
    return packed.rounds()


def _drawn(clean: Codes, pairs: Pairs, seats: Seats, count: int, random: np.random.Generator) -> Pairs:
    """Up to `count` disjoint pairs of clean ranks on two hosts that the round leaves idle."""
    idle = random.permutation(np.setdiff1d(clean, pairs))[: 2 * count]
    half = idle.size // 2
    found = np.stack([idle[:half], idle[half : 2 * half]], axis=1)
    apart: Pairs = found[seats.host[found[:, 0]] != seats.host[found[:, 1]]]
    return apart


class _Turns:
    """Pairs of all questions in one list, each question with its own queue."""

    def __init__(self, questions: Sequence[Question], seats: Seats, measured: Keys) -> None:
        ordered = [_new_first(question, seats, measured) for question in questions]
        self.pairs: Pairs = np.concatenate([np.zeros((0, 2), np.int32), *ordered])
        ends = np.cumsum([len(pairs) for pairs in ordered]).tolist()
        self._queues = [
            list(range(end - 1, end - len(pairs) - 1, -1)) for end, pairs in zip(ends, ordered, strict=True)
        ]

    def take(self, add: Callable[[int], bool]) -> bool:
        """One pair of each question that can be added; what cannot is dropped. False when nothing was added."""
        added = False
        for queue in self._queues:
            while queue:
                if add(queue.pop()):
                    added = True
                    break
        return added


def _new_first(question: Question, seats: Seats, measured: Keys) -> Pairs:
    """The pairs of a question, each once whatever its direction: both are measured."""
    pairs = np.asarray(question.pairs, dtype=np.int32).reshape(-1, 2)
    pairs = pairs[seats.host[pairs[:, 0]] != seats.host[pairs[:, 1]]]
    keys = pair_keys(pairs, seats.ranks)
    first = np.sort(np.unique(keys, return_index=True)[1])
    old = np.isin(keys[first], measured)
    ordered: Pairs = pairs[first[np.argsort(old, kind="stable")]]
    return ordered


class _Packing:
    """Rounds under construction: which ranks and which links (in which direction) each of them uses."""

    def __init__(self, seats: Seats, pairs: Pairs) -> None:
        self._pairs = pairs
        links = len(seats.routes.ends) if seats.routes is not None else 0
        self._links: list[set[int]] = [set() for _ in range(len(pairs))]
        for way in (0, 1):
            query, link, share = crossings(pairs[:, way], pairs[:, 1 - way], seats)
            sure = share >= 1.0  # what may be crossed or not cannot be kept apart
            for pair, number in zip(query[sure].tolist(), link[sure].tolist(), strict=True):
                self._links[pair].add(number + way * links)
        self._chosen: list[list[int]] = []
        self._busy: list[set[int]] = []
        self._crossed: list[set[int]] = []
        self._placed: set[tuple[int, int]] = set()

    def add(self, pair: int, most_rounds: int = 0) -> bool:
        """Into the first round that it fits; a new one, or one where it collides, while there are not `most_rounds`."""
        ends = self._ends(pair)
        if (min(ends), max(ends)) in self._placed:  # asked for by two questions: it answers both
            return most_rounds > 0
        free = [number for number, busy in enumerate(self._busy) if not busy & set(ends)]
        clear = next((number for number in free if self.fits(pair, number)), None)
        if clear is None and len(self._chosen) < most_rounds:
            clear = len(self._chosen)
        if clear is None and most_rounds and free:
            clear = min(free, key=lambda number: len(self._crossed[number] & self._links[pair]))
        if clear is None:
            return False
        self.place([pair], clear)
        return True

    def fits(self, pair: int, number: int) -> bool:
        """Are both ranks free in the round, and all links?"""
        return not self._busy[number] & set(self._ends(pair)) and not self._crossed[number] & self._links[pair]

    def place(self, pairs: Sequence[int], number: int) -> None:
        """Into round `number`, which may be the next one."""
        while len(self._chosen) <= number:
            self._chosen.append([])
            self._busy.append(set())
            self._crossed.append(set())
        for pair in pairs:
            ends = self._ends(pair)
            self._chosen[number].append(pair)
            self._busy[number] |= set(ends)
            self._crossed[number] |= self._links[pair]
            self._placed.add((min(ends), max(ends)))

    def size(self, number: int) -> int:
        return len(self._chosen[number])

    def rounds(self) -> list[Pairs]:
        return [self._pairs[np.array(chosen, dtype=np.int64)] for chosen in self._chosen]

    def _ends(self, pair: int) -> tuple[int, int]:
        a, b = self._pairs[pair].tolist()
        return a, b
