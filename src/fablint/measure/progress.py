"""Progress of long jobs: a bar on a terminal, plain lines elsewhere, nothing for jobs under two seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from threading import Event, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from fablint.system import System

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress

QUIET_S = 2.0  # nothing is shown before, and plain lines are at least this far apart


class Progress(Protocol):
    """Receiver of the progress of long jobs."""

    def step(self, task: str, done: int, total: int, left_s: float | None = None) -> None:
        """Report that `done` of `total` steps of `task` are done, with `left_s` seconds to go, None if unknown."""
        ...

    def note(self, text: str, event: str = "note", **values: object) -> None:
        """Report something now: a sentence for the user, and for programs the kind of `event` with its values."""
        ...


class NoProgress:
    """Progress that shows nothing."""

    def step(self, task: str, done: int, total: int, left_s: float | None = None) -> None:
        pass

    def note(self, text: str, event: str = "note", **values: object) -> None:
        pass


class ConsoleProgress:
    """Progress on a console (stderr by default) while the `with` block lasts."""

    def __init__(self, system: System, console: Console | None = None) -> None:
        self._system = system
        self._given = console
        self._began = self._last = system.monotonic()
        self._bar: RichProgress | None = None
        self._line = ""  # the last one, off a terminal

    @cached_property
    def _console(self) -> Console:
        """Console, created on first use: most jobs end before anything is shown, and rich is imported late."""
        from rich.console import Console

        return self._given or Console(stderr=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.erase()

    def erase(self) -> None:
        """Remove the bar from the terminal before other output; the next step shows it again."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def note(self, text: str, event: str = "note", **values: object) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def step(self, task: str, done: int, total: int, left_s: float | None = None) -> None:
        now = self._system.monotonic()
        if now - self._began < QUIET_S:
            return
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            self._draw(task, done, total, left_s)
        elif now - self._last >= QUIET_S and (line := f"{task}: {done} of {total}{_time_left(left_s)}") != self._line:
            self._last, self._line = now, line
            self.note(line)

    @contextmanager
    def working(self, task: str) -> Iterator[Callable[[int, int], None]]:
        """Show a task and for how long it has run while the block lasts.

        The time left follows from the parts of the task that the block reports as done.
        """
        over, task_time = Event(), _TaskTime(self._system)
        thread = Thread(target=self._count, args=(task, over, task_time), daemon=True)
        thread.start()
        try:
            yield task_time.step
        finally:
            over.set()
            thread.join()

    def _count(self, task: str, over: Event, task_time: _TaskTime) -> None:
        """Show the seconds until a task is over: on a terminal in one line, elsewhere in lines ever further apart."""
        pause = QUIET_S
        status = None
        while not over.wait(pause):
            line = f"{task}: {task_time.passed_s:.0f} s{_time_left(task_time.left_s)}"
            if not self._console.is_terminal or self._console.is_dumb_terminal:
                self.note(line)
                pause *= 2
                continue
            pause = 1.0
            status = status or self._console.status(line)
            status.update(line)
            status.start()
        if status is not None:
            status.stop()

    def _draw(self, task: str, done: int, total: int, left_s: float | None) -> None:
        if self._bar is None:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress as RichProgress, TextColumn

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[left]}"),
            )
            # Output of the verbs goes to stdout and stderr unchanged, without rich in between. Without a thread that
            # draws: it would run on the CPU of a local rank.
            self._bar = RichProgress(
                *columns,
                console=self._console,
                transient=True,
                auto_refresh=False,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._bar.add_task(task, total=total, left="")
            self._bar.start()
        self._bar.update(
            self._bar.task_ids[0], description=task, completed=done, total=total, left=_time_left(left_s).strip(", ")
        )
        self._bar.refresh()


class _TaskTime:
    """Time that a task has taken, and the time left by the share of it that is done."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._began = system.monotonic()
        self._end_s: float | None = None  # after the beginning; None: no part is done

    @property
    def passed_s(self) -> float:
        """Seconds since the beginning."""
        return self._system.monotonic() - self._began

    @property
    def left_s(self) -> float | None:
        """Seconds left; None if they are unknown."""
        return None if self._end_s is None else max(self._end_s - self.passed_s, 0.0)

    def step(self, done: int, total: int) -> None:
        """Report that `done` of `total` parts of equal duration are done."""
        self._end_s = self.passed_s * total / done


def _time_left(left_s: float | None) -> str:
    if left_s is None:
        return ""
    return f", {left_s:.0f} s left" if left_s < 120 else f", {left_s / 60:.0f} min left"
