"""The verb `history`: results of many runs in one file: trends, repeated findings, baselines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fablint.cli.options import FILE, RUN, WRITTEN_FILE, run_topology_option
from fablint.cli.param_types import Loss, Sizes
from fablint.cli.session import Session, common_options, verb
from fablint.errors import BrokenRunError, UsageError

if TYPE_CHECKING:
    from fablint.workflows.run_history import Added

_db_option = click.option(
    "--db", "file", type=FILE, metavar="FILE", help="File of the history [history.sqlite below FABLINT_HOME]."
)
_last_option = click.option("--last", type=click.IntRange(1), metavar="N", help="Only the last N runs [all].")


@click.group(short_help="Keep results: trends, repeated findings, baselines.")
@common_options
def history() -> None:
    """Keep the results of runs in one file: trends with change points, repeated findings, baselines for checks.

    The file is SQLite. Processes on several hosts may add runs at the same time; a process that is killed adds a run
    whole or not at all.

    \b
    Example:
      fablint history add night.run && fablint history trend
    """


@verb()
@click.argument("runs", nargs=-1, required=True, type=RUN, metavar="RUN...")
@run_topology_option
@_db_option
def add(session: Session, runs: tuple[Path, ...], topology: Path | None, file: Path | None) -> int:
    """Add runs to the history: the figures of each scope and host, and the findings.

    RUN is a run directory or the output of another tool, as for fablint import. A run that the history has already is
    not added again. Exit codes: 0 all runs are in the history, 3 a run could not be read.

    \b
    Example:
      fablint history add fablint-2026*.run
    """
    from fablint.workflows.run_history import add_runs, opened

    results: list[Added] = []
    with opened(session.machine(), file, create=True) as database:
        for run in add_runs(database, runs, topology):
            results.append(run)
            if run.error:
                session.warn(run.error)
    lines = [f"{one.path}: {'added' if one.is_new else 'known'}" for one in results if not one.error]
    facts = [{"run": str(one.path), "added": one.is_new, "error": one.error or None} for one in results]
    session.result("\n".join(lines), {"runs": facts})
    return BrokenRunError.exit_code if any(one.error for one in results) else 0


@verb(name="list")
@_last_option
@_db_option
def list_verb(session: Session, last: int | None, file: Path | None) -> None:
    """List the runs of the history, the oldest first.

    \b
    Example:
      fablint history list --last 10
    """
    from fablint.history.history_text import runs_facts, runs_text
    from fablint.history.queries import kept_runs
    from fablint.workflows.run_history import opened

    with opened(session.machine(), file) as database:
        runs = kept_runs(database)[-(last or 0) :]
    session.result(runs_text(runs), runs_facts(runs))


@verb()
@click.argument("component", required=False, metavar="[HOST|SCOPE]")
@click.option("--kernel", metavar="NAME", help="Only this kernel, such as bandwidth.")
@click.option("--size", type=Sizes(), metavar="SIZE", help="Only this message size.")
@_db_option
def trend(
    session: Session, component: str | None, kernel: str | None, size: tuple[int, ...] | None, file: Path | None
) -> None:
    """Print how a host or scope developed over the runs, with change points; without an argument all scopes.

    Also lists the components with findings in several runs. Of series without a change, at most 1 % have a change
    point. Runs without a start time are the oldest.

    \b
    Examples:
      fablint history trend
      fablint history trend n017 --kernel bandwidth --size 1M
    """
    from fablint.history.history_text import trends_facts, trends_text
    from fablint.history.queries import repeated_findings, trends
    from fablint.workflows.run_history import opened

    if size is not None and len(size) != 1:
        raise UsageError("--size: give one size", "such as 1M")
    with opened(session.machine(), file) as database:
        series = trends(database, component, kernel, size[0] if size else None)
        repeated = repeated_findings(database) if component is None else []
    session.result(trends_text(series, repeated), trends_facts(series, repeated))


@verb()
@click.argument("name")
@_last_option
@click.option(
    "--margin", type=Loss(least=0), default="5%", show_default=True, metavar="SHARE", help="Loss beyond these runs."
)
@_db_option
def baseline(session: Session, name: str, last: int | None, margin: float, file: Path | None) -> None:
    """Make a baseline of the runs without a fault: fablint check --baseline NAME compares with it.

    The limit of a scope is the worst 5th percentile of its pairs in any of the runs, less the margin. The baseline is
    a site file, which is printed and can be edited.

    \b
    Example:
      fablint history baseline spring --last 20
    """
    from fablint.history.baselines import baseline_thresholds
    from fablint.history.queries import kept_runs
    from fablint.workflows.run_history import opened, save_baseline

    with opened(session.machine(), file) as database:
        runs = [run for run in kept_runs(database) if run.verdict != "fault"]
        runs = ([run for run in runs if run.verdict != "local"] or runs)[-(last or 0) :]
        if not runs:
            raise UsageError("the history has no run without a fault", "add runs with fablint history add")
        thresholds = baseline_thresholds(database, name, [run.id for run in runs], margin)
    path = save_baseline(session.machine(), name, thresholds)
    facts = {"baseline": name, "path": str(path), "runs": len(runs), "thresholds": [one.facts() for one in thresholds]}
    session.result(f"{path}: {len(thresholds)} thresholds of {len(runs)} runs", facts)


@verb()
@click.option(
    "-o", "--output", type=WRITTEN_FILE, required=True, metavar="FILE", help="File to create: .parquet or .csv."
)
@_db_option
def export(session: Session, output: Path, file: Path | None) -> None:
    """Write all figures as a table: a line for each run, component, kernel and size.

    \b
    Example:
      fablint history export -o history.parquet
    """
    from fablint.cli.written_files import refuse_unwritable
    from fablint.history.table import write_table
    from fablint.workflows.run_history import opened

    refuse_unwritable(output)
    with opened(session.machine(), file) as database:
        lines = write_table(database, output)
    session.result(f"{output}: {lines:,} lines", {"output": str(output), "lines": lines})


for _command in (add, list_verb, trend, baseline, export):
    history.add_command(_command)
