"""The verb `preflight`: is every host fit to be measured?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fablint.cli.common import Session, verb
from fablint.errors import UsageError

if TYPE_CHECKING:
    from fablint.readiness import Looked

LEVELS = ("quick", "full")

_FILE = click.Path(path_type=Path)
OPTIONS = (
    click.option("-w", "--hosts", metavar="LIST", help="Hosts, as in nid[001000-001063] [those of the job]."),
    click.option("-x", "--exclude", metavar="LIST", help="Leave these hosts out."),
    click.option("--hostfile", type=_FILE, metavar="FILE", help="Take the hosts in FILE."),
    click.option(
        "--level",
        type=click.Choice(LEVELS),
        default="quick",
        show_default=True,
        help="full takes a minute and traffic.",
    ),
    click.option("--topology", type=_FILE, metavar="FILE", help="Which host should hang on which switch."),
    click.option("--sysroot", type=_FILE, metavar="FOLDER", help="Judge the files below FOLDER, not this machine."),
    click.option("--snapshot", "snapshots", type=_FILE, multiple=True, metavar="FILE", help="Judge what was saved."),
    click.option("--save", type=_FILE, metavar="FILE", help="Keep the snapshots of all hosts (.json or .json.gz)."),
    click.option("--junit", type=_FILE, metavar="FILE", help="Write the result for a CI server."),
    click.option("--prometheus", type=_FILE, metavar="FILE", help="Write the result for a textfile collector."),
)


def _with_options(function: Any) -> Any:
    for option in reversed(OPTIONS):
        function = option(function)
    return function


@verb(name="preflight", short_help="Is every host fit to be measured?")
@_with_options
def preflight(session: Session, save: Path | None, junit: Path | None, prometheus: Path | None, **values: Any) -> int:
    """Is every host fit to be measured? Links, addresses, settings, counters, logs: on every host, and among all.

    Every host is asked once, through the scheduler or ssh, for a snapshot: files of /sys and /proc, outputs of
    programs. It is judged here; what differs from most like hosts is named with what they have. `quick` needs no root,
    takes less than two seconds of a host and suits Slurm's HealthCheckProgram; `full` adds what takes longer.

    Without hosts it is this machine. What cannot be seen is skipped, and said so; a host that does not answer never
    passes.

    Exit codes: 0 fit, 1 a host is not, 3 something could not be understood.

    \b
    Examples:
      fablint preflight
      fablint preflight -w nid[001000-001063] --level full
      fablint preflight -w nid001013 --save nid001013.json.gz
      fablint preflight --snapshot nid001013.json.gz
    """
    from fablint.report import junit_text, prometheus_text
    from fablint.snapshot import save_snapshots

    looked = _looked(session, values)
    fitness = looked.fitness
    if save:
        save_snapshots(looked.heard.documents.values(), save)
    if junit:
        junit.write_text(junit_text(fitness), encoding="utf-8")
    if prometheus:
        prometheus.write_text(prometheus_text(fitness), encoding="utf-8")
    return session.fitness(values["level"], fitness)


def _looked(session: Session, values: dict[str, Any]) -> Looked:
    """Snapshots: of hosts, of a folder, or of files."""
    import os

    from fablint import discovery, flow, readiness
    from fablint.model import Allocation

    system = session.machine()
    named = [name for name in ("hosts", "hostfile", "sysroot", "snapshots") if values[name]]
    if len(named) > 1 and named != ["hosts", "hostfile"]:
        raise UsageError(f"--{named[0]} and --{named[1].rstrip('s')} contradict each other", "give one of them")
    topology = flow.load_topology(values["topology"])
    if values["snapshots"]:
        return readiness.look_again(system, values["snapshots"], topology)
    if values["sysroot"]:
        return readiness.look_below(system, values["sysroot"], values["level"], topology)
    asked = discovery.Asked(values["hosts"], values["exclude"], values["hostfile"])
    try:
        allocation, _ = discovery.usable_hosts(system, asked)
    except UsageError:
        if named:
            raise
        allocation = Allocation((os.uname().nodename,), "this machine")
    return readiness.look_at(system, allocation, values["level"], topology)
