"""The verbs that measure: check, measure, resume, plan. `bench` has a module of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fablint.cli.bench_options import SETTINGS, engine_options
from fablint.cli.common import (
    Duration,
    Session,
    mpicxx_option,
    output_option,
    ranks_option,
    run_argument,
    topology_option,
    verb,
)
from fablint.errors import UsageError

if TYPE_CHECKING:
    from fablint.flow import Measured
    from fablint.model import Plan

_ALLOCATION = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_URI", "PE_HOSTFILE")  # set inside a batch job

budget_option = click.option("--budget", type=Duration(), metavar="TIME", help="Time for all of it, such as 20s or 5m.")


@verb(short_help="Measure, judge and report, all in one.")
@click.option("--local", "ranks", type=int, metavar="N", help="Measure N ranks on this machine.")
@output_option
@topology_option
@budget_option
@mpicxx_option
def check(
    session: Session,
    ranks: int | None,
    output: Path | None,
    topology: Path | None,
    budget: float | None,
    mpicxx: Path | None,
) -> int:
    """Measure, judge and report, all in one.

    Writes a run directory (by default fablint-DATE-TIME.run) with report/index.html and report/verdict.json in it. The
    exit code is the verdict's: 0 pass, 1 fault found, 3 incomplete or undecided.

    \b
    Example:
      fablint check --local 8 -o today.run
    """
    from fablint import flow

    system = session.machine()
    if ranks is None:
        raise UsageError(*_no_cluster_yet(system.environ))
    plan = flow.local_plan(system, ranks, budget)
    known = flow.load_topology(topology)
    output = flow.free_output(system, output)
    with session.surroundings(mpicxx) as around:
        checked = flow.check(around, plan, output, known)
    if checked.error:
        session.warn(checked.error)
    code = session.verdict(checked.run, checked.diagnosis)
    session.say(f"report: {checked.page}")
    return code


def _no_cluster_yet(environ: Any) -> tuple[str, str]:
    inside = next((name for name in _ALLOCATION if name in environ), None)
    if inside is None:
        return "nothing to check: no allocation here", "use --local N to measure N ranks on this machine"
    return (
        f"this is an allocation ({inside}), but check cannot launch across its hosts yet",
        "use fablint measure -n N where this MPI's mpiexec does, or --local N for this host alone",
    )


@verb(short_help="Measure rows of a plan into a run directory.")
@ranks_option
@click.argument("planfile", required=False, type=click.Path(path_type=Path))
@click.option("-r", "--row", "rows", multiple=True, metavar="ROW", help="A row in quotes; may be given several times.")
@SETTINGS["counters"].decorate
@SETTINGS["ranks_per_nic"].decorate
@output_option
@mpicxx_option
def measure(
    session: Session,
    ranks: int,
    planfile: Path | None,
    rows: tuple[str, ...],
    output: Path | None,
    mpicxx: Path | None,
    **instrument: Any,
) -> int:
    """Measure the rows of PLANFILE, or those given with -r, into a run directory.

    Ranks are started with the mpiexec of the MPI that the engine is built with.

    \b
    Examples:
      fablint measure -n 8 night.plan -o night.run
      fablint measure -n 4 -r 'latency --pattern all-pairs --sizes 8,1M'
      fablint measure -n 8 -r 'osu_bw --pattern all-pairs' --counters
    """
    from fablint import flow

    plan = _plan(planfile, rows, ranks)
    output = flow.free_output(session.machine(), output)
    with session.surroundings(mpicxx) as around:
        return _measured(session, flow.measure(around, plan, output, engine_options(**instrument)))


def _plan(planfile: Path | None, rows: tuple[str, ...], ranks: int) -> Plan:
    from fablint import flow

    if (planfile is None) == (not rows):
        raise UsageError("give either a plan file or rows with -r", "such as -r 'latency --pattern all-pairs'")
    if planfile is None:
        return flow.read_plan("\n".join(rows), ranks, "-r")
    try:
        return flow.read_plan(planfile.read_text(), ranks, str(planfile))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "no text"
        raise UsageError(f"cannot read {planfile}: {reason}", "give a plan file, one row per line") from error


def _measured(session: Session, measured: Measured) -> int:
    run = measured.run
    facts = {
        "format": 1,
        "run": str(run.path),
        "state": run.state,
        "exit_code": measured.exit_code,
        "lost": run.attributes.get("lost", []),
        "error": measured.error or None,
    }
    session.result(f"{run.path}: {run.state}", facts)
    if measured.error:
        session.warn(f"{measured.error}: what was measured is kept: fablint resume {run.path}")
    return measured.exit_code


@verb(short_help="Measure the rounds that a run lacks.")
@run_argument
@mpicxx_option
def resume(session: Session, run: Path, mpicxx: Path | None) -> int:
    """Measure the rounds that RUN lacks, with as many ranks as it was begun with.

    \b
    Example:
      fablint resume night.run
    """
    from fablint import flow

    with session.surroundings(mpicxx) as around:
        measured = flow.resume(around, run)
    if measured is None:
        session.result(f"{run}: nothing is missing", {"format": 1, "run": str(run), "missing": 0, "exit_code": 0})
        return 0
    return _measured(session, measured)


@verb(short_help="What a check would measure, and how long.")
@click.option(
    "--local", "ranks", type=int, default=8, show_default=True, metavar="N", help="For N ranks on this machine."
)
@budget_option
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Plan file to write.")
def plan(session: Session, ranks: int, budget: float | None, output: Path | None) -> None:
    """Show what a check would measure, and how long that takes.

    \b
    Example:
      fablint plan --local 8 -o check.plan && fablint measure -n 8 check.plan
    """
    from fablint import flow

    made = flow.local_plan(session.machine(), ranks, budget)
    if output is not None:
        try:
            with output.open("x") as file:
                file.write(made.text)
        except OSError as error:
            raise UsageError(f"cannot write {output}: {error.strerror}", "give another name with -o") from error
    rows = [{"options": row.options, "rounds": row.rounds, "predicted_s": row.predicted_s} for row in made.rows]
    lines = [f"{row.rounds:>6} rounds {row.predicted_s:>7.1f} s  {row.options}" for row in made.rows]
    lines.append(f"{sum(row.rounds for row in made.rows):>6} rounds {made.predicted_s:>7.1f} s  in all, {ranks} ranks")
    session.result("\n".join(lines), {"format": 1, "ranks": ranks, "predicted_s": made.predicted_s, "rows": rows})
