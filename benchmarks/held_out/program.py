"""Calls of fablint: in this process, or as a process of its own."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Answer:
    """What a call printed, and its exit code."""

    code: int
    stdout: str
    stderr: str


def call(arguments: Sequence[str]) -> Answer:
    """Run a verb in this process, through the entry point of the command line."""
    from fablint.cli import main

    out, err = io.StringIO(), io.StringIO()
    code: Any = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main(list(arguments))
        except SystemExit as end:
            code = end.code
    return Answer(int(code or 0), out.getvalue(), err.getvalue())


def call_process(arguments: Sequence[str]) -> Answer:
    """Run a verb as a user does."""
    program = Path(sys.executable).with_name("fablint")
    done = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False)
    return Answer(done.returncode, done.stdout, done.stderr)


def verdict_of(files: Sequence[Path], topology: Path | None, process: bool = False) -> dict[str, Any]:
    """The verdict on files of another tool, or on a run directory.

    Raises:
        RuntimeError: the program said no verdict; the message is what it printed on stderr.
    """
    given = [] if topology is None else ["--topology", str(topology)]
    arguments = ["analyse", *map(str, files), *given, "--json", "--quiet"]
    answer = (call_process if process else call)(arguments)
    if answer.code not in (0, 1, 3):
        raise RuntimeError(f"fablint {' '.join(arguments)} ended with {answer.code}: {answer.stderr.strip()[-500:]}")
    loads: dict[str, Any] = json.loads(answer.stdout)
    if loads["exit_code"] != answer.code:
        raise RuntimeError(f"the verdict says exit code {loads['exit_code']}, the program ended with {answer.code}")
    return loads
