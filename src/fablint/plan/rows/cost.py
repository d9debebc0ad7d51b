"""How long a row will take.

A time budget is kept by the engine, so the prediction is arithmetic. Where a row stops on a count instead, the duration
depends on a fabric that is not measured yet; the nominal fabric below takes its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from fablint.model.registry.option_values import Counts
from fablint.model.registry.row_limits import ROW_LIMITS
from fablint.model.row import RowSpec
from fablint.plan.rows.pattern_extent import Extent

OVERHEAD = 1.10  # schedule, warm-up and writing, on top of the measuring itself

# The nominal fabric: a slow one by the standards of 2026, so that the prediction errs upwards.
NOMINAL_LATENCY_S = 3e-6
NOMINAL_BANDWIDTH = 5e9
NOMINAL_SAMPLE_S = 1e-5  # no batch is shorter
NOMINAL_NOISE = 0.1  # relative standard deviation of a sample


def row_seconds(row: RowSpec, extent: Extent, rounds: int | None = None) -> float:
    """Predicted seconds of a row, all repeats, its retest included; of `rounds` of its rounds where they are given.

    In parallel order the groups of a round share its budget, in serial order every group has one of its own.
    """
    rounds_of_row = extent.rounds * row.repeats
    slots = extent.groups / extent.rounds if row.order == "serial" else 1.0
    measured = (rounds_of_row if rounds is None else rounds) * slots + row.retest
    return measured * group_seconds(row, extent.fan) * OVERHEAD


def group_seconds(row: RowSpec, fan: int = 1) -> float:
    """Seconds of one group in one round, all sizes and directions: the first stopping rule to be reached."""
    rules = [_longest(row)]
    if row.samples is not None:
        rules.append(sampling_seconds(row, lambda _: row.samples or 0, fan))
    if row.iterations is not None:
        rules.append(sampling_seconds(row, at_size(row.iterations), fan))
    if row.precision is not None:
        # The half-width of a median's interval is about 1.25 * 1.96 * sigma / sqrt(n).
        samples = math.ceil((1.25 * 1.96 * NOMINAL_NOISE / row.precision) ** 2)
        rules.append(sampling_seconds(row, lambda _: samples, fan))
    return min(rules)


def _longest(row: RowSpec) -> float:
    """The budget, which holds where none was given as well."""
    if row.budget is not None:
        return row.budget
    if row.iterations is not None:
        return ROW_LIMITS.longest_counted_round_s
    has_default_rule = row.samples is None and row.precision is None
    return ROW_LIMITS.default_budget_s if has_default_rule else ROW_LIMITS.longest_round_s


def sampling_seconds(row: RowSpec, samples: Callable[[int], int], fan: int) -> float:
    """Nominal seconds for `samples(size)` samples of every size and direction, warm-up included.

    With --iterations a sample is one repetition; else it is a batch, as long as it takes to be timed.
    """
    warmup = at_size(row.warmup)
    total = 0.0
    for size, window in zip(row.sizes, windows(row, fan), strict=True):
        repetition = window * (NOMINAL_LATENCY_S * _steps(row, fan) + size * fan / NOMINAL_BANDWIDTH)
        sample = repetition * row.batch if row.batch else max(repetition, NOMINAL_SAMPLE_S)
        if row.iterations is not None:
            sample = repetition
        total += row.directions_measured * (warmup(size) * repetition + samples(size) * sample)
    return total


def at_size(counts: Counts) -> Callable[[int], int]:
    """Return which of the counts holds at a size."""
    return lambda size: counts[size > ROW_LIMITS.largest_small_message]


def _steps(row: RowSpec, fan: int) -> int:
    """Messages that a repetition waits for, one after the other."""
    return math.ceil(math.log2(fan + 1)) if row.kernel_info.is_collective else 1


def windows(row: RowSpec, fan: int = 1) -> Sequence[int]:
    """Messages in flight to each of `fan` peers, per size: at most 16 MiB to one unless the row says otherwise."""
    if not row.kernel_info.is_windowed:
        return [1] * len(row.sizes)
    if row.window:
        return [row.window] * len(row.sizes)
    in_flight = min(ROW_LIMITS.window_bytes_to_one, ROW_LIMITS.window_bytes_to_all // max(fan, 1))
    return [max(1, min(ROW_LIMITS.default_window, in_flight // size)) for size in row.sizes]
