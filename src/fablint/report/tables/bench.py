"""The general table: one line per message size over all directed pairs of a row, whatever its pattern.

Percentiles are always those of the message TIME, so P99 is the slow end of a bandwidth too. OSU sorts bandwidths
upwards, so that its P99 is the best case; the two tables differ there on purpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fablint.model import Medium, Row, Run
from fablint.report.tables.quantiles import checked, percentile_times, stored
from fablint.report.tables.table import TableKind, right
from fablint.text import units

_SIZE_WIDTH, _FIELD_WIDTH = 10, 18


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
        """Comment lines with `#` as OSU prints them, then columns of fixed widths. Newline-terminated."""
        quantity = "Bandwidth" if self.unit == "MB/s" else "Avg Latency"
        names = (quantity, *(f"P{percentile:g}" for percentile in self.percentiles))
        head = ["# Size", *(f"{name} ({self.unit})" for name in names)]
        body = [[str(line.size), *map(_cell, (line.mean, *line.percentiles))] for line in self.lines]
        return "\n".join([f"# {self.title}", *map(_text_line, [head, *body])]) + "\n"

    def as_dict(self) -> dict[str, Any]:
        """JSON-able: kernel, unit and per size the mean, the percentiles (`{"P50": ..}`), samples and pairs."""
        names = [f"P{percentile:g}" for percentile in self.percentiles]
        return {
            "table": "bench",
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


# A section for each row. Option: percentiles.
bench = TableKind[Row](
    "bench",
    options=("percentiles",),
    needs="a row",
    measure="measure one",
    parts=lambda _, rows: rows,
    section=lambda run, row, options: bench_table(run, row, options.percentiles),
)


def bench_table(run: Run, row: Row, percentiles: Sequence[float]) -> BenchTable:
    """The table of a row: all its measured directed pairs taken together, weighted with their samples.

    `mean` is the mean time of a message (as a rate: bytes over mean time), `percentiles` those of the time.
    Where both directions run at once both are counted, as OSU does. Percentiles come from the histograms where the row
    stored them, else from the stored statistics. Raises UsageError for a percentile outside 0..100, or one that was
    not stored.
    """
    wanted = checked(percentiles)
    lines = tuple(_line(row, index, size, wanted) for index, size in enumerate(row.sizes))
    unit = "MB/s" if units.is_rate(row.quantity) else "us"
    pairs = max((line.pairs for line in lines), default=0)
    over = f" over {row.medium.label}" if row.medium != Medium() else ""
    is_of_all = row.pattern == "world" and run.facts.imported is not None  # one figure of all ranks
    what = units.plural(run.ranks, "rank") if is_of_all else units.plural(pairs, "directed pair")
    title = f"fablint {row.kernel}{over}, {what} on {units.plural(len(run.hosts), 'host')}"
    return BenchTable(title, row.kernel, unit, wanted, lines)


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
        if not units.is_rate(row.quantity):
            return seconds * 1e6
        return row.counted_bytes(size) / seconds / 1e6 if seconds > 0 else None

    mean = float(np.average(stored(row, "mean", index)[measured], weights=weight)) if "mean" in row.statistics else None
    times = percentile_times(row, index, measured, percentiles)
    return BenchLine(size, figure(mean), tuple(map(figure, times)), int(weight.sum()), int(measured.sum()))


def _text_line(cells: Sequence[str]) -> str:
    """Return columns whose widths do not depend on other lines, which may not be measured yet."""
    first, *others = cells
    return first.ljust(_SIZE_WIDTH) + "".join(right(cell, _FIELD_WIDTH) for cell in others)


def _cell(value: float | None) -> str:
    return "-" if value is None else units.significant(value)
