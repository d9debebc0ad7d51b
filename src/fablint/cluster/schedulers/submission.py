"""Submission of jobs, and the folder of each job below FABLINT_HOME/jobs: job.json, script, log, exit."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from fablint.cluster.schedulers.scheduler import Job, JobRequest, JobState, Scheduler
from fablint.errors import UsageError
from fablint.system import System

_FORMAT = 1


def submitted(system: System, scheduler: Scheduler, request: JobRequest) -> Job:
    """Write the script into a new folder and submit it; a refused job leaves no folder.

    Raises
    ------
    UsageError
        The scheduler refuses the job; the message is the scheduler's.
    """
    if not re.fullmatch(r"[A-Za-z][\w.-]{0,14}", request.name, re.ASCII):
        raise UsageError(f"'{request.name}' is not a name for a job", "use up to 15 letters and digits")
    place = _new_place(system, request.name)
    script = place / "script"
    try:
        script.write_text(scheduler.script(request, place))
        done = system.run(scheduler.submission(script), timeout_s=120, cwd=place)
        number = scheduler.job_id(done.output) if done.status == 0 else None
        if number is None:
            complaint = _complaint(done.errors or done.output) or f"exit status {done.status}"
            hint = scheduler.advice(system, done.errors)
            raise UsageError(f"{scheduler.title} refuses the job: {complaint}", hint)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    job = Job(
        number,
        scheduler.name,
        place,
        system.now().isoformat(timespec="seconds"),
        run=request.run,
        hosts=request.hosts,
        nodes=len(request.hosts) or request.nodes,
        command=request.command,
    )
    (place / "job.json").write_text(json.dumps(_facts(job), indent=2) + "\n")
    return job


def known_jobs(system: System) -> list[Job]:
    """Jobs submitted from here, newest first. Damaged folders are skipped."""
    files = system.own_path("jobs").glob("*/job.json")
    jobs = [job for file in files if (job := _read(file))]
    return sorted(jobs, key=lambda job: (job.submitted, job.place.name), reverse=True)


def find_job(system: System, name: str | None) -> Job:
    """Newest job with this id; without an id the newest job.

    Raises
    ------
    UsageError
        There is none.
    """
    jobs = known_jobs(system)
    if not jobs:
        raise UsageError(f"no job was submitted from here: nothing in {system.own_path('jobs')}", "see check --submit")
    if name is None:
        return jobs[0]
    result = next((job for job in jobs if name in (job.id, job.id.partition(".")[0], job.place.name)), None)
    if result is None:
        raise UsageError(f"no job {name} was submitted from here", f"the newest is {jobs[0].id}; see fablint status")
    return result


def job_of_run(system: System, run: Path) -> Job | None:
    """Return the newest job that was submitted for a run directory; None if there is none."""
    path = run.resolve()
    return next((job for job in known_jobs(system) if job.run is not None and job.run.resolve() == path), None)


def left_behind(job: Job) -> JobState | None:
    """State by the exit status that the script stored; None if it has not ended."""
    return None if job.exit_code is None else JobState("ended", exit_code=job.exit_code)


def _new_place(system: System, name: str) -> Path:
    stem = f"{name}-{system.now():%Y%m%d-%H%M%S}"
    jobs = system.home_folder("jobs")
    for suffix in ("", *(f"-{number}" for number in range(2, 1000))):
        place = jobs / f"{stem}{suffix}"
        try:
            place.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise UsageError(
                f"cannot write {place}: {error.strerror}", "set FABLINT_HOME to a directory you can write"
            ) from error
        return place.resolve()
    raise UsageError(f"{jobs} is full of jobs of this second", "submit again")


def _complaint(text: str) -> str:
    """Last line of a refusal that is not blank, without the program's name."""
    lines = [re.sub(r"^\w+: (error: )?", "", line.strip()) for line in text.splitlines() if line.strip()]
    informative = [line for line in lines if not line.startswith("Batch job submission failed")] or lines
    return "".join(letter for letter in informative[-1] if letter.isprintable())[:300] if informative else ""


def _facts(job: Job) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "id": job.id,
        "scheduler": job.scheduler,
        "submitted": job.submitted,
        "run": str(job.run) if job.run else None,
        "hosts": list(job.hosts),
        "nodes": job.nodes,
        "command": list(job.command),
    }


def _read(file: Path) -> Job | None:
    try:
        facts = json.loads(file.read_text())
        run = facts["run"]
        return Job(
            str(facts["id"]),
            str(facts["scheduler"]),
            file.parent.resolve(),
            str(facts["submitted"]),
            run=Path(run) if run else None,
            hosts=tuple(map(str, facts["hosts"])),
            nodes=int(facts["nodes"]),
            command=tuple(map(str, facts["command"])),
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
