"""How long a row will take.

A time budget is kept by the engine, so the prediction is arithmetic. Where a row stops on a number of samples
instead, the duration depends on a fabric that nobody has measured yet; the nominal fabric below stands in for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from fablint.plan.grammar import KERNELS, RowRequest
from fablint.plan.patterns import Extent

OVERHEAD = 1.10  # schedule, warm-up and writing, on top of the measuring itself

# What docs/reference/engine.md says.
DEFAULT_BUDGET_S = 1.0
LONGEST_ROUND_S = 60.0
DEFAULT_WINDOW = 64
BYTES_IN_FLIGHT = 16 * 2**20

# The nominal fabric: a slow one by the standards of 2026, so that the prediction errs upwards.
NOMINAL_LATENCY_S = 3e-6
NOMINAL_BANDWIDTH = 5e9
NOMINAL_SAMPLE_S = 1e-5  # no batch is shorter
NOMINAL_NOISE = 0.1  # relative standard deviation of a sample


def row_seconds(row: RowRequest, extent: Extent, rounds: int | None = None) -> float:
    """Predicted seconds of a row, all repeats; of `rounds` of its rounds where they are given.

    In parallel order the pairs of a round share its budget, in serial order every pair has one of its own.
    """
    all_rounds = extent.rounds * row.repeats
    slots = extent.pairs / extent.rounds if row.order == "serial" else 1.0
    return (all_rounds if rounds is None else rounds) * slots * pair_seconds(row) * OVERHEAD


def pair_seconds(row: RowRequest) -> float:
    """Seconds of one pair in one round, all sizes and directions: the first stopping rule to be reached."""
    rules = []
    if row.samples is None and row.budget is None and row.precision is None:
        rules.append(DEFAULT_BUDGET_S)
    if row.budget is not None:
        rules.append(row.budget)
    if row.samples is not None:
        rules.append(sampling_seconds(row, row.samples))
    if row.precision is not None:
        # The half-width of a median's interval is about 1.25 * 1.96 * sigma / sqrt(n).
        rules.append(sampling_seconds(row, math.ceil((1.25 * 1.96 * NOMINAL_NOISE / row.precision) ** 2)))
    return min([*rules, LONGEST_ROUND_S])


def sampling_seconds(row: RowRequest, samples: int) -> float:
    """Nominal seconds for that many samples of every size and direction, warm-up included."""
    kernel = KERNELS[row.kernel]
    total = 0.0
    for size, window in zip(row.sizes, windows(row), strict=True):
        message = window * (NOMINAL_LATENCY_S + size / NOMINAL_BANDWIDTH)
        sample = message * row.batch if row.batch else max(message, NOMINAL_SAMPLE_S)
        total += kernel.directions * (row.warmup * message + samples * sample)
    return total


def windows(row: RowRequest) -> Sequence[int]:
    """Messages in flight, per size: at most 16 MiB unless the row says otherwise."""
    if not KERNELS[row.kernel].windowed:
        return [1] * len(row.sizes)
    if row.window:
        return [row.window] * len(row.sizes)
    return [max(1, min(DEFAULT_WINDOW, BYTES_IN_FLIGHT // size)) for size in row.sizes]
