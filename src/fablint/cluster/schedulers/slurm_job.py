"""The Slurm job that contains this process: its hosts, and the slots on each.

Variables and fields are those of sbatch(1), OUTPUT ENVIRONMENT VARIABLES, and scontrol(1).
"""

from __future__ import annotations

import re

from fablint.cluster.host_names import unfold
from fablint.errors import UsageError
from fablint.model import Allocation
from fablint.system import System

_KEY = re.compile(r"(?:^|\s)([A-Za-z][A-Za-z0-9:/_]*)=")
_COUNTS = re.compile(r"(\d{1,6})(?:\(x(\d{1,7})\))?")
_OVER = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "OUT_OF_MEMORY")


def allocation(system: System) -> Allocation:
    """The allocation that the environment names.

    Raises
    ------
    UsageError
        The job has no hosts, or has ended (a shell that outlived its salloc).
    """
    environ = system.environ
    job = environ["SLURM_JOB_ID"]
    try:
        hosts = unfold(environ.get("SLURM_JOB_NODELIST") or environ.get("SLURM_NODELIST", ""))
    except ValueError as error:
        raise UsageError(f"SLURM_JOB_NODELIST: {error}", "run inside an allocation, or name hosts with -w") from None
    if not hosts:
        raise UsageError(f"Slurm job {job} has no hosts", "request hosts with salloc -N")
    fields = job_fields(system, job)
    if fields.get("JobState", "").startswith(_OVER):
        raise UsageError(f"Slurm job {job} has ended ({fields['JobState'].lower()})", "leave this shell; salloc again")
    counts = counted(environ.get("SLURM_TASKS_PER_NODE") or environ.get("SLURM_JOB_CPUS_PER_NODE", ""))
    room = dict(zip(hosts, counts, strict=True)) if len(counts) == len(hosts) else {}
    return Allocation(hosts, f"Slurm job {job}", "slurm", job, room)


def counted(text: str) -> tuple[int, ...]:
    """Numbers of `2(x3),1`: 2, 2, 2, 1; () if the text is not such a list."""
    counts: list[int] = []
    for item in text.split(",") if text else ():
        match = _COUNTS.fullmatch(item)
        if match is None or len(counts) + int(match[2] or 1) > 1 << 20:
            return ()
        counts += [int(match[1])] * int(match[2] or 1)
    return tuple(counts)


def job_fields(system: System, job: str) -> dict[str, str]:
    """Fields of `scontrol show job`; {} for an unknown job."""
    done = system.run(["scontrol", "show", "job", "-o", job], timeout_s=20)
    return pairs(done.output) if done.status == 0 else {}


def pairs(text: str) -> dict[str, str]:
    """`Key=value` pairs of scontrol's first line; the first of a key that appears twice."""
    line = next(iter(text.splitlines()), "")
    keys = list(_KEY.finditer(line))
    ends = [*(key.start() for key in keys), len(line)][1:]
    fields: dict[str, str] = {}
    for key, end in zip(keys, ends, strict=True):
        fields.setdefault(key[1], line[key.end() : end].strip())
    return fields
