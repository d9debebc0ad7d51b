"""Slurm: sbatch, scontrol, sacct. Options and states are those of sbatch(1) and squeue(1)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from fablint.cluster.schedulers import job_script as scripts
from fablint.cluster.schedulers.scheduler import Job, JobRequest, JobState, JobWord
from fablint.cluster.schedulers.slurm_job import pairs
from fablint.cluster.schedulers.submission import left_behind, submitted
from fablint.model.names import fold
from fablint.system import System

_WORDS: dict[str, JobWord] = {
    **dict.fromkeys(("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"), "pending"),
    **dict.fromkeys(("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"), "running"),
    **dict.fromkeys(("COMPLETED", "FAILED"), "ended"),
    **dict.fromkeys(("CANCELLED", "REVOKED"), "cancelled"),
    **dict.fromkeys(("TIMEOUT", "DEADLINE"), "timeout"),
    **dict.fromkeys(("NODE_FAIL", "BOOT_FAIL"), "node_fail"),
    **dict.fromkeys(("PREEMPTED", "OUT_OF_MEMORY"), "killed"),
}

_STUCK = {  # squeue(1), JOB REASON CODES: limits that the job exceeds
    *("PartitionNodeLimit", "PartitionTimeLimit", "BadConstraints", "JobHeldAdmin", "JobHeldUser"),
    *("InvalidAccount", "InvalidQOS", "AccountNotAllowed", "QOSNotAllowed"),
}


class Slurm:
    """The scheduler Slurm."""

    name = "slurm"
    title = "Slurm"
    program = "sbatch"

    def script(self, request: JobRequest, place: Path | None = None) -> str:
        """Job script: whole nodes, no requeue (a run is written once), continuing after the failure of a node."""
        scripts.check_texts(request)
        log = str(place / "log").replace("%", "%%") if place else "fablint-%j.log"
        options = {
            "--job-name": request.name,
            "--nodes": str(len(request.hosts) or request.nodes or ""),
            "--nodelist": fold(request.hosts) if request.hosts else "",
            "--ntasks-per-node": str(request.ranks),
            "--time": scripts.clock(request.time_s) if request.time_s is not None else "",
            "--begin": request.begin,
            "--account": request.account,
            "--partition": request.partition,
            "--constraint": request.constraint,
            "--mail-user": request.mail_user,
            "--mail-type": "END,FAIL" if request.mail_user else "",
            "--output": log,
        }
        directives = [f"{option}={scripts.checked(option, value)}" for option, value in options.items() if value]
        directives += ["--exclusive", "--no-requeue", "--no-kill"]
        return scripts.written(directives, "#SBATCH", request, place)

    def submit(self, system: System, request: JobRequest) -> Job:
        return submitted(system, self, request)

    def submission(self, script: Path) -> list[str]:
        return ["sbatch", "--parsable", str(script)]

    def job_id(self, output: str) -> str | None:
        ids = re.findall(r"^(\d+)(?:;\S+)?$", output, re.MULTILINE)
        return ids[-1] if ids else None

    def advice(self, system: System, complaint: str) -> str:
        """Hint with the available values for an unknown one."""
        if "partition" in complaint.lower():
            done = system.run(["sinfo", "-h", "-o", "%R"], timeout_s=20)
            if names := sorted(set(done.output.split())):
                return f"partitions are {', '.join(names)}"
        return "correct the options and submit again"

    def state(self, system: System, job: Job) -> JobState:
        """State from scontrol; for a job that it no longer knows from sacct, or from the files of the script."""
        done = system.run(["scontrol", "show", "job", "-o", job.id], timeout_s=20)
        fields = pairs(done.output) if done.status == 0 else {}
        if "JobState" in fields and fields.get("Command", str(job.script)) == str(job.script):
            return parse_job(fields)
        if done.status != 0 and "Invalid job id" not in done.errors:
            return left_behind(job) or _unreachable(done.errors)
        return self._accounted(system, job) or left_behind(job) or JobState("missing", "Slurm knows no such job")

    def _accounted(self, system: System, job: Job) -> JobState | None:
        if system.which("sacct") is None:
            return None
        done = system.run(["sacct", "-n", "-X", "-P", "-j", job.id, "-o", "State,ExitCode,Elapsed"])
        return parse_sacct(done.output) if done.status == 0 else None

    def cancel(self, job: Job) -> str:
        return f"scancel {job.id}"


def _unreachable(errors: str) -> JobState:
    return JobState("unknown", f"Slurm does not answer: {next(iter(errors.splitlines()), 'no word')}")


def parse_job(fields: Mapping[str, str]) -> JobState:
    """State from the fields of `scontrol show job`."""
    said = fields.get("JobState", "")
    reason = "" if fields.get("Reason") in (None, "None", "(null)") else fields["Reason"].replace("_", " ")
    start = fields.get("StartTime", "Unknown")
    word = _WORDS.get(said.split(" ")[0], "unknown")
    if word == "pending":
        stuck = fields.get("Reason") in _STUCK
        return JobState(word, reason, "" if start in ("Unknown", "N/A") or stuck else start, stuck=stuck)
    return _ended(word, said, reason, fields.get("ExitCode", ""), elapsed(fields.get("RunTime", "")))


def parse_sacct(text: str) -> JobState | None:
    """State from a line `State|ExitCode|Elapsed` of a job; None if there is no such line."""
    fields = next(iter(text.splitlines()), "").split("|")
    if len(fields) != 3 or not fields[0]:
        return None
    word = _WORDS.get(fields[0].split(" ")[0], "unknown")
    return _ended(word, fields[0], "", fields[1], elapsed(fields[2]))


def _ended(word: JobWord, comment: str, reason: str, status: str, elapsed_s: float | None) -> JobState:
    """State of an ended job. Exit codes are `status:signal`: a job that a signal ended has no status."""
    match = re.fullmatch(r"(\d{1,3}):(\d{1,3})", status)
    code, signal = (int(match[1]), int(match[2])) if match else (None, 0)
    if word == "running":
        return JobState(word, reason, elapsed_s=elapsed_s)
    if word == "ended" and signal:
        return JobState("killed", f"signal {signal}", elapsed_s=elapsed_s)
    if word == "ended":
        return JobState(word, elapsed_s=elapsed_s, exit_code=code)
    return JobState(word, reason or comment.lower().replace("_", " "), elapsed_s=elapsed_s)


def elapsed(text: str) -> float | None:
    """Seconds of `[days-]HH:MM:SS`; None for other texts."""
    match = re.fullmatch(r"(?:(\d{1,6})-)?(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2})", text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
