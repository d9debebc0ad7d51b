"""Matchings by distance: a few rounds in which every part of the fabric is seen from near and from far.

Partners on the same switch tell a cable from the port behind it, partners in the same group a switch's cables from
those between groups. Rounds are shifts of whole switches and groups, which collide on no cable of a fat tree with
destination routing (what OpenSM's ftree engine is built for), spread over all groups as a dragonfly needs; of several
such rounds the one whose messages collide least is taken, and what still collides is mended by exchanging partners.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fablint.model import Scope
from fablint.plan.schedule.contention_reduction import untangled
from fablint.plan.schedule.interleaving import interleaved
from fablint.plan.schedule.seats import (
    Codes,
    Flows,
    Pairs,
    Seats,
    crossings_in_turn,
    link_flows,
    number_within,
    pair_keys,
    stays,
)

COUNTS = {Scope.EDGE: 6, Scope.LOCAL: 9, Scope.GLOBAL: 9}
FAR = (Scope.LOCAL, Scope.GLOBAL)

LARGEST_GRID = 16  # empty places for each rank, above which a table of places is not worth having
MANY_RANKS = 32_768  # from which the way that made the first round well makes the others
EASY_RANKS = 8192  # up to which more than two rounds are drawn of which to choose
TRIES = 12  # at most
FINE = 1.01  # cost of a round that collides nowhere and repeats nothing
REPEATED = 2.0  # flows that a round may have more for not measuring the same pairs again
UNEVEN = 1.0  # the same for not crossing the cables that were crossed already

Table = npt.NDArray[np.int32]  # (containers, units, members) rank, -1: empty


@dataclass
class _Drawing:
    """What the rounds drawn so far have measured and crossed."""

    seats: Seats
    random: np.random.Generator
    measured: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    crossed: Flows = field(default_factory=lambda: np.zeros(0, np.float32))

    def repeated(self, pairs: Pairs) -> float:
        """Share of pairs that were measured before."""
        return float(np.isin(pair_keys(pairs, self.seats.ranks), self.measured).mean()) if len(pairs) else 1.0

    def cost(self, pairs: Pairs) -> float:
        """Most flows on a link, and what repeating and crossing the same cables again are worth on top of it."""
        flows = link_flows(pairs, self.seats)
        idle = 1.0 - 2.0 * len(pairs) / self.seats.ranks
        cost = float(flows.max(initial=0.0)) + REPEATED * (self.repeated(pairs) + idle)
        total = flows.sum(axis=0)
        before = self.crossed[total > 0] if self.crossed.size else self.crossed
        if before.any():
            cost += UNEVEN * float(np.average(before, weights=total[total > 0]) / before.mean() - 1.0)
        return cost

    def take(self, pairs: Pairs) -> None:
        self.measured = np.union1d(self.measured, pair_keys(pairs, self.seats.ranks))
        flows = link_flows(pairs, self.seats).sum(axis=0)
        self.crossed = flows if not self.crossed.size else self.crossed + flows


def stratified_rounds(seats: Seats, seed: int = 1, counts: Mapping[Scope, int] = COUNTS) -> list[Pairs]:
    """Rounds of disjoint pairs of ranks, in which (nearly) every rank is busy; strata are `interleaved`.

    Args:
        seats: where the ranks are, and the routes between them.
        seed: same seed, same rounds.
        counts: rounds per stratum: same switch, same group, far.
    """
    planned = strata(seats, counts)
    random = np.random.default_rng(seed)
    drawing = _Drawing(seats, random)
    rounds = [pairs for scope, count in planned.items() for pairs in _stratum(drawing, scope, count)]
    return interleaved(rounds, seats, seed)


def strata(seats: Seats, counts: Mapping[Scope, int] = COUNTS) -> dict[Scope, int]:
    """Rounds of each stratum that exists here: half of the ranks have a partner in it.

    No stratum has more rounds than most ranks have partners. The rounds of one that crosses cables and does not exist
    go to the other one; where no topology tells, all are far.
    """
    switch, group = (np.bincount(code)[code] for code in (seats.switch, seats.group))
    partners = {
        Scope.EDGE: switch - np.bincount(seats.host)[seats.host],
        Scope.LOCAL: group - switch,
        Scope.GLOBAL: seats.ranks - group,
    }
    typical = {scope: int(np.median(count)) for scope, count in partners.items()}
    wanted = dict(counts)
    if not (seats.place >= 0).any():
        wanted = {Scope.GLOBAL: sum(counts.values())}
    for scope, other in (FAR, FAR[::-1]):
        if not typical[scope] and typical[other]:
            wanted[other] = wanted.get(other, 0) + wanted.pop(scope, 0)
    clamped = {scope: min(rounds, typical[scope]) for scope, rounds in wanted.items()}
    return {scope: rounds for scope, rounds in clamped.items() if rounds}


def _stratum(drawing: _Drawing, scope: Scope, rounds: int) -> list[Pairs]:
    """The rounds of one stratum; ways to make one that went well are tried first."""
    ways = _ways(drawing.seats, scope, drawing.random)
    ranks = drawing.seats.ranks
    tries = 1 if ranks >= MANY_RANKS else min(max(2, EASY_RANKS // ranks), TRIES)
    taken: list[Pairs] = []
    for turn in range(rounds):
        costs, best = [], None
        for way in ways if turn == 0 else (ways * TRIES)[:tries]:
            pairs = _completed(way.round(turn, drawing.random), scope, drawing)
            cost = drawing.cost(pairs)
            costs.append(cost)
            if best is None or cost < best[0]:
                best = cost, pairs
            if cost <= FINE:
                break
        if turn == 0:
            ranked = sorted(range(len(costs)), key=costs.__getitem__)
            ways = [*(ways[index] for index in ranked), *ways[len(costs) :]]
        assert best is not None
        pairs = untangled(best[1], drawing.seats, scope, drawing.crossed, drawing.random)
        drawing.take(pairs)
        taken.append(pairs)
    return taken


def _completed(pairs: Pairs, scope: Scope, drawing: _Drawing) -> Pairs:
    """The same with the ranks that were left over: paired within the stratum where that goes, else anyhow."""
    seats, random = drawing.seats, drawing.random
    parts = [pairs]
    free = np.ones(seats.ranks, dtype=bool)
    free[pairs] = False
    for within in (scope, scope, scope, None, None):
        rest = random.permutation(np.flatnonzero(free).astype(np.int32))
        if rest.size < 2:
            break
        if within in (Scope.EDGE, Scope.LOCAL):
            container = seats.switch if within == Scope.EDGE else seats.group
            rest = rest[np.argsort(container[rest], kind="stable")]
        found = np.stack([rest[: rest.size // 2 * 2 : 2], rest[1::2]], axis=1)
        found = found[stays(found, within, seats)]
        free[found] = False
        parts.append(found)
    return np.concatenate(parts)


# ------------------------------------------------------------------------------------------------ ways to make a round


@dataclass(frozen=True)
class _Way:
    """A table of ranks, and how the units of a container are shifted against each other.

    The members of a unit form two halves: the lower half of each unit meets the upper half of others. Which one:
    all that of the next unit but `shift` (stride 0), or each member another (stride 1), or with a drawn stride (None).
    """

    table: Table
    labels: Codes  # of the units in the tournament that the odd members play
    stride: int | None = 0

    def round(self, turn: int, random: np.random.Generator) -> Pairs:
        _, units, members = self.table.shape
        half = members // 2
        found = []
        if half and units > 1:
            order = np.roll(np.arange(members), -int(random.integers(members)) // max(1, half) * half)
            low, high = order[:half], np.roll(order[half : 2 * half], -int(random.integers(half)))
            stride = int(random.integers(1, units)) if self.stride is None else self.stride
            step = 1 + (int(random.integers(units - 1)) + stride * np.arange(half)) % (units - 1)
            unit = np.arange(units)[:, None]
            found.append((self.table[:, unit, low], self.table[:, (unit + step) % units, high]))
        else:
            order = np.arange(members)
        if members % 2:
            one, other = tournament(self.labels, turn)
            found.append((self.table[:, one, order[-1]], self.table[:, other, order[-1]]))
        pairs = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in found])
        return pairs[(pairs >= 0).all(axis=1)]


@dataclass(frozen=True)
class _Neighbours:
    """Hosts of a switch meet in a tournament, which has every pair once."""

    table: Table  # (switches, hosts, ranks of a host)
    labels: Codes  # of the hosts

    def round(self, turn: int, random: np.random.Generator) -> Pairs:
        _, hosts, ranks = self.table.shape
        one, other = tournament(self.labels, turn)
        a = self.table[:, one]
        b = np.roll(self.table[:, other], -(turn // max(1, hosts - 1)) % ranks, axis=2)
        pairs = np.stack([a.ravel(), b.ravel()], axis=1)
        return pairs[(pairs >= 0).all(axis=1)]


@dataclass(frozen=True)
class _Drawn:
    """Nobody has a place: all are left over, and drawn."""

    def round(self, turn: int, random: np.random.Generator) -> Pairs:
        return np.zeros((0, 2), dtype=np.int32)


def tournament(labels: Codes, turn: int) -> tuple[Codes, Codes]:
    """Pairs of one round of the circle method: every two meet once in as many rounds as there are players, less one."""
    players = labels.size
    circle = players - 1 + players % 2
    distance = np.arange(1, (circle + 1) // 2)
    one, other = (turn + distance) % circle, (turn - distance) % circle
    if players % 2 == 0:
        one, other = np.append(one, circle), np.append(other, turn % circle)
    return labels[one], labels[other]


def _labels(players: int, random: np.random.Generator) -> Codes:
    return random.permutation(players).astype(np.int32)


def _ways(seats: Seats, scope: Scope, random: np.random.Generator) -> list[_Way | _Neighbours | _Drawn]:
    """Ways to make a round of a stratum, of which the more regular come first."""
    full, packed = (_table(seats, as_built) for as_built in (True, False))
    tables = [table for table in (full, packed) if table is not None]
    if len(tables) == 2 and full is not None and packed is not None and full.shape == packed.shape:
        tables.pop()
    ways: list[_Way | _Neighbours | _Drawn] = []
    for table in tables:
        groups, shelves, slots, ranks = table.shape
        if scope == Scope.EDGE:
            ways.append(_Neighbours(table.reshape(groups * shelves, slots, ranks), _labels(slots, random)))
            continue
        every = [table.reshape(groups, shelves, slots * ranks)]
        if scope == Scope.GLOBAL:
            members = [table, table.transpose(0, 2, 1, 3)]
            if slots % 2 == 0 and shelves % 2:
                members.reverse()
            every = [one.reshape(1, groups, -1) for one in members[: 2 if shelves * slots > 1 else 1]]
        labels = _labels(every[0].shape[1], random)
        ways += [_Way(one, labels, stride) for stride in (0, 1, None) for one in every]
    return [*ways[: 2 if seats.ranks >= MANY_RANKS else None], _Drawn()]


def _table(seats: Seats, as_built: bool) -> Table | None:
    """(groups, switches, hosts, ranks) rank at each place: as the fabric was built, or without the places of others.

    None where nearly all places would be empty.
    """
    group = number_within(np.zeros_like(seats.group), seats.group)
    shelf = seats.shelf if as_built else number_within(seats.group, seats.shelf)
    # Hosts of a switch, whatever their number: a switch is a group and a shelf.
    switch = number_within(np.zeros_like(group), seats.switch)
    slot = seats.slot if as_built else number_within(switch, seats.slot)
    rank = number_within(seats.host, np.arange(seats.ranks, dtype=np.int32))
    codes = (group, shelf, slot, rank)
    shape = tuple(int(code.max()) + 1 for code in codes)
    if np.prod(shape, dtype=np.float64) > LARGEST_GRID * seats.ranks:
        return None
    table = np.full(shape, -1, dtype=np.int32)
    table[codes] = np.arange(seats.ranks)
    return table


def collisions(rounds: Sequence[Pairs], seats: Seats) -> int:
    """Messages of all rounds that share a link with another one."""
    count = 0
    for pairs in rounds:
        flows = link_flows(pairs, seats)
        for way in (0, 1):
            query, link, _ = crossings_in_turn(pairs, way, seats)
            count += np.unique(query[flows[way][link] > 1.0 + 1e-3]).size
    return count
