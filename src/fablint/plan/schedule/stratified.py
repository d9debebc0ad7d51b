"""Matchings by distance: a few rounds in which every part of the fabric is seen from near and from far.

Partners on the same switch tell a cable from the port behind it, partners in the same group a switch's cables from
those between groups. Rounds are shifts of whole switches and groups, which collide on no cable of a fat tree with
destination routing (what OpenSM's ftree engine is built for), spread over all groups as a dragonfly needs; of several
such rounds the one whose messages collide least is taken, and its contention is reduced by exchanging partners.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fablint.model import Scope
from fablint.model.arrays import Codes, RankPairs, Values
from fablint.model.figures.distinct_codes import distinct_values, is_among
from fablint.plan.schedule.contention_reduction import reduce_contention
from fablint.plan.schedule.interleaving import interleaved
from fablint.plan.schedule.rank_pairs import pair_keys
from fablint.topology.contention import link_flows
from fablint.topology.routed_placement import RoutedPlacement, number_within

COUNTS = {Scope.EDGE: 6, Scope.LOCAL: 9, Scope.GLOBAL: 9}
FAR = (Scope.LOCAL, Scope.GLOBAL)

LARGEST_GRID = 16  # empty places for each rank, above which a table of places is not worth having
MANY_RANKS = 32_768  # from which the method of the best first round makes the others
EASY_RANKS = 8192  # up to which more than two rounds are drawn of which to choose
TRIES = 12  # at most
FINE = 1.01  # cost of a round that collides nowhere and repeats nothing
REPEATED = 2.0  # flows that a round may have more for not measuring the same pairs again
UNEVEN = 1.0  # the same for not crossing the cables that were crossed already


@dataclass
class _Drawing:
    """What the rounds drawn so far have measured and crossed."""

    placement: RoutedPlacement
    random: np.random.Generator
    measured: Codes = field(default_factory=lambda: np.zeros(0, np.int64))  # keys of pairs, ascending
    crossed: Values = field(default_factory=lambda: np.zeros(0, np.float32))

    def repeated(self, pairs: RankPairs) -> float:
        """Share of pairs that were measured before."""
        return float(is_among(pair_keys(pairs, self.placement.ranks), self.measured).mean()) if len(pairs) else 1.0

    def cost(self, pairs: RankPairs) -> float:
        """Most flows on a link, and what repeating and crossing the same cables again are worth on top of it."""
        flows = link_flows(pairs, self.placement)
        idle = 1.0 - 2.0 * len(pairs) / self.placement.ranks
        cost = float(flows.max(initial=0.0)) + REPEATED * (self.repeated(pairs) + idle)
        total = flows.sum(axis=0)
        before = self.crossed[total > 0] if self.crossed.size else self.crossed
        if before.any():
            cost += UNEVEN * float(np.average(before, weights=total[total > 0]) / before.mean() - 1.0)
        return cost

    def take(self, pairs: RankPairs) -> None:
        self.measured = distinct_values(np.append(self.measured, pair_keys(pairs, self.placement.ranks)))
        flows = link_flows(pairs, self.placement).sum(axis=0)
        self.crossed = flows if not self.crossed.size else self.crossed + flows


def stratified_rounds(
    placement: RoutedPlacement, seed: int = 1, counts: Mapping[Scope, int] = COUNTS
) -> list[RankPairs]:
    """Rounds of disjoint pairs of ranks, in which (nearly) every rank is busy; strata are `interleaved`.

    Parameters
    ----------
    placement
        Where the ranks are, and the routes between them.
    seed
        Same seed, same rounds.
    counts
        Rounds per stratum: same switch, same group, far.
    """
    planned = strata(placement, counts)
    random = np.random.default_rng(seed)
    drawing = _Drawing(placement, random)
    rounds = [pairs for scope, count in planned.items() for pairs in _stratum(drawing, scope, count)]
    return interleaved(rounds, placement, seed)


def strata(placement: RoutedPlacement, counts: Mapping[Scope, int] = COUNTS) -> dict[Scope, int]:
    """Return the number of rounds of each stratum in which at least half of the ranks have a partner.

    `counts` are the numbers of rounds where all strata exist. No stratum has more rounds than most ranks have
    partners. The rounds of one that crosses cables and does not exist go to the other one; where no topology tells, all
    are far.
    """
    switch, group = (np.bincount(code)[code] for code in (placement.switch_or_host, placement.group_or_host))
    partners = {
        Scope.EDGE: switch - np.bincount(placement.host)[placement.host],
        Scope.LOCAL: group - switch,
        Scope.GLOBAL: placement.ranks - group,
    }
    typical = {scope: int(np.median(count)) for scope, count in partners.items()}
    wanted = dict(counts)
    if not (placement.location >= 0).any():
        wanted = {Scope.GLOBAL: sum(counts.values())}
    for scope, other in (FAR, FAR[::-1]):
        if not typical[scope] and typical[other]:
            wanted[other] = wanted.get(other, 0) + wanted.pop(scope, 0)
    clamped = {scope: min(rounds, typical[scope]) for scope, rounds in wanted.items()}
    return {scope: rounds for scope, rounds in clamped.items() if rounds}


def _stratum(drawing: _Drawing, scope: Scope, rounds: int) -> list[RankPairs]:
    """Return the rounds of one stratum; methods that made good rounds are tried first."""
    methods = _methods(drawing.placement, scope, drawing.random)
    ranks = drawing.placement.ranks
    tries = 1 if ranks >= MANY_RANKS else min(max(2, EASY_RANKS // ranks), TRIES)
    taken: list[RankPairs] = []
    for turn in range(rounds):
        costs, best = [], None
        for method in methods if turn == 0 else (methods * TRIES)[:tries]:
            pairs = _completed(method.round(turn, drawing.random), scope, drawing)
            cost = drawing.cost(pairs)
            costs.append(cost)
            if best is None or cost < best[0]:
                best = cost, pairs
            if cost <= FINE:
                break
        if turn == 0:
            ranked = sorted(range(len(costs)), key=costs.__getitem__)
            methods = [*(methods[index] for index in ranked), *methods[len(costs) :]]
        assert best is not None
        pairs = reduce_contention(best[1], drawing.placement, scope, drawing.crossed, drawing.random)
        drawing.take(pairs)
        taken.append(pairs)
    return taken


def _completed(pairs: RankPairs, scope: Scope, drawing: _Drawing) -> RankPairs:
    """Return the same with the ranks that were left over: paired within the stratum where that goes, else anyhow."""
    placement, random = drawing.placement, drawing.random
    parts = [pairs]
    free = np.ones(placement.ranks, dtype=bool)
    free[pairs] = False
    for within in (scope, scope, scope, None, None):
        rest = random.permutation(np.flatnonzero(free).astype(np.int32))
        if rest.size < 2:
            break
        if within in (Scope.EDGE, Scope.LOCAL):
            container = placement.switch_or_host if within == Scope.EDGE else placement.group_or_host
            rest = rest[np.argsort(container[rest], kind="stable")]
        added = np.stack([rest[: rest.size // 2 * 2 : 2], rest[1::2]], axis=1)
        added = added[placement.in_stratum(added, within)]
        free[added] = False
        parts.append(added)
    return np.concatenate(parts)


# ------------------------------------------------------------------------------------------------ methods for a round


@dataclass(frozen=True)
class _Stride:
    """A table of ranks, and how the units of a container are shifted against each other.

    The members of a unit form two halves: the lower half of each unit meets the upper half of others. Which one:
    all that of the next unit but `shift` (stride 0), or each member another (stride 1), or with a drawn stride (None).
    """

    table: Codes  # (containers, units, members) rank, -1: empty
    labels: Codes  # of the units in the tournament that the odd members play
    stride: int | None = 0

    def round(self, turn: int, random: np.random.Generator) -> RankPairs:
        _, units, members = self.table.shape
        half = members // 2
        halves = []
        if half and units > 1:
            order = np.roll(np.arange(members), -int(random.integers(members)) // max(1, half) * half)
            low, high = order[:half], np.roll(order[half : 2 * half], -int(random.integers(half)))
            stride = int(random.integers(1, units)) if self.stride is None else self.stride
            step = 1 + (int(random.integers(units - 1)) + stride * np.arange(half)) % (units - 1)
            unit = np.arange(units)[:, None]
            halves.append((self.table[:, unit, low], self.table[:, (unit + step) % units, high]))
        else:
            order = np.arange(members)
        if members % 2:
            item, other = tournament(self.labels, turn)
            halves.append((self.table[:, item, order[-1]], self.table[:, other, order[-1]]))
        pairs = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in halves])
        return pairs[(pairs >= 0).all(axis=1)]


@dataclass(frozen=True)
class _Neighbours:
    """Hosts of a switch meet in a tournament, which has every pair once."""

    table: Codes  # (switches, hosts, ranks of a host)
    labels: Codes  # of the hosts

    def round(self, turn: int, random: np.random.Generator) -> RankPairs:
        _, hosts, ranks = self.table.shape
        item, other = tournament(self.labels, turn)
        a = self.table[:, item]
        b = np.roll(self.table[:, other], -(turn // max(1, hosts - 1)) % ranks, axis=2)
        pairs = np.stack([a.ravel(), b.ravel()], axis=1)
        return pairs[(pairs >= 0).all(axis=1)]


@dataclass(frozen=True)
class _Drawn:
    """All ranks are left over, and sampled."""

    def round(self, turn: int, random: np.random.Generator) -> RankPairs:
        return np.zeros((0, 2), dtype=np.int32)


def tournament(labels: Codes, turn: int) -> tuple[Codes, Codes]:
    """Return one round of a round-robin tournament: each pair meets once in as many rounds as players, less one."""
    players = labels.size
    others = players - 1 + players % 2
    distance = np.arange(1, (others + 1) // 2)
    item, other = (turn + distance) % others, (turn - distance) % others
    if players % 2 == 0:
        item, other = np.append(item, others), np.append(other, turn % others)
    return labels[item], labels[other]


def _labels(players: int, random: np.random.Generator) -> Codes:
    return random.permutation(players).astype(np.int32)


def _methods(
    placement: RoutedPlacement, scope: Scope, random: np.random.Generator
) -> list[_Stride | _Neighbours | _Drawn]:
    """Return methods to make a round of a stratum, the more regular ones first."""
    full, packed = (_table(placement, as_built) for as_built in (True, False))
    tables = [table for table in (full, packed) if table is not None]
    if len(tables) == 2 and full is not None and packed is not None and full.shape == packed.shape:
        tables.pop()
    methods: list[_Stride | _Neighbours | _Drawn] = []
    for table in tables:
        groups, switches, hosts, ranks = table.shape
        if scope == Scope.EDGE:
            methods.append(_Neighbours(table.reshape(groups * switches, hosts, ranks), _labels(hosts, random)))
            continue
        reshaped = [table.reshape(groups, switches, hosts * ranks)]
        if scope == Scope.GLOBAL:
            members = [table, table.transpose(0, 2, 1, 3)]
            if hosts % 2 == 0 and switches % 2:
                members.reverse()
            reshaped = [one.reshape(1, groups, -1) for one in members[: 2 if switches * hosts > 1 else 1]]
        labels = _labels(reshaped[0].shape[1], random)
        methods += [_Stride(one, labels, stride) for stride in (0, 1, None) for one in reshaped]
    return [*methods[: 2 if placement.ranks >= MANY_RANKS else None], _Drawn()]


def _table(placement: RoutedPlacement, as_built: bool) -> Codes | None:
    """(groups, switches, hosts, ranks) rank at each place: as the fabric was built, or without the places of others.

    None where nearly all places would be empty.
    """
    group = number_within(np.zeros_like(placement.group_or_host), placement.group_or_host)
    switch_index = (
        placement.switch_index if as_built else number_within(placement.group_or_host, placement.switch_index)
    )
    # Hosts of a switch, whatever their number: a switch has a group and an index in it.
    switch = number_within(np.zeros_like(group), placement.switch_or_host)
    host_index = placement.host_index if as_built else number_within(switch, placement.host_index)
    rank = number_within(placement.host, np.arange(placement.ranks, dtype=np.int32))
    codes = (group, switch_index, host_index, rank)
    shape = tuple(int(code.max()) + 1 for code in codes)
    if np.prod(shape, dtype=np.float64) > LARGEST_GRID * placement.ranks:
        return None
    table = np.full(shape, -1, dtype=np.int32)
    table[codes] = np.arange(placement.ranks)
    return table


def collisions(rounds: Sequence[RankPairs], placement: RoutedPlacement) -> int:
    """Messages of all rounds that share a link with another one."""
    count = 0
    for pairs in rounds:
        flows = link_flows(pairs, placement)
        for direction in (0, 1):
            query, link, _ = placement.crossings_of_pairs(pairs, direction)
            count += np.unique(query[flows[direction][link] > 1.0 + 1e-3]).size
    return count
