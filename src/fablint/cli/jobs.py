"""Jobs of a scheduler: the options for submission, and the output of verbs about jobs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fablint.cli.options import with_options
from fablint.cli.param_types import Duration
from fablint.cli.session import Session
from fablint.errors import IncompleteError, UsageError

if TYPE_CHECKING:
    from fablint.cluster import Job, JobRequest, JobState
    from fablint.workflows.run_progress import RunProgress

_WORDS = {
    "cancelled": "was cancelled",
    "timeout": "exceeded its time limit",
    "killed": "was killed",
    "node_fail": "lost a host",
    "missing": "is unknown to the scheduler and left no exit status",
}

# `--submit` and its options: `submit`, `dry_run`, `detach`, and the fields of `JobOptions`.
submit_options = with_options(
    click.option("--submit", is_flag=True, help="Submit a job for the check, and wait for it."),
    click.option("--dry-run", is_flag=True, help="With --submit: print the job script and submit nothing."),
    click.option("--detach", is_flag=True, help="With --submit: do not wait (see fablint status, fablint wait)."),
    click.option("--begin", default="", metavar="TIME", help="Earliest start of the job, in the scheduler's format."),
    click.option("--account", default="", metavar="NAME", help="Account of the job."),
    click.option("--partition", default="", metavar="NAME", help="Partition (PBS: queue) of the job."),
    click.option("--mail-user", default="", metavar="ADDRESS", help="Address for mail at the end of the job."),
    click.option("--constraint", default="", metavar="TEXT", help="Features of the job's hosts (PBS: RESOURCE=VALUE)."),
    click.option("--time", "time_s", type=Duration(), metavar="TIME", help="Time limit of the job, such as 30m."),
)


def submit_job(session: Session, request: JobRequest, *, dry_run: bool, detach: bool) -> tuple[Job, JobState] | None:
    """Submit a job and wait for it; None with --dry-run or --detach.

    Raises
    ------
    UsageError
        There is no scheduler, or it refuses the job.
    IncompleteError
        The job was ended from outside, or does not start.
    """
    from fablint import cluster

    system = session.machine()
    scheduler = cluster.find_scheduler(system)
    if dry_run:
        text = scheduler.script(request)
        session.result(text, {"scheduler": scheduler.name, "script": text})
        return None
    job = scheduler.submit(system, request)
    if detach:
        session.result(f"{scheduler.title} job {job.id}: fablint wait {job.id}", job_facts(job, None))
        return None
    session.say(f"submitted {scheduler.title} job {job.id}, log {job.log}")
    return job, await_job(session, job)


@dataclass(frozen=True)
class JobTarget:
    """What the user names: a job, a run, or both where the job was submitted for the run."""

    job: Job | None
    run: Path | None = None

    def progress(self, session: Session) -> RunProgress | None:
        """Return how far the run is; None where a job was named, or has not begun its run."""
        from fablint.workflows.run_progress import progress_of

        if self.run is None or (self.job is not None and not self.run.exists()):
            return None
        return progress_of(session.machine(), self.run)


def find_target(session: Session, name: str | None) -> JobTarget:
    """Return the job with this id, else the run directory with this path and the newest job that was submitted for it.

    Raises UsageError where there is neither.
    """
    from fablint import cluster

    system = session.machine()
    try:
        return JobTarget(cluster.find_job(system, name))
    except UsageError:
        path = Path(name or "")
        job = cluster.job_of_run(system, path) if name else None
        if job is None and not (name and (path.exists() or len(path.parts) > 1 or path.suffix == ".run")):
            raise
        return JobTarget(job, path)


def await_job(session: Session, job: Job) -> JobState:
    """Wait for a job; return its state if it ended by itself. Raises IncompleteError otherwise."""
    from fablint import cluster

    state = cluster.wait(session.machine(), session.say, job)
    if state.word == "ended":
        return state
    reason = f" ({state.reason})" if state.reason else ""
    if not state.over:
        cancel = cluster.scheduler_of(job).cancel(job)
        raise IncompleteError(f"job {job.id} does not start{reason}", f"cancel it with {cancel}, or wait again")
    consequence = (
        f"measured rounds are kept, continue with fablint resume {job.run}" if has_begun(job) else f"see {job.log}"
    )
    raise IncompleteError(f"job {job.id} {_WORDS.get(state.word, state.word)}{reason}", consequence)


def has_begun(job: Job) -> bool:
    """Return whether the job wrote a run directory."""
    return job.run is not None and job.run.exists()


def job_facts(job: Job, state: JobState | None) -> dict[str, Any]:
    """Return a job and its state as JSON."""
    facts: dict[str, Any] = {
        "format": 1,
        "id": job.id,
        "scheduler": job.scheduler,
        "submitted": job.submitted,
        "run": str(job.run) if job.run else None,
        "hosts": list(job.hosts),
        "nodes": job.nodes,
        "log": str(job.log),
    }
    if state is not None:
        facts |= {
            "state": state.word,
            "reason": state.reason,
            "starts": state.starts,
            "elapsed_s": state.elapsed_s,
            "exit_code": state.exit_code,
        }
    return facts
