"""The end of the job that contains this process: its hosts cannot be used any more, and none of them is at fault."""

from __future__ import annotations

from fablint.cluster.host_names import unfold
from fablint.cluster.host_selection import current_scheduler
from fablint.cluster.host_states import host_states
from fablint.cluster.schedulers import pbs, pbs_job, slurm, slurm_job
from fablint.cluster.schedulers.scheduler import JobState
from fablint.system import System

_REASONS = {"cancelled": "cancelled", "timeout": "its time limit is reached"}  # by word of a state; else its own reason
_ENDED = JobState("ended")


def why_job_ended(system: System) -> str:
    """Return that the job is over and why: `Slurm job 8 has ended (cancelled)`; '' while it runs, and outside of a job.

    A job that Slurm ended because nodes failed is explained with the names of these nodes.
    """
    match current_scheduler(system.environ):
        case "slurm":
            job = system.environ["SLURM_JOB_ID"]
            return _words(f"Slurm job {job}", _slurm_state(system, job))
        case "pbs" if job := system.environ.get("PBS_JOBID", ""):
            return _words(f"PBS job {job}", _pbs_state(system, job))
    return ""


def _words(job: str, state: JobState) -> str:
    if not state.over:
        return ""
    reason = _REASONS.get(state.word, state.reason)
    return f"{job} has ended ({reason})" if reason else f"{job} has ended"


def _slurm_state(system: System, job: str) -> JobState:
    """State of a Slurm job, which Slurm forgets minutes after its end. A job whose processes are killed is over."""
    done = system.run(["scontrol", "show", "job", "-o", job], timeout_s=20)
    if done.status != 0:
        return _ENDED if "Invalid job id" in done.errors else JobState("unknown")
    fields = slurm_job.pairs(done.output)
    state = _ENDED if fields.get("JobState") == "COMPLETING" else slurm.parse_job(fields)
    if state.word != "node_fail":
        return state
    down = [one.host for one in host_states(system, unfold(fields.get("NodeList", ""))) if one.state == "down"]
    return JobState(state.word, f"node failure: {', '.join(down) or 'no node is down any more'}")


def _pbs_state(system: System, job: str) -> JobState:
    """State of a PBS job. A job whose processes are killed is over."""
    fields = pbs_job.job_fields(system, job)
    return _ENDED if fields.get("job_state") == "E" else pbs.parse_job(fields)
