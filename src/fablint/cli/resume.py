"""The verb `resume`: measures the rounds that a run lacks, and ends with the verdict and the report."""

from __future__ import annotations

from pathlib import Path

from fablint.cli.options import launcher_option, mpicxx_option, run_argument
from fablint.cli.session import Session, all_option, json_lines_option, verb


@verb(short_help="Measure the missing rounds of a run.")
@run_argument
@mpicxx_option
@launcher_option
@json_lines_option
@all_option
def resume(session: Session, run: Path, mpicxx: Path | None, launcher: str) -> int:
    """Measure the missing rounds of RUN, with the same ranks; print the verdict and write the report.

    The ranks are started as those of RUN: with the same --mpicxx, and with its --launcher unless another is given.

    The check of a cluster continues with the missing levels. The exit code is the verdict's.

    \b
    Example:
      fablint resume night.run
    """
    from fablint.workflows import measurement
    from fablint.workflows.check.check_record import kept_launch, load_check
    from fablint.workflows.check.check_run import report_measured
    from fablint.workflows.context import with_kept_launch

    with session.context(mpicxx, launcher) as chosen:
        context = with_kept_launch(chosen, kept_launch(run), run, is_resumed=True)
        record = load_check(run)
        if record is not None:
            from fablint.workflows.check.cluster_check import resume_check

            outcome = resume_check(context, run, record)
            return _nothing_missing(session, run) if outcome is None else session.outcome(outcome)
        result = measurement.resume(context, run)
    return _nothing_missing(session, run) if result is None else session.outcome(report_measured(result))


def _nothing_missing(session: Session, run: Path) -> int:
    """Print that no round is missing; return the exit code."""
    from fablint.workflows.run_files import missing_levels
    from fablint.workflows.run_formats import read

    levels = missing_levels(read(run))
    code = session.with_missing_levels(run, 0, levels)
    missing = "no round of a level that was begun" if levels else "nothing"
    facts = {"run": str(run), "missing": 0, "missing_levels": levels, "exit_code": code}
    session.result(f"{run}: {missing} is missing", facts)
    return code
