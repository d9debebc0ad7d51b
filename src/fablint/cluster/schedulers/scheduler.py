"""What is submitted, what a scheduler must be able to do, and what is known of a job afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from fablint.system import System

JobWord = Literal["pending", "running", "ended", "cancelled", "timeout", "killed", "node_fail", "lost", "unknown"]


@dataclass(frozen=True)
class JobRequest:
    """What shall run, and on what. Texts are handed to the scheduler as the user wrote them; empty: its default."""

    command: tuple[str, ...]
    folder: Path  # where the command runs
    name: str = "fablint"
    run: Path | None = None  # the run directory that the command writes
    hosts: tuple[str, ...] = ()  # these; otherwise
    nodes: int = 0  # any so many
    ranks: int = 1  # per host
    time_s: float | None = None
    begin: str = ""
    account: str = ""
    partition: str = ""  # PBS: queue
    mail_user: str = ""
    constraint: str = ""


@dataclass(frozen=True)
class Job:
    """A job that was submitted. `place` holds its script, its log, and the exit status once it has ended."""

    id: str
    scheduler: str  # `slurm` or `pbs`
    place: Path
    submitted: str  # ISO 8601
    run: Path | None = None
    hosts: tuple[str, ...] = ()
    nodes: int = 0
    command: tuple[str, ...] = ()

    @property
    def script(self) -> Path:
        return self.place / "script"

    @property
    def log(self) -> Path:
        return self.place / "log"

    @property
    def exit_code(self) -> int | None:
        """The exit status that the script left at its end; None where it came to none."""
        try:
            text = (self.place / "exit").read_text().strip()
        except (OSError, UnicodeDecodeError):
            return None
        return int(text) if text.isascii() and text.isdigit() and len(text) < 4 else None


@dataclass(frozen=True)
class JobState:
    """Where a job stands. `lost`: nobody knows what became of it; `unknown`: the scheduler does not answer now."""

    word: JobWord
    reason: str = ""  # why it waits, or what killed it
    starts: str = ""  # when the scheduler expects a waiting job to start
    elapsed_s: float | None = None
    exit_code: int | None = None
    stuck: bool = False  # it waits for what does not come by itself, as things are

    @property
    def over(self) -> bool:
        return self.word not in ("pending", "running", "unknown")


class Scheduler(Protocol):
    """One kind of scheduler. A row of `SCHEDULERS`."""

    @property
    def name(self) -> str:
        """As it stands in files: `slurm`."""
        ...

    @property
    def title(self) -> str:
        """As people write it: `Slurm`."""
        ...

    @property
    def program(self) -> str:
        """What submits: `sbatch`."""
        ...

    def script(self, request: JobRequest, place: Path | None = None) -> str:
        """The job script; its log and exit status go to `place`. Raises UsageError for text that no script can hold."""
        ...

    def submit(self, system: System, request: JobRequest) -> Job:
        """Hand the job to the scheduler. Raises UsageError with the scheduler's own words when it is refused."""
        ...

    def submission(self, script: Path) -> list[str]:
        """The command that submits a script."""
        ...

    def job_id(self, output: str) -> str | None:
        """The job in what that command printed."""
        ...

    def advice(self, system: System, complaint: str) -> str:
        """What to do about a refusal."""
        ...

    def state(self, system: System, job: Job) -> JobState: ...

    def cancel(self, job: Job) -> str:
        """The command that a user cancels the job with."""
        ...
