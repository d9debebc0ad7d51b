"""The PBS job that we are in: `$PBS_NODEFILE` has a line for each rank, `qstat` knows when the job is ended."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from fablint.cluster.hostfile import read_hostfile
from fablint.errors import UsageError
from fablint.model import Allocation
from fablint.system import System

_TIME = "%a %b %d %H:%M:%S %Y"  # as ctime(3)


def allocation(system: System) -> Allocation:
    """The allocation that the environment names.

    Raises:
        UsageError: the file cannot be read or is empty.
    """
    job = system.environ.get("PBS_JOBID", "")
    lines = read_hostfile(Path(system.environ["PBS_NODEFILE"]))
    if not lines:
        raise UsageError("$PBS_NODEFILE names no host", "ask for some with qsub -I -l select=N")
    room = {host: max(1, count) for host, count in lines.items()}
    source = f"PBS job {job}" if job else "$PBS_NODEFILE"
    return Allocation(tuple(room), source, "pbs", job, room, _seconds_left(system, job))


def job_fields(system: System, job: str) -> dict[str, Any]:
    """What `qstat` says about a job, ended ones included; nothing where it knows no such job."""
    done = system.run(["qstat", "-x", "-f", "-F", "json", job], timeout_s=20)
    return the_job(done.output, job)


def the_job(text: str, job: str) -> dict[str, Any]:
    """The fields of a job in qstat's JSON; nothing where it is not there, or where the text is no JSON."""
    jobs = loaded(text).get("Jobs")
    if not isinstance(jobs, dict):
        return {}
    number = job.partition(".")[0]
    found = jobs.get(job) or next((said for name, said in jobs.items() if name.partition(".")[0] == number), None)
    return found if isinstance(found, dict) else {}


def loaded(text: str) -> dict[str, Any]:
    """A JSON object of a PBS command; an empty one where it is none."""
    try:
        facts = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def seconds(text: Any) -> float | None:
    """`HH:MM:SS` or plain seconds; None where it is neither."""
    parts = str(text).split(":")
    if len(parts) > 4 or not all(part.isascii() and part.isdigit() and len(part) < 12 for part in parts):
        return None
    total = 0
    for part in parts:
        total = total * 60 + int(part)
    return float(total)


def moment(text: Any) -> datetime | None:
    """A time as PBS prints it, `Tue Jan 23 10:00:00 2024`, in local time."""
    try:
        return datetime.strptime(str(text), _TIME).astimezone()
    except (ValueError, OverflowError):
        return None


def _seconds_left(system: System, job: str) -> float | None:
    fields = job_fields(system, job) if job else {}
    resources = fields.get("Resource_List")
    limit = seconds(resources.get("walltime")) if isinstance(resources, dict) else None
    began = moment(fields.get("stime"))
    if limit is None or began is None:
        return None
    return max(0.0, began.timestamp() + limit - system.now().timestamp())
