"""The verb `plan`: rows of a check, and their duration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fablint.cli.options import (
    SUITES,
    WRITTEN_FILE,
    budget_option,
    full_option,
    hosts_option,
    ppn_option,
    topology_option,
    unequal_option,
)
from fablint.cli.session import Session, verb
from fablint.errors import UsageError

if TYPE_CHECKING:
    from fablint.plan.check.plan_input import PlanInput
    from fablint.plan.check.stages import Stage

_LOCAL = 8  # ranks that a plan is shown for
_OVERLAP = 2  # hosts that two allocations have in common


@verb(short_help="Show what a check would measure, and the time.")
@click.option("--local", "ranks", type=click.IntRange(2), metavar="N", help=f"N ranks on this machine [{_LOCAL}].")
@hosts_option
@ppn_option
@click.option("--suite", type=click.Choice(SUITES), help="Levels of this suite [none: all distances in one plan].")
@unequal_option
@full_option
@topology_option
@budget_option
@click.option("--explain", is_flag=True, help="Smallest visible fault, and messages that share a link.")
@click.option("--split", type=click.IntRange(2), metavar="N", help="Plans of N allocations that measure all hosts.")
@click.option("--overlap", type=click.IntRange(1), metavar="K", help=f"With --split: hosts in common [{_OVERLAP}].")
@click.option("-o", "--output", type=WRITTEN_FILE, metavar="FILE", help="Plan file to write.")
def plan(session: Session, explain: bool, output: Path | None, **values: Any) -> None:
    """Show what a check would measure first, and the time that it takes.

    With --topology only: for all hosts of the topology. --explain adds the rounds by distance, the smallest fault
    that they show, and how many messages share a link. Rounds files are written to the folder of the plan file. With
    --suite: the levels of that suite, and the time to request from a scheduler. With --split: plan, hostfile and job
    script of each allocation.

    \b
    Examples:
      fablint plan --local 8 -o check.plan && fablint measure -n 8 check.plan
      fablint plan --topology fabric.yaml --explain
      fablint plan --topology fabric.yaml --suite acceptance
      fablint plan --topology fabric.yaml --split 8 --overlap 2 -o check.plan
    """
    from fablint.plan.check.stages import first_stage

    request = _request(session, values)
    if values["split"] is not None or values["overlap"] is not None:
        _plan_of_allocations(session, request, {"explain": explain, **values}, output)
        return
    if values["suite"] is not None:
        _refuse_with_suite(explain, output, values)
        _plan_of_suite(session, request, values)
        return
    _plan_of_stage(session, first_stage(request, request.placement()), request, explain, output)


def _plan_of_stage(session: Session, stage: Stage, request: PlanInput, explain: bool, output: Path | None) -> None:
    """Print rows, rounds and time of what is measured first; write them to `output`, if there is one."""
    if output is not None:
        stage = _written(stage, output)
    made = stage.plan
    rows = [{"options": row.spec.text, "rounds": row.rounds, "predicted_s": row.predicted_s} for row in made.rows]
    facts: dict[str, Any] = {"ranks": made.ranks, "predicted_s": made.predicted_s, "rows": rows}
    lines = [f"{row.rounds:>6} rounds {row.predicted_s:>7.1f} s  {row.spec.text}" for row in made.rows]
    lines.append(
        f"{sum(row.rounds for row in made.rows):>6} rounds {made.predicted_s:>7.1f} s  in all, {made.ranks} ranks"
    )
    if explain:
        from fablint.plan.check.explain import explain as explained

        explanation = explained(stage, request, request.placement())
        facts["explained"] = explanation.facts()
        lines += ["", explanation.text()]
    session.result("\n".join(lines), facts)


def _plan_of_allocations(session: Session, request: PlanInput, values: dict[str, Any], output: Path | None) -> None:
    from fablint.cli.plan_split import SplitRequest, plan_split

    if values["split"] is None:
        raise UsageError("--overlap requires --split", "give --split as well")
    for option, name in (("--explain", "explain"), ("--suite", "suite"), ("--local", "ranks")):
        if values[name]:
            raise UsageError(f"{option} and --split contradict each other", "give one of them")
    plan_split(session, request, SplitRequest(values["split"], values["overlap"] or _OVERLAP, output), _written)


def _refuse_with_suite(explain: bool, output: Path | None, values: dict[str, Any]) -> None:
    for option, given in (("--explain", explain), ("-o", output), ("--full", values["full"])):
        if given:
            raise UsageError(
                f"{option} does not apply to --suite", "a level is planned when the previous one is analysed"
            )


def _plan_of_suite(session: Session, request: PlanInput, values: dict[str, Any]) -> None:
    from fablint.plan.check.suites import find_suite, plan_summary
    from fablint.workflows.check.expected_losses import expected_losses, in_words

    suite = find_suite(values["suite"], unequal=values["unequal"])
    summary = plan_summary(suite, request)
    losses = expected_losses(suite, request)
    text = summary.text()
    if losses:
        text += f"\n{in_words(losses)}"
    facts = {**summary.facts(), "expected_losses": [item.model_dump(mode="json") for item in losses]}
    session.result(text, facts)


def _written(stage: Stage, output: Path) -> Stage:
    """Write the plan and its rounds files; return the stage with these names of the rounds files."""
    from fablint.system.written_files import is_written_into, written_beside

    if len(str(output).split()) != 1:
        raise UsageError(f"cannot write {output}: names in a plan have no blanks", "give another name with -o")
    if stage.rounds and is_written_into(output):
        raise UsageError(f"the plan has rounds files, which {output} cannot hold", "name a plan file with -o")
    named = stage
    for name in stage.rounds:
        named = named.renamed(name, f"{output}-{Path(name).name}")
    for file, text in {str(output): named.plan.text, **named.texts()}.items():
        with written_beside(Path(file)) as temporary:
            temporary.write_text(text)
    return named


def _request(session: Session, values: dict[str, Any]) -> PlanInput:
    """Return the request of --local, --hosts, --ppn, --topology, --full and --budget together."""
    from fablint.model import Slots
    from fablint.plan import parse_slots
    from fablint.workflows import run_files
    from fablint.workflows.check.local_check import hosts_input, local_input

    if values["ranks"] is not None and values["hosts"] is not None:
        raise UsageError("--local and --hosts contradict each other", "give one of them")
    if values["ppn"] is not None and values["hosts"] is None:
        raise UsageError("--ppn requires --hosts", "give --hosts as well")
    topology = run_files.load_topology(values["topology"])
    if values["hosts"] is not None:
        request = hosts_input(parse_slots(values["hosts"], values["ppn"] or 1))
    elif values["ranks"] is None and topology is not None:  # a plan for the whole topology
        request = hosts_input([Slots(host, 1) for host in topology.host_switch])
    else:
        request = local_input(session.machine(), values["ranks"] or _LOCAL)
    return replace(request, topology=topology, full=values["full"], budget_s=values["budget"])
