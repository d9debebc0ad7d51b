"""A process for each host of a launch, which together are one launch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fablint.system.process import Process

STOP_S = 5.0  # after a process has failed: the others have reported it
_POLL_S = 0.02
_NAMED = ("fablint-engine:", "ssh:")  # lines that name the host themselves


@dataclass(frozen=True)
class HostProcess:
    """A process, and the host that its messages are about; '' for this machine."""

    host: str
    process: Process


class ProcessGroup:
    """Processes that begin and end together, the first with rank 0. The end of their stdin requests a stop."""

    def __init__(self, processes: Sequence[HostProcess]) -> None:
        self._processes = list(processes)
        self._reading = list(processes)  # those whose output has not ended
        self._failed_at: float | None = None

    def read_line(self, timeout_s: float) -> str | None:
        """Next line of any process, or None if none came in time. Raises EOFError after the last line of all."""
        deadline = time.monotonic() + timeout_s
        while self._reading:
            for entry in list(self._reading):
                try:
                    line = entry.process.read_line(0)
                except EOFError:
                    self._reading.remove(entry)
                    continue
                if line is not None:
                    self._reading.remove(entry)  # the others are next
                    self._reading.append(entry)
                    return self._named(entry.host, line)
            self._stop_if_failed()
            if time.monotonic() > deadline:
                return None
            time.sleep(_POLL_S)
        raise EOFError

    def _named(self, host: str, line: str) -> str:
        return line if not host or not line.strip() or line.startswith(_NAMED) else f"{host}: {line}"

    def _stop_if_failed(self) -> None:
        """Stop the others a while after a process has failed: ranks may wait for a host that has no engine.

        Those that remain when rank 0 has ended are killed, such as an ssh that waits for its host.
        """
        now = time.monotonic()
        if self._failed_at is None and any(entry.process.poll() for entry in self._processes):
            self._failed_at = now
        if self._failed_at is not None and now > self._failed_at + STOP_S:
            self.signal(0)
        if self._failed_at is not None and now > self._failed_at + 2 * STOP_S and self._processes[0].process.poll():
            self.kill()

    def poll(self) -> int | None:
        """Status of rank 0's process if it failed, else the highest of all; None while a process runs."""
        polls = [entry.process.poll() for entry in self._processes]
        statuses = [status for status in polls if status is not None]
        return (statuses[0] or max(statuses, key=abs)) if len(statuses) == len(polls) else None

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Exit status as `poll`, or None if a process still runs after `timeout_s`."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        for entry in self._processes:
            entry.process.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
        return self.poll()

    def feed(self, text: str) -> None:
        """Write to the stdin of rank 0."""
        self._processes[0].process.feed(text)

    def signal_program(self, program: Path, number: int) -> int:
        """Send a signal to the processes of this machine that execute `program`; return their number."""
        return sum(entry.process.signal_program(program, number) for entry in self._processes)

    def signal(self, number: int) -> None:
        """Request a stop of all ranks, whatever the signal: ssh passes none on."""
        for entry in self._processes:
            entry.process.close_input()

    def kill(self) -> None:
        """Kill all processes with their descendants. Those of other hosts end with their connection."""
        for entry in self._processes:
            entry.process.kill()
