"""Rounds: who meets whom, as lists of disjoint pairs of ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fablint.errors import UsageError
from fablint.simulate.fabric import Fabric

Pairs = npt.NDArray[np.int32]  # (pairs, 2) ranks
Partners = npt.NDArray[np.int32]  # (ranks, rounds), -1 where the rank is idle

STRATA = (4, 6, 14)  # rounds between hosts of a switch, of a group, and far ones


def schedule(n: int) -> npt.NDArray[np.int32]:
    """(n, n) round in which each pair meets, -1 on the diagonal: the circle method for round-robin tournaments.

    An even n takes n - 1 rounds, an odd n takes n with one rank idle in each.
    """
    index = np.arange(n, dtype=np.int32)
    players = n + n % 2
    rounds = (index[:, None] + index[None, :]) % (players - 1)
    if n % 2 == 0:  # the fixed player meets k in the round where k would meet itself
        rounds[-1, :] = rounds[:, -1] = 2 * index % (players - 1)
    np.fill_diagonal(rounds, -1)
    return rounds.astype(np.int32)


def opponent(player: npt.ArrayLike, players: npt.ArrayLike, number: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Whom `player` of `players` meets in round `number` of `schedule(players)`, -1 where it is idle."""
    player, players, number = np.broadcast_arrays(np.asarray(player), np.asarray(players), np.asarray(number))
    even = players + players % 2
    cycle = np.maximum(even - 1, 1)
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
    return [_pairs(opponent(index, ranks, number)) for number in range(cycle)]


def stratified_rounds(
    fabric: Fabric, strata: tuple[int, int, int] = STRATA, *, seed: int = 1, ranks_per_host: int = 1
) -> list[Pairs]:
    """Matchings of the hosts by distance: same switch, same group, far. The rounds of a stratum that the fabric
    does not have go to the next one.

    With fixed routes far rounds are shifts, which do not collide in a fat tree (Zahavi, Fat-tree routing and node
    ordering providing contention free traffic for MPI global collectives, 2012); with others each host of a group
    has a partner in another group. Where hosts have several ranks, rank r of one meets rank r of the other.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(7,)))
    places = _Places(fabric)
    near, local, far = _present(places, strata)
    rounds = [places.near(number, rng) for number in range(near)]
    rounds += [places.local(number, rng) for number in range(local)]
    rounds += [places.far(number, rng) for number in range(far)]
    ranks = np.arange(ranks_per_host)
    return [
        (_pairs(partner)[:, None, :] * ranks_per_host + ranks[None, :, None]).reshape(-1, 2).astype(np.int32)
        for partner in rounds
    ]


class _Places:
    """Hosts by switch and by group, with their place in each."""

    def __init__(self, fabric: Fabric) -> None:
        topology = fabric.topology
        self.switch = fabric.port_switch[:: fabric.rails].astype(np.int64)
        names = [topology.group_of(host) for host in fabric.hosts]
        self.group = np.unique(names, return_inverse=True)[1].astype(np.int64).ravel()
        self.fixed = topology.routing.kind in ("d-mod-k", "tables")
        self.in_switch, self.switch_size = _numbers(self.switch)
        self.in_group, self.group_size = _numbers(self.group)
        # Switches of a group by number, so that they can be matched.
        first = np.unique(self.switch)
        of_switch = np.zeros(int(first.max()) + 1, dtype=np.int64)
        group_of_switch = np.zeros_like(of_switch)
        group_of_switch[self.switch] = self.group
        number, size = _numbers(group_of_switch[first])
        of_switch[first] = number
        self.switch_in_group = of_switch[self.switch]
        sizes = np.zeros_like(of_switch)
        sizes[first] = size
        self.switches_of_group = sizes[self.switch]
        self.groups = int(self.group.max()) + 1

    def near(self, number: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """A matching inside every switch, of hosts in an order of chance."""
        place = _shuffled(self.switch, rng)
        return self._find(self.switch, place, self.switch, opponent(place, self.switch_size, number))

    def local(self, number: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Switches of a group are matched; their hosts by a shift, which the way back undoes.

        Where routes are not fixed, every host of a switch has its partner on another switch.
        """
        switches, own = self.switches_of_group, self.switch_in_group
        key = self.group * (int(switches.max()) + 1)
        if not self.fixed:
            place = _shuffled(self.switch, rng)
            other = opponent(own, switches, place + number * int(rng.integers(1, 1 << 20)))
            return self._find(key + own, place, np.where(other < 0, -1, key + other), place)
        other = opponent(own, switches, number)
        shift = int(rng.integers(0, 1 << 20))
        place = np.where(other > own, self.in_switch + shift, self.in_switch - shift) % self.switch_size
        return self._find(key + own, self.in_switch, np.where(other < 0, -1, key + other), place)

    def far(self, number: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Hosts of different groups."""
        if not self.fixed:
            place = _shuffled(self.group, rng)
            other = opponent(self.group, self.groups, place + number * int(rng.integers(1, 1 << 20)))
            return self._find(self.group, place, other, place)
        other = opponent(self.group, self.groups, number + int(rng.integers(0, 1 << 20)))
        shift = int(rng.integers(0, 1 << 20))
        place = np.where(other > self.group, self.in_group + shift, self.in_group - shift) % self.group_size
        return self._find(self.group, self.in_group, other, place)

    @staticmethod
    def _find(
        key: npt.NDArray[np.int64],
        place: npt.NDArray[np.int64],
        other: npt.NDArray[np.int64],
        wanted: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.int64]:
        """(hosts,) the host at place `wanted` of `other`, -1 where there is none or it does not want the same."""
        width = int(place.max()) + 1
        table = np.full((int(key.max()) + 1) * width, -1, dtype=np.int64)
        index = np.arange(key.size)
        table[key * width + place] = index
        found = (other >= 0) & (wanted >= 0) & (wanted < width)
        partner = np.where(found, table[np.where(found, other * width + wanted, 0)], -1)
        mutual = (partner >= 0) & (partner[partner] == index) & (partner != index)
        return np.where(mutual, partner, -1)


def _present(places: _Places, strata: tuple[int, int, int]) -> tuple[int, int, int]:
    """Rounds of the strata that are there, each taking those of the ones before it that are not."""
    there = (
        bool((places.switch_size > 1).any()),
        bool((places.switches_of_group > 1).any()),
        places.groups > 1,
    )
    given = list(strata)
    for index in range(3):
        if not there[index] and any(there):
            heir = next((later for later in range(index + 1, 3) if there[later]), there.index(True))
            given[heir] += given[index]
            given[index] = 0
    return given[0], given[1], given[2]


def _numbers(key: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Place of each element among those of its key, and how many those are."""
    order = np.argsort(key, kind="stable")
    size = np.bincount(key)
    first = np.cumsum(size) - size
    place = np.empty(key.size, dtype=np.int64)
    place[order] = np.arange(key.size) - first[key[order]]
    return place, size[key]


def _shuffled(key: npt.NDArray[np.int64], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """The same places, dealt by chance."""
    order = np.lexsort((rng.random(key.size), key))
    size = np.bincount(key)
    place = np.empty(key.size, dtype=np.int64)
    place[order] = np.arange(key.size) - (np.cumsum(size) - size)[key[order]]
    return place


def _pairs(partner: npt.NDArray[np.int64]) -> Pairs:
    index = np.arange(partner.size)
    first = np.flatnonzero(partner > index)
    return np.stack([first, partner[first]], axis=1).astype(np.int32)
