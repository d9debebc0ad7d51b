"""The verb `wait`: waits until a submitted job has ended."""

from __future__ import annotations

from pathlib import Path

import click

from fablint.cli.jobs import await_job, find_target, has_begun, job_facts
from fablint.cli.session import Session, verb
from fablint.errors import INTERRUPTED


@verb(short_help="Wait for a submitted job, or for a run that is being measured.")
@click.argument("job", required=False, metavar="[JOB|RUN]")
def wait(session: Session, job: str | None) -> int:
    """Wait until JOB (by default the newest) has ended, and print where its run is.

    The exit code is the job's own: 0 pass, 1 fault found, 3 incomplete. A job that was killed has 3; its measured
    rounds are kept.

    With RUN: wait for the job that was submitted for this run directory; without such a job, until nothing measures
    into the run any more. The exit code is that of its verdict.

    \b
    Examples:
      fablint wait 4711 && fablint show night.run
      fablint wait night.run
    """
    target = find_target(session, job)
    if target.job is None:
        assert target.run is not None
        return _await_run(session, target.run)
    submitted = target.job
    try:
        state = await_job(session, submitted)
    except KeyboardInterrupt:
        session.warn(f"job {submitted.id} continues: wait again with fablint wait {submitted.id}")
        return INTERRUPTED
    code = state.exit_code or 0
    where = f"run: {submitted.run}" if has_begun(submitted) else f"no run was written, see {submitted.log}"
    session.result(f"job {submitted.id} ended with exit code {code}\n{where}", job_facts(submitted, state))
    return code


def _await_run(session: Session, path: Path) -> int:
    """Wait for a run that no job was submitted for; print how it ended."""
    import time

    from fablint.workflows.run_progress import await_run

    try:
        progress = await_run(session.machine(), session.say, path, time.sleep)
    except KeyboardInterrupt:
        session.warn(f"{path} is still measured: wait again with fablint wait {path}")
        return INTERRUPTED
    code = progress.exit_code if progress.exit_code is not None else 0 if progress.word == "complete" else 3
    session.result(progress.text, {**progress.facts(), "exit_code": code})
    return code
