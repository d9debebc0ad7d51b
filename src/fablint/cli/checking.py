"""The verbs of a check: check, plan, retest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fablint.cli.common import Duration, Session, mpicxx_option, output_option, run_argument, topology_option, verb
from fablint.errors import UsageError

if TYPE_CHECKING:
    from fablint.checks import Checked, Retested
    from fablint.plan.stages import Asked, Stage

_ALLOCATION = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_URI", "PE_HOSTFILE")  # set inside a batch job
_LOCAL = 8  # ranks that a plan is shown for

hosts_option = click.option("--hosts", metavar="LIST", help="Measure these hosts: n[001-064].")
ppn_option = click.option("--ppn", type=click.IntRange(1), metavar="N", help="Ranks on each of the hosts [1].")
full_option = click.option("--full", is_flag=True, help="Measure all pairs, however many.")
budget_option = click.option(
    "--budget", type=Duration(), metavar="TIME", help="Time for all of it, such as 90s or 10m."
)


@verb(short_help="Measure, judge and report, all in one.")
@click.option("--local", "ranks", type=int, metavar="N", help="Measure N ranks on this machine.")
@hosts_option
@ppn_option
@full_option
@output_option
@topology_option
@budget_option
@mpicxx_option
def check(session: Session, output: Path | None, mpicxx: Path | None, **values: Any) -> int:
    """Measure, judge and report, all in one.

    Of many hosts a few rounds are measured: partners on the same switch, in the same group, and far away. What is
    suspect after that is measured again, alone and with other partners, until every part is decided or the time is
    over; what is undecided then is named. With --full all pairs come first.

    Writes a run directory (by default fablint-DATE-TIME.run) with report/index.html and report/verdict.json in it. The
    exit code is the verdict's: 0 pass, 1 fault found, 3 incomplete or undecided.

    \b
    Examples:
      fablint check --local 8 -o today.run
      fablint check --hosts 'n[001-064]' --topology fabric.yaml --budget 10m
    """
    from fablint import checks, flow

    system = session.machine()
    if values["ranks"] is None and values["hosts"] is None:
        raise UsageError(*_no_cluster_yet(system.environ))
    asked = _asked(session, values)
    output = flow.free_output(system, output)
    with session.surroundings(mpicxx) as around:
        checked = checks.check(around, asked, output)
    _warn(session, checked)
    code = session.verdict(checked.run, checked.diagnosis)
    session.say(f"report: {checked.page}")
    return code


def _warn(session: Session, checked: Checked) -> None:
    if checked.error:
        session.warn(checked.error)


def _no_cluster_yet(environ: Mapping[str, str]) -> tuple[str, str]:
    inside = next((name for name in _ALLOCATION if name in environ), None)
    if inside is None:
        return "nothing to check: no allocation here", "use --local N to measure N ranks on this machine"
    return (
        f"this is an allocation ({inside}), but check does not read its hosts yet",
        "name them with --hosts LIST, or use --local N for this host alone",
    )


def _asked(session: Session, values: Mapping[str, Any]) -> Asked:
    """What --local, --hosts, --ppn, --topology, --full and --budget ask for together."""
    from fablint import checks, flow
    from fablint.model import Slots
    from fablint.plan import parse_slots

    if values["ranks"] is not None and values["hosts"] is not None:
        raise UsageError("--local and --hosts contradict each other", "give one of them")
    if values["ppn"] is not None and values["hosts"] is None:
        raise UsageError("--ppn: on which hosts?", "give --hosts as well")
    topology = flow.load_topology(values["topology"])
    if values["hosts"] is not None:
        asked = checks.asked_hosts(parse_slots(values["hosts"], values["ppn"] or 1))
    elif values["ranks"] is None and topology is not None:  # a plan for all there is
        asked = checks.asked_hosts([Slots(host, 1) for host in topology.host_switch])
    else:
        asked = checks.asked_local(session.machine(), _LOCAL if values["ranks"] is None else values["ranks"])
    return replace(asked, topology=topology, full=values["full"], budget_s=values["budget"])


# ------------------------------------------------------------------------------------------------ plan


@verb(short_help="What a check would measure, and how long.")
@click.option("--local", "ranks", type=int, metavar="N", help=f"For N ranks on this machine [{_LOCAL}].")
@hosts_option
@ppn_option
@full_option
@topology_option
@budget_option
@click.option("--explain", is_flag=True, help="What it will be able to tell, and what collides.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Plan file to write.")
def plan(session: Session, explain: bool, output: Path | None, **values: Any) -> None:
    """Show what a check would measure first, and how long that takes.

    With --topology alone: for all hosts of the topology. --explain adds the rounds by distance, the smallest fault
    that they show, and how many messages share a link. Rounds files are written beside the plan file.

    \b
    Examples:
      fablint plan --local 8 -o check.plan && fablint measure -n 8 check.plan
      fablint plan --topology fabric.yaml --explain
    """
    from fablint.plan.stages import first_stage

    asked = _asked(session, values)
    seats = asked.seats()
    stage = first_stage(asked, seats)
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
        from fablint.plan.explain import explain as explained

        told = explained(stage, asked, seats)
        facts["explained"] = told.facts()
        lines += ["", told.text()]
    session.result("\n".join(lines), facts)


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
    from fablint import checks, flow

    known = flow.load_topology(topology, flow.read(run))
    output = flow.free_output(session.machine(), output)
    with session.surroundings(mpicxx) as around:
        retested = checks.retest(around, run, output, known, budget)
    if retested is None:
        facts = {"format": 1, "run": str(run), "retested": [], "exit_code": 0}
        session.result(f"{run}: nothing is found at fault, so nothing is measured again", facts)
        return 0
    return _retold(session, retested)


def _retold(session: Session, retested: Retested) -> int:
    """What became of each finding, and the verdict of the new run."""
    checked = retested.checked
    _warn(session, checked)
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
