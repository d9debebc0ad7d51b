"""The verb `preflight`: is every host fit to be measured?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fablint.cli.common import Session, nic_option, site_option, verb
from fablint.errors import UsageError

if TYPE_CHECKING:
    from fablint.model import Allocation
    from fablint.system import System
    from fablint.workflows.host_preflight import Looked

LEVELS = ("quick", "full")
_OF_ONE_HOST = ("prolog", "epilog")  # Slurm runs these on each host: they must not ask the others, nor start a step

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
    nic_option,
    click.option("--topology", type=_FILE, metavar="FILE", help="Which host should hang on which switch."),
    site_option,
    click.option("--learn", is_flag=True, help="Write what the hosts have as a site file, to -o."),
    click.option("-o", "--output", type=_FILE, metavar="FILE", help="The site file that --learn writes."),
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

    Without -w or --hostfile the hosts are those of the job that it runs in, else this machine. What cannot be seen is
    skipped, and said so; a host that does not answer never passes. fablint act makes drain commands of it.

    With --site hosts are compared with the values of a site file, also where all of them have another one; what it
    suppresses is printed and does not count. --learn writes such a file: what each class of hosts has now.

    Exit codes: 0 fit (warnings at most), 1 a host is not, 3 something could not be understood.

    \b
    Examples:
      fablint preflight
      fablint preflight -w nid[001000-001063] --level full
      fablint preflight -w nid001013 --save nid001013.json.gz
      fablint preflight --snapshot nid001013.json.gz
      fablint preflight -w nid[001000-001063] --level full --learn -o site.toml
      fablint preflight --site site.toml
    """
    from fablint.report import junit_text, prometheus_text
    from fablint.snapshot import save_snapshots

    output = _learned_to(values)
    for path in filter(None, (save, junit, prometheus, output)):
        _refuse_unwritable(path)
    begun = session.machine().now().timestamp()
    looked = _looked(session, values)
    code = session.fitness(values["level"], looked.fitness)
    if save:
        save_snapshots(looked.heard.documents.values(), save, private=session.machine().is_root())
    if output:
        _learn(session, looked, values["level"], output)
    if junit:
        _write(junit, junit_text(looked.fitness))
    if prometheus:
        _write(prometheus, prometheus_text(looked.fitness, begun))
    return code


def _learned_to(values: dict[str, Any]) -> Path | None:
    """Where to write what is learned. Raises UsageError where --learn and -o do not fit together."""
    output: Path | None = values["output"]
    if not values["learn"]:
        if output is not None:
            raise UsageError("-o: nothing would be written", "give --learn as well; --save keeps snapshots")
        return None
    if values["site"] is not None:
        raise UsageError("--learn and --site contradict each other", "give one of them")
    if output is None:
        raise UsageError("--learn: into which file?", "give it with -o, such as -o site.toml")
    if output.exists() or output.is_symlink():
        raise UsageError(f"{output} exists", "give another name with -o")
    return output


def _learn(session: Session, looked: Looked, level: str, output: Path) -> None:
    from fablint.text.names import plural
    from fablint.workflows import host_preflight

    found = host_preflight.learned(session.machine(), looked.heard, level)
    _write(output, found.text)
    session.say(f"{output}: {plural(found.values, 'value')} of {plural(found.classes, 'class')} of hosts")
    if found.doubtful or found.divided:
        session.warn(
            f"{output}: {found.doubtful} learned although a check warns of them, {found.divided} not learned since "
            "hosts differ: see the remarks in it"
        )


def _refuse_unwritable(path: Path) -> None:
    """Now, and not when all hosts have been asked."""
    if path.is_dir() or not os.access(path if _in_place(path) else path.absolute().parent, os.W_OK):
        raise UsageError(f"cannot write {path}", "name a file in a folder that you can write")


def _in_place(path: Path) -> bool:
    """Is it something to write into and not to replace: a pipe, /dev/stdout?"""
    return path.is_symlink() or (path.exists() and not path.is_file())


def _write(path: Path, text: str) -> None:
    """In one step: a collector never reads half a file."""
    if _in_place(path):
        path.write_text(text, encoding="utf-8")
        return
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _looked(session: Session, values: dict[str, Any]) -> Looked:
    """Snapshots: of hosts, of a folder, or of files."""
    from fablint.workflows import flow, host_preflight

    system = session.machine()
    site = flow.load_site(values["site"], system)
    named = [name for name in ("hosts", "hostfile", "sysroot", "snapshots") if values[name]]
    if len(named) > 1 and named != ["hosts", "hostfile"]:
        raise UsageError(f"--{named[0]} and --{named[1].rstrip('s')} contradict each other", "give one of them")
    declared = host_preflight.Declared(flow.load_topology(values["topology"]), site)
    nics = values["nics"]
    if values["snapshots"]:
        return host_preflight.look_again(system, values["snapshots"], declared, nics)
    if values["sysroot"]:
        return host_preflight.look_below(system, values["sysroot"], values["level"], declared, nics)
    return host_preflight.look_at(system, _hosts(system, values), values["level"], declared, nics=nics)


def _hosts(system: System, values: dict[str, Any]) -> Allocation:
    """Those that are named, else those of the job, else this machine. Drained ones too: are they fit to come back?"""
    from fablint.cluster import find_hosts
    from fablint.model import Allocation
    from fablint.plan import parse_hosts

    hosts, exclude = (parse_hosts(text) if text else None for text in (values["hosts"], values["exclude"]))
    named = hosts or exclude or values["hostfile"]
    here = Allocation((os.uname().nodename,), "this machine")
    if not named and system.environ.get("SLURM_SCRIPT_CONTEXT", "").startswith(_OF_ONE_HOST):
        return here
    try:
        return find_hosts(system, hosts, exclude, values["hostfile"])
    except UsageError:
        if named:
            raise
        return here
