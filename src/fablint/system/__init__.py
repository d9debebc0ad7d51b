"""Access to the outside world: processes, environment, clock, CPUs, temporary files.

Everything that starts a program or queries the machine takes a `System`; tests pass a substitute. Programs are argv
lists, never shell strings.
"""

from __future__ import annotations

import errno
import gc
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from fablint.errors import UsageError
from fablint.model.host_name import HostName
from fablint.system.process import Process

PRIVATE_FOLDER = 0o700
# Other addresses of 127.0.0.0/8 may be hosts of their own: containers of this machine.
_LOOPBACK = frozenset({"127.0.0.1", "::1"})
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_CAUGHT: list[list[int]] = []  # signals of each block of the main thread that catches them, the innermost last
_USER_FOLDERS = {"XDG_CACHE_HOME": ".cache", "XDG_STATE_HOME": ".local/state"}  # with defaults, below the home
_KEPT = (".", "baselines", "jobs", "preflight")  # folders of `System.home` that are no cache
Item = TypeVar("Item")
Made = TypeVar("Made")
_FORKED: list[Callable[[int], Any]] = []  # functions that forked processes call
_MOST_FORKED = 4  # each has its own reference counts, a third of the memory


@dataclass(frozen=True)
class Completed:
    """Result of a program."""

    argv: tuple[str, ...]
    status: int
    output: str
    errors: str


@contextmanager
def no_collection() -> Iterator[None]:
    """Suspend garbage collection: ten thousand snapshots are millions of objects, none of which is garbage."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()  # all objects are old now: the next collection does not scan them
        if was:
            gc.enable()


def is_here(host: str) -> bool:
    """Return whether a name is one of this machine, so that no other program is needed to start something on it.

    The same name in another domain may be another machine.
    """
    name = HostName(host)
    if name.is_address:
        return name.key in _LOOPBACK
    return name.stems[-1] == "localhost" or name.is_same(HostName(os.uname().nodename))


def _variable_of(name: str) -> str:
    """Variable with the user's folder for a folder of `System.home`."""
    return "XDG_STATE_HOME" if name in _KEPT else "XDG_CACHE_HOME"


def _forked(index: int) -> Any:
    return _FORKED[-1](index)


