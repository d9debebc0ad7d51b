"""The table of `fablint bench`: one line per message size, in the manner of the OSU micro-benchmarks.

Percentiles are always those of the message TIME, so P99 is the slow end of a bandwidth too. OSU sorts bandwidths
upwards, so that its P99 is the best case; the two tables differ there on purpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fablint.errors import UsageError
from fablint.model import Row, Run
from fablint.report import text

_STORED = {0.0: "min", 50.0: "median", 99.0: "p99", 100.0: "max"}


@dataclass(frozen=True)
class BenchLine:
    """Figures of one size, in the table's unit; None where nothing was measured."""

    size: int
    mean: float | None
    percentiles: tuple[float | None, ...]
    samples: int
    pairs: int


@dataclass(frozen=True)
class BenchTable:
    """The table: `text` for people, `as_dict()` for programs. `unit` is `us` or `MB/s` (10^6 bytes/s)."""

    title: str
    kernel: str
    unit: str
    percentiles: tuple[float, ...]
    lines: tuple[BenchLine, ...]

    @property
    def text(self) -> str:
        """Comment lines with `#` as OSU prints them, then columns. Newline-terminated."""
        quantity = "Bandwidth" if self.unit == "MB/s" else "Avg Latency"
        names = (quantity, *(f"P{percentile:g}" for percentile in self.percentiles))
        head = ["# Size", *(f"{name} ({self.unit})" for name in names)]
        body = [[str(line.size), *map(_cell, (line.mean, *line.percentiles))] for line in self.lines]
        return "\n".join([f"# {self.title}", *text.columns([head, *body])]) + "\n"

    def as_dict(self) -> dict[str, Any]:
        """JSON-able: kernel, unit and per size the mean, the percentiles (`{"P50": ..}`), samples and pairs."""
        names = [f"P{percentile:g}" for percentile in self.percentiles]
        return {
            "kernel": self.kernel,
            "unit": self.unit,
            "sizes": [
                {
                    "size": line.size,
                    "mean": line.mean,
                    "percentiles": dict(zip(names, line.percentiles, strict=True)),
                    "samples": line.samples,
                    "pairs": line.pairs,
                }
                for line in self.lines
            ],
        }


def bench_table(run: Run, row: Row, percentiles: Sequence[float]) -> BenchTable:
    """The table of a row: all its measured directed pairs taken together, weighted with their samples.

    `mean` is the mean time of a message (as a rate: bytes over mean time), `percentiles` those of the time.
    `bibandwidth` counts both directions, as OSU does. Percentiles come from the histograms where the row stored them,
    else from the stored statistics. Raises UsageError for a percentile outside 0..100, or one that was not stored.
    """
    wanted = tuple(float(percentile) for percentile in percentiles)
    for percentile in wanted:
        if not 0 <= percentile <= 100:
            raise UsageError(f"percentile {percentile:g} is not between 0 and 100", "give a list such as 50,90,99.9")
    lines = tuple(_line(row, index, size, wanted) for index, size in enumerate(row.sizes))
    unit = "MB/s" if text.is_rate(row.kernel) else "us"
    pairs = max((line.pairs for line in lines), default=0)
    title = f"fablint {row.kernel}, {text.plural(pairs, 'directed pair')} on {text.plural(len(run.hosts), 'host')}"
    return BenchTable(title, row.kernel, unit, wanted, lines)


def quantiles(counts: np.ndarray, edges: np.ndarray, shares: Sequence[float]) -> np.ndarray:
    """Quantiles of binned samples, interpolated inside the bin.

    `counts` (buckets,) and `edges` (buckets,), the lower edge of each, in seconds. Buckets grow by a constant factor
    (128 per octave), which also gives the last one its upper edge.
    """
    upper = np.append(edges[1:], edges[-1] * 2 ** (1 / 128))
    cumulated = np.cumsum(counts, dtype=np.float64)
    targets = np.asarray(shares) * cumulated[-1]
    at = np.searchsorted(cumulated, targets, side="left")
    at = np.where(counts[at] == 0, np.flatnonzero(counts)[0], at)  # share 0 starts at the first filled bucket
    inside = (targets - (cumulated[at] - counts[at])) / counts[at]
    return np.asarray(edges[at] + np.clip(inside, 0, 1) * (upper[at] - edges[at]))


def _line(row: Row, index: int, size: int, percentiles: tuple[float, ...]) -> BenchLine:
    count = np.asarray(row.arrays["count"][..., index], dtype=np.float64)
    measured = count > 0
    nothing = BenchLine(size, None, (None,) * len(percentiles), 0, 0)
    if not measured.any():
        return nothing
    weight = count[measured]

    def figure(seconds: float | None) -> float | None:
        if seconds is None:
            return None
        if not text.is_rate(row.kernel):
            return seconds * 1e6
        return size * (2 if row.kernel == "bibandwidth" else 1) / seconds / 1e6 if seconds > 0 else None

    mean = (
        float(np.average(_stored(row, "mean", index)[measured], weights=weight)) if "mean" in row.statistics else None
    )
    times = _percentile_times(row, index, measured, percentiles)
    return BenchLine(size, figure(mean), tuple(map(figure, times)), int(weight.sum()), int(measured.sum()))


def _percentile_times(row: Row, index: int, measured: np.ndarray, percentiles: tuple[float, ...]) -> list[float]:
    """Seconds at each percentile."""
    if not percentiles:
        return []
    if "histogram" in row.arrays:
        counts = np.asarray(row.arrays["histogram"][..., index, :])[measured].sum(axis=0, dtype=np.int64)
        times = quantiles(counts, np.asarray(row.arrays["bucket"][:]), [percentile / 100 for percentile in percentiles])
        low = float(_stored(row, "min", index)[measured].min()) if "min" in row.statistics else 0.0
        high = float(_stored(row, "max", index)[measured].max()) if "max" in row.statistics else np.inf
        return [float(time) for time in np.clip(times, low, high)]
    return [_stored_percentile(row, index, measured, percentile) for percentile in percentiles]


def _stored_percentile(row: Row, index: int, measured: np.ndarray, percentile: float) -> float:
    """From the statistics of the pairs: extremes are exact, the others the mean over the pairs."""
    name = _STORED.get(percentile)
    if name is None or name not in row.statistics:
        have = ", ".join(f"{known:g}" for known, statistic in _STORED.items() if statistic in row.statistics)
        raise UsageError(
            f"row {row.name} has no histogram, so its percentile {percentile:g} is not known",
            f"measure it with --histogram, or choose from {have or 'none'}",
        )
    combine = {"min": np.min, "max": np.max}.get(name, np.mean)
    return float(combine(_stored(row, name, index)[measured]))


def _cell(value: float | None) -> str:
    return "-" if value is None else text.significant(value)


def _stored(row: Row, statistic: str, index: int) -> np.ndarray:
    return np.asarray(row.arrays[f"time_{statistic}"][..., index], dtype=np.float64)
