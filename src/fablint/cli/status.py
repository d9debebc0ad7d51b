"""The verb `status`: the submitted jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fablint.cli.jobs import find_target, job_facts
from fablint.cli.session import Session, verb

if TYPE_CHECKING:
    from fablint.cluster import JobState


@verb(short_help="List submitted jobs and their states.")
@click.argument("job", required=False, metavar="[JOB|RUN]")
def status(session: Session, job: str | None) -> None:
    """List the jobs that fablint submitted, newest first: id, state, hosts, run directory. With JOB: only that job.

    With RUN: the job that was submitted for this run directory, and how far the run is, also without a job.

    \b
    Examples:
      fablint status 4711
      fablint status night.run
    """
    from fablint import cluster
    from fablint.model.names import fold
    from fablint.text import units

    system = session.machine()
    target = find_target(session, job) if job is not None else None
    progress = target.progress(session) if target is not None else None
    jobs = cluster.known_jobs(system) if target is None else [target.job] if target.job is not None else []
    states = [cluster.scheduler_of(entry).state(system, entry) for entry in jobs]
    rows = [
        (entry.id, _state_text(state), fold(entry.hosts) or f"{entry.nodes} hosts", str(entry.run or entry.place))
        for entry, state in zip(jobs, states, strict=True)
    ]
    lines = units.columns(rows, left=4) if rows else []
    lines += [progress.text] if progress is not None else []
    facts: dict[str, Any] = {"jobs": [job_facts(entry, state) for entry, state in zip(jobs, states, strict=True)]}
    facts |= {"run": progress.facts()} if progress is not None else {}
    session.result("\n".join(lines) or "no job was submitted from here", facts)
    for entry, state in zip(jobs, states, strict=True):
        if job is not None and not state.over:
            session.say(f"cancel it with: {cluster.scheduler_of(entry).cancel(entry)}")


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