class System:
    """This machine."""

    @property
    def environ(self) -> Mapping[str, str]:
        return os.environ

    @property
    def home(self) -> Path:
        """Folder for files that outlive a run: built engines, logs, scratch runs. A site may provide it read-only."""
        if set_by_user := self.environ.get("FABLINT_HOME"):
            return Path(set_by_user)
        return self._user_folder("XDG_CACHE_HOME")

    def own_path(self, name: str) -> Path:
        """Path of the folder `name` that this process writes: below `home`, or where the user cannot write there.

        Then it is below the user's folder for state, which a user keeps, or for caches. Nothing is created.
        """
        folder = self.home / name
        existing = next((path for path in (folder, *folder.absolute().parents) if path.exists()), Path("/"))
        is_read_only = self.home.is_dir() and existing.is_dir() and not os.access(existing, os.W_OK | os.X_OK)
        return self._user_folder(_variable_of(name)) / name if is_read_only else folder

    def _user_folder(self, variable: str) -> Path:
        """Folder of fablint by a variable of the XDG base directory specification."""
        folder = self.environ.get(variable)
        return (Path(folder) if folder else Path.home() / _USER_FOLDERS[variable]) / "fablint"

    def home_folder(self, name: str, mode: int = 0o777) -> Path:
        """Folder of `own_path`, created if needed, then with this mode. Raises UsageError if it cannot be created."""
        folder = self.own_path(name)
        try:
            folder.mkdir(mode, parents=True, exist_ok=True)
        except OSError as error:
            variable = "FABLINT_HOME" if folder.is_relative_to(self.home) else _variable_of(name)
            raise UsageError(
                f"cannot write {folder}: {error.strerror}", f"set {variable} to a directory you can write"
            ) from error
        return folder

    @contextmanager
    def temporary_folder(self, parent: Path) -> Iterator[Path]:
        """Temporary folder inside `parent`, removed when the block ends."""
        with tempfile.TemporaryDirectory(prefix=".tmp-", dir=parent, ignore_cleanup_errors=True) as name:
            yield Path(name)

    @property
    def python(self) -> Path:
        """The running Python interpreter."""
        return Path(sys.executable)

    def which(self, name: str) -> Path | None:
        """Path of a program, by name on the PATH or by path; None if it does not exist."""
        result = shutil.which(name, path=self.environ.get("PATH"))
        return Path(result) if result else None

    def run(self, argv: Sequence[str], *, timeout_s: float = 60, cwd: Path | None = None) -> Completed:
        """Run a program to its end. A missing program has status 127, a program that exceeds the time limit 124."""
        try:
            done = subprocess.run(
                list(argv),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
                cwd=cwd,
                env=dict(self.environ),
                check=False,
            )
        except OSError as error:
            return Completed(tuple(argv), 127, "", f"{argv[0]}: {error.strerror}")
        except subprocess.TimeoutExpired:
            return Completed(tuple(argv), 124, "", f"{argv[0]}: no end after {timeout_s:g} s")
        return Completed(tuple(argv), done.returncode, done.stdout, done.stderr)

    def spawn(
        self,
        argv: Sequence[str],
        *,
        text: str = "",
        environ: Mapping[str, str] | None = None,
        is_input_open: bool = False,
    ) -> Process:
        """Start a program in a separate session, with `text` on its stdin and `environ` added to the environment.

        Its stdin ends after the text, with `is_input_open` when `Process.close_input` is called.
        """
        return Process(argv, text, {**self.environ, **(environ or {})}, is_input_open=is_input_open)

    @contextmanager
    def caught_signals(self) -> Iterator[list[int]]:
        """Collect SIGINT and SIGTERM in a list instead of ending, while the block lasts.

        Only the main thread can do that: a block in another thread gets the list of the enclosing block of the main
        thread.
        """
        if threading.current_thread() is not threading.main_thread():
            yield _CAUGHT[-1] if _CAUGHT else []
            return
        caught: list[int] = []
        _CAUGHT.append(caught)
        before = {number: signal.signal(number, lambda got, _: caught.append(got)) for number in STOP_SIGNALS}
        try:
            yield caught
        finally:
            _CAUGHT.pop()
            for number, handler in before.items():
                signal.signal(number, handler)

    def forked_map(self, function: Callable[[Item], Made], items: Sequence[Item]) -> Iterator[Made]:
        """Results of a function for all items, in order, computed by as many processes as there are CPUs, at most four.

        The other processes are forked from this one, so that they have its data without a copy; their results are
        pickled. They begin with the first items, this process with the last ones. A process that is killed raises
        BrokenProcessPool.
        """
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        workers = min(len(self.affinity()), _MOST_FORKED, len(items))
        if workers < 2:
            yield from map(function, items)
            return
        _FORKED.append(lambda index: function(items[index]))  # inherited by the processes, because it cannot be pickled
        pool = ProcessPoolExecutor(workers - 1, get_context("fork"))
        try:
            futures = [pool.submit(_forked, index) for index in range(len(items))]
            results = {}
            for index in reversed(range(len(items))):
                if futures[index].cancel():  # no other process has begun it
                    results[index] = function(items[index])
            for index, future in enumerate(futures):
                yield results.pop(index) if index in results else future.result()
        finally:
            pool.shutdown(cancel_futures=True)
            _FORKED.pop()

    def now(self) -> datetime:
        """Return the local time with its time zone."""
        return datetime.now(UTC).astimezone()

    def monotonic(self) -> float:
        """Seconds on a clock that never jumps."""
        return time.monotonic()

    def cpu_count(self) -> int:
        """CPUs of the machine."""
        return os.cpu_count() or 1

    def affinity(self) -> frozenset[int]:
        """CPUs that this process may use."""
        return frozenset(os.sched_getaffinity(0))

    def resolves(self, host: str) -> bool:
        """Tell whether the name of a host has an address here."""
        try:
            return bool(socket.getaddrinfo(host, None))
        except (OSError, UnicodeError):
            return False

    def is_root(self) -> bool:
        """Return whether the effective user is root."""
        return os.geteuid() == 0

    def locked_memory_limit(self) -> int | None:
        """Bytes that a process may lock (soft limit), None when unlimited."""
        soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
        return None if soft == resource.RLIM_INFINITY else soft
