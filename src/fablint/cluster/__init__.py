"""The cluster: selection of hosts, running a program on all of them, and submission of jobs."""

from __future__ import annotations

from fablint.cluster.host_selection import current_job, find_hosts, unresolvable
from fablint.cluster.host_states import host_states
from fablint.cluster.job_end import why_job_ended
from fablint.cluster.remote_run import everywhere
from fablint.cluster.schedulers.registry import SCHEDULERS, find_scheduler, scheduler_of, tail, wait
from fablint.cluster.schedulers.scheduler import Job, JobOptions, JobRequest, JobState, Scheduler
from fablint.cluster.schedulers.submission import find_job, job_of_run, known_jobs

__all__ = [
    "SCHEDULERS",
    "Job",
    "JobOptions",
    "JobRequest",
    "JobState",
    "Scheduler",
    "current_job",
    "everywhere",
    "find_hosts",
    "find_job",
    "find_scheduler",
    "host_states",
    "job_of_run",
    "known_jobs",
    "scheduler_of",
    "tail",
    "unresolvable",
    "wait",
    "why_job_ended",
]
