"""Suites: what a check of a cluster measures, level by level, and how long that will take."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fablint.errors import UsageError
from fablint.model import RowSpec, Scope
from fablint.model.registry.option_values import parse_sizes
from fablint.plan.check.check_rows import ROWS
from fablint.plan.check.levels import REACH_LEVEL, Level, level_stage, several_each
from fablint.plan.check.plan_input import PlanInput
from fablint.plan.check.stages import ALONE_S
from fablint.text.suggestions import did_you_mean
from fablint.topology.routed_placement import RoutedPlacement

SAFETY = 1.5  # of the predicted time: the fabric may be slower than those that it was predicted for
LAUNCH_S = 20.0  # of each level: MPI starts, hosts are judged
WALLTIME_S = 300.0  # is asked for in steps of this

# osu_latency, osu_bw and osu_bibw at the sizes that tell: latency, where the rendezvous begins, and line rate.
POINT_TO_POINT = (
    RowSpec("latency", sizes=(8, 1 << 10, 64 << 10)),
    RowSpec("bandwidth", sizes=(64 << 10, 1 << 20), warmup=(2, 2)),
    RowSpec("bibandwidth", sizes=(64 << 10, 1 << 20), warmup=(2, 2)),
)
LATENCY_TEST = (RowSpec("latency", sizes=parse_sizes("0:4M")),)  # as osu_latency 4.4.1, which Latency_Test runs
# Both directions at once, 25 messages of 16 MiB after 3: LinkTest's rules. One direction, since only that shows which
# direction is slow.
HALVES = tuple(
    RowSpec(kernel, purpose="bisection", sizes=(1 << 20, 16 << 20), warmup=(3, 3), samples=25)
    for kernel in ("bibandwidth", "bandwidth")
)


BETWEEN = {
    Scope.EDGE: ("edge", "pairs on one switch"),
    Scope.LOCAL: ("local", "pairs across switches of one group"),
    Scope.GLOBAL: ("global", "pairs across groups"),
}


@dataclass(frozen=True)
class Suite:
    """Levels in the order in which they are measured."""

    name: str
    what: str
    levels: tuple[Level, ...]


def between(scope: Scope, rows: Sequence[RowSpec] = ROWS) -> Level:
    """The level of the pairs of a scope."""
    name, what = BETWEEN[scope]
    return Level(name, what, scope, tuple(rows))


INTRA_NODE = Level("intra-node", "neighbours on one host", Scope.INTRA_NODE)
SWITCH_PAIRS = Level("switch-pairs", "every pair of every switch", Scope.EDGE, LATENCY_TEST, every=True)
BISECTION = Level("bisection", "one half of the fabric with the other", None, HALVES, "halves")
ALL_PAIRS = Level("all-pairs", "every pair of hosts", None, ROWS, "all")


def _one_scope(scope: Scope) -> Suite:
    level = between(scope, POINT_TO_POINT)
    return Suite(level.name, f"{level.what}: latency, bandwidth one way and both ways", (REACH_LEVEL, level))


_EVERY = (
    Suite(
        "quick",
        "a few minutes: intra-node, edge, local, global, latency and bandwidth at one size each",
        (INTRA_NODE, REACH_LEVEL, *(between(scope) for scope in BETWEEN)),
    ),
    *(_one_scope(scope) for scope in BETWEEN),
    Suite("switch-pairs", "Latency_Test: every pair of every switch, 0 bytes to 4 MiB", (REACH_LEVEL, SWITCH_PAIRS)),
    Suite(
        "bisection",
        "across the bottleneck, equal halves, both ways and one way, after the pairs that cross it",
        (REACH_LEVEL, between(Scope.LOCAL), between(Scope.GLOBAL), BISECTION),
    ),
    Suite(
        "acceptance",
        "intra-node, edge, local, global at several sizes, one way and both ways, then bisection",
        (INTRA_NODE, REACH_LEVEL, *(between(scope, POINT_TO_POINT) for scope in BETWEEN), BISECTION),
    ),
    Suite("full", "intra-node, then every pair of hosts", (INTRA_NODE, REACH_LEVEL, ALL_PAIRS)),
)
SUITES: Mapping[str, Suite] = {suite.name: suite for suite in _EVERY}


def find_suite(name: str, *, unequal: bool = False) -> Suite:
    """The suite of that name; `unequal` lets a bisection leave out hosts. Raises UsageError where there is none."""
    if name not in SUITES:
        choice = f"choose from {', '.join(SUITES)}"
        raise UsageError(f"there is no suite '{name}'", did_you_mean(name, SUITES, choice))
    suite = SUITES[name]
    return replace(suite, levels=tuple(replace(level, unequal=unequal) for level in suite.levels))


# ------------------------------------------------------------------------------------------------ before it runs


@dataclass(frozen=True)
class LevelEstimate:
    """A level as it would be measured now. `why` says why it is not, where it is not."""

    name: str
    what: str
    rows: tuple[str, ...] = ()
    rounds: int = 0
    predicted_s: float = 0.0
    why: str = ""


@dataclass(frozen=True)
class PlanSummary:
    """What a suite will measure, and the time to ask a scheduler for."""

    suite: str
    hosts: int
    ranks: int
    levels: tuple[LevelEstimate, ...]
    rate: float | None  # bytes/s for which it was predicted
    follow_ups_s: float  # for what is asked next, where anything is suspect

    @property
    def predicted_s(self) -> float:
        """All levels, none of which finds anything."""
        return sum(level.predicted_s for level in self.levels)

    @property
    def walltime_s(self) -> float:
        """Return the time of all launches and follow-ups, with a margin."""
        launches = 1 + sum(bool(level.rows) for level in self.levels)
        seconds = SAFETY * (self.predicted_s + self.follow_ups_s) + LAUNCH_S * launches
        return math.ceil(seconds / WALLTIME_S) * WALLTIME_S

    def facts(self) -> dict[str, Any]:
        """Return the facts for programs."""
        return {
            "suite": self.suite,
            "hosts": self.hosts,
            "ranks": self.ranks,
            "rate_bytes_per_s": self.rate,
            "predicted_s": self.predicted_s,
            "follow_ups_s": self.follow_ups_s,
            "walltime_s": self.walltime_s,
            "levels": [{**vars(level), "rows": list(level.rows)} for level in self.levels],
        }

    def text(self) -> str:
        """Return the text for people."""
        width = max(len(level.name) for level in self.levels)
        lines = []
        for level in self.levels:
            rows = ", ".join(row.removeprefix(f"{level.name}-") for row in level.rows)
            what = f"{rows}: {level.what}" if level.rows else f"none: {level.why}"
            lines.append(f"{level.rounds:>6} rounds {level.predicted_s / 60:>6.1f} min  {level.name:<{width}}  {what}")
        rounds = sum(level.rounds for level in self.levels)
        size = f"{self.hosts:,} hosts, {self.ranks:,} ranks"
        lines.append(f"{rounds:>6} rounds {self.predicted_s / 60:>6.1f} min  {'in all':<{width}}  {size}")
        lines.append(
            f"{'':>6}        {self.follow_ups_s / 60:>6.1f} min  for what is suspect then, at most about so long"
        )
        if self.rate is None:
            lines.append("a network that turns out to be slow (below 1 Gbit/s) takes longer")
        lines.append(f"walltime to ask for: {self.walltime_s / 60:.0f} min")
        return "\n".join(lines)


def plan_summary(
    suite: Suite,
    asked: PlanInput,
    placement: RoutedPlacement | None = None,
    left_out: Collection[int] = (),
    rate: float | None = None,
) -> PlanSummary:
    """Return rows, rounds and time of every level, before any host has failed.

    Parameters
    ----------
    suite
        Levels of the check.
    asked
        The request. Its budget is for all levels and the follow-up measurements; half of it is shared by the levels.
    placement
        Hosts, switches and routes of the ranks, if they are known.
    left_out
        Ranks that are not measured.
    rate
        Bytes per second of a healthy pair; None: a usual one.

    Raises
    ------
    UsageError
        The suite has a bisection, and the fabric no two halves.
    """
    placement = placement or asked.placement()
    planned = tuple(_planned(level, suite, asked, placement, left_out, rate) for level in suite.levels)
    follow_ups = ALONE_S if asked.budget_s is None else asked.budget_s / 2
    return PlanSummary(suite.name, len(placement.hosts), asked.ranks, planned, rate, follow_ups)


def level_budget(suite: Suite, asked: PlanInput) -> float | None:
    """Seconds for each level of a check with a budget: half of it is left for follow_ups."""
    if asked.budget_s is None:
        return None
    return asked.budget_s / 2 / sum(level.name != REACH_LEVEL.name for level in suite.levels)


def _planned(
    level: Level,
    suite: Suite,
    asked: PlanInput,
    placement: RoutedPlacement,
    left_out: Collection[int],
    rate: float | None,
) -> LevelEstimate:
    if level.within_hosts and len(set(asked.rank_hosts)) == asked.ranks:
        asked = several_each(asked)
        hosts = set(placement.host[list(left_out)].tolist())
        placement = asked.placement()
        left_out = [rank for rank, host in enumerate(placement.host.tolist()) if host in hosts]
    stage = level_stage(level, asked, placement, left_out, rate, level_budget(suite, asked))
    if stage is None:
        return LevelEstimate(level.name, level.what, why=_why_none(level, asked))
    rows = tuple(str(row.spec.name) for row in stage.plan.rows)
    rounds = sum(row.rounds for row in stage.plan.rows)
    return LevelEstimate(level.name, level.what, rows, rounds, stage.plan.predicted_s)


def _why_none(level: Level, asked: PlanInput) -> str:
    if level.within_hosts:
        return "no host has two ranks"
    if level.scope in (Scope.EDGE, Scope.LOCAL) and asked.topology is None:
        return "no topology tells which hosts are near"
    return f"there are no {level.what}" if level.scope else "there are no two hosts"
