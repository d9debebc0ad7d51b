"""The verb `act`: texts for the repair of findings. Nothing is executed."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fablint.cli.options import with_options
from fablint.cli.param_types import HostShare, RunPath
from fablint.cli.session import Session, verb
from fablint.errors import IncompleteError, TooManyError, UsageError

if TYPE_CHECKING:
    from fablint.act import HostFindings
    from fablint.system import System

SCHEDULERS = ("slurm", "pbs")  # those of fablint.act, which imports pydantic
SECTIONS = ("drain", "hostfile", "ticket")
_HINT = "look for a common cause; --most with a larger number of hosts prints the commands"
_NONE = {"drain": "# refused: too many hosts", "hostfile": "# the hosts are not known: give the run directory"}


_options = with_options(
    click.argument("source", type=RunPath(allow_dash=True), default="-"),
    click.option("--drain", is_flag=True, help="Commands that drain the hosts at fault."),
    click.option(
        "--healthy-hosts", "hostfile", is_flag=True, help="Hosts that are neither at fault nor different, one per line."
    ),
    click.option("--ticket", is_flag=True, help="Text of a ticket with the findings."),
    click.option("--mail", metavar="ADDRESS", help="A mail with ticket and drain commands, for sendmail -t."),
    click.option(
        "--most", type=HostShare(), default="10%", show_default=True, help="Most hosts to drain (share or number)."
    ),
    click.option(
        "--with-warnings", is_flag=True, help="Hostfile: keep hosts with warnings that other hosts do not have."
    ),
    click.option(
        "--scheduler", type=click.Choice(SCHEDULERS), help="Scheduler of the commands [installed, else slurm]."
    ),
)


@verb(short_help="Drain commands, hostfile, ticket, mail: printed only, never executed.")
@_options
def act(session: Session, source: Path, scheduler: str | None, mail: str | None, **values: Any) -> int:
    """Print commands that drain hosts at fault, a list of the other hosts, and the text of a ticket.

    SOURCE is a run directory that has a report, a verdict.json, or the output of fablint preflight --json; without
    one stdin is read. Nothing is executed and no file is written: copy or redirect the output.

    Only a FAULT drains, and only hosts: faults of the host, its NICs, its cable, its settings. Switches, and cables
    between switches, are in the ticket. A reason begins with the name of the check, because sinfo -R shows 20 letters.
    At most --most of all hosts are drained, but at least one; silent hosts only if most hosts answered.

    The hostfile excludes hosts at fault, and hosts with a warning or SUSPECT that most other hosts do not have.

    By default all three are printed. --mail prints a message with headers; nothing is sent.

    Exit codes: 0 printed, 2 wrong usage, 3 no host is left for the hostfile, 6 more hosts would be drained than --most
    allows.

    \b
    Examples:
      fablint act night.run
      fablint preflight --json | fablint act --drain
      fablint act night.run --healthy-hosts > good-hosts
      fablint act night.run --mail operators@site.org | sendmail -t
    """
    chosen = [name for name in SECTIONS if values[name]]
    if mail is not None and chosen:
        raise UsageError("--mail prints one message and no other section", "leave the others out")
    chosen = chosen or list(SECTIONS)
    findings = _read(source)
    refused = _refusal(source, findings, chosen, values["most"])
    contents = _contents(findings, scheduler or _installed(session.machine()), with_warnings=values["with_warnings"])
    if mail is not None:
        return _print_mail(session, source, findings, mail, _NONE["drain"] if refused else contents["drain"])
    return _print(session, findings, chosen, contents, refused)


def _refusal(path: Path, source: HostFindings, chosen: Sequence[str], most: tuple[int | None, float]) -> str:
    """Return why drain commands are not printed with the other sections; '' if they are printed or were not chosen.

    Raises UsageError and TooManyError if no chosen section can be printed.
    """
    from fablint.act import DrainLimit, too_many

    if chosen == ["hostfile"] and source.hosts is None:
        raise UsageError(f"{path}: does not name the measured hosts", "give the run directory")
    refused = too_many(source, DrainLimit(*most)) if "drain" in chosen else ""
    if refused and chosen == ["drain"]:
        raise TooManyError(refused, _HINT)
    return refused


def _print(
    session: Session, source: HostFindings, chosen: Sequence[str], contents: dict[str, Any], refused: str
) -> int:
    """Print the sections and what is missing in them; return the exit status."""
    if refused:
        contents["drain"] = None
        session.warn(f"{refused}: {_HINT}")
    contents_by_name = {name: contents[name] for name in chosen}
    session.result(_joined(contents_by_name), {**contents_by_name, **({"refused": refused} if refused else {})})
    _say_missing(session, source, chosen, contents)
    is_empty = chosen == ["hostfile"] and not contents["hostfile"]
    return TooManyError.exit_code if refused else IncompleteError.exit_code if is_empty else 0


def _print_mail(session: Session, path: Path, source: HostFindings, address: str, drain: Any) -> int:
    """Print a message with the ticket and the drain commands, or why there are none; return the exit status."""
    from fablint.act import Envelope, address_of, mail_text

    system = session.machine()
    user = system.environ.get("LOGNAME") or "root"
    envelope = Envelope(address_of(f"{user}@{os.uname().nodename}"), address_of(address), system.now())
    text = mail_text(source, "stdin" if path == Path("-") else str(path), _lines(drain).splitlines(), envelope)
    session.result(text, {"mail": text})
    return TooManyError.exit_code if drain == _NONE["drain"] else 0


def _joined(sections: Mapping[str, Any]) -> str:
    """Return one section as it is; several with a heading each."""
    if len(sections) == 1:
        return _lines(*sections.values())
    return "\n\n".join(
        f"# {name}\n{_lines(content) if content is not None else _NONE[name]}" for name, content in sections.items()
    )


def _say_missing(session: Session, source: HostFindings, chosen: Sequence[str], contents: dict[str, Any]) -> None:
    """Print why hosts are missing in a section."""
    from fablint.act import unheard

    silent, count = unheard(source), len(source.hosts or ())
    if silent and "drain" in chosen:
        session.warn(f"{len(silent)} of {count} hosts are silent: they are not drained, look for a common cause")
    if source.hosts is not None and "hostfile" in chosen and not contents["hostfile"]:
        session.warn(f"none of {count} hosts is left: all are at fault or differ; see --with-warnings")


def _contents(source: HostFindings, scheduler: str, *, with_warnings: bool) -> dict[str, Any]:
    """Return the content of each section; None for the hostfile where the hosts are not known."""
    from fablint.act import drain_command, drains, ticket_text

    hosts = source.hosts or ()
    commands = [{**drain._asdict(), "command": drain_command(drain, scheduler, hosts)} for drain in drains(source)]
    return {
        "drain": commands,
        "hostfile": None if source.hosts is None else source.left(with_warnings=with_warnings),
        "ticket": ticket_text(source),
    }


def _lines(section: Any) -> str:
    """Return a section as text: commands, hosts or prose."""
    if isinstance(section, str):
        return section.rstrip()
    return "\n".join(entry if isinstance(entry, str) else entry["command"] for entry in section)


def _read(path: Path) -> HostFindings:
    """Read the verdict of a run with its hosts, or a file."""
    from dataclasses import replace

    from fablint.act import parse_source
    from fablint.workflows import analysis, run_formats

    if not path.is_dir():
        return parse_source(_text(path), "stdin" if path == Path("-") else str(path))
    run = run_formats.read(path)
    verdict = analysis.page_of(path).with_name("verdict.json")
    if not verdict.exists():
        raise UsageError(f"{path} has no verdict", f"fablint report {path} writes it")
    return replace(parse_source(_text(verdict), str(verdict)), hosts=run.hosts)


def _text(path: Path) -> str:
    stdin = sys.stdin.buffer
    if path == Path("-") and stdin.isatty():
        raise UsageError("no source given", "give a run, or pipe the output of fablint preflight --json")
    try:
        return (stdin.read() if path == Path("-") else path.read_bytes()).decode("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", "give a run directory or its verdict.json") from error


def _installed(system: System) -> str:
    """Return the scheduler whose command is on the PATH."""
    return "pbs" if system.which("pbsnodes") and not system.which("scontrol") else "slurm"
