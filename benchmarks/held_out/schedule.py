"""Pairs of each round, and the time of the round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
ROUND_S = 0.25  # s from the start of a round to that of the next


@dataclass(frozen=True)
class Schedule:
    """Ordered pairs in the order in which they are measured; both directions of a pair lie in one round."""

    src: Ints
    dst: Ints
    round: Ints
    started: Floats  # s
    rounds: int

    def __len__(self) -> int:
        return int(self.src.size)

    def chosen(self, mask: npt.NDArray[np.bool_]) -> Schedule:
        """Some of the pairs."""
        return Schedule(self.src[mask], self.dst[mask], self.round[mask], self.started[mask], self.rounds)


def one_at_a_time(schedule: Schedule) -> Schedule:
    """The same pairs, round by round, each in a round of its own."""
    ends = np.stack([schedule.src, schedule.dst], axis=1)[schedule.src < schedule.dst]
    return _of_rounds(list(ends[:, None, :]))


def _of_rounds(matchings: list[npt.NDArray[np.int64]]) -> Schedule:
    """A schedule from (pairs, 2) matchings; as in the engine, the lower of two ranks sends first."""
    pairs = np.sort(np.concatenate(matchings), axis=1)
    number = np.repeat(np.arange(len(matchings)), [len(one) for one in matchings])
    src, dst = np.concatenate([pairs, pairs[:, ::-1]]).T
    both = np.concatenate([number, number])
    late = np.repeat([0.0, ROUND_S / 2], len(pairs))
    order = np.lexsort((src, late, both))
    started = both * ROUND_S + late
    return Schedule(src[order], dst[order], both[order], started[order], len(matchings))


def full_matrix(n: int, rng: np.random.Generator, repeats: int = 1) -> Schedule:
    """Every pair once, or `repeats` times: rounds of the round-robin method in random order."""
    even = n + n % 2
    positions = rng.permutation(even)
    matchings = []
    for turn in range(even - 1):
        ring = np.concatenate([positions[:1], np.roll(positions[1:], turn)])
        pairs = np.stack([ring[: even // 2], ring[even // 2 :][::-1]], axis=1)
        matchings.append(pairs[(pairs < n).all(axis=1)])  # with an odd number of hosts one waits in each round
    return _of_rounds([matchings[at] for _ in range(repeats) for at in rng.permutation(even - 1)])


def few_rounds(n: int, rounds: int, rng: np.random.Generator) -> Schedule:
    """A few matchings drawn by chance."""
    matchings = []
    for _ in range(rounds):
        order = rng.permutation(n)
        half = n // 2
        matchings.append(np.stack([order[:half], order[half : 2 * half]], axis=1))
    return _of_rounds(matchings)
