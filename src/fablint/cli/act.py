"""The verb `act`: what to do about what was found, as texts. Nothing is executed."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fablint.cli.common import Session, verb
from fablint.errors import IncompleteError, TooManyError, UsageError

if TYPE_CHECKING:
    from fablint.act import Source
    from fablint.system import System

SCHEDULERS = ("slurm", "pbs")  # those of fablint.act, which brings pydantic
SECTIONS = ("drain", "hostfile", "ticket")
_HINT = "look for what they share; --most or --force prints the commands all the same"
_NONE = {"drain": "# refused: too many hosts", "hostfile": "# the hosts are not known: give the run directory"}


class Most(click.ParamType[tuple[int | None, float]]):
    """`10%` or `5`: a number of hosts or None, and a share of them."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int | None, float]:
        if isinstance(value, tuple):
            return value
        found = re.fullmatch(r"(\d{1,7})|(\d{1,3}(?:\.\d{1,3})?)%", str(value).strip())
        if not found or (found[2] and float(found[2]) > 100):
            self.fail(f"'{value}' is neither a number of hosts nor a share: write 5 or 10%", param, ctx)
        return (int(found[1]), 0.0) if found[1] else (None, float(found[2]) / 100)


@verb(short_help="Drain commands, hostfile, ticket: printed, not done.")
@click.argument("source", type=click.Path(path_type=Path, allow_dash=True), default="-")
@click.option("--drain", is_flag=True, help="Commands that drain the hosts at fault.")
@click.option("--hostfile", is_flag=True, help="Hosts that are neither at fault nor differ, one a line.")
@click.option("--most", type=Most(), default="10%", show_default=True, help="Drain no more hosts: a share or number.")
@click.option("--force", is_flag=True, help="Print drain commands for more hosts than --most allows.")
@click.option("--with-warnings", is_flag=True, help="Hostfile: keep hosts that warnings tell from the others.")
@click.option("--ticket", is_flag=True, help="What was found, for a mail or an issue.")
@click.option("--scheduler", type=click.Choice(SCHEDULERS), help="Whose commands [what is installed, else slurm].")
def act(
    session: Session,
    source: Path,
    scheduler: str | None,
    most: tuple[int | None, float],
    force: bool,
    with_warnings: bool,
    **sections: bool,
) -> int:
    """Say what to do about what was found: commands that drain hosts, a list of the others, the text of a ticket.

    SOURCE is a run directory that has a report, a verdict.json, or what fablint preflight --json printed; without one
    it is read from stdin. Nothing is executed and nothing is written: copy, or redirect, what you agree with.

    Only a FAULT drains, and only hosts: of the host itself, its NICs, its cable, its settings. Switches, and cables
    between switches, are in the ticket. A reason begins with the name of the check, since sinfo -R shows 20 letters.
    No more than --most of all hosts are drained, one at least; silent hosts only where most hosts answered.

    The hostfile leaves out hosts at fault, and hosts with a warning or suspicion that most others do not have.

    All three are printed where none is named. Exit codes: 0 printed, 2 wrong usage, 3 no host is left for the
    hostfile, 6 more hosts would be drained than --most allows.

    \b
    Examples:
      fablint act night.run
      fablint preflight --json | fablint act --drain
      fablint act night.run --hostfile > good-hosts
    """
    wanted = [name for name in SECTIONS if sections[name]] or list(SECTIONS)
    read = _read(source)
    refused = _refusal(source, read, wanted, (None if force else most))
    told = _told(read, scheduler or _installed(session.machine()), with_warnings=with_warnings)
    return _print(session, read, wanted, told, refused)


def _refusal(path: Path, source: Source, wanted: Sequence[str], most: tuple[int | None, float] | None) -> str:
    """Why drain commands are not printed beside other sections; empty where they are, or were not asked for.

    Raises UsageError and TooManyError where nothing of what is wanted can be printed.
    """
    from fablint.act import Limit, too_many

    if wanted == ["hostfile"] and source.hosts is None:
        raise UsageError(f"{path}: does not say which hosts were measured", "give the run directory")
    refused = too_many(source, Limit(*most)) if "drain" in wanted and most is not None else ""
    if refused and wanted == ["drain"]:
        raise TooManyError(refused, _HINT)
    return refused


def _print(session: Session, source: Source, wanted: Sequence[str], told: dict[str, Any], refused: str) -> int:
    """Print the sections and what they do not hold; the exit status."""
    if refused:
        told["drain"] = None
        session.warn(f"{refused}: {_HINT}")
    shown = {name: told[name] for name in wanted}
    session.result(_joined(shown), {"format": 1, **shown, **({"refused": refused} if refused else {})})
    _say_left_out(session, source, wanted, told)
    is_empty = wanted == ["hostfile"] and not told["hostfile"]
    return TooManyError.exit_code if refused else IncompleteError.exit_code if is_empty else 0


def _joined(shown: Mapping[str, Any]) -> str:
    """One section as it is; several with a heading each."""
    if len(shown) == 1:
        return _lines(*shown.values())
    return "\n\n".join(f"# {name}\n{_lines(what) if what is not None else _NONE[name]}" for name, what in shown.items())


def _say_left_out(session: Session, source: Source, wanted: Sequence[str], told: dict[str, Any]) -> None:
    """Say why a section does not hold what may be looked for in it."""
    from fablint.act import unheard

    kept, count = unheard(source), len(source.hosts or ())
    if kept and "drain" in wanted:
        session.warn(f"{len(kept)} of {count} hosts are silent: they are not drained, look for what they share")
    if source.hosts is not None and "hostfile" in wanted and not told["hostfile"]:
        session.warn(f"none of {count} hosts is left: all are at fault or differ; see --with-warnings")


def _told(source: Source, scheduler: str, *, with_warnings: bool) -> dict[str, Any]:
    """What each section says; the hosts are None where they are not known."""
    from fablint.act import drain_command, drains, ticket_text

    commands = [{**drain._asdict(), "command": drain_command(drain, scheduler)} for drain in drains(source)]
    return {
        "drain": commands,
        "hostfile": None if source.hosts is None else source.left(with_warnings=with_warnings),
        "ticket": ticket_text(source),
    }


def _lines(section: Any) -> str:
    """A section as text: commands, hosts or prose."""
    if isinstance(section, str):
        return section.rstrip()
    return "\n".join(one if isinstance(one, str) else one["command"] for one in section)


def _read(path: Path) -> Source:
    """A run's own verdict with its hosts, or a file."""
    from dataclasses import replace

    from fablint.act import parse_source
    from fablint.workflows import flow

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
