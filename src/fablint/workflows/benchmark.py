"""`fablint bench`: the rows of a benchmark are measured and its table is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fablint.errors import FablintError, IncompleteError, StoppedError
from fablint.model import Plan, Row, Run
from fablint.model.lazy_imports import import_meanwhile
from fablint.text.connection_steps import connection_step
from fablint.workflows import measurement
from fablint.workflows.context import Context
from fablint.workflows.job_hosts import refuse_misplaced, slots_of_job
from fablint.workflows.shared_folder import refuse_unshared

if TYPE_CHECKING:
    from fablint.plan import Benchmark
    from fablint.report import Table


@dataclass(frozen=True)
class BenchmarkResult:
    """The table of a benchmark; `exit_code` is 1 where payloads were damaged, and `damage` says which."""

    table: Table
    exit_code: int
    damage: str = ""


STOP_S = 1.0  # after Ctrl-C: the engine drops the size that it measures


@dataclass(frozen=True)
class TableColumns:
    """Columns of a benchmark's table beside the usual ones."""

    percentiles: tuple[float, ...] = ()  # of the time of a message
    full: bool = False  # all columns and lines that the table has


def benchmark_registry() -> Mapping[str, Benchmark]:
    """Read the benchmarks that are installed with the engine's sources, by name."""
    from fablint.measure.engine import find_sources
    from fablint.plan import read_benchmarks

    path = find_sources() / "registry" / "benchmarks.inc"
    return read_benchmarks(path.read_text(), str(path))


def read_plan(text: str, ranks: int, source: str, carriers: Mapping[str, Any] | None = None) -> Plan:
    """Parse a plan of the user.

    Parameters
    ----------
    text
        Lines of the plan. Rounds files are relative to the working directory.
    ranks
        Number of ranks.
    source
        Name of the plan in errors.
    carriers
        Options of all rows: `transport`, `device` and the like.
    """
    from fablint.plan import parse_plan

    return parse_plan(text, ranks, source, lambda name: Path(name).read_text(), benchmark_registry(), carriers)


def bench(
    context: Context,
    plan: Plan,
    name: str,
    columns: TableColumns,
    output: Path | None,
    options: Sequence[str] = (),
    show: Callable[[Table], None] = lambda _: None,
) -> BenchmarkResult:
    """Measure the rows of a benchmark and make its table.

    Parameters
    ----------
    context
        Machine, progress, MPI.
    plan
        The rows.
    name
        Benchmark whose table is made of them.
    columns
        Additional columns.
    output
        Run directory to write; None: the run is deleted afterwards.
    options
        Run options of the engine.
    show
        Called with the table so far: after each of several sizes of a benchmark of one row without a retest, and before
        an error is raised.

    Raises
    ------
    IncompleteError
        Not all of the plan was measured.
    KeyboardInterrupt
        The user stopped the measurement.
    """
    if output is None:
        with context.system.temporary_folder(context.system.home_folder("scratch")) as folder:
            scratch = replace(context, is_scratch=True)
            return bench(scratch, plan, name, columns, folder / "bench.run", options, show)
    plan = replace(plan, slots=slots_of_job(context.system, plan.slots)) if plan.slots else plan
    refuse_unshared(context.system, output.parent, plan.slots)
    import_meanwhile("fablint.report.tables.bench")  # numpy, for a tenth of a second, during MPI_Init

    def show_so_far() -> None:
        from fablint.store import read_run

        with suppress(FablintError):  # files of another host may not be visible yet; misplaced ranks are refused below
            run = read_run(output)
            refuse_misplaced(run, plan.slots)
            if len(plan.rows) > 1 and not any(map(_has_figures, run.rows)):
                return  # which table the rows have is seen when one of them is measured
            show(_table(run, name, columns))

    def show_size() -> None:
        spec = plan.rows[0].spec
        if len(spec.sizes) > 1 and not spec.retest:  # a retest changes what the table says of every size
            show_so_far()

    by_size = show_size if len(plan.rows) == 1 else None
    context = replace(context, stop_s=STOP_S, on_size=by_size)
    try:
        result = measurement.measure(context, plan, output, [*options, measurement.SKIP_REFUSED])
    except (KeyboardInterrupt, StoppedError):
        show_so_far()
        raise
    if result.error:
        show_so_far()
        raise IncompleteError(result.error, connection_step(result.error) if context.is_scratch else result.next_step)
    return BenchmarkResult(_table(result.run, name, columns), result.exit_code, _damage(result.run))


def _has_figures(row: Row) -> bool:
    return "count" in row.arrays and bool((row.arrays["count"][...] > 0).any())


def _table(run: Run, name: str, columns: TableColumns) -> Table:
    from fablint.report import benchmark_table

    return benchmark_table(run, name, percentiles=columns.percentiles, full=columns.full)


def _damage(run: Run) -> str:
    """Describe the first payload that arrived damaged, with the number of all; empty where none was damaged."""
    damaged = [(row.name, entry) for row in run.rows for entry in row.facts.result.corrupt]
    if not damaged:
        return ""
    row, first = damaged[0]
    src, dst = (f"rank {rank} ({run.rank_host[rank]})" for rank in (first.src, first.dst))
    return (
        f"{len(damaged)} payloads were damaged, the first in row {row}: from {src} to {dst}, {first.size} bytes, "
        f"offset {first.offset} of message {first.message}"
    )
