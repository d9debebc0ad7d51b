"""Jobs: the options that submit one, and the verbs that look after it: status, wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from fablint.cli.common import INTERRUPTED, Duration, Session, Verb, verb
from fablint.errors import IncompleteError

if TYPE_CHECKING:
    from fablint.cluster import Job, JobRequest, JobState

_WORDS = {
    "cancelled": "was cancelled",
    "timeout": "ran out of its time",
    "killed": "was killed",
    "node_fail": "lost a host",
    "lost": "is gone without a trace",
}

_OPTIONS: tuple[Callable[[Verb], Verb], ...] = (
    click.option("--submit", is_flag=True, help="Submit a job that does it, and wait for it."),
    click.option("--dry-run", is_flag=True, help="With --submit: print the job script and submit nothing."),
    click.option("--detach", is_flag=True, help="With --submit: do not wait (see fablint status, fablint wait)."),
    click.option(
        "--begin", default="", metavar="TIME", help="Start of the job: not before, as the scheduler writes it."
    ),
    click.option("--account", default="", metavar="NAME", help="Account of the job."),
    click.option("--partition", default="", metavar="NAME", help="Partition (PBS: queue) of the job."),
    click.option("--mail-user", default="", metavar="ADDRESS", help="Who gets mail at the end of the job."),
    click.option("--constraint", default="", metavar="TEXT", help="Features of the job's hosts (PBS: RESOURCE=VALUE)."),
    click.option("--time", "time_s", type=Duration(), metavar="TIME", help="Longest time of the job, such as 30m."),
)
_TEXTS = ("begin", "account", "partition", "mail_user", "constraint")


def submit_options(function: Verb) -> Verb:
    """`--submit` and what goes with it: `submit`, `dry_run`, `detach`, `time_s`, and texts that may be empty."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def wishes(values: dict[str, Any]) -> dict[str, Any]:
    """The fields of a `JobRequest` among the values of `submit_options`, taken out of them."""
    return {name: values.pop(name) for name in (*_TEXTS, "time_s")}


def handed_over(session: Session, request: JobRequest, dry_run: bool, detach: bool) -> tuple[Job, JobState] | None:
    """Submit a request and wait for it; None where nothing is to be waited for.

    Raises:
        UsageError: there is no scheduler, or it refuses.
        IncompleteError: the job came to no end of its own.
    """
    from fablint import cluster

    system = session.machine()
    scheduler = cluster.find_scheduler(system)
    if dry_run:
        text = scheduler.script(request)
        session.result(text, {"format": 1, "scheduler": scheduler.name, "script": text})
        return None
    job = scheduler.submit(system, request)
    if detach:
        session.result(f"{scheduler.title} job {job.id}: fablint wait {job.id}", _facts(job, None))
        return None
    session.say(f"submitted {scheduler.title} job {job.id}, log {job.log}")
    return job, _awaited(session, job)


def _awaited(session: Session, job: Job) -> JobState:
    """The state of a job that ended by itself."""
    from fablint import cluster

    state = cluster.wait(session.machine(), session.say, job)
    if state.word == "ended":
        return state
    reason = f" ({state.reason})" if state.reason else ""
    if not state.over:
        cancel = cluster.scheduler_of(job).cancel(job)
        raise IncompleteError(f"job {job.id} does not start{reason}", f"cancel it with {cancel}, or wait again")
    kept = f"what was measured is kept, go on with fablint resume {job.run}" if _begun(job) else f"see {job.log}"
    raise IncompleteError(f"job {job.id} {_WORDS.get(state.word, state.word)}{reason}", kept)


def _begun(job: Job) -> bool:
    return job.run is not None and job.run.exists()


def _facts(job: Job, state: JobState | None) -> dict[str, Any]:
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


@verb(short_help="The jobs that were submitted, and how they are.")
@click.argument("job", required=False)
def status(session: Session, job: str | None) -> None:
    """List the jobs that fablint submitted, newest first: id, state, hosts, run directory. With JOB: only that one.

    \b
    Example:
      fablint status 4711
    """
    from fablint import cluster

    system = session.machine()
    jobs = cluster.known_jobs(system) if job is None else [cluster.find_job(system, job)]
    states = [cluster.scheduler_of(one).state(system, one) for one in jobs]
    rows = [
        (one.id, _state_text(state), _hosts_text(one), _run_text(one)) for one, state in zip(jobs, states, strict=True)
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    lines = [
        "  ".join((*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[3])) for row in rows
    ]
    facts = [_facts(one, state) for one, state in zip(jobs, states, strict=True)]
    session.result("\n".join(lines) or "no job was submitted from here", {"format": 1, "jobs": facts})
    for one, state in zip(jobs, states, strict=True):
        if job is not None and not state.over:
            session.say(f"cancel it with: {cluster.scheduler_of(one).cancel(one)}")


def _state_text(state: JobState) -> str:
    words = [state.word.replace("_", " ")]
    if state.exit_code is not None:
        words.append(f"exit {state.exit_code}")
    if state.elapsed_s is not None and not state.over:
        words.append(f"for {state.elapsed_s:.0f} s")
    if state.starts:
        words.append(f"starts {state.starts}")
    if state.reason:
        words.append(f"({state.reason})")
    return " ".join(words)


def _hosts_text(job: Job) -> str:
    from fablint.text.names import fold

    return fold(job.hosts) if job.hosts else f"{job.nodes} hosts"


def _run_text(job: Job) -> str:
    return str(job.run or job.place)


@verb(short_help="Wait for a submitted job.")
@click.argument("job", required=False)
def wait(session: Session, job: str | None) -> int:
    """Wait till JOB (by default the newest) is over, and say where its run is.

    The exit code is the job's own: 0 pass, 1 fault found, 3 incomplete. A job that was killed has 3; what it had
    measured is kept.

    \b
    Example:
      fablint wait 4711 && fablint show night.run
    """
    from fablint import cluster

    found = cluster.find_job(session.machine(), job)
    try:
        state = _awaited(session, found)
    except KeyboardInterrupt:
        session.warn(f"job {found.id} goes on: wait again with fablint wait {found.id}")
        return INTERRUPTED
    code = state.exit_code or 0
    where = f"run: {found.run}" if _begun(found) else f"no run was written, see {found.log}"
    session.result(f"job {found.id} ended with exit code {code}\n{where}", _facts(found, state))
    return code
