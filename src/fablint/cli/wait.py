"""The verb `wait`: waits until a submitted job has ended."""

from __future__ import annotations

import click

from fablint.cli.jobs import await_job, has_begun, job_facts
from fablint.cli.session import Session, verb
from fablint.errors import INTERRUPTED


@verb(short_help="Wait for a submitted job.")
@click.argument("job", required=False)
def wait(session: Session, job: str | None) -> int:
    """Wait until JOB (by default the newest) has ended, and print where its run is.

    The exit code is the job's own: 0 pass, 1 fault found, 3 incomplete. A job that was killed has 3; its measured
    rounds are kept.

    \b
    Example:
      fablint wait 4711 && fablint show night.run
    """
    from fablint import cluster

    submitted = cluster.find_job(session.machine(), job)
    try:
        state = await_job(session, submitted)
    except KeyboardInterrupt:
        session.warn(f"job {submitted.id} continues: wait again with fablint wait {submitted.id}")
        return INTERRUPTED
    code = state.exit_code or 0
    where = f"run: {submitted.run}" if has_begun(submitted) else f"no run was written, see {submitted.log}"
    session.result(f"job {submitted.id} ended with exit code {code}\n{where}", job_facts(submitted, state))
    return code
