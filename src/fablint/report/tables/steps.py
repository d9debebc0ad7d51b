"""The rounds of a row as LinkTest's steps: fastest, mean and slowest pair of each, and the bandwidth of all pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fablint.model import Row
from fablint.report.tables.cells import blocks, central
from fablint.report.tables.traffic import rates


@dataclass(frozen=True)
class Step:
    """One round. Times in seconds; `bandwidth` is the sum over its pairs, bytes/s."""

    number: int  # 0..R-1
    low: float
    mean: float
    high: float
    bandwidth: float
    cells: int
    planned: int

    @property
    def complete(self) -> bool:
        """True if every planned cell was measured."""
        return self.cells == self.planned


@dataclass(frozen=True)
class Aggregate:
    """Steps up to now: extremes and mean over all their cells; `bandwidth` is the mean over the steps."""

    low: float
    mean: float
    high: float
    bandwidth: float


def factor(row: Row) -> int:
    """Bytes that a pair's time stands for, in messages: both directions where they run at once."""
    return 2 if row.is_duplex else 1


def steps(row: Row, index: int) -> list[Step]:
    """The rounds of which anything was measured, in order.

    The bandwidth of a pair is the mean of what its cells say, `factor` x size / time; that of a step the sum over
    its pairs. LinkTest prints the same: pairs x mean pair bandwidth.
    """
    name, size = central(row), row.sizes[index]
    rounds = row.facts.schedule.rounds
    low, high = np.full(rounds, np.inf), np.full(rounds, -np.inf)
    total, rate, count = np.zeros(rounds), np.zeros(rounds), np.zeros(rounds, dtype=np.int64)
    for block in blocks(row, index, [name]):
        seconds = block.times[name]
        np.minimum.at(low, block.round, seconds)
        np.maximum.at(high, block.round, seconds)
        total += np.bincount(block.round, seconds, rounds)
        rate += np.bincount(block.round, factor(row) * rates(size, seconds), rounds)
        count += np.bincount(block.round, minlength=rounds)
    per_pair = 1 if row.directions == "single" else 2
    planned = row.facts.schedule.planned_cells
    return [
        Step(
            number=int(at),
            low=float(low[at]),
            mean=float(total[at] / count[at]),
            high=float(high[at]),
            bandwidth=float(rate[at] / per_pair),
            cells=int(count[at]),
            planned=planned[int(at)],
        )
        for at in np.flatnonzero(count)
    ]


def aggregates(steps: Sequence[Step]) -> list[Aggregate]:
    """Return what is known after each step."""
    sofar = []
    low, high, total, cells, bandwidth = math.inf, -math.inf, 0.0, 0, 0.0
    for place, step in enumerate(steps, 1):
        low, high = min(low, step.low), max(high, step.high)
        total, cells, bandwidth = total + step.mean * step.cells, cells + step.cells, bandwidth + step.bandwidth
        sofar.append(Aggregate(low, total / cells, high, bandwidth / place))
    return sofar


def starts(row: Row) -> np.ndarray:
    """Return when each round began, s since the run's start: (rounds,), NaN where unknown."""
    rounds = row.facts.schedule.rounds
    earliest = np.full(rounds, np.inf)
    if "started" not in row.arrays:
        return np.full(rounds, np.nan)
    if row.layout == "list":
        earliest = np.fmin.reduce(np.asarray(row.arrays["started"][:]), axis=0, initial=np.inf)
    else:
        for source in range(row.arrays["started"].shape[1]):
            began = np.asarray(row.arrays["started"][:, source])
            number = np.asarray(row.arrays["round"][:, source])
            has_started = np.isfinite(began)
            np.minimum.at(earliest, number[has_started], began[has_started])
    return np.where(np.isfinite(earliest), earliest, np.nan)


def time_words(seconds: float) -> str:
    """Return a duration in seconds as LinkTest prints it: right-aligned, with its unit.

    >>> time_words(11.6491e-6), time_words(0.02452618)
    ('  11.64910 us', '  24.52618 ms')
    """
    scale, unit = next((pair for pair in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")) if seconds >= pair[0]), (1e-9, "ns"))
    return f"{seconds / scale:10.5f} {unit}"


def rate_words(bytes_per_second: float) -> str:
    """Format as LinkTest prints a bandwidth: powers of 1024.

    >>> rate_words(20.9579 * 2**30), rate_words(100.0)
    ('   20.9579 GiB/s', '  100.0000 B/s')
    """
    units = ((2.0**40, "TiB/s"), (2.0**30, "GiB/s"), (2.0**20, "MiB/s"), (2.0**10, "KiB/s"))
    scale, unit = next((pair for pair in units if bytes_per_second >= pair[0]), (1.0, "B/s"))
    return f"{bytes_per_second / scale:10.4f} {unit}"
