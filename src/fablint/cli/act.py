"""The verb `act`: what to do about what was found, as texts. Nothing is executed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fablint.cli.common import Session, verb
from fablint.errors import UsageError

if TYPE_CHECKING:
    from fablint.act import Source
    from fablint.system import System

SCHEDULERS = ("slurm", "pbs")  # those of fablint.act, which brings pydantic
SECTIONS = ("drain", "hostfile", "ticket")


@verb(short_help="Drain commands, hostfile, ticket: printed, not done.")
@click.argument("source", type=click.Path(path_type=Path, allow_dash=True), default="-")
@click.option("--drain", is_flag=True, help="Commands that drain the hosts at fault.")
@click.option("--hostfile", is_flag=True, help="Hosts that are neither at fault nor suspect, one a line.")
@click.option("--ticket", is_flag=True, help="What was found, for a mail or an issue.")
@click.option("--scheduler", type=click.Choice(SCHEDULERS), help="Whose commands [what is installed, else slurm].")
def act(session: Session, source: Path, scheduler: str | None, **sections: bool) -> None:
    """Say what to do about what was found: commands that drain hosts, a list of the others, the text of a ticket.

    SOURCE is a run directory that has a report, a verdict.json, or what fablint preflight --json printed; without one
    it is read from stdin. Nothing is executed and nothing is written: copy, or redirect, what you agree with.

    Only a FAULT drains, and only hosts: of the host itself, its NICs, its cable, its settings. Switches, and cables
    between switches, are in the ticket. A reason begins with the name of the check, since sinfo -R shows 20 letters.

    All three are printed where none is named.

    \b
    Examples:
      fablint act night.run
      fablint preflight --json | fablint act --drain
      fablint act night.run --hostfile > good-hosts
    """
    wanted = [name for name in SECTIONS if sections[name]]
    system = session.machine()
    read = _read(source)
    if "hostfile" in wanted and read.hosts is None:
        raise UsageError(f"{source}: does not say which hosts were measured", "give the run directory")
    told = _told(read, scheduler or _installed(system))
    if "hostfile" in wanted and not told["hostfile"]:
        session.warn(f"none of {len(read.hosts or ())} hosts is left: all are at fault or suspect")
    shown = {name: told[name] for name in wanted or SECTIONS}
    if len(shown) == 1:
        text = _lines(*shown.values())
    else:
        text = "\n\n".join(f"# {name}\n{_lines(what)}" for name, what in shown.items())
    session.result(text, {"format": 1, **shown})


def _told(source: Source, scheduler: str) -> dict[str, Any]:
    """What each section says; the hosts are None where they are not known."""
    from fablint.act import drain_command, drains, ticket_text

    commands = [{**drain._asdict(), "command": drain_command(drain, scheduler)} for drain in drains(source)]
    return {
        "drain": commands,
        "hostfile": None if source.hosts is None else source.left,
        "ticket": ticket_text(source),
    }


def _lines(section: Any) -> str:
    """A section as text: commands, hosts or prose."""
    if section is None:
        return "# the hosts are not known: give the run directory"
    if isinstance(section, str):
        return section.rstrip()
    return "\n".join(one if isinstance(one, str) else one["command"] for one in section)


def _read(path: Path) -> Source:
    """A run's own verdict with its hosts, or a file."""
    from dataclasses import replace

    from fablint import flow
    from fablint.act import parse_source

    if not path.is_dir():
        return parse_source(_text(path), "stdin" if path == Path("-") else str(path))
    run = flow.read(path)
    verdict = flow.page_of(path).with_name("verdict.json")
    if not verdict.exists():
        raise UsageError(f"{path} has no verdict", f"fablint report {path} writes it")
    return replace(parse_source(_text(verdict), str(verdict)), hosts=run.hosts)


def _text(path: Path) -> str:
    stdin = sys.stdin.buffer
    if path == Path("-") and stdin.isatty():
        raise UsageError("nothing to act upon", "give a run, or pipe what fablint preflight --json prints")
    try:
        return (stdin.read() if path == Path("-") else path.read_bytes()).decode("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", "give a run directory or its verdict.json") from error


def _installed(system: System) -> str:
    """The scheduler whose command is on the PATH."""
    return "pbs" if system.which("pbsnodes") and not system.which("scontrol") else "slurm"
