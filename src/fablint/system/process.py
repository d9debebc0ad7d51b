"""A program that runs beside this process, with all its descendants."""

from __future__ import annotations

import fcntl
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

_LONGEST_LINE = 1 << 24  # letters; a longer line is read as several lines
_KILL_S = 5.0  # a process inside a system call may need some time to end


class Process:
    """A running program with all its descendants: stdout and stderr are read as one stream of lines.

    It gets SIGTERM when this process ends, also where this process is killed.
    """

    def __init__(
        self, argv: Sequence[str], text: str, environ: Mapping[str, str], *, is_input_open: bool = False
    ) -> None:
        with Path(f"/proc/self/fd/{_pipe_of_this_process()}").open("rb", buffering=0) as pipe:
            self._popen = subprocess.Popen(
                list(argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=dict(environ),
                start_new_session=True,  # Ctrl-C on the terminal reaches only this process, which passes it on
                text=True,
                errors="replace",
                pass_fds=[pipe.fileno()],
            )
            _terminate_at_end(pipe.fileno(), self._popen.pid)
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._input: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.feed(text)
        if not is_input_open:
            self._input.put(None)
        threading.Thread(target=self._write, daemon=True).start()
        threading.Thread(target=self._drain, daemon=True).start()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._popen.pid

    def feed(self, text: str) -> None:
        """Write to the program's stdin, which `spawn` has left open; return at once."""
        self._input.put(text)

    def _write(self) -> None:
        assert self._popen.stdin is not None
        with suppress(BrokenPipeError, ValueError):  # ValueError: it was closed
            while (text := self._input.get()) is not None:
                self._popen.stdin.write(text)
                self._popen.stdin.flush()
        self.close_input()

    def close_input(self) -> None:
        """End the program's stdin, which `spawn` may have left open."""
        assert self._popen.stdin is not None
        with suppress(BrokenPipeError):
            self._popen.stdin.close()

    def _drain(self) -> None:
        assert self._popen.stdout is not None
        with self._popen.stdout as stdout:
            while line := stdout.readline(_LONGEST_LINE):  # a program that never ends its line takes no more memory
                self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def read_line(self, timeout_s: float) -> str | None:
        """Next line, or None if none came in time. Raises EOFError after the last line."""
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if line is None:
            self._lines.put(None)
            raise EOFError
        return line

    def poll(self) -> int | None:
        """Exit status, negative for a signal; None while the program runs."""
        return self._popen.poll()

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Exit status, or None if the program still runs after `timeout_s`."""
        try:
            return self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def process_tree(self) -> list[int]:
        """Return the process ids of all descendants and of the session, eldest first; [] after their end.

        Launchers start their children in separate process groups and sessions, so that neither is sufficient.
        """
        children: dict[int, list[int]] = {}
        session: list[int] = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text(errors="replace").rpartition(")")[2].split()
            except OSError:
                continue  # it has just ended
            pid = int(stat.parent.name)
            children.setdefault(int(fields[1]), []).append(pid)
            if int(fields[3]) == self.pid:
                session.append(pid)
        pids = [self.pid, *session]
        for pid in pids:  # the list grows during the loop
            pids.extend(child for child in children.get(pid, []) if child not in pids)
        return list(dict.fromkeys(pids))[1:]

    def signal_program(self, program: Path, number: int) -> int:
        """Send a signal to the descendants that execute `program`; return their number."""
        reached = 0
        for pid in self.process_tree():
            with suppress(OSError):
                if Path(f"/proc/{pid}/exe").resolve() == program.resolve():
                    os.kill(pid, number)
                    reached += 1
        return reached

    def signal(self, number: int) -> None:
        """Send a signal to the program itself, not to its children."""
        self._popen.send_signal(number)

    def kill(self) -> None:
        """Kill the program with all descendants at once; return when all have ended."""
        tree = self.process_tree()  # before the parent has ended and its children belong to another process
        self._popen.kill()
        deadline = time.monotonic() + _KILL_S
        while (living := [pid for pid in tree if _lives(pid)]) and time.monotonic() < deadline:
            for pid in living:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
        self._popen.wait()


def _lives(pid: int) -> bool:
    """Tell whether the process exists and is not a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


@cache
def _pipe_of_this_process() -> int:
    """Read end of a pipe; the write end, which only this process has, is open until this process ends."""
    return os.pipe()[0]


def _terminate_at_end(pipe: int, group: int) -> None:
    """Let the kernel send SIGTERM to a process group at the end of a pipe that a process of the group has open.

    A launcher may be a script that starts another one, which is in its group. PR_SET_PDEATHSIG does not reach that one,
    and would have to be set between fork and exec.
    """
    fcntl.fcntl(pipe, fcntl.F_SETOWN, -group)
    fcntl.fcntl(pipe, fcntl.F_SETSIG, signal.SIGTERM)
    fcntl.fcntl(pipe, fcntl.F_SETFL, os.O_ASYNC)
