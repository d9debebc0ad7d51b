"""The verbs that measure rows of a plan: measure, resume. `check` and `bench` have modules of their own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fablint.cli.bench_options import SETTINGS, engine_options
from fablint.cli.common import (
    Session,
    mpicxx_option,
    output_option,
    ranks_option,
    run_argument,
    verb,
)
from fablint.errors import IncompleteError, UsageError

if TYPE_CHECKING:
    from fablint.model import Plan
    from fablint.workflows.flow import Measured


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
    from fablint.workflows import flow

    plan = _plan(planfile, rows, ranks)
    output = flow.free_output(session.machine(), output)
    with session.surroundings(mpicxx) as around:
        return _measured(session, flow.measure(around, plan, output, engine_options(**instrument)))


def _plan(planfile: Path | None, rows: tuple[str, ...], ranks: int) -> Plan:
    from fablint.workflows import flow

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
    from fablint.workflows import flow

    run = measured.run
    levels = flow.missing_levels(run)
    code = _code(session, run.path, measured.exit_code, levels)
    facts = {
        "format": 1,
        "run": str(run.path),
        "state": run.state,
        "exit_code": code,
        "missing_levels": levels,
        "lost": run.attributes.get("lost", []),
        "error": measured.error or None,
    }
    session.result(f"{run.path}: {run.state}", facts)
    if measured.error:
        session.warn(f"{measured.error}: what was measured is kept: fablint resume {run.path}")
    return code


@verb(short_help="Measure the rounds that a run lacks.")
@run_argument
@mpicxx_option
def resume(session: Session, run: Path, mpicxx: Path | None) -> int:
    """Measure the rounds that RUN lacks, with as many ranks as it was begun with.

    A check of a cluster goes on where it was ended: with the levels that it lacks, up to its verdict and report.

    \b
    Example:
      fablint resume night.run
    """
    from fablint.workflows import flow
    from fablint.workflows.check_files import load_check

    with session.surroundings(mpicxx) as around:
        kept = load_check(run)
        if kept is not None:
            from fablint.cli.check import told
            from fablint.workflows.cluster_check import resume_check

            checked = resume_check(around, run, kept)
            if checked is not None:
                return told(session, checked)
        measured = flow.resume(around, run) if kept is None else None
    if measured is None:
        levels = flow.missing_levels(flow.read(run))
        code = _code(session, run, 0, levels)
        said = f"{run}: {'no round of a level that was begun' if levels else 'nothing'} is missing"
        facts = {"format": 1, "run": str(run), "missing": 0, "missing_levels": levels, "exit_code": code}
        session.result(said, facts)
        return code
    return _measured(session, measured)


def _code(session: Session, run: Path | None, code: int, levels: list[str]) -> int:
    """The exit code; 3 in the place of 0, and a warning, where levels that the check planned were never begun."""
    if not levels:
        return code
    session.warn(f"{run}: {', '.join(levels)}: levels planned and never begun; measure them with a new fablint check")
    return code or IncompleteError.exit_code
