"""What a call of `fablint check` came to, and the scheduler that it finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from fablint.cluster import JobRequest


@dataclass
class Called:
    """What a call of fablint came to."""

    code: int
    out: str
    err: str


Call = Callable[..., Called]


@dataclass
class FakeScheduler:
    """Remembers what it should write a script for; submits nothing."""

    name: str = "fake"
    title: str = "Fake"
    requests: list[JobRequest] = field(default_factory=list)

    def script(self, request: JobRequest, place: Path | None = None) -> str:
        self.requests.append(request)
        return "#!/bin/sh\n"

    def submit(self, *_: object) -> NoReturn:
        raise AssertionError("a job was submitted")


def refused(done: Called, line: str) -> None:
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("fablint: ")
    assert done.err.count("\n") == 1
    assert line in done.err
    assert list(Path.cwd().iterdir()) == []
