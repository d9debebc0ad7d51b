"""Errors that end fablint, and their exit codes.

    FablintError
    ├── UsageError            2  the command line, a plan file or a topology file is wrong
    ├── IncompleteError       3  the measurement could not be finished (a host failed, the disk is full, ...)
    │   ├── BrokenRunError    3  a run directory cannot be read
    │   ├── FullDiskError     3  the disk of a run is full
    │   ├── NotStartedError   3  the ranks of a launch did not start
    │   └── StoppedError      3  a signal, or the end of the job, ended the measurement
    ├── PreflightError        4  a host is not fit to be measured, or lacks a program that a measurement needs
    ├── TooManyError          6  more hosts would be drained than --most allows
    └── InternalError         5  a defect of fablint

`EXIT_CODES` says what each exit code means: the help, the README and docs/reference/cli.md have the same table.
"""

from __future__ import annotations

from collections.abc import Mapping

INTERRUPTED = 130  # as a shell reports a program ended by Ctrl-C
EXIT_CODES: Mapping[int, str] = {
    0: "pass; the verb did what it was asked to",
    1: "a fault was found, or a payload was damaged",
    2: "wrong usage: nothing was started",
    3: "incomplete or undecided: what was measured is kept",
    4: "refused by preflight, or a program that a measurement needs is missing",
    5: "internal error",
    6: "act would drain more hosts than it may",
    INTERRUPTED: "interrupted with Ctrl-C: what was measured is kept",
}


class FablintError(Exception):
    """Base of all errors. `message`: problem and place; `hint`: remedy."""

    exit_code = 5

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """The one line that the user reads."""
        return f"{self.message}: {self.hint}" if self.hint else self.message


class UsageError(FablintError):
    """Bad input: nothing was started."""

    exit_code = 2


class IncompleteError(FablintError):
    """What was measured is kept, but it is not all that was asked for."""

    exit_code = 3


class StoppedError(IncompleteError):
    """The user or the scheduler ended a measurement: nothing else is begun."""


class BrokenRunError(IncompleteError):
    """A run directory that cannot be read."""


class FullDiskError(IncompleteError):
    """The disk of a run is full. What was measured before is kept, and can be judged."""


class NotStartedError(IncompleteError):
    """The ranks of a launch did not start. `launcher_output`: last lines of its launcher."""

    def __init__(self, message: str, hint: str = "", launcher_output: tuple[str, ...] = ()) -> None:
        super().__init__(message, hint)
        self.launcher_output = launcher_output


class PreflightError(FablintError):
    """A host is not fit to be measured, or lacks a program that a measurement needs."""

    exit_code = 4


class TooManyError(FablintError):
    """More hosts would be taken out of service than is allowed at once."""

    exit_code = 6


class InternalError(FablintError):
    """A state that must not happen."""

    exit_code = 5
