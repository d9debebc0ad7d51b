"""The plan that `fablint check` measures by default."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fablint.errors import UsageError
from fablint.model import Medium, Plan, RowSpec
from fablint.plan.check.check_rows import ROWS
from fablint.plan.rows.cost import OVERHEAD
from fablint.plan.rows.patterns import extent
from fablint.plan.rows.plan_file import plan_of
from fablint.plan.rows.side_by_side import over_media

# Seconds for a pair (serial) or a round (parallel).
SHORTEST_S = 0.01  # below it warm-up and calibration are most of what happens
COMFORTABLE_S = 0.05  # worth a repeat: long enough to span a scheduler tick or a daemon's wake-up
LONGEST_S = 0.2  # above it a repeat at another time tells more than a longer sample

# Seconds for the whole check.
SERIAL_S = 20.0
PARALLEL_S = 120.0

MOST_REPEATS = 5
FEWEST_REPEATS = 2  # on fabrics of up to SMALL ranks
SMALL = 64
FEWEST_MATCHINGS = 4


def check_plan(
    ranks: int,
    *,
    hosts: int,
    oversubscribed: bool,
    budget_s: float | None = None,
    media: Sequence[Medium] = (Medium(),),
) -> Plan:
    """All-pairs `latency` at 8 B and all-pairs `bandwidth` at 1 MiB.

    Two rows, because they fail apart: a flapping cable or a misrouted path shows in small messages, a link that
    trained down to half its width in large ones only. All pairs, because every part is then seen from many sides.

    Order: parallel, as a cluster is used, where every rank has a CPU and the ranks sit on several hosts. Serial on
    one host and where some host is oversubscribed: ranks that run side by side would fight for CPUs and memory,
    and the figures would judge the operating system's scheduler.

    Repeats: a slow second of one host slows all pairs that were measured in that second. Only a repeat at another
    time tells it from a slow part, so small fabrics are measured two to five times; a large one has so many
    rounds that every host is sampled all over the run anyway. Within a repeat every pair gets the same
    time (no stopping on precision), so that all are exposed to the same noise of the machine.

    Time: `budget_s` is shared evenly by all rounds (pairs in serial order), between 0.01 s and 0.2 s each. The
    default is 20 s serial and 120 s parallel, and more where the fewest repeats at that floor take longer. When
    an explicit budget cannot hold all pairs at the floor, random matchings take their place: as many as fit, at
    least 4.

    Parameters
    ----------
    ranks
        Ranks that will run it.
    hosts
        Hosts that they sit on.
    oversubscribed
        Does some host have more ranks than CPUs?
    budget_s
        Upper limit of `Plan.predicted_s` in seconds; None for the default.
    media
        Over each of which both rows are measured.

    Raises
    ------
    UsageError
        Fewer than two ranks, or a budget that is not above 0.
    """
    if budget_s is not None and not 0 < budget_s < math.inf:
        raise UsageError(f"a budget of {budget_s:g} s is not a duration", "give seconds above 0")
    order = "serial" if hosts == 1 or oversubscribed else "parallel"
    size = extent(RowSpec("latency", pattern="all-pairs"), ranks)
    units = size.groups if order == "serial" else size.rounds
    seconds = (budget_s or (SERIAL_S if order == "serial" else PARALLEL_S)) / OVERHEAD / len(ROWS) / len(media)
    if budget_s is not None and seconds < units * SHORTEST_S:
        matchings = _matchings(ranks, order, seconds)
        return _plan(ranks, media, SHORTEST_S, pattern="random", matchings=matchings, order=order)
    fewest = FEWEST_REPEATS if ranks <= SMALL else 1
    if budget_s is not None:
        fewest = min(fewest, int(seconds / units / SHORTEST_S))
    repeats = max(fewest, min(int(seconds / units / COMFORTABLE_S), MOST_REPEATS))
    share = min(max(seconds / units / repeats, SHORTEST_S), LONGEST_S)
    return _plan(ranks, media, share, pattern="all-pairs", order=order, repeats=repeats)


def _matchings(ranks: int, order: str, seconds: float) -> int:
    slots = ranks // 2 if order == "serial" else 1
    return max(FEWEST_MATCHINGS, int(seconds / slots / SHORTEST_S))


def _plan(ranks: int, media: Sequence[Medium], share: float, **options: Any) -> Plan:
    rows = [replace(row, budget=rounded_down(share), **options) for row in ROWS]
    rows = rows if len(media) == 1 else [replace(row, name=row.kernel) for row in rows]
    return plan_of(over_media(rows, media), ranks)


def rounded_down(seconds: float) -> float:
    """Seconds of a round with four digits: the sum of all rounds must stay within the budget."""
    return math.floor(seconds * 1e4) / 1e4
