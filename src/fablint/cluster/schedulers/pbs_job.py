"""The PBS job that contains this process: `$PBS_NODEFILE` has a line for each rank. Fields of jobs from `qstat`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fablint.cluster.hostfile import read_hostfile
from fablint.errors import UsageError
from fablint.model import Allocation
from fablint.system import System


def allocation(system: System) -> Allocation:
    """The allocation that the environment names.

    Raises
    ------
    UsageError
        The file cannot be read or is empty.
    """
    job = system.environ.get("PBS_JOBID", "")
    lines = read_hostfile(Path(system.environ["PBS_NODEFILE"]))
    if not lines:
        raise UsageError("$PBS_NODEFILE names no host", "request hosts with qsub -I -l select=N")
    room = {host: max(1, count) for host, count in lines.items()}
    source = f"PBS job {job}" if job else "$PBS_NODEFILE"
    return Allocation(tuple(room), source, "pbs", job, room)


def job_fields(system: System, job: str) -> dict[str, Any]:
    """Fields of a job from `qstat`, including ended jobs; {} for an unknown job."""
    done = system.run(["qstat", "-x", "-f", "-F", "json", job], timeout_s=20)
    return the_job(done.output, job)


def the_job(text: str, job: str) -> dict[str, Any]:
    """Fields of a job in qstat's JSON; {} if the job is missing or the text is not JSON."""
    jobs = loaded(text).get("Jobs")
    if not isinstance(jobs, dict):
        return {}
    number = job.partition(".")[0]
    fields = jobs.get(job) or next((entry for name, entry in jobs.items() if name.partition(".")[0] == number), None)
    return fields if isinstance(fields, dict) else {}


def loaded(text: str) -> dict[str, Any]:
    """JSON object of a PBS command; {} if the text is not one."""
    try:
        facts = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def seconds(text: Any) -> float | None:
    """Seconds of `HH:MM:SS` or a plain number; None for other texts."""
    parts = str(text).split(":")
    if len(parts) > 4 or not all(part.isascii() and part.isdigit() and len(part) < 12 for part in parts):
        return None
    total = 0
    for part in parts:
        total = total * 60 + int(part)
    return float(total)
