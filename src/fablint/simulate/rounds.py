"""Rounds: who meets whom, as lists of disjoint pairs of ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fablint.errors import UsageError

Pairs = npt.NDArray[np.int32]  # (pairs, 2) ranks
Partners = npt.NDArray[np.int32]  # (ranks, rounds), -1 where the rank is idle


def schedule(n: int) -> npt.NDArray[np.int32]:
    """(n, n) round in which each pair meets, -1 on the diagonal: the circle method for round-robin tournaments.

    An even n takes n - 1 rounds, an odd n takes n with one rank idle in each. The order of the rounds is drawn, as the
    engine draws it: in the circle's own order the pairs of two switches meet one after the other.
    """
    index = np.arange(n, dtype=np.int32)
    players = n + n % 2
    rounds = (index[:, None] + index[None, :]) % (players - 1)
    if n % 2 == 0:  # the fixed player meets k in the round where k would meet itself
        rounds[-1, :] = rounds[:, -1] = 2 * index % (players - 1)
    rounds = np.argsort(_drawn(n))[rounds]
    np.fill_diagonal(rounds, -1)
    return np.asarray(rounds, dtype=np.int32)


def _drawn(players: int) -> npt.NDArray[np.int64]:
    """Which round of the circle each round is."""
    cycle = max(1, players - 1 + players % 2)
    return np.random.default_rng(players).permutation(cycle).astype(np.int64)


def opponent(player: npt.ArrayLike, players: int, number: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Whom `player` of `players` meets in round `number` of `schedule(players)`, -1 where it is idle."""
    player, number = np.broadcast_arrays(np.asarray(player), _drawn(players)[np.asarray(number)])
    even = players + players % 2
    cycle = max(even - 1, 1)
    met = (number - player) % cycle
    met = np.where(met == player, even - 1, met)
    fixed = number * (even // 2) % cycle  # the k with 2 k = number, modulo the odd cycle
    met = np.where(player == even - 1, fixed, met)
    return np.where((met < players) & (met != player), met, -1).astype(np.int64)


def partners_of(rounds: Sequence[Pairs], ranks: int) -> Partners:
    """The same as a table. UsageError for ranks that are not there and for pairs that are not disjoint."""
    table = np.full((ranks, len(rounds)), -1, dtype=np.int32)
    for number, pairs in enumerate(rounds):
        pairs = np.asarray(pairs, dtype=np.int32).reshape(-1, 2)
        if pairs.size and (pairs.min() < 0 or pairs.max() >= ranks):
            raise UsageError(f"round {number}: ranks beyond 0 to {ranks - 1}")
        if np.unique(pairs).size != pairs.size:
            raise UsageError(f"round {number}: a rank is in two pairs, or meets itself", "pairs must be disjoint")
        table[pairs[:, 0], number] = pairs[:, 1]
        table[pairs[:, 1], number] = pairs[:, 0]
    return table


def all_rounds(ranks: int) -> list[Pairs]:
    """Every pair once."""
    index = np.arange(ranks)
    cycle = max(1, ranks - 1 + ranks % 2)
    return [matched(opponent(index, ranks, number)) for number in range(cycle)]


def matched(partner: npt.NDArray[np.int64]) -> Pairs:
    """The pairs of a table of partners, -1 where there is none."""
    index = np.arange(partner.size)
    first = np.flatnonzero(partner > index)
    return np.stack([first, partner[first]], axis=1).astype(np.int32)
