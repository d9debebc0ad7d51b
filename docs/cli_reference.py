"""Writes docs/reference/cli.md from the help texts: `.venv/bin/python docs/cli_reference.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from fablint.cli import cli
from fablint.errors import EXIT_CODES

PAGE = Path(__file__).parent / "reference" / "cli.md"
HEAD = """\
# The command line

Written by `docs/cli_reference.py` from the help texts; do not edit.

The result is on stdout, chatter on stderr. Colour is left out where stdout is not a terminal or `NO_COLOR` is set. An
error is one line on stderr: what is wrong, where, and what to do. With `--json`, an error before the result is also one
JSON object on stdout: `format`, `error`, `exit_code`.

With `-o -` a verb that writes one file writes it to stdout, and prints everything else on stderr. A regular file is
replaced in one step; a device, pipe or socket is written into and never replaced.

| exit code | meaning |
| --- | --- |
{exit_codes}

| environment | meaning |
| --- | --- |
{environment}
"""
ENVIRONMENT = {
    "FABLINT_HOME": "for engines, logs, scratch runs and caches; else `$XDG_CACHE_HOME/fablint`, else "
    "`~/.cache/fablint`. If it is read-only, engines are read from it, and what is written is in the next two",
    "XDG_STATE_HOME": "with a read-only `FABLINT_HOME`: history, baselines, jobs, readings of counters in "
    "`$XDG_STATE_HOME/fablint`, else `~/.local/state/fablint`",
    "XDG_CACHE_HOME": "with a read-only `FABLINT_HOME`: other engines, logs, scratch runs and caches",
    "FABLINT_MPICXX": "builds the engine; else the `mpicxx` on the PATH, Cray's `CC`, the one of the `mpich` wheel",
    "CXX": "compiles the engine without MPI; else `g++`, `c++`, `clang++`",
    "NO_COLOR": "no colour",
}


def commands(command: click.Command, path: str, parent: click.Context | None = None) -> Iterator[tuple[str, str]]:
    """Path and help of a command and of all below it."""
    settings = {} if parent else dict(cli.context_settings)
    context = click.Context(command, parent=parent, info_name=path.split()[-1], terminal_width=100, **settings)
    yield path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            yield from commands(command.get_command(context, name), f"{path} {name}", context)


def render() -> str:
    sections = (f"## {path}\n\n```\n{text}\n```\n" for path, text in commands(cli, "fablint"))
    exit_codes = "\n".join(f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items())
    environment = "\n".join(f"| `{name}` | {meaning} |" for name, meaning in ENVIRONMENT.items())
    return "\n".join([HEAD.format(exit_codes=exit_codes, environment=environment), *sections])


if __name__ == "__main__":
    PAGE.write_text(render())
