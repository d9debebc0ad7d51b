"""What a user sees: a program on a pseudo-terminal, and the screen that its output leaves."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_TOKEN = re.compile(r"\x1b\[\??(?P<number>\d*)(?:;\d+)*(?P<command>[A-Za-z])|(?P<letter>.)", re.DOTALL)


class Seen(NamedTuple):
    """How a program ended."""

    status: int
    screen: Sequence[str]  # of the terminal, without trailing blanks and empty lines at the end


def on_terminal(argv: Sequence[str | Path], cwd: Path, *, timeout_s: float = 300, **environ: str) -> Seen:
    """Run a program to its end with stdout and stderr on a terminal."""
    leader, follower = pty.openpty()
    shown = bytearray()
    reader = threading.Thread(target=_drain, args=(leader, shown))
    try:
        process = subprocess.Popen(
            list(map(str, argv)),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=follower,
            stderr=follower,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "40", **environ},
        )
    finally:
        os.close(follower)
    reader.start()
    try:
        process.wait(timeout_s)
    finally:
        process.kill()
        reader.join()
        os.close(leader)
    return Seen(process.returncode, screen_of(shown.decode()))


def _drain(leader: int, shown: bytearray) -> None:
    """Read until the last program has closed its end of the terminal, which is an error on Linux."""
    while True:
        try:
            octets = os.read(leader, 65536)
        except OSError:
            return
        if not octets:
            return
        shown += octets


def screen_of(text: str) -> list[str]:
    """The lines that a terminal shows after `text`: moves of the cursor and erased lines count, colours do not."""
    lines: list[list[str]] = [[]]
    row = column = 0
    for token in _TOKEN.finditer(text):
        command, number = token["command"], int(token["number"] or 0)
        if command == "A":
            row = max(row - max(number, 1), 0)
        elif command == "K":
            lines[row] = [] if number == 2 else lines[row][:column]
        elif token["letter"] == "\r":
            column = 0
        elif token["letter"] == "\n":
            row += 1
            lines += [[] for _ in range(row + 1 - len(lines))]
        elif token["letter"]:
            lines[row] += [" "] * (column + 1 - len(lines[row]))
            lines[row][column] = token["letter"]
            column += 1
    kept = ["".join(line).rstrip() for line in lines]
    while kept and not kept[-1]:
        kept.pop()
    return kept
