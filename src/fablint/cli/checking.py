"""The verbs around a check: plan, retest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fablint.cli.check import (
    budget_option,
    full_option,
    hosts_option,
    ppn_option,
    suite_option,
    unequal_option,
)
from fablint.cli.common import Session, mpicxx_option, output_option, run_argument, topology_option, verb
from fablint.errors import UsageError

if TYPE_CHECKING:
    from fablint.plan.check.check_request import Asked
    from fablint.plan.check.stages import Stage
    from fablint.workflows.local_check import Retested

_LOCAL = 8  # ranks that a plan is shown for


def _asked(session: Session, values: dict[str, Any]) -> Asked:
    """What --local, --hosts, --ppn, --topology, --full and --budget ask for together."""
    from fablint.model import Slots
    from fablint.plan import parse_slots
    from fablint.workflows import flow, local_check

    if values["ranks"] is not None and values["hosts"] is not None:
        raise UsageError("--local and --hosts contradict each other", "give one of them")
    if values["ppn"] is not None and values["hosts"] is None:
        raise UsageError("--ppn: on which hosts?", "give --hosts as well")
    topology = flow.load_topology(values["topology"])
    if values["hosts"] is not None:
        asked = local_check.asked_hosts(parse_slots(values["hosts"], values["ppn"] or 1))
    elif values["ranks"] is None and topology is not None:  # a plan for all there is
        asked = local_check.asked_hosts([Slots(host, 1) for host in topology.host_switch])
    else:
        asked = local_check.asked_local(session.machine(), _LOCAL if values["ranks"] is None else values["ranks"])
    return replace(asked, topology=topology, full=values["full"], budget_s=values["budget"])


# ------------------------------------------------------------------------------------------------ plan


@verb(short_help="What a check would measure, and how long.")
@click.option("--local", "ranks", type=int, metavar="N", help=f"For N ranks on this machine [{_LOCAL}].")
@hosts_option
@ppn_option
@suite_option
@unequal_option
@full_option
@topology_option
@budget_option
@click.option("--explain", is_flag=True, help="What it will be able to tell, and what collides.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Plan file to write.")
def plan(session: Session, explain: bool, output: Path | None, **values: Any) -> None:
    """Show what a check would measure first, and how long that takes.

    With --topology alone: for all hosts of the topology. --explain adds the rounds by distance, the smallest fault
    that they show, and how many messages share a link. Rounds files are written beside the plan file. With --suite
    the levels of that suite, and the time to ask a scheduler for.

    \b
    Examples:
      fablint plan --local 8 -o check.plan && fablint measure -n 8 check.plan
      fablint plan --topology fabric.yaml --explain
      fablint plan --topology fabric.yaml --suite acceptance
    """
    from fablint.plan.check.stages import first_stage

    asked = _asked(session, values)
    if values["suite"] is not None:
        _refuse_with_suite(explain, output, values)
        _plan_of_suite(session, asked, values)
        return
    _plan_of_stage(session, first_stage(asked, asked.seats()), asked, explain, output)


def _plan_of_stage(session: Session, stage: Stage, asked: Asked, explain: bool, output: Path | None) -> None:
    """Rows, rounds and time of what is measured first; written to a file where that is wanted."""
    if output is not None:
        stage = _written(stage, output)
    made = stage.plan
    rows = [{"options": row.options, "rounds": row.rounds, "predicted_s": row.predicted_s} for row in made.rows]
    facts: dict[str, Any] = {"format": 1, "ranks": made.ranks, "predicted_s": made.predicted_s, "rows": rows}
    lines = [f"{row.rounds:>6} rounds {row.predicted_s:>7.1f} s  {row.options}" for row in made.rows]
    lines.append(
        f"{sum(row.rounds for row in made.rows):>6} rounds {made.predicted_s:>7.1f} s  in all, {made.ranks} ranks"
    )
    if explain:
        from fablint.plan.check.explain import explain as explained

        told = explained(stage, asked, asked.seats())
        facts["explained"] = told.facts()
        lines += ["", told.text()]
    session.result("\n".join(lines), facts)


def _refuse_with_suite(explain: bool, output: Path | None, values: dict[str, Any]) -> None:
    for option, given in (("--explain", explain), ("-o", output), ("--full", values["full"])):
        if given:
            raise UsageError(f"{option} means nothing with --suite", "levels are planned when those below are judged")


def _plan_of_suite(session: Session, asked: Asked, values: dict[str, Any]) -> None:
    from fablint.plan.check.suites import find_suite, plan_summary

    summary = plan_summary(find_suite(values["suite"], unequal=values["unequal"]), asked)
    session.result(summary.text(), {"format": 1, **summary.facts()})


def _written(stage: Stage, output: Path) -> Stage:
    """The plan in a file, its rounds files beside it; returns the stage that names them so."""
    if len(str(output).split()) != 1:
        raise UsageError(f"cannot write {output}: a plan cannot name files with blanks", "give another name with -o")
    named = stage
    for name in stage.rounds:
        named = named.renamed(name, f"{output}-{Path(name).name}")
    for file, text in {str(output): named.plan.text, **named.texts()}.items():
        try:
            with Path(file).open("x") as stream:
                stream.write(text)
        except OSError as error:
            raise UsageError(f"cannot write {file}: {error.strerror}", "give another name with -o") from error
    return named


# ------------------------------------------------------------------------------------------------ retest


@verb(short_help="Measure again what a run accuses.")
@run_argument
@output_option
@topology_option
@budget_option
@mpicxx_option
def retest(
    session: Session,
    run: Path,
    output: Path | None,
    topology: Path | None,
    budget: float | None,
    mpicxx: Path | None,
) -> int:
    """Measure again what RUN finds at fault or suspects, alone and beside healthy pairs, on the hosts of RUN.

    Says of every finding whether it is gone or still there. Writes a run of its own (by default
    fablint-DATE-TIME.run), for the part may have been exchanged since. Exit codes: 0 all are gone, 1 a fault was found,
    3 something is undecided.

    \b
    Example:
      fablint retest night.run -o mended.run
    """
    from fablint.workflows import flow, local_check

    known = flow.load_topology(topology, flow.read(run))
    output = flow.free_output(session.machine(), output)
    with session.surroundings(mpicxx) as around:
        retested = local_check.retest(around, run, output, known, budget)
    if retested is None:
        facts = {"format": 1, "run": str(run), "retested": [], "exit_code": 0}
        session.result(f"{run}: nothing is found at fault, so nothing is measured again", facts)
        return 0
    return _retold(session, retested)


def _retold(session: Session, retested: Retested) -> int:
    """What became of each finding, and the verdict of the new run."""
    checked = retested.checked
    if checked.error:
        session.warn(checked.error)
    verdict = checked.diagnosis.verdict
    lines = []
    for fate in retested.fates:
        now = (
            "" if fate.effect is None else f": {fate.effect:+.1%} {fate.was.quantity}, was {fate.was.effect or 0:+.1%}"
        )
        lines.append(f"{fate.state:<12}{fate.was.component} {fate.was.name}{now}")
    lines += ["", f"{checked.run.path}: {verdict.verdict}"]
    facts = {
        "format": 1,
        "run": str(checked.run.path),
        "retested": [fate.facts() for fate in retested.fates],
        "verdict": verdict.verdict,
        "exit_code": retested.exit_code,
    }
    session.result("\n".join(lines), facts)
    session.say(f"report: {checked.page}")
    return retested.exit_code
