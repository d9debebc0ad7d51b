"""Rounds: lists of disjoint pairs of ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fablint.errors import UsageError
from fablint.model.arrays import Codes, RankPairs


def schedule(n: int) -> Codes:
    """(n, n) round of each pair, -1 on the diagonal, by the round-robin algorithm.

    An even n takes n - 1 rounds, an odd n takes n with one rank idle in each. The order of the rounds is random, as in
    the engine: in the algorithm's own order the pairs of two switches are in consecutive rounds.
    """
    index = np.arange(n, dtype=np.int32)
    players = n + n % 2
    rounds = (index[:, None] + index[None, :]) % (players - 1)
    if n % 2 == 0:  # the fixed player is paired with k in the round in which k would be paired with itself
        rounds[-1, :] = rounds[:, -1] = 2 * index % (players - 1)
    rounds = np.argsort(_random_order(n))[rounds]
    np.fill_diagonal(rounds, -1)
    return np.asarray(rounds, dtype=np.int32)


def _random_order(players: int) -> Codes:
    """Round of the algorithm for each round of the schedule."""
    cycle = max(1, players - 1 + players % 2)
    return np.random.default_rng(players).permutation(cycle).astype(np.int64)


def opponent(player: npt.ArrayLike, players: int, number: npt.ArrayLike) -> Codes:
    """Partner of `player` of `players` in round `number` of `schedule(players)`, -1 if it is idle."""
    player, number = np.broadcast_arrays(np.asarray(player), _random_order(players)[np.asarray(number)])
    even = players + players % 2
    cycle = max(even - 1, 1)
    met = (number - player) % cycle
    met = np.where(met == player, even - 1, met)
    fixed = number * (even // 2) % cycle  # the k with 2 k = number, modulo the odd cycle
    met = np.where(player == even - 1, fixed, met)
    return np.where((met < players) & (met != player), met, -1).astype(np.int64)


def partners_of(rounds: Sequence[RankPairs], ranks: int) -> Codes:
    """Return the (ranks, rounds) partners, -1 if the rank is idle.

    Raises UsageError for unknown ranks and for pairs that are not disjoint.
    """
    table = np.full((ranks, len(rounds)), -1, dtype=np.int32)
    for number, pairs in enumerate(rounds):
        pairs = np.asarray(pairs, dtype=np.int32).reshape(-1, 2)
        if pairs.size and (pairs.min() < 0 or pairs.max() >= ranks):
            raise UsageError(f"round {number}: ranks beyond 0 to {ranks - 1}")
        if np.unique(pairs).size != pairs.size:
            raise UsageError(f"round {number}: a rank is in two pairs, or paired with itself", "pairs must be disjoint")
        table[pairs[:, 0], number] = pairs[:, 1]
        table[pairs[:, 1], number] = pairs[:, 0]
    return table


def all_rounds(ranks: int) -> list[RankPairs]:
    """Return rounds of (k, 2) ranks in which every pair of `ranks` ranks meets once.

    There are `ranks` - 1 rounds, or `ranks` where the number is odd.
    """
    index = np.arange(ranks)
    cycle = max(1, ranks - 1 + ranks % 2)
    return [matched(opponent(index, ranks, number)) for number in range(cycle)]


def matched(partner: Codes) -> RankPairs:
    """Pairs of a column of partners, -1 if there is none."""
    index = np.arange(partner.size)
    first = np.flatnonzero(partner > index)
    return np.stack([first, partner[first]], axis=1).astype(np.int32)
