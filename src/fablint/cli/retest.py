"""The verb `retest`: measures faulty and suspect components of a run again, and its slow routes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fablint.cli.options import (
    budget_option,
    launcher_option,
    mpicxx_option,
    output_option,
    run_argument,
    run_topology_option,
)
from fablint.cli.session import Session, verb
from fablint.text.units import percent

if TYPE_CHECKING:
    from fablint.workflows.retest_run import RetestOutcome


@verb(short_help="Re-measure the faults and suspects of a run.")
@run_argument
@output_option
@run_topology_option
@budget_option
@mpicxx_option
@launcher_option
def retest(
    session: Session,
    run: Path,
    output: Path | None,
    topology: Path | None,
    budget: float | None,
    mpicxx: Path | None,
    launcher: str,
) -> int:
    """Measure the faults and suspects of RUN again, isolated and beside healthy pairs, on the hosts of RUN.

    Ranks are started with the --mpicxx and --launcher of RUN, unless others are given.

    Routes that were slow in one moment only (NOT JUDGED, CONFOUNDED) are measured again as well, several times.

    Prints for every finding whether it is gone or still present. Writes a separate run (by default
    fablint-DATE-TIME.run), because the component may have been exchanged. Exit codes: 0 all are gone, 1 a fault was
    found, 3 a finding is undecided.

    \b
    Example:
      fablint retest night.run -o repaired.run
    """
    from fablint.workflows import measurement, retest_run as workflow, run_files
    from fablint.workflows.check.check_record import kept_launch
    from fablint.workflows.context import with_kept_launch
    from fablint.workflows.run_formats import read

    run_topology = run_files.load_topology(topology, read(run))
    output = measurement.free_output(session.machine(), output)
    with session.context(mpicxx, launcher) as context:
        kept = with_kept_launch(context, kept_launch(run), run, is_resumed=False)
        outcome = workflow.retest(kept, run, output, run_topology, budget)
    if outcome is None:
        facts = {"run": str(run), "retested": [], "exit_code": 0}
        session.result(f"{run}: no faults, suspects or slow routes, so nothing is measured", facts)
        return 0
    return print_outcome(session, outcome)


def print_outcome(session: Session, retested: RetestOutcome) -> int:
    """Print what became of each finding, and the verdict of the new run; return the exit code."""
    outcome = retested.outcome
    if outcome.error:
        session.warn(outcome.error)
    verdict = outcome.diagnosis.verdict
    lines = []
    for fate in retested.fates:
        was = f"was {percent(fate.was.effect or 0)}"
        now = "" if fate.effect is None else f": {percent(fate.effect)} {fate.was.quantity}, {was}"
        lines.append(f"{fate.state:<12}{fate.was.component} {fate.was.name}{now}")
    lines += ["", f"{outcome.run.path}: {verdict.verdict}"]
    facts = {
        "run": str(outcome.run.path),
        "retested": [fate.facts() for fate in retested.fates],
        "verdict": verdict.verdict,
        "exit_code": retested.exit_code,
    }
    session.result("\n".join(lines), facts)
    session.say(f"report: {outcome.page}")
    return retested.exit_code
