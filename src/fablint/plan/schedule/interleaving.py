"""The order of rounds: near and far rounds alternate, and every component is measured all over the row.

What lasts for a while, such as a neighbour's traffic, slows down all that is measured meanwhile. A component whose
rounds lie together cannot be distinguished from it; a component with rounds before and after can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fablint.model.arrays import Codes, Floats, Mask, RankPairs
from fablint.model.figures.distinct_codes import distinct_values
from fablint.plan.schedule.rank_pairs import pair_keys
from fablint.topology.routed_placement import RoutedPlacement

MOST_ROUNDS = 512  # with more, a component has so many rounds that a random order spreads them
TRIES = 4  # random halvings from which the search begins
LEAST_GAIN = 1e-9
RESOLUTION = 2.0**-32  # of a likeness: sums of multiples of it are exact, so that every linear algebra library agrees
CHUNK = 1 << 22  # entries of a block of the matrix of components and rounds


def interleaved(
    rounds: Sequence[RankPairs], placement: RoutedPlacement, seed: int = 1, groups: Sequence[RankPairs] = ()
) -> list[RankPairs]:
    """Return the same rounds in an order in which every component is measured all over the row.

    The rounds are halved so that each component has as many of its rounds in one half as in the other; each half is
    halved in turn, until single rounds are left. Components are scopes, hosts, pairs of switches (of a switch with
    itself as well), pairs of hosts, and `groups`. A halving with a and b rounds of a component costs
    (a - b)^2 / (a + b), and all components of one type weigh as much as those of another. The cost is lowered by
    exchanging two rounds of the halves while that helps (B. Kernighan and S. Lin, Bell System Technical Journal 49,
    1970).

    Parameters
    ----------
    rounds
        Disjoint pairs of ranks.
    placement
        Where the ranks are.
    seed
        Same seed, same order.
    groups
        Pairs of ranks that measure one component each, such as those of a follow-up of a link.
    """
    random = np.random.default_rng(seed)
    if len(rounds) > MOST_ROUNDS:
        return [rounds[number] for number in random.permutation(len(rounds))]
    order = _order(
        np.arange(len(rounds)), [*_presences(rounds, placement), _of_groups(rounds, placement, groups)], random
    )
    return [rounds[number] for number in order]


def repeated(rounds: Sequence[RankPairs], repeats: int, placement: RoutedPlacement, seed: int = 1) -> list[RankPairs]:
    """All rounds in each repeat, `interleaved` in another order each time."""
    return [pairs for number in range(repeats) for pairs in interleaved(rounds, placement, seed + number)]


@dataclass(frozen=True)
class _Presence:
    """Components of one type: entry i says that `component[i]` has the share `share[i]` of round `number[i]`."""

    component: Codes
    number: Codes
    share: Floats

    def of_rounds(self, numbers: Codes) -> _Presence:
        """The entries of some rounds."""
        kept = np.isin(self.number, numbers)
        return _Presence(self.component[kept], self.number[kept], self.share[kept])

    def likeness(self, numbers: Codes) -> Floats:
        """(rounds, rounds) the sum over components of the product of their shares, over the rounds that they have.

        Each component's rounds count 1 in all, and so do all components; those in every round, or in one, do not count.
        """
        place = np.zeros(int(numbers.max()) + 1, np.int64)
        place[numbers] = np.arange(numbers.size)
        component = np.unique(self.component, return_inverse=True)[1].ravel()
        entries = np.bincount(component)
        kept = (entries[component] > 1) & ((entries[component] < numbers.size) | (self.share < 1.0))
        result = np.zeros((numbers.size, numbers.size))
        if not kept.any():
            return result
        component = np.unique(component[kept], return_inverse=True)[1].ravel()
        column, share = place[self.number[kept]], self.share[kept]
        rounds = np.bincount(component, weights=share)
        step = max(1, CHUNK // numbers.size)
        for first in range(0, rounds.size, step):
            inside = (component >= first) & (component < first + step)
            block = np.zeros((min(step, rounds.size - first), numbers.size))
            block[component[inside] - first, column[inside]] = share[inside]
            result += block.T @ (block / rounds[first : first + step, None])
        return np.round(result / rounds.size / RESOLUTION) * RESOLUTION


def _presences(rounds: Sequence[RankPairs], placement: RoutedPlacement) -> list[_Presence]:
    """Scopes, hosts, pairs of switches, pairs of hosts."""
    number = np.repeat(np.arange(len(rounds)), [len(pairs) for pairs in rounds])
    pairs = np.concatenate([np.zeros((0, 2), np.int32), *rounds])
    switches = pair_keys(placement.switch_or_host[pairs], int(placement.switch_or_host.max(initial=0)) + 1)
    of_pairs = [_present(code, number) for code in (switches, pair_keys(placement.host[pairs], len(placement.hosts)))]
    hosts = _present(placement.host[pairs].ravel(), np.repeat(number, 2))
    key, counts = np.unique(placement.strata(pairs).astype(np.int64) * len(rounds) + number, return_counts=True)
    round_of_cell = key % len(rounds)
    scopes = _Presence(key // len(rounds), round_of_cell, counts / np.bincount(number)[round_of_cell])
    return [scopes, hosts, *of_pairs]


def _present(component: Codes, number: Codes) -> _Presence:
    """Components that have a round whole, however often they occur in it; without those of a single round."""
    rounds = int(number.max(initial=0)) + 1
    key = distinct_values(component.astype(np.int64) * rounds + number)
    _, place, counts = np.unique(key // rounds, return_inverse=True, return_counts=True)
    key = key[counts[place.ravel()] > 1]
    return _Presence(key // rounds, key % rounds, np.ones(key.size))


def _of_groups(rounds: Sequence[RankPairs], placement: RoutedPlacement, groups: Sequence[RankPairs]) -> _Presence:
    """Sets of pairs, whatever their direction."""
    keys = [pair_keys(np.asarray(pairs, np.int32).reshape(-1, 2), placement.ranks) for pairs in groups]
    entries = [
        (group, number)
        for number, pairs in enumerate(rounds)
        for group, wanted in enumerate(keys)
        if np.isin(pair_keys(pairs, placement.ranks), wanted).any()
    ]
    component, number = np.array(entries, dtype=np.int64).reshape(-1, 2).T
    return _Presence(component, number, np.ones(component.size))


def _order(numbers: Codes, presences: Sequence[_Presence], random: np.random.Generator) -> list[int]:
    """Numbers of rounds, those of the one half before those of the other."""
    if numbers.size < 3:
        order: list[int] = random.permutation(numbers).tolist()
        return order
    within = [presence.of_rounds(numbers) for presence in presences]
    first = _half(sum((one.likeness(numbers) for one in within), np.zeros((numbers.size, numbers.size))), random)
    return [*_order(numbers[first], within, random), *_order(numbers[~first], within, random)]


def _half(likeness: Floats, random: np.random.Generator) -> Mask:
    """Return which rounds are in the first half: the cheapest of a few halvings, each improved as far as that goes."""
    size = (len(likeness) + 1) // 2
    result = [_improved(random.permutation(len(likeness)) < size, likeness) for _ in range(TRIES)]
    return min(result, key=lambda half: _cost(half, likeness))


def _cost(half: Mask, likeness: Floats) -> float:
    side = np.where(half, 1.0, -1.0)
    return float(side @ likeness @ side)


def _improved(half: Mask, likeness: Floats) -> Mask:
    """Return the same after exchanges of two rounds, the best one first, until none lowers the cost."""
    half = half.copy()
    diagonal = np.diag(likeness)
    while True:
        toward = likeness @ np.where(half, 1.0, -1.0)
        indices, other = np.flatnonzero(half), np.flatnonzero(~half)
        change = (
            (diagonal - toward)[indices][:, None] + (diagonal + toward)[other] - 2.0 * likeness[np.ix_(indices, other)]
        )
        best = int(change.argmin())
        if change.flat[best] > -LEAST_GAIN:
            return half
        leaving, coming = indices[best // other.size], other[best % other.size]
        half[leaving], half[coming] = False, True
