"""Hosts of several allocations that measure a fabric in parts, and rounds that tie their levels together.

Each allocation has hosts of all switches and groups: the components of the network are then measured in several
allocations, and no switch is the same as an allocation. It has some hosts of the next allocation as well, its guests:
pairs of them are measured in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fablint.errors import UsageError
from fablint.model import Placement, Topology
from fablint.model.arrays import Codes, RankPairs
from fablint.plan.schedule.stratified import tournament

TIED_ROUNDS = 4  # in which the hosts that two allocations have in common meet each other
FEWEST_HOSTS = 4  # of an allocation, without its guests


@dataclass(frozen=True)
class SplitAllocation:
    """Hosts of one allocation, in the order of the list that was split."""

    hosts: tuple[str, ...]  # with the guests
    guests: tuple[str, ...]  # that belong to the next allocation
    lent: tuple[str, ...]  # that are guests of the previous allocation

    @property
    def ties(self) -> tuple[tuple[str, ...], ...]:
        """Sets of hosts that are together in this and in another allocation."""
        return self.guests, self.lent


def split_hosts(
    hosts: Sequence[str], topology: Topology | None, count: int, overlap: int, seed: int = 1
) -> list[SplitAllocation]:
    """Return `count` allocations of nearly equal size, whose hosts are spread over all switches and groups.

    Each block of `count` neighbours is dealt to all allocations in a random order: with a constant step, only some of
    the cables of a fat tree with destination routing were crossed.

    Parameters
    ----------
    hosts
        All hosts.
    topology
        Switch of each host; None: neighbours of the list are taken for neighbours.
    count
        Number of allocations.
    overlap
        Number of hosts of the next allocation that each has as guests.
    seed
        Same seed, same allocations.

    Raises
    ------
    UsageError
        There are too few hosts.
    """
    if len(hosts) // count < max(FEWEST_HOSTS, overlap):
        least = count * max(FEWEST_HOSTS, overlap)
        raise UsageError(
            f"{len(hosts)} hosts cannot be split into {count} allocations with {overlap} hosts in common",
            f"{least} hosts are required; give a smaller --split or --overlap",
        )
    placement = Placement.of_hosts(hosts, topology)
    location = np.where(placement.location >= 0, placement.location, placement.ranks + np.arange(placement.ranks))
    near = np.lexsort((location, placement.switch_or_host, placement.group_or_host))
    random = np.random.default_rng(seed)
    blocks = [random.permutation(count) for _ in range(-(-near.size // count))]
    of_host = np.empty(near.size, dtype=np.int64)
    of_host[near] = np.concatenate(blocks)[: near.size]
    members = [near[of_host[near] == number] for number in range(count)]
    lent = [_spread(codes, overlap) for codes in members]
    allocations = []
    for number in range(count):
        guests = lent[(number + 1) % count]
        sets = (np.concatenate([members[number], guests]), guests, lent[number])
        names = [tuple(hosts[code] for code in np.sort(codes).tolist()) for codes in sets]
        allocations.append(SplitAllocation(*names))
    return allocations


def _spread(codes: Codes, count: int) -> Codes:
    """Return `count` of these hosts, at even distances."""
    return codes[(np.arange(count) * codes.size) // max(1, count)]


def with_ties(rounds: Sequence[RankPairs], placement: Placement, ties: Sequence[Sequence[str]]) -> list[RankPairs]:
    """Return the rounds, in some of which the hosts of each set meet each other; their partners meet instead.

    Parameters
    ----------
    rounds
        Rounds of disjoint pairs of ranks.
    placement
        Hosts of the ranks.
    ties
        Sets of hosts. Rank k of a host meets rank k of another.
    """
    code = {name: index for index, name in enumerate(placement.hosts)}
    sets = [[np.flatnonzero(placement.host == code[name]) for name in names] for names in ties if len(names) > 1]
    chosen = np.unique(np.linspace(0, len(rounds) - 1, min(TIED_ROUNDS, len(rounds))).round().astype(int))
    result = list(rounds)
    for turn, number in enumerate(chosen.tolist()):
        for ranks in sets:
            item, other = tournament(np.arange(len(ranks)), turn % (len(ranks) - 1 + len(ranks) % 2))
            for a, b in zip(item.tolist(), other.tolist(), strict=True):
                result[number] = _met(result[number], ranks[a], ranks[b], placement)
    return result


def _met(pairs: RankPairs, first: Codes, second: Codes, placement: Placement) -> RankPairs:
    """Return a round in which rank k of one host meets rank k of another, and their partners meet each other."""
    partner = np.full(placement.ranks, -1, dtype=np.int32)
    partner[pairs[:, 0]], partner[pairs[:, 1]] = pairs[:, 1], pairs[:, 0]
    added = []
    for a, b in zip(first.tolist(), second.tolist(), strict=False):
        if partner[a] == b:
            continue
        left = [int(partner[end]) for end in (a, b)]
        partner[[end for end in (a, b, *left) if end >= 0]] = -1
        added.append((a, b))
        if min(left) >= 0 and placement.host[left[0]] != placement.host[left[1]]:
            added.append((left[0], left[1]))
    if not added:
        return pairs
    kept = pairs[(partner[pairs[:, 0]] == pairs[:, 1])]
    return np.concatenate([kept, np.array(added, dtype=pairs.dtype)])
