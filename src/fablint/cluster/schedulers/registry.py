"""The table of schedulers."""

from __future__ import annotations

import time
from collections.abc import Callable

from fablint.cluster.schedulers.pbs import Pbs
from fablint.cluster.schedulers.scheduler import Job, JobState, Scheduler
from fablint.cluster.schedulers.slurm import Slurm
from fablint.errors import UsageError
from fablint.system import System

SCHEDULERS: tuple[Scheduler, ...] = (Slurm(), Pbs())  # Slurm first: it installs its own qsub
_SLOWEST_S = 15.0
_STUCK_POLLS = 4  # Slurm gives a new job reasons that disappear a moment later


def find_scheduler(system: System) -> Scheduler:
    """Scheduler for submission on this machine. Raises UsageError if there is none."""
    result = next((scheduler for scheduler in SCHEDULERS if system.which(scheduler.program)), None)
    if result is None:
        programs = " nor ".join(scheduler.program for scheduler in SCHEDULERS)
        raise UsageError(
            f"no scheduler here: neither {programs} is on the PATH",
            "load its module, or omit --submit: hosts are then reached over ssh",
        )
    return result


def scheduler_of(job: Job) -> Scheduler:
    """Scheduler to which a job was submitted.

    Raises
    ------
    UsageError
        The job is of a scheduler that fablint does not know.
    """
    for scheduler in SCHEDULERS:
        if scheduler.name == job.scheduler:
            return scheduler
    raise UsageError(f"job {job.id}: no such scheduler: {job.scheduler}", "use the release that submitted it")


def wait(
    system: System,
    say: Callable[[str], None],
    job: Job,
    poll_s: float = 2.0,
    pause: Callable[[float], None] = time.sleep,
) -> JobState:
    """Wait until a job is over, or cannot start without a change (`stuck`).

    A scheduler that does not answer for a while is queried again; the script's own exit file counts as well.

    Parameters
    ----------
    say
        Called with the reason for waiting, and the newest line of the job's log, when they change.
    """
    scheduler, reported, stuck = scheduler_of(job), "", 0
    while not (state := scheduler.state(system, job)).over:
        stuck = stuck + 1 if state.stuck else 0
        if stuck == _STUCK_POLLS:
            break
        text = _where(job, state)
        if text != reported:
            say(text)
            reported = text
        pause(poll_s)
        poll_s = min(poll_s * 1.2, _SLOWEST_S)
    return state


def _where(job: Job, state: JobState) -> str:
    head = f"job {job.id} {state.word}"
    if state.reason:
        head += f" ({state.reason})"
    if state.starts:
        head += f", expected to start {state.starts}"
    newest = tail(job, 1) if state.word == "running" else []
    return f"{head}: {newest[0]}" if newest else head


def tail(job: Job, lines: int) -> list[str]:
    """Last lines of a job's log that are not blank."""
    try:
        with job.log.open("rb") as stream:
            stream.seek(0, 2)
            stream.seek(max(0, stream.tell() - 8192))
            text = stream.read().decode(errors="replace")
    except OSError:
        return []
    clean = ("".join(letter for letter in line if letter.isprintable()).strip() for line in text.splitlines())
    return [line[:200] for line in clean if line][-lines:]
