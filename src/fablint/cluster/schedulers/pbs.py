"""OpenPBS and PBS Professional: qsub, qstat. Options and fields are those of qsub(1B) and qstat(1B)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fablint.cluster.schedulers import job_script as scripts
from fablint.cluster.schedulers.pbs_job import seconds, the_job
from fablint.cluster.schedulers.scheduler import Job, JobRequest, JobState
from fablint.cluster.schedulers.submission import left_behind, submitted
from fablint.errors import UsageError
from fablint.system import System

_WALLTIME = -29  # JOB_EXEC_KILL_WALLTIME
_SIGNALLED = 256  # Exit_status of a job that a signal ended is this plus the signal
_SIGTERM = 15
_JOB_ID = re.compile(r"^(\d+(?:\[\d*\])?(?:\.[\w.-]+)?)$", re.MULTILINE | re.ASCII)


class Pbs:
    """The schedulers OpenPBS and PBS Professional."""

    name = "pbs"
    title = "PBS"
    program = "qsub"

    def script(self, request: JobRequest, place: Path | None = None) -> str:
        """Job script: whole hosts, no rerun (a run is written once)."""
        scripts.check_texts(request)
        options = {
            "-N": request.name,
            "-q": request.partition,
            "-A": request.account,
            "-a": _begin(request.begin),
            "-M": request.mail_user,
            "-m": "ae" if request.mail_user else "",
            "-o": str(place / "log") if place else "",
        }
        directives = [f"{option} {scripts.checked(option, value)}" for option, value in options.items() if value]
        directives += [f"-l select={_chunks(request)}", "-l place=scatter:excl"]
        if request.time_s is not None:
            directives.append(f"-l walltime={scripts.clock(request.time_s)}")
        return scripts.written([*directives, "-j oe", "-r n"], "#PBS", request, place)

    def submit(self, system: System, request: JobRequest) -> Job:
        return submitted(system, self, request)

    def submission(self, script: Path) -> list[str]:
        return ["qsub", str(script)]

    def job_id(self, output: str) -> str | None:
        ids = _JOB_ID.findall(output)
        return str(ids[-1]) if ids else None

    def advice(self, system: System, complaint: str) -> str:
        """Hint with the available values for an unknown one."""
        if "queue" in complaint.lower():
            done = system.run(["qstat", "-Q"], timeout_s=20)
            names = [line.split()[0] for line in done.output.splitlines()[2:] if line.split()]
            if names:
                return f"queues are {', '.join(names)}"
        return "correct the options and submit again"

    def state(self, system: System, job: Job) -> JobState:
        """State from qstat; for a job that qstat no longer knows, from the files of its script."""
        done = system.run(["qstat", "-x", "-f", "-F", "json", job.id], timeout_s=20)
        fields = the_job(done.output, job.id)
        log = str(fields.get("Output_Path") or job.log)
        if fields and log.endswith(str(job.log)):
            return parse_job(fields)
        stored = left_behind(job)
        if stored is None and done.status != 0 and "unknown job" not in done.errors.lower():
            return JobState("unknown", f"PBS does not answer: {next(iter(done.errors.splitlines()), 'no word')}")
        return stored or JobState("missing", "PBS knows no such job")

    def cancel(self, job: Job) -> str:
        return f"qdel {job.id}"


def _chunks(request: JobRequest) -> str:
    """Value of `-l select`: a chunk for each host, as much of the host as can be requested."""
    extra = request.constraint
    if extra and not re.fullmatch(r"\w+=[\w.-]+(:\w+=[\w.-]+)*", extra, re.ASCII):
        raise UsageError(
            f"--constraint {extra!r} is not a resource of PBS", "write it as NAME=VALUE, such as switch=s1"
        )
    each = f"ncpus={request.ranks}:mpiprocs={request.ranks}" + (f":{extra}" if extra else "")
    if request.hosts:
        return "+".join(f"1:host={host}:{each}" for host in request.hosts)
    return f"{request.nodes or 1}:{each}"


def _begin(text: str) -> str:
    """`--begin` in the format of qsub's `-a`: `[[CCYY]MMDD]hhmm[.SS]`; ISO dates and `HH:MM` are converted."""
    match = re.fullmatch(r"(?:(\d{4})-(\d\d)-(\d\d)T)?(\d\d):(\d\d)(?::(\d\d))?", text)
    if match is None:
        if text and not re.fullmatch(r"\d{4,12}(\.\d\d)?", text):
            raise UsageError(f"--begin {text!r} is not a time for PBS", "write HH:MM or YYYY-MM-DDTHH:MM")
        return text
    return "".join(part or "" for part in match.groups()[:5]) + (f".{match[6]}" if match[6] else "")


def parse_job(fields: Mapping[str, Any]) -> JobState:
    """State from the fields of a job of `qstat -f -F json`."""
    letter = str(fields.get("job_state", ""))
    comment = " ".join(str(fields.get("comment") or "").split())
    used, estimated = fields.get("resources_used"), fields.get("estimated")
    elapsed_s = seconds(used.get("walltime")) if isinstance(used, dict) else None
    if letter in ("Q", "H", "W", "T"):
        starts = str(estimated.get("start_time", "")) if isinstance(estimated, dict) else ""
        return JobState("pending", comment, starts, stuck=comment.startswith("Can Never Run"))
    if letter in ("R", "E", "B", "S", "U"):
        return JobState("running", "suspended" if letter in ("S", "U") else "", elapsed_s=elapsed_s)
    if letter not in ("F", "X", "M"):
        return JobState("unknown", f"state {letter!r}")
    return _finished(fields.get("Exit_status"), comment, elapsed_s)


def _finished(status: Any, comment: str, elapsed_s: float | None) -> JobState:
    if not isinstance(status, int):
        return JobState("cancelled", comment or "deleted before it ran", elapsed_s=elapsed_s)
    if status == _WALLTIME:
        return JobState("timeout", comment, elapsed_s=elapsed_s)
    if status == _SIGNALLED + _SIGTERM:
        return JobState("cancelled", comment, elapsed_s=elapsed_s)
    if status < 0 or status >= _SIGNALLED:
        reason = f"signal {status - _SIGNALLED}" if status > 0 else f"Exit_status {status}"
        return JobState("killed", comment or reason, elapsed_s=elapsed_s)
    return JobState("ended", elapsed_s=elapsed_s, exit_code=status)
