"""The verb `demo`: the whole flow, once for real on this machine and once on a simulated fabric with a known fault."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fablint.cli.common import Session, mpicxx_option, verb
from fablint.errors import InternalError, UsageError

if TYPE_CHECKING:
    from fablint.workflows.flow import Surroundings
    from fablint.workflows.local_check import Checked

LOCAL, FABRIC = Path("demo-local.run"), Path("demo-fabric.run")
RANKS = 8
CABLE, LOSS = "s2=s5", 0.2
_MARK = ".made-by-demo"


@verb(short_help="The whole flow, real and simulated.")
@mpicxx_option
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
    with session.surroundings(mpicxx) as around:
        local = _local(around)
    _show(session, local)
    _chapter(session, f"2 of 2: 64 simulated hosts, 8 switches; the cable {CABLE} has lost {LOSS:.0%} of its bandwidth")
    fabric = _fabric()
    _show(session, fabric)
    found = _culprit(fabric)
    facts = {
        "format": 1,
        "local": {"run": str(LOCAL), "report": str(local.page), "verdict": local.diagnosis.verdict.verdict},
        "fabric": {
            "run": str(FABRIC),
            "report": str(fabric.page),
            "verdict": fabric.diagnosis.verdict.verdict,
            "named": found,
        },
    }
    pages = f"Reports:\n  {local.page}\n  {fabric.page}"
    session.result(f"\nThe cable that was made slow is the one that was named: {found}.\n{pages}", facts)


def _clear(path: Path) -> None:
    """Remove what an earlier demo left; anything else of that name is the user's."""
    if not path.exists():
        return
    if not (path / _MARK).is_file():
        raise UsageError(
            f"{path} exists and was not made by a demo", "move it away, or start the demo in another directory"
        )
    shutil.rmtree(path)


def _chapter(session: Session, title: str) -> None:
    if not session.json:
        click.secho(f"\n== {title}\n", bold=True)


def _show(session: Session, checked: Checked) -> None:
    if not session.json:
        session.verdict(checked.run, checked.diagnosis)


def _local(around: Surroundings) -> Checked:
    from fablint.workflows import local_check

    try:
        return local_check.check(around, local_check.asked_local(around.system, RANKS), LOCAL)
    finally:
        if LOCAL.is_dir():
            (LOCAL / _MARK).touch()


def _fabric() -> Checked:
    """Simulate, write, and then do with the run what is done with any other."""
    from fablint.simulate import Fault, full_mesh, simulate
    from fablint.store import write_run
    from fablint.workflows import flow
    from fablint.workflows.local_check import Checked

    fabric = full_mesh(switches=8, hosts_per_switch=8)
    write_run(FABRIC, simulate(fabric, faults=[Fault("cable", CABLE, bandwidth_factor=1 - LOSS)]))
    (FABRIC / _MARK).touch()
    flow.keep_topology(fabric.topology, FABRIC)
    run = flow.read(FABRIC)
    diagnosis = flow.diagnose(run, flow.load_topology(None, run))
    flow.write_report(run, diagnosis, flow.page_of(FABRIC))
    return Checked(run, diagnosis, flow.page_of(FABRIC))


def _culprit(checked: Checked) -> str:
    """The finding that names the cable. A demo that misses it has not worked."""
    from fablint.model import State

    faults = [finding for finding in checked.diagnosis.verdict.findings if finding.state is State.FAULT]
    for finding in faults:
        if finding.name == CABLE and len(faults) == 1:
            return f"{finding.component} {finding.name}"
    named = ", ".join(finding.name for finding in faults) or "nothing"
    raise InternalError(
        f"the demo made {CABLE} slow but {named} was found at fault", f"see {checked.page} and report it"
    )
