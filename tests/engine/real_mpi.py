"""The real engine under the real MPI libraries of this machine and without MPI, and its processes."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from fablint.measure import Mpiexec
from fablint.model import Plan
from fablint.system import System

Start = Callable[..., subprocess.Popen[str]]

LIMIT_S = 120  # far above what any of these runs takes, so that a stall fails the test and not CI


@dataclass(frozen=True)
class Mpi:
    """An engine and what starts it."""

    name: str
    engine: Path
    mpiexec: Mpiexec
    preloaded: Path | None = None  # a library for the ranks

    def argv(self, ranks: int, *arguments: str | Path) -> list[str]:
        return self.mpiexec.argv(System(), Plan(ranks, ()), [str(self.engine), *map(str, arguments)])

    def run(self, ranks: int, *arguments: str | Path, text: str = "", limit_s: float = LIMIT_S) -> Ended:
        done = subprocess.run(
            self.argv(ranks, *arguments),
            input=text,
            capture_output=True,
            text=True,
            timeout=limit_s,
            env=self.environ(),
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def start(self, ranks: int, *arguments: str | Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.argv(ranks, *arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environ(),
            start_new_session=True,
        )

    def environ(self) -> dict[str, str]:
        variables = {**os.environ, **self.mpiexec.kind.environ(oversubscribed=True, unbound=False)}
        if self.preloaded is not None:
            variables["LD_PRELOAD"] = " ".join(filter(None, (variables.get("LD_PRELOAD"), str(self.preloaded))))
        return variables


@dataclass(frozen=True)
class Ended:
    status: int
    output: str
    errors: str

    @property
    def error_lines(self) -> list[str]:
        """The engine's own error lines: there is to be one per failed run."""
        return [line for line in self.errors.splitlines() if line.startswith("fablint-engine: error: ")]


class Ranks:
    """Ranks without MPI, each a process of the test's own, and with variables of its own; ended with the context."""

    def __init__(self, engine: Path, count: int = 2) -> None:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            place = f"127.0.0.1:{listener.getsockname()[1]}"
        self._argv = [str(engine), "--rendezvous", place, "--ranks", str(count), "--rank"]
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, *before: str, row: str = "", **environ: str) -> subprocess.Popen[str]:
        """Start the next rank; `before`: words before the engine."""
        argv = [*before, *self._argv, str(len(self.processes)), *row.split()]
        pipe = subprocess.PIPE
        variables = {**os.environ, "FABLINT_TOKEN": "0123456789abcdef", **environ}
        self.processes.append(
            subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, env=variables)
        )
        return self.processes[-1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()


def ranks_of(launcher: subprocess.Popen[str]) -> list[int]:
    """Process ids of the engine's ranks below a launcher, in the order of their start."""
    parents: dict[int, int] = {}
    engines = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            parents[int(entry.name)] = int(fields[1])
            if (entry / "comm").read_text().strip() == "fablint-engine":
                engines.append(int(entry.name))
        except OSError:  # ended while we looked
            continue

    def below(pid: int) -> bool:
        while pid in parents:
            pid = parents[pid]
            if pid == launcher.pid:
                return True
        return False

    return sorted(pid for pid in engines if below(pid))


def with_signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has ended already
        os.kill(pid, number)


def wait_until(condition: Callable[[], bool], what: str, limit_s: float = 60) -> None:
    """Poll until `condition()` holds."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {limit_s} s"
        time.sleep(0.05)


def one_line(errors: Sequence[str]) -> str:
    assert len(errors) == 1, errors
    return errors[0].removeprefix("fablint-engine: error: ")
