"""Rounds of follow-ups: pairs that decide about a component, packed into as few rounds as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fablint.model import FollowUp, Run
from fablint.model.arrays import Codes, RankPairs, Values
from fablint.plan.schedule.rank_pairs import pair_keys
from fablint.topology.routed_placement import RoutedPlacement, number_within

LEAST = 3  # new partners for each part: so often is a suspect connected anew
MOST_ROUNDS = 8
CONTROL_PASSES = 6  # over healthy ranks that are idle, to find pairs without contention
LEAST_SHARE = 0.05  # of a pair's messages, from which a link counts for it
ROOM = 0.75  # messages to be expected on a link, up to which several pairs may cross it
NO_KEYS: Codes = np.zeros(0, np.int64)


def follow_up_rounds(
    follow_ups: Sequence[FollowUp],
    placement: RoutedPlacement,
    measured: Codes = NO_KEYS,
    *,
    least: int = LEAST,
    most_rounds: int = MOST_ROUNDS,
) -> list[RankPairs]:
    """Return rounds of disjoint pairs: at least `least` new pairs of each follow-up, where there are so many.

    Follow-ups take turns, so that none waits for the end of another. Pairs that were measured already come after
    those that were not. A pair goes to the first round in which both ranks are free and no cable is crossed
    twice in a direction; where there is none, a round is added; at `most_rounds` it goes where it collides least.
    At last what room the rounds have is used for further pairs.

    Parameters
    ----------
    follow_ups
        What is open; their pairs with the most informative first.
    placement
        Where the ranks are.
    measured
        Keys of the pairs that were measured (`measured_pairs`).
    least
        Pairs of each follow-up.
    most_rounds
        Rounds at most; what finds no room is left for the next time.
    """
    turns = _Turns(follow_ups, placement, measured)
    packed = _Packing(placement, turns.pairs)
    for _ in range(least):
        turns.take(lambda pair: packed.add(pair, most_rounds))
    while turns.take(packed.add):
        pass
    return packed.rounds()


def measured_pairs(run: Run, ranks: int) -> Codes:
    """Keys of the pairs that the listed rows of a run have measured; those of matrices are not looked at."""
    result = [NO_KEYS]
    for row in run.rows:
        if row.layout == "list":
            partner = np.asarray(row.arrays["dst"][:])
            src, column = np.nonzero(partner >= 0)
            result.append(pair_keys(np.stack([src, partner[src, column]], axis=1).astype(np.int32), ranks))
    return np.unique(np.concatenate(result))


def with_controls(
    rounds: Sequence[RankPairs], placement: RoutedPlacement, suspects: Sequence[int], each: int, seed: int = 1
) -> list[RankPairs]:
    """Return the rounds with up to `each` more pairs in each, of ranks of no candidate: what is healthy now.

    They are pairs of the suspects' partners, and a few more from two switches of each of two groups, so that every
    distance is measured. Ranks that were measured least come first. No pair crosses a cable that the round crosses in
    the same direction.
    """
    random = np.random.default_rng(seed)
    pool = _pool(rounds, placement, suspects, each, random)
    met = [len(partners) for partners in _partners(rounds, placement.ranks)]
    planned = {key for pairs in rounds for key in pair_keys(pairs, placement.ranks).tolist()}
    result = []
    for pairs in rounds:
        more = pairs
        tried = set(planned)
        for _ in range(CONTROL_PASSES):
            idle: list[int] = random.permutation(np.setdiff1d(pool, more)).tolist()
            idle.sort(key=met.__getitem__)
            controls = _pairs_among(idle, placement, tried)
            tried |= set(pair_keys(controls, placement.ranks).tolist())
            more = _as_many_as_fit(more, controls, placement, len(pairs) + each)
        planned |= set(pair_keys(more, placement.ranks).tolist())
        for rank in more[len(pairs) :].ravel().tolist():
            met[rank] += 1
        result.append(more)
    return result


def _as_many_as_fit(pairs: RankPairs, rank_pairs: RankPairs, placement: RoutedPlacement, most: int) -> RankPairs:
    """`pairs` and those of `rank_pairs` that cross none of their links, `most` in all."""
    packed = _Packing(placement, np.concatenate([pairs, rank_pairs]))
    packed.place(range(len(pairs)), 0)
    for pair in range(len(pairs), len(pairs) + len(rank_pairs)):
        if packed.size(0) < most and packed.fits(pair, 0):
            packed.place([pair], 0)
    return packed.rounds()[0]


def _pool(
    rounds: Sequence[RankPairs],
    placement: RoutedPlacement,
    suspects: Sequence[int],
    each: int,
    random: np.random.Generator,
) -> Codes:
    """Return ranks of no candidate: all that are measured already, and `2 each` others."""
    used = np.unique(np.concatenate([np.zeros((0, 2), np.int32), *rounds]))
    clean = np.setdiff1d(np.arange(placement.ranks, dtype=np.int32), np.append(used, suspects))
    order = [
        random.permutation(int(code.max()) + 1)[code[clean]]
        for code in (placement.switch_or_host, placement.group_or_host)
    ]
    clean = clean[np.lexsort(order)]  # group by group, switch by switch, both in a drawn order
    group = number_within(np.zeros_like(clean), np.sort(order[1]).astype(np.int32))
    switch = number_within(group, np.take(order[0], np.lexsort(order)).astype(np.int32))
    place = number_within(group * clean.size + switch, np.arange(clean.size, dtype=np.int32))
    few = (group < 2) & (switch < 2) & (place < max(2, each // 2))
    chosen = np.concatenate([clean[few], clean[~few]])[: 2 * each]
    return np.union1d(np.setdiff1d(used, suspects), chosen).astype(np.int32)


def _partners(rounds: Sequence[RankPairs], ranks: int) -> list[set[int]]:
    partners: list[set[int]] = [set() for _ in range(ranks)]
    for a, b in (pair for pairs in rounds for pair in pairs.tolist()):
        partners[a].add(b)
        partners[b].add(a)
    return partners


def _pairs_among(ranks: list[int], placement: RoutedPlacement, met: set[int]) -> RankPairs:
    """Disjoint pairs of ranks on two hosts that have not met, those at the front of the list first."""
    left, result = list(ranks), []
    while left:
        item = left.pop(0)
        for other in left:
            key = min(item, other) * placement.ranks + max(item, other)
            if placement.host[item] != placement.host[other] and key not in met:
                left.remove(other)
                result.append((item, other))
                break
    return np.array(result, dtype=np.int32).reshape(-1, 2)


class _Turns:
    """Pairs of all follow-ups in one list, each follow-up with its own queue."""

    def __init__(self, follow_ups: Sequence[FollowUp], placement: RoutedPlacement, measured: Codes) -> None:
        ordered = [_new_first(follow_up, placement, measured) for follow_up in follow_ups]
        self.pairs: RankPairs = np.concatenate([np.zeros((0, 2), np.int32), *ordered])
        ends = np.cumsum([len(pairs) for pairs in ordered]).tolist()
        self._queues = [
            list(range(end - 1, end - len(pairs) - 1, -1)) for end, pairs in zip(ends, ordered, strict=True)
        ]

    def take(self, add: Callable[[int], bool]) -> bool:
        """Add one pair of each follow-up; drop pairs that cannot be added. Return False when nothing was added."""
        added = False
        for queue in self._queues:
            while queue:
                if add(queue.pop()):
                    added = True
                    break
        return added


def _new_first(follow_up: FollowUp, placement: RoutedPlacement, measured: Codes) -> RankPairs:
    """Return the pairs of a follow-up, each once whatever its direction: both are measured."""
    pairs = np.asarray(follow_up.pairs, dtype=np.int32).reshape(-1, 2)
    pairs = pairs[placement.host[pairs[:, 0]] != placement.host[pairs[:, 1]]]
    keys = pair_keys(pairs, placement.ranks)
    first = np.sort(np.unique(keys, return_index=True)[1])
    old = np.isin(keys[first], measured)
    ordered: RankPairs = pairs[first[np.argsort(old, kind="stable")]]
    return ordered


class _Packing:
    """Rounds under construction: the ranks that each uses, and the messages to be expected on each directed link."""

    def __init__(self, placement: RoutedPlacement, pairs: RankPairs) -> None:
        self._pairs = pairs
        links = len(placement.routes.ends) if placement.routes is not None else 0
        self._free = np.zeros(2 * links, np.float32)
        crossings = [placement.crossings_of_pairs(pairs, direction) for direction in (0, 1)]  # one after the other
        pair, link, share = (np.concatenate(parts) for parts in zip(*crossings, strict=True))
        link += np.repeat(np.array([0, links], link.dtype), [len(query) for query, _, _ in crossings])
        tells = share >= LEAST_SHARE
        order = np.flatnonzero(tells)[np.argsort(pair[tells], kind="stable")]
        bounds = np.searchsorted(pair[order], np.arange(1, len(pairs)))
        self._links = np.split(link[order], bounds)
        self._shares = np.split(share[order], bounds)
        self._chosen: list[list[int]] = []
        self._busy: list[set[int]] = []
        self._flows: list[Values] = []
        self._placed: set[tuple[int, int]] = set()

    def add(self, pair: int, most_rounds: int = 0) -> bool:
        """Into the first round that it fits; a new one, or one where it collides, while there are not `most_rounds`."""
        ends = self._ends(pair)
        if (min(ends), max(ends)) in self._placed:  # a pair of two follow-ups counts for both
            return most_rounds > 0
        free = [number for number, busy in enumerate(self._busy) if not busy & set(ends)]
        clear = next((number for number in free if self.fits(pair, number)), None)
        if clear is None and len(self._chosen) < most_rounds:
            clear = len(self._chosen)
        if clear is None and most_rounds and free:
            clear = min(free, key=lambda number: self._busiest(pair, number))
        if clear is None:
            return False
        self.place([pair], clear)
        return True

    def fits(self, pair: int, number: int) -> bool:
        """Tell whether both ranks are free in the round, and hardly any link would carry two messages."""
        if self._busy[number] & set(self._ends(pair)):
            return False
        others = self._flows[number][self._links[pair]]
        return not ((others > 0) & (others + self._shares[pair] > ROOM)).any()

    def _busiest(self, pair: int, number: int) -> float:
        """Messages on the busiest of its links if it were in the round."""
        return float((self._flows[number][self._links[pair]] + self._shares[pair]).max(initial=0.0))

    def place(self, pairs: Sequence[int], number: int) -> None:
        """Into round `number`, which may be the next one."""
        while len(self._chosen) <= number:
            self._chosen.append([])
            self._busy.append(set())
            self._flows.append(self._free.copy())
        for pair in pairs:
            ends = self._ends(pair)
            self._chosen[number].append(pair)
            self._busy[number] |= set(ends)
            self._flows[number][self._links[pair]] += self._shares[pair]
            self._placed.add((min(ends), max(ends)))

    def size(self, number: int) -> int:
        return len(self._chosen[number])

    def rounds(self) -> list[RankPairs]:
        return [self._pairs[np.array(chosen, dtype=np.int64)] for chosen in self._chosen]

    def _ends(self, pair: int) -> tuple[int, int]:
        a, b = self._pairs[pair].tolist()
        return a, b
