"""Everything that is printed from a run directory as a table. One module per family; docs/reference/tables.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fablint.errors import UsageError
from fablint.model import Row, Run
from fablint.report.tables.bench import BenchTable, bench, bench_table
from fablint.report.tables.bisec_bw import bisec_bw
from fablint.report.tables.bisection import bisection
from fablint.report.tables.congestion import congestion
from fablint.report.tables.connections import connections
from fablint.report.tables.counters import counters
from fablint.report.tables.gpu_copies import gpu_copies, is_shown as is_in_gpu_copies
from fablint.report.tables.latency_test import latency_test
from fablint.report.tables.linktest import linktest
from fablint.report.tables.nccl_tests import is_shown as is_in_nccl_tests, nccl_tests
from fablint.report.tables.net_sanitizer import net_sanitizer
from fablint.report.tables.osu import PATTERNS as OSU_PATTERNS, osu
from fablint.report.tables.osu_start import osu_hello, osu_init
from fablint.report.tables.overlap import is_shown as is_in_overlap, overlap
from fablint.report.tables.pairs import pairs
from fablint.report.tables.table import Options, Several, Table, TableKind, stacked
from fablint.report.tables.transports import transports
from fablint.report.transport_comparison import are_compared

__all__ = ["TABLES", "BenchTable", "Options", "Several", "Table", "bench_table", "benchmark_table", "render_table"]

TABLES: Mapping[str, TableKind[Any]] = {
    kind.name: kind
    for kind in (
        *(bench, bisec_bw, bisection, congestion, connections, counters, gpu_copies, latency_test, linktest),
        *(nccl_tests, net_sanitizer, osu, overlap, pairs, transports),
    )
}
_OF_STARTS = {"osu_init": osu_init, "osu_hello": osu_hello}
_OF_NAMES = {"linktest": "linktest", "netsan": "net_sanitizer", "bisec_bw": "bisec_bw", "latency_test": "latency_test"}
_OF_PATTERNS = {
    "victim-aggressor": "congestion",
    "clients-servers": "net_sanitizer",
    **dict.fromkeys(OSU_PATTERNS, "osu"),
}


def render_table(run: Run, name: str, options: Options, rows: Sequence[str] = ()) -> Table:
    """Return a table of rows of a run.

    Parameters
    ----------
    run
        The run.
    name
        A key of `TABLES`.
    options
        Percentiles, number of lines.
    rows
        Names of rows; empty: all that the table suits.

    Raises
    ------
    UsageError
        There is no such table or row, or no row suits the table.
    """
    if name not in TABLES:
        raise UsageError(f"there is no table '{name}'", f"choose from {', '.join(TABLES)}")
    row_names = [row.name for row in run.rows]
    if unknown := [wanted for wanted in rows if wanted not in row_names]:
        raise UsageError(f"the run has no row '{unknown[0]}'", f"choose from {', '.join(row_names)}")
    return TABLES[name](run, [row for row in run.rows if not rows or row.name in rows], options)


def benchmark_table(run: Run, name: str, percentiles: Sequence[float] = (), full: bool = False) -> Table:
    """The table that a benchmark or kernel `name` is known by, of the rows that measured it.

    Parameters
    ----------
    run
        Of that benchmark alone; rows that re-test another one belong to its table.
    name
        As the engine's registry has it (`osu_mbw_mr`, `linktest_bisection`, `netsan_put`), or a kernel.
    percentiles
        Of the time of a message; for the tables that have them (osu, bench).
    full
        All columns and lines, for the tables that have more.

    Raises
    ------
    UsageError
        Nothing was measured, or the table shows none of the rows.
    """
    rows = [row for row in run.rows if not row.facts.schedule.retest_of]
    if not rows:
        raise UsageError(f"{run.path or 'the run'} has no row: nothing was measured", "measure it again")
    if name in _OF_STARTS:
        return _OF_STARTS[name](run)
    is_comparison = are_compared(rows)
    tables: dict[str, list[Row]] = {}
    for row in rows if not is_comparison else ():
        tables.setdefault(_table_of(name, row), []).append(row)
    takes_percentiles, has_more = ("osu", "bench", "gpu_copies"), ("osu", "overlap", "net_sanitizer", "bisec_bw")
    parts: list[Table] = [transports(run, rows, Options())] if is_comparison else []
    for table, rows_of_table in tables.items():
        options = Options(tuple(percentiles) if table in takes_percentiles else (), full and table in has_more)
        parts.append(TABLES[table](run, rows_of_table, options))
    if any(row.facts.result.counters.before is not None for row in rows):
        parts.append(counters(run, rows, Options()))
    return stacked(name, parts)


def _table_of(name: str, row: Row) -> str:
    """Whoever asked for a benchmark gets its table, as far as the row suits it."""
    if is_in_gpu_copies(row):
        return "gpu_copies"
    if is_in_overlap(row):
        return "overlap"
    if is_in_nccl_tests(row) and (name.endswith("_perf") or row.facts.carrier.transport == "nccl"):
        return "nccl_tests"
    family = next((table for start, table in _OF_NAMES.items() if name.startswith(start)), None)
    if family is not None and row.pattern != "world":
        return family
    return _OF_PATTERNS.get(row.pattern, "bench")
