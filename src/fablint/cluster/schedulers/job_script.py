"""Common parts of the job scripts of all schedulers: safe quoting of values, and the body."""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import fields
from pathlib import Path

from fablint.cluster.schedulers.scheduler import JobOptions, JobRequest
from fablint.errors import UsageError

_END_OF_INPUT = "END_OF_INPUT"


def checked(option: str, text: str) -> str:
    """Text for a directive, in quotes if it needs them.

    Raises
    ------
    UsageError
        The text would end the directive, or the quotes around it.
    """
    if not text.isprintable() or any(letter in text for letter in "\"'\\`"):
        raise UsageError(f"{option} {text!r} cannot be in a job script", "write it without quotes and line breaks")
    return text if re.fullmatch(r"[\w.,:@+=/\[\]%~-]+", text, re.ASCII) else f'"{text}"'


def check_texts(request: JobRequest) -> None:
    """Raise UsageError for texts of the user that no script can hold, with the names of fablint's options."""
    for field in fields(JobOptions):
        if isinstance(text := getattr(request, field.name), str):
            checked(f"--{field.name.replace('_', '-')}", text)


def clock(seconds: float) -> str:
    """Time limit of a job as `HH:MM:SS`, rounded up."""
    whole = math.ceil(seconds)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"


def body(request: JobRequest, place: Path | None) -> list[str]:
    """Return the lines of the script: they run the command, pass the scheduler's SIGTERM on, and store the exit status.

    `place` is the file for the exit status, None without one: Slurm without accounting forgets a job minutes after its
    end, and the file remains. Raises UsageError for a command or folder with a NUL character.
    """
    command = shlex.join(request.command)
    if "\0" in command or "\0" in str(request.folder):
        raise UsageError("a command cannot hold a NUL character", "leave it out")
    if _END_OF_INPUT in request.input.splitlines():
        raise UsageError(f"the input of a command cannot have a line {_END_OF_INPUT}", "leave it out")
    start = [f"{command} <<'{_END_OF_INPUT}' &", request.input, _END_OF_INPUT] if request.input else [f"{command} &"]
    lines = [f"cd {shlex.quote(str(request.folder))} || exit 2", *start, "child=$!"]
    lines += [
        "signalled=",
        "trap 'signalled=1; kill -TERM \"$child\" 2>/dev/null' TERM INT",
        'wait "$child"',
        "status=$?",
    ]
    lines += ['while [ -n "$signalled" ]; do  # the signal ended the waiting and not the command', "    signalled="]
    lines += ['    wait "$child"', "    again=$?", '    [ "$again" -eq 127 ] || status=$again', "done"]
    if place is not None:
        lines.append(f'echo "$status" >{shlex.quote(str(place / "exit"))}')
    return [*lines, 'exit "$status"']


def written(directives: list[str], mark: str, request: JobRequest, place: Path | None) -> str:
    """Return the text of a job script: directives of the scheduler, each after `mark` (`#SBATCH`), then the `body`.

    Raises UsageError for a command or folder with a NUL character.
    """
    head = [f"{mark} {directive}" for directive in directives]
    return "\n".join(["#!/bin/sh", *head, "", *body(request, place)]) + "\n"
