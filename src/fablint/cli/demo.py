"""The verb `demo`: the whole flow, once for real on this machine and once on a simulated fabric with a known fault."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fablint.cli.options import mpicxx_option
from fablint.cli.session import Session, all_option, verb
from fablint.errors import InternalError, UsageError
from fablint.text.units import share_text

if TYPE_CHECKING:
    from fablint.workflows.check.check_run import CheckOutcome
    from fablint.workflows.context import Context

LOCAL, FABRIC = Path("demo-local.run"), Path("demo-fabric.run")
RANKS = 8
ENDS, LOSS = ("s2", "s5"), 0.2  # of the slow cable, and its lost bandwidth
CABLE = "=".join(ENDS)
MARK = ".made-by-demo"


@verb(short_help="The whole flow, real and simulated.")
@mpicxx_option
@all_option
def demo(session: Session, mpicxx: Path | None) -> None:
    """Show the whole flow: a check of this machine, then of a simulated fabric with one slow cable.

    Writes ./demo-local.run and ./demo-fabric.run, replacing those of an earlier demo. Exits with 0 when the flow
    worked, whatever it found on this machine.

    \b
    Example:
      fablint demo
    """
    for path in (LOCAL, FABRIC):
        _clear(path)
    _chapter(session, f"1 of 2: this machine, measured for real (fablint check --local {RANKS})")
    with session.context(mpicxx) as context:
        local = _local(context)
    _show(session, local)
    loss = f"the cable {CABLE} has {share_text(LOSS)} less bandwidth"
    _chapter(session, f"2 of 2: 64 simulated hosts, 8 switches; {loss}")
    fabric = _fabric()
    _show(session, fabric)
    named = _faulty_cable(fabric)
    facts = {
        "local": {"run": str(LOCAL), "report": str(local.page), "verdict": local.diagnosis.verdict.verdict},
        "fabric": {
            "run": str(FABRIC),
            "report": str(fabric.page),
            "verdict": fabric.diagnosis.verdict.verdict,
            "named": named,
        },
    }
    pages = f"Reports:\n  {local.page}\n  {fabric.page}"
    session.result(f"\nThe slow cable was localised: {named}.\n{pages}", facts)


def _clear(path: Path) -> None:
    """Remove the run of an earlier demo. Raises UsageError where the path is something else."""
    if not path.exists():
        return
    if not (path / MARK).is_file():
        raise UsageError(
            f"{path} exists and was not made by a demo", "move it away, or start the demo in another directory"
        )
    shutil.rmtree(path)


def _chapter(session: Session, title: str) -> None:
    if not session.json:
        click.secho(f"\n== {title}\n", bold=True)


def _show(session: Session, outcome: CheckOutcome) -> None:
    if not session.json:
        session.verdict(outcome.run, outcome.diagnosis)


def _local(context: Context) -> CheckOutcome:
    from fablint.workflows.check.local_check import check_local
    from fablint.workflows.check.request import CheckRequest

    try:
        return check_local(context, CheckRequest(ranks=RANKS), LOCAL)
    finally:
        if LOCAL.is_dir():
            (LOCAL / MARK).touch()


def _fabric() -> CheckOutcome:
    """Simulate a run, write it, and diagnose it as any other run."""
    from fablint.model import ComponentRef
    from fablint.simulate import Fault, full_mesh, simulate
    from fablint.store import write_run
    from fablint.workflows import analysis, run_files, run_formats
    from fablint.workflows.check.check_run import CheckOutcome

    fabric = full_mesh(switches=8, hosts_per_switch=8)
    cable = ComponentRef.of("cable", *ENDS)
    write_run(FABRIC, simulate(fabric, faults=[Fault(cable, bandwidth_factor=1 - LOSS)]))
    (FABRIC / MARK).touch()
    run_files.save_topology(fabric.topology, FABRIC)
    run = run_formats.read(FABRIC)
    diagnosis = analysis.judge(run)
    analysis.write_report(run, diagnosis, analysis.page_of(FABRIC))
    return CheckOutcome(run, diagnosis, analysis.page_of(FABRIC))


def _faulty_cable(outcome: CheckOutcome) -> str:
    """Return the finding about the cable. Raises InternalError where it is missing."""
    from fablint.model import State

    faults = [finding for finding in outcome.diagnosis.verdict.findings if finding.state is State.FAULT]
    for finding in faults:
        if finding.name == CABLE and len(faults) == 1:
            return f"{finding.component} {finding.name}"
    named = ", ".join(finding.name for finding in faults) or "nothing"
    raise InternalError(f"the demo made {CABLE} slow but {named} was localised", f"see {outcome.page} and report it")
