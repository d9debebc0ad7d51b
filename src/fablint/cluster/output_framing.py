"""Marker lines around the output of a program on a host, which separate its answer from all other output.

Login scripts print greetings, launchers print warnings, and neither separates stdout, stderr and exit status of several
hosts. A constant shell line does: it prints the host's name, the program's stdout, and last its status and last line of
stderr.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from fablint.model import Answer
from fablint.system import System
from fablint.system.process import Process

MOST_LETTERS = 1 << 26  # of the output of one host: more than the largest snapshot
GRACE_S = 3.0  # a host ends its program by itself; extra time for its report
_BEGIN, _END = "fablint-host", "fablint-end"
_LATE = 124  # exit status of timeout(1)
_KILLED = (128 + signal.SIGTERM, 128 + signal.SIGKILL)

# One line without an exclamation mark: a login shell that is a csh must pass it on to sh unharmed. It begins in /, so
# that no file of the folder in which a launcher starts it is executed, imported or read as a setting.
_SCRIPT = (
    "cd /; "
    'limit=$1; shift; if command -v timeout >/dev/null; then set -- timeout -k 1 "$limit" "$@"; fi; exec 3>&1; '
    f'printf "{_BEGIN} %s\\n" "${{SLURMD_NODENAME:-$(uname -n)}}"; '
    'errors=$("$@" 2>&1 >&3 3>&-); status=$?; '
    f'printf "\\n{_END} %s %s\\n" "$status" "$(printf %s "$errors" | tail -n 1)"'
)


@dataclass(frozen=True)
class Replies:
    """Answers of hosts, and the reason for each silent host if it is known."""

    answers: Mapping[str, Answer] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)

    def open(self, hosts: Iterable[str]) -> list[str]:
        """Return those of `hosts` that did not answer, in the same order."""
        return [host for host in hosts if host not in self.answers]

    def then(self, later: Replies) -> Replies:
        """Return these replies and those of a second request to the silent hosts; the second reply of a host counts."""
        return Replies({**self.answers, **later.answers}, {**self.silent, **later.silent})


class HostLines:
    """Lines of one host, at most `MOST_LETTERS` letters of them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._letters = 0

    def add(self, line: str, label: int = 0) -> None:
        """Add a line that begins with a label of this length; of the line that exceeds the limit its beginning."""
        if self._letters <= MOST_LETTERS:
            self.lines.append(line[: label + MOST_LETTERS + 1 - self._letters])
            self._letters += len(line) - label + 1


def _is_too_long(lines: Iterable[str]) -> bool:
    return sum(len(line) + 1 for line in lines) > MOST_LETTERS


def framed(argv: Sequence[str], limit_s: float) -> list[str]:
    """Command that runs `argv` in its frame and ends it after `limit_s` seconds; stdin is passed to `argv`."""
    return ["/bin/sh", "-c", _SCRIPT, "sh", f"{limit_s:g}", *argv]


def is_begin(line: str) -> bool:
    """Tell whether a line is the first one of a frame: the program begins."""
    return line.startswith(f"{_BEGIN} ")


def named_host(lines: Sequence[str]) -> str:
    """Host named in these lines as their source; '' if there is none."""
    marker = next(filter(is_begin, lines), "")
    return marker.removeprefix(_BEGIN).strip()


def answer(host: str, lines: Sequence[str], limit_s: float, aborted: bool = False) -> Answer | None:
    """Return the answer in the lines that the program on a host printed; None if its frame is incomplete.

    A host that printed more than `MOST_LETTERS` has an error instead of its output.

    Parameters
    ----------
    host, lines
        The host, and its lines without those of other hosts.
    limit_s
        Seconds that the program had, for the text of an error.
    aborted
        The launcher has ended the programs, so that a killed program says nothing about its host.
    """
    if _is_too_long(lines):
        return Answer(host, "", f"it printed more than {MOST_LETTERS >> 20} MiB")
    begin = next((index for index, line in enumerate(lines) if is_begin(line)), None)
    end = next((index for index in reversed(range(len(lines))) if lines[index].startswith(f"{_END} ")), None)
    if begin is None or end is None or end < begin:
        return None
    output = lines[begin + 1 : end]
    if output and not output[-1]:  # the line end before the marker
        output = output[:-1]
    text = "".join(f"{line}\n" for line in output)
    match = re.match(rf"{_END} (\d+) ?(.*)", lines[end])
    status, error = (int(match[1]), match[2]) if match else (1, "")
    if aborted and status in _KILLED:
        return None
    if status == _LATE:
        return Answer(host, text, late(limit_s))
    return Answer(host, text, one_line(error or f"exit status {status}") if status else "")


def late(limit_s: float) -> str:
    """Return the reason that is given for a process that was terminated after `limit_s` seconds."""
    return f"no end after {limit_s:g} s"


def one_line(text: str) -> str:
    """Last line of an error text, without terminal control characters."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "".join(letter if letter.isprintable() else "?" for letter in lines[-1])[:300] if lines else "failed"


def read_lines(
    system: System, process: Process, limit_s: float, origin: Callable[[str], tuple[str, int]] = lambda _: ("", 0)
) -> list[str]:
    """Return the lines that a process prints until its end, without line ends.

    Of each host at most `MOST_LETTERS` letters are kept. `origin` gives the host of a line and the length of its label.

    After `limit_s` seconds the process is terminated: the list then ends with what it printed until then, and at most
    1 s later. The process has ended on return.
    """
    lines: list[str] = []
    by_origin: dict[str, HostLines] = {}

    def keep(line: str) -> None:
        host, label = origin(line)
        host_lines = by_origin.setdefault(host, HostLines())
        before = len(host_lines.lines)
        host_lines.add(line, label)
        lines.extend(host_lines.lines[before:])

    if _read(system, process, keep, limit_s):
        process.wait(1.0)
    else:
        with suppress(OSError):
            os.kill(process.pid, signal.SIGTERM)  # on SIGTERM a launcher ends its tasks on the hosts
        _read(system, process, keep, 1.0)
    if process.poll() is None:
        process.kill()
    return lines


def _read(system: System, process: Process, keep: Callable[[str], None], limit_s: float) -> bool:
    """Read for at most `limit_s`; return whether the process has closed its output."""
    deadline = system.monotonic() + limit_s
    try:
        while (remaining := deadline - system.monotonic()) > 0:
            line = process.read_line(remaining)
            if line is not None:
                keep(line)
    except EOFError:
        return True
    return False
