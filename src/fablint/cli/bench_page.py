"""What `fablint bench NAME --help` says of a benchmark: what it measures, and its defaults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fablint.model.registry import OPTIONS
from fablint.plan.rows.benchmarks import KERNEL_FAMILY
from fablint.text import units

if TYPE_CHECKING:
    from fablint.model import RowSpec
    from fablint.plan import Benchmark

# Fields of a row, and their names on the page. They are shown where they are not None.
_SHOWN = {
    "sizes": "sizes",
    "iterations": "repetitions",
    "samples": "samples",
    "warmup": "warm-up",
    "window": "window",
    "win": "RMA window",
    "sync": "synchronisation",
    "servers": "servers",
    "retest": "slowest pairs measured again",
    "repeats": "passes",
    "workers": "senders:receivers",
    "transport": "transport",
    "memory": "memory",
}
# Those that are shown only where the benchmark does not have the default of the engine.
_NOT_BY_DEFAULT = ("servers", "retest", "repeats", "workers")
_COUNTS = ("iterations", "warmup")


def introduction(benchmark: Benchmark) -> str:
    """Return what the benchmark measures, one sentence."""
    origin = "until the median is stable" if benchmark.family == KERNEL_FAMILY else f"as {benchmark.family} does"
    return f"{benchmark.what[:1].upper()}{benchmark.what[1:]}, measured {origin}."


def defaults(rows: Sequence[RowSpec]) -> dict[str, list[tuple[str, str]]]:
    """Return what is measured without options: a title for each row, with names and values."""
    titles = ["Defaults"] if len(rows) == 1 else [f"Defaults of row {row.kernel}" for row in rows]
    return {title: [*_of_row(row)] for title, row in zip(titles, rows, strict=True)}


def _of_row(row: RowSpec) -> Iterator[tuple[str, str]]:
    yield "kernel", f"{row.kernel}: {row.kernel_info.description}"
    yield "pattern", row.pattern
    for field, name in _SHOWN.items():
        value = getattr(row, field)
        option = OPTIONS[field]
        if value is None or (field in _NOT_BY_DEFAULT and value == option.default):
            continue
        text = option.write(value)
        small, comma, large = text.partition(",")
        if field in _COUNTS and comma and small != large:
            text = f"{small}, above 8 KiB {large}"
        yield name, small if small == large else text
    if row.kernel_info.is_windowed:
        if row.window is None:
            yield "window", "64, at most 16 MiB in flight"
        yield "buffers", f"{row.buffers}"
    if row.iterations is None and row.samples is None:
        budget_s, precision = (row.budget, row.precision) if row.budget or row.precision else (1.0, 0.02)
        limits = [f"the median is known within {units.share_text(precision)}"] if precision else []
        limits += [f"{budget_s:g} s of a round are over"] if budget_s else []
        yield "stops when", " or ".join(limits)
