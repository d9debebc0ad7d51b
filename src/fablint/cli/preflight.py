"""The verb `preflight`: whether every host is fit to be measured."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fablint.cli.options import (
    FILE,
    WRITTEN_FILE,
    exclude_option,
    hostfile_option,
    nic_option,
    site_option,
    with_options,
)
from fablint.cli.result_files import result_file_options
from fablint.cli.session import Session, verb
from fablint.cli.written_files import refuse_unwritable, write_file
from fablint.errors import UsageError

if TYPE_CHECKING:
    from fablint.model import Allocation
    from fablint.system import System
    from fablint.workflows.host_preflight import PreflightResult

LEVELS = ("quick", "full")
_OF_ONE_HOST = ("prolog", "epilog")  # Slurm runs these on each host: they must not contact other hosts

_options = with_options(
    click.option("-w", "--hosts", metavar="LIST", help="Hosts, as in nid[001000-001063] [those of the job]."),
    exclude_option,
    hostfile_option,
    click.option(
        "--level",
        type=click.Choice(LEVELS),
        default="quick",
        show_default=True,
        help="quick: under 2 s; full: up to three minutes, and loads the network.",
    ),
    nic_option,
    click.option("--topology", type=FILE, metavar="FILE", help="Topology file with the intended switch of each host."),
    site_option,
    click.option("--learn", is_flag=True, help="Write the present state of the hosts as a site file, to -o."),
    click.option("-o", "--output", type=WRITTEN_FILE, metavar="FILE", help="The site file that --learn writes."),
    click.option(
        "--sysroot", type=FILE, metavar="FOLDER", help="Check the files below FOLDER instead of this machine."
    ),
    click.option("--snapshot", "snapshots", type=FILE, multiple=True, metavar="FILE", help="Check saved snapshots."),
    click.option(
        "--save", type=WRITTEN_FILE, metavar="FILE", help="Keep the snapshots of all hosts (.json or .json.gz)."
    ),
    result_file_options,
)


@verb(name="preflight", short_help="Check whether every host is fit to be measured.")
@_options
def preflight(session: Session, save: Path | None, **values: Any) -> int:
    """Check links, addresses, settings, counters and logs of every host, and compare all hosts.

    Every host sends one snapshot, through the scheduler or ssh: files of /sys and /proc, outputs of programs. It is
    checked here; a difference from most similar hosts is reported with their value. `quick` needs no root, takes less
    than two seconds per host and suits Slurm's HealthCheckProgram; `full` adds longer checks.

    Without -w or --hostfile the hosts are those of the job that it runs in, else this machine. A check
    without data is skipped and reported; a host that does not answer never passes. fablint act prints drain commands.

    With --site hosts are compared with the values of a site file, even if all hosts differ from it; suppressed results
    are printed and do not count. --learn writes such a file: the present values of each class of hosts.

    Exit codes: 0 fit (warnings at most), 1 a host is unfit, 3 a result could not be read, or a host not examined.

    \b
    Examples:
      fablint preflight
      fablint preflight -w nid[001000-001063] --level full
      fablint preflight -w nid001013 --save nid001013.json.gz
      fablint preflight --snapshot nid001013.json.gz
      fablint preflight -w nid[001000-001063] --level full --learn -o site.toml
      fablint preflight --site site.toml
    """
    from fablint.snapshot import save_snapshots

    output = _learned_to(values)
    for path in filter(None, (save, output)):
        refuse_unwritable(path)
    begun = session.machine().now().timestamp()
    result = _result(session, values)
    code = session.fitness(values["level"], result.fitness, begun)
    if save:
        save_snapshots(result.collected.documents.values(), save, private=session.machine().is_root())
    if output:
        _learn(session, result, values["level"], output)
    return code


def _learned_to(values: dict[str, Any]) -> Path | None:
    """File for the learned values. Raises UsageError if --learn and -o are not given together."""
    from fablint.system.written_files import is_written_into

    output: Path | None = values["output"]
    if not values["learn"]:
        if output is not None:
            raise UsageError("-o requires --learn", "give --learn as well; --save keeps snapshots")
        return None
    if values["site"] is not None:
        raise UsageError("--learn and --site contradict each other", "give one of them")
    if output is None:
        raise UsageError("--learn requires -o", "name the file with -o, such as -o site.toml")
    if not is_written_into(output) and (output.exists() or output.is_symlink()):
        raise UsageError(f"{output} exists", "give another name with -o")
    return output


def _learn(session: Session, result: PreflightResult, level: str, output: Path) -> None:
    from fablint.model.names import plural
    from fablint.workflows import host_preflight

    site = host_preflight.learn_site(session.machine(), result.collected, level)
    write_file(output, site.text)
    session.say(f"{output}: {plural(site.values, 'value')} of {plural(site.classes, 'class')} of hosts")
    if site.doubtful or site.divided:
        session.warn(
            f"{output}: {site.doubtful} learned although a check warns of them, {site.divided} not learned because "
            "hosts differ: see the remarks in it"
        )


def _result(session: Session, values: dict[str, Any]) -> PreflightResult:
    """Result for snapshots of hosts, of a folder, or of files."""
    from fablint.workflows import host_preflight, run_files

    system = session.machine()
    site = run_files.load_site(values["site"], system)
    named = [name for name in ("hosts", "hostfile", "sysroot", "snapshots") if values[name]]
    if len(named) > 1 and named != ["hosts", "hostfile"]:
        raise UsageError(f"--{named[0]} and --{named[1].rstrip('s')} contradict each other", "give one of them")
    declared = host_preflight.SiteDeclaration(run_files.load_topology(values["topology"]), site)
    nics = values["nics"]
    if values["snapshots"]:
        return host_preflight.preflight_saved(system, values["snapshots"], declared, nics)
    if values["sysroot"]:
        return host_preflight.preflight_tree(system, values["sysroot"], values["level"], declared, nics)
    return host_preflight.preflight_hosts(system, _hosts(system, values), values["level"], declared, nics=nics)


def _hosts(system: System, values: dict[str, Any]) -> Allocation:
    """Named hosts, else those of the job, else this machine; drained hosts too, which may be fit again."""
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
