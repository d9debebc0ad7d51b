"""Levels of a suite: from the ranks of one host to the whole fabric, each made of the ranks that the last one left.

A level's rounds are made when its time comes: hosts that failed before are in none of them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fablint.errors import UsageError
from fablint.model import RowSpec, Scope, Slots
from fablint.model.arrays import RankPairs
from fablint.plan.check.check_rows import ROWS
from fablint.plan.check.default_rows import COMFORTABLE_S, FEWEST_REPEATS, LONGEST_S, MOST_REPEATS, SHORTEST_S, SMALL
from fablint.plan.check.plan_input import PlanInput
from fablint.plan.check.rate_adaptation import rows_at, slowest_seconds
from fablint.plan.check.stages import Stage, names_of, stage_of
from fablint.plan.rows.cost import OVERHEAD
from fablint.plan.rows.side_by_side import over_media
from fablint.plan.schedule.bisection import bisection_rounds
from fablint.plan.schedule.host_rounds import all_pairs_rounds, neighbour_rounds, reach_rounds, scope_rounds
from fablint.plan.schedule.interleaving import repeated
from fablint.topology.routed_placement import RoutedPlacement

LEVEL_S = 20.0  # seconds of a level where no budget says otherwise
STREAM_S = LONGEST_S / 2  # of a round, for which windows are chosen: all levels measure the same stream
MOST_ROUNDS = 24  # up to which all pairs of a scope are measured
FEWEST_ROUNDS = 2
REACH_CAP_S = 0.5  # of a round: its rows stop on samples
MOST_WEIGHT = 8  # a row of many sizes has the time of so many rows of one


@dataclass(frozen=True)
class Level:
    """Pairs of one kind, and the rows that measure them, without pattern and name.

    `scope` None: pairs of several scopes. `pairs` says which: those of the `scope`, a few `near and far`, `all`, or
    those between two `halves` of the fabric; `every` measures all pairs of the scope, however many there are.
    """

    name: str
    what: str
    scope: Scope | None
    rows: tuple[RowSpec, ...] = ROWS
    pairs: Literal["scope", "near and far", "all", "halves"] = "scope"
    every: bool = False
    unequal: bool = False  # halves of unequal groups: hosts that are too many stay idle

    @property
    def within_hosts(self) -> bool:
        """True if it is measured between ranks of one host. Those take several ranks on each (`several_each`)."""
        return self.scope is Scope.INTRA_NODE


REACH_LEVEL = Level(
    "reach",
    "each rank with a near and a distant one, for the rate of the network",
    None,
    (
        RowSpec("latency", purpose="rate_probe", sizes=(8,), warmup=(2, 2), samples=20),
        RowSpec("bandwidth", purpose="rate_probe", sizes=(32 << 10,), window=4, warmup=(0, 0), samples=2, batch=1),
    ),
    "near and far",
)


RANKS_WITHIN = 2  # on each host, of a level within hosts


def ranks_within(levels: Iterable[Level]) -> int:
    """Return the number of ranks on each host that levels within hosts need; 1 where there is none."""
    return RANKS_WITHIN if any(level.within_hosts for level in levels) else 1


def several_each(asked: PlanInput, each: int = RANKS_WITHIN) -> PlanInput:
    """Return the same hosts with `each` ranks on each of them, as a level within hosts needs."""
    hosts = list(dict.fromkeys(asked.rank_hosts))
    slots = tuple(Slots(host, each) for host in hosts) if asked.slots else ()
    return replace(asked, ranks=each * len(hosts), slots=slots)


def level_stage(
    level: Level,
    asked: PlanInput,
    placement: RoutedPlacement,
    left_out: Collection[int] = (),
    rate: float | None = None,
    budget_s: float | None = None,
    only: Collection[int] = (),
) -> Stage | None:
    """The rows and rounds of a level; None where no two ranks make a pair of it.

    Where the busiest host has no more than 24 partners all pairs are measured, on up to 64 hosts at least twice, for
    the reasons of `check_plan`; else matchings of the scope. Rows are named LEVEL-KERNEL and share `rounds/LEVEL.txt`.

    Parameters
    ----------
    level
        What is measured.
    asked
        Ranks, fabric, seed.
    placement
        Where the ranks are (`asked.placement()`).
    left_out
        Ranks that take no part.
    rate
        Bytes/s of a healthy rank (`rate_of`), None where it is not known.
    budget_s
        Time for the level; None: some 20 s, more where the rounds take longer.
    only
        Ranks that every pair has one of; empty: all.

    Raises
    ------
    UsageError
        The fabric has no two halves, or a budget that is not above 0.
    """
    if budget_s is not None and not 0 < budget_s < math.inf:
        raise UsageError(f"a budget of {budget_s:g} s is not a duration", "give seconds above 0")
    rate = None if level.within_hosts else rate
    specs = over_media(level.rows, asked.media)
    specs = specs if level.pairs == "near and far" else rows_at(specs, rate, STREAM_S)
    specs = tuple(_in_turn(row) if asked.shared_cpus and not level.within_hosts else row for row in specs)
    serial = asked.oversubscribed and not level.within_hosts
    turns = [placement.ranks // 2 if serial or row.order == "serial" else 1 for row in specs]
    longest = [SHORTEST_S if row.order == "serial" and not serial else LONGEST_S for row in specs]
    pace = _Pace(specs, rate, (budget_s or LEVEL_S) / OVERHEAD, turns, longest)
    most = None if level.every else MOST_ROUNDS if budget_s is None else min(MOST_ROUNDS, pace.most_rounds)
    rounds, complete = _rounds(level, asked, placement, left_out, most)
    if only:
        rounds = [part for pairs in rounds if (part := pairs[np.isin(pairs, list(only)).any(axis=1)]).size]
    if not rounds:
        return None
    if complete:
        fewest = FEWEST_REPEATS if len(placement.hosts) <= SMALL else 1
        repeats = pace.repeats(len(rounds), fewest if budget_s is None else 1)
        rounds = repeated(rounds, repeats, placement, asked.seed)
    shares = pace.shares(len(rounds)) if level.pairs != "near and far" else [REACH_CAP_S] * len(specs)
    names = names_of(specs, f"{level.name}-{{}}")
    rows = [(replace(row, name=name), share) for row, name, share in zip(specs, names, shares, strict=True)]
    return _as_slow(stage_of(level.name, rounds, asked, "serial" if serial else "parallel", rows), rate, pace)


def _rounds(
    level: Level, asked: PlanInput, placement: RoutedPlacement, left_out: Collection[int], most: int | None
) -> tuple[list[RankPairs], bool]:
    """Rounds, and whether it makes sense to repeat them: they are all there is."""
    if level.within_hosts:
        return neighbour_rounds(placement, left_out), True
    if level.pairs == "near and far":
        return reach_rounds(placement, left_out, asked.seed), False
    if level.pairs == "all":
        return all_pairs_rounds(placement, left_out, asked.seed), True
    if level.pairs == "halves":
        return bisection_rounds(placement, asked.rank_hosts, left_out, unequal=level.unequal, seed=asked.seed), False
    assert level.scope is not None
    return scope_rounds(placement, level.scope, left_out, most=most, seed=asked.seed)


def _in_turn(row: RowSpec) -> RowSpec:
    """Small messages pair by pair, as short as possible: where ranks wait for a CPU, a stream does not show it.

    Latencies of such ranks show gross faults, but not that a host is healthy: streams have the time.
    """
    return row if row.kernel_info.is_windowed else replace(row, order="serial")


@dataclass(frozen=True)
class _Pace:
    """How `seconds` are shared by the rounds of some rows, each of which takes its time `turns` times.

    `longest` is the limit of that time for each row, in seconds.
    """

    rows: Sequence[RowSpec]
    rate: float | None
    seconds: float
    turns: Sequence[int]
    longest: Sequence[float]

    def _weights(self) -> list[float]:
        return [min(len(row.sizes), MOST_WEIGHT) for row in self.rows]

    def _round_s(self, each_s: float) -> float:
        """Seconds of a round of all rows, when one of one size has `each_s`; a slow network takes longer."""
        rows = zip(self.rows, self._weights(), self.turns, strict=True)
        return sum(turns * max(weight * each_s, slowest_seconds(row, self.rate)) for row, weight, turns in rows)

    @property
    def most_rounds(self) -> int:
        return max(FEWEST_ROUNDS, int(self.seconds / self._round_s(SHORTEST_S)))

    def repeats(self, rounds: int, fewest: int) -> int:
        return max(fewest, min(int(self.seconds / rounds / self._round_s(COMFORTABLE_S)), MOST_REPEATS))

    def shares(self, rounds: int) -> list[float]:
        """Seconds of a round of each row."""
        each = self.seconds / rounds / sum(map(operator.mul, self._weights(), self.turns))
        pairs = zip(self._weights(), self.longest, strict=True)
        return [weight * min(max(each, SHORTEST_S), longest) for weight, longest in pairs]


def _as_slow(stage: Stage, rate: float | None, pace: _Pace) -> Stage:
    """Return the same, predicted for a network of that rate."""
    rows = tuple(
        replace(
            row,
            predicted_s=max(row.predicted_s, row.rounds * turns * slowest_seconds(row.spec, rate) * OVERHEAD),
        )
        for row, turns in zip(stage.plan.rows, pace.turns, strict=True)
    )
    return replace(stage, plan=replace(stage.plan, rows=rows))
