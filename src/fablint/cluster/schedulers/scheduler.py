"""Interface of a scheduler, requests for jobs, and states of jobs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from fablint.system import System

JobWord = Literal["pending", "running", "ended", "cancelled", "timeout", "killed", "node_fail", "missing", "unknown"]


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """What the user asks the scheduler for. Texts are passed on unchanged; '' for the scheduler's default."""

    begin: str = ""
    account: str = ""
    partition: str = ""  # PBS: queue
    mail_user: str = ""
    constraint: str = ""
    time_s: float | None = None


@dataclass(frozen=True)
class JobRequest(JobOptions):
    """A job to submit."""

    command: tuple[str, ...]
    folder: Path  # working directory of the command
    name: str = "fablint"
    run: Path | None = None  # run directory that the command writes
    hosts: tuple[str, ...] = ()  # these hosts, or if empty
    nodes: int = 0  # any hosts of this number
    ranks: int = 1  # per host
    input: str = ""  # text that the command reads from its standard input


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
        """File that the scheduler writes the job's output to."""
        return self.place / "log"

    @property
    def exit_code(self) -> int | None:
        """Exit status that the script stored at its end; None if it has not ended."""
        try:
            text = (self.place / "exit").read_text().strip()
        except (OSError, UnicodeDecodeError):
            return None
        return int(text) if text.isascii() and text.isdigit() and len(text) < 4 else None


@dataclass(frozen=True)
class JobState:
    """State of a job. `missing`: neither scheduler nor script has a record; `unknown`: the scheduler does not
    answer.
    """

    word: JobWord
    reason: str = ""  # why it waits, or what ended it
    starts: str = ""  # when the scheduler expects a waiting job to start
    elapsed_s: float | None = None
    exit_code: int | None = None
    stuck: bool = False  # it waits for a condition that does not occur by itself

    @property
    def over(self) -> bool:
        """True if the job has ended, with any result."""
        return self.word not in ("pending", "running", "unknown")


class Scheduler(Protocol):
    """One kind of scheduler. A row of `SCHEDULERS`."""

    @property
    def name(self) -> str:
        """Name in files: `slurm`."""
        ...

    @property
    def title(self) -> str:
        """Name in messages: `Slurm`."""
        ...

    @property
    def program(self) -> str:
        """Program for submission: `sbatch`."""
        ...

    def script(self, request: JobRequest, place: Path | None = None) -> str:
        """Job script; its log and exit status go to `place`. Raises UsageError for text that no script can hold."""
        ...

    def submit(self, system: System, request: JobRequest) -> Job:
        """Submit the job. Raises UsageError with the scheduler's own message if it is refused."""
        ...

    def submission(self, script: Path) -> list[str]:
        """Command that submits a script."""
        ...

    def job_id(self, output: str) -> str | None:
        """Job id in the output of that command; None if there is none."""
        ...

    def advice(self, system: System, complaint: str) -> str:
        """Hint for a refusal."""
        ...

    def state(self, system: System, job: Job) -> JobState: ...

    def cancel(self, job: Job) -> str:
        """Command that cancels the job."""
        ...
