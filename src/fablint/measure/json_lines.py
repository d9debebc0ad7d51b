"""Progress of long jobs as lines of JSON, for programs that follow them."""

from __future__ import annotations

import json
import sys

from fablint.system import System

_APART_S = 0.5  # steps of a task are at least this far apart


class JsonLinesProgress:
    """Progress on standard output: one JSON object on each line, with its kind as `event`.

    `docs/reference/verdict.md` has the events.
    """

    def __init__(self, system: System) -> None:
        self._system = system
        self._last = system.monotonic() - _APART_S

    def step(self, task: str, done: int, total: int, left_s: float | None = None) -> None:
        """Write the event `step`, unless the last one was written a moment ago."""
        now = self._system.monotonic()
        if now - self._last >= _APART_S:
            self._last = now
            write_event("step", task=task, done=done, total=total, left_s=left_s)

    def note(self, text: str, event: str = "note", **values: object) -> None:
        """Write an event with its sentence."""
        write_event(event, text=text.removeprefix("fablint: "), **values)


def write_event(event: str, **values: object) -> None:
    """Write an event as a line on standard output: a reader of a pipe sees it at once."""
    sys.stdout.write(json.dumps({"event": event, **values}, default=str) + "\n")
    sys.stdout.flush()
