"""What runs on a host: the program in a frame of marker lines, so that its answer is told from everything else.

Login scripts greet, launchers complain, and neither keeps stdout, stderr and exit status of many hosts apart. A
constant shell line does: it prints the host's name, the program's stdout, and last its status and last line of stderr.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from fablint.model import Answer
from fablint.system import Process, System

GRACE_S = 3.0  # a host ends its program by itself; this long is waited for it to say so
_BEGIN, _END = "fablint-host", "fablint-end"
_LATE = 124  # exit status of timeout(1)
_KILLED = (128 + signal.SIGTERM, 128 + signal.SIGKILL)

# One line without an exclamation mark: a login shell that is a csh must pass it on to sh unharmed. It begins in /, as
# nothing of the folder that a launcher happens to start it in may be executed, imported or taken for a setting.
_SCRIPT = (
    "cd /; "
    'limit=$1; shift; if command -v timeout >/dev/null; then set -- timeout -k 1 "$limit" "$@"; fi; exec 3>&1; '
    f'printf "{_BEGIN} %s\\n" "${{SLURMD_NODENAME:-$(uname -n)}}"; '
    'errors=$("$@" 2>&1 >&3 3>&-); status=$?; '
    f'printf "\\n{_END} %s %s\\n" "$status" "$(printf %s "$errors" | tail -n 1)"'
)


@dataclass(frozen=True)
class Replies:
    """What came back: the answers, and why the other hosts are silent, where something said why."""

    answers: Mapping[str, Answer] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)

    def open(self, hosts: Iterable[str]) -> list[str]:
        """Those of the hosts that did not answer."""
        return [host for host in hosts if host not in self.answers]

    def then(self, later: Replies) -> Replies:
        """This, and what came back when the silent hosts were asked again."""
        return Replies({**self.answers, **later.answers}, {**self.silent, **later.silent})


def framed(argv: Sequence[str], limit_s: float) -> list[str]:
    """The command that runs `argv` in its frame and ends it after `limit_s` seconds; it takes stdin as `argv` does."""
    return ["/bin/sh", "-c", _SCRIPT, "sh", f"{limit_s:g}", *argv]


def named_host(lines: Sequence[str]) -> str:
    """The host that says it printed these lines; empty where none does."""
    said = next((line for line in lines if line.startswith(f"{_BEGIN} ")), "")
    return said.removeprefix(_BEGIN).strip()


def answer(host: str, lines: Sequence[str], limit_s: float, aborted: bool = False) -> Answer | None:
    """The answer in the lines that came from a host; None where its frame is not complete.

    `aborted`: the launcher has ended the programs, so that one that was killed says nothing about its host.
    """
    begin = next((index for index, line in enumerate(lines) if line.startswith(f"{_BEGIN} ")), None)
    end = next((index for index in reversed(range(len(lines))) if lines[index].startswith(f"{_END} ")), None)
    if begin is None or end is None or end < begin:
        return None
    output = lines[begin + 1 : end]
    if output and not output[-1]:  # the marker's own line end
        output = output[:-1]
    text = "".join(f"{line}\n" for line in output)
    found = re.match(rf"{_END} (\d+) ?(.*)", lines[end])
    status, said = (int(found[1]), found[2]) if found else (1, "")
    if aborted and status in _KILLED:
        return None
    if status == _LATE:
        return Answer(host, text, late(limit_s))
    return Answer(host, text, one_line(said or f"exit status {status}") if status else "")


def late(limit_s: float) -> str:
    return f"no end after {limit_s:g} s"


def one_line(text: str) -> str:
    """The last line of a complaint, without what a terminal would act upon."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "".join(letter if letter.isprintable() else "?" for letter in lines[-1])[:300] if lines else "failed"


def read_lines(system: System, process: Process, limit_s: float) -> list[str]:
    """All that a process prints till its end; it is ended when that takes longer than `limit_s`."""
    lines: list[str] = []
    if _read(system, process, lines, limit_s):
        process.wait(1.0)
    else:
        with suppress(OSError):
            os.kill(process.pid, signal.SIGTERM)  # a launcher ends its tasks on the hosts, if it is asked
        _read(system, process, lines, 1.0)
    if process.poll() is None:
        process.kill()
    return lines


def _read(system: System, process: Process, lines: list[str], limit_s: float) -> bool:
    """Read on for at most `limit_s`; has the process closed its output?"""
    deadline = system.monotonic() + limit_s
    try:
        while (left := deadline - system.monotonic()) > 0:
            line = process.read_line(left)
            if line is not None:
                lines.append(line)
    except EOFError:
        return True
    return False
