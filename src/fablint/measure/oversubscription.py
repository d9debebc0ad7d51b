"""Whether a plan starts more ranks on a host than the host has CPUs, as far as known before the launch.

Ranks that wait then yield their CPU. Elsewhere they must not: a library that yields while it polls for messages has a
higher latency than the same library in the programs of a user.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from fablint.model import Plan
from fablint.system import System

_COUNTS = re.compile(r"(\d+)(?:\(x(\d+)\))?")  # of Slurm: 72(x2),36


def is_oversubscribed(system: System, plan: Plan) -> bool:
    """Tell whether a host is known to have fewer CPUs than ranks.

    The CPUs of this machine count only if the ranks run on it: outside of a job, and without a list of hosts. Slurm
    reports the CPUs of the hosts of a job. Of other hosts the number is unknown.
    """
    cpus = slurm_cpus(system.environ)
    if cpus:
        return plan.most_ranks_per_host > min(cpus) if plan.slots else plan.ranks > sum(cpus)
    if plan.slots or "PBS_NODEFILE" in system.environ:
        return False
    return plan.ranks > len(system.affinity())


def slurm_cpus(environ: Mapping[str, str]) -> list[int]:
    """CPUs of each host of the Slurm job around this process; [] outside of a job.

    >>> slurm_cpus({"SLURM_JOB_CPUS_PER_NODE": "72(x2),36"})
    [72, 72, 36]
    """
    text = environ.get("SLURM_JOB_CPUS_PER_NODE", "")
    counts = [_COUNTS.fullmatch(part) for part in text.split(",")] if text else []
    return [int(match[1]) for match in counts if match for _ in range(int(match[2] or 1))]
