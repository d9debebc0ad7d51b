"""Jobs through a stand-in for OpenPBS that really runs the script: submitted, waited for, killed, forgotten."""

from __future__ import annotations

import json
import sys
import time

import pytest
from pbs_stand_in import install

from fablint.cluster import (
    JobRequest,
    find_hosts,
    find_job,
    find_scheduler,
    host_states,
    known_jobs,
    scheduler_of,
    tail,
    wait,
    why_job_ended,
)
from fablint.errors import UsageError

HOSTS = ("n1", "n2", "n3")


@pytest.fixture
def pbs(staged, tmp_path, monkeypatch):
    """A machine whose only scheduler is the stand-in."""
    for name in [*staged.variables]:
        if name.startswith(("SLURM_", "PBS_")):
            del staged.variables[name]
    programs = install(tmp_path / "pbs", HOSTS)
    monkeypatch.setattr(type(staged), "which", lambda self, name: path if (path := programs / name).exists() else None)
    staged.variables["PATH"] = f"{programs}:/usr/bin:/bin"
    return staged


def submit(system, tmp_path, *command, **more):
    return find_scheduler(system).submit(system, JobRequest(command, tmp_path, **more))


def waited(system, job, says=None):
    return wait(system, (says if says is not None else []).append, job, 0.1)


def test_a_job_from_submission_to_end(pbs, tmp_path):
    job = submit(pbs, tmp_path, "sh", "-c", "cat $PBS_NODEFILE; sleep 2; exit 1", hosts=("n1", "n3"), ranks=2)
    assert (job.scheduler, job.hosts) == ("pbs", ("n1", "n3"))
    says = []
    state = waited(pbs, job, says)
    assert (state.word, state.exit_code, job.exit_code) == ("ended", 1, 1)
    assert tail(job, 9) == ["n1", "n1", "n3", "n3"]
    assert any(text.startswith(f"job {job.id} running") for text in says)


def test_the_end_of_the_job_that_a_process_is_in(pbs, tmp_path):
    gate = tmp_path / "gate"
    job = submit(pbs, tmp_path, "sh", "-c", f"until [ -e {gate} ]; do sleep 0.02; done")
    pbs.variables |= {"PBS_JOBID": job.id, "PBS_NODEFILE": str(tmp_path / "nodes")}
    assert why_job_ended(pbs) == ""
    gate.touch()
    waited(pbs, job)
    assert why_job_ended(pbs) == f"PBS job {job.id} has ended"


def test_fablint_in_a_job_finds_its_hosts(pbs, tmp_path):
    code = (
        "from fablint.cluster import find_hosts; from fablint.system import System; a = find_hosts(System());"
        "print(a.hosts, a.scheduler, dict(a.room))"
    )
    job = submit(pbs, tmp_path, sys.executable, "-c", code, nodes=2, ranks=4, time_s=60)
    assert waited(pbs, job).exit_code == 0, tail(job, 5)
    assert tail(job, 1) == ["('n1', 'n2') pbs {'n1': 4, 'n2': 4}"]


def test_the_time_is_over(pbs, tmp_path):
    job = submit(pbs, tmp_path, "sleep", "60", nodes=1, time_s=1)
    assert waited(pbs, job).word == "timeout"


def test_a_job_is_deleted(pbs, tmp_path):
    job = submit(pbs, tmp_path, "sh", "-c", "trap 'exit 3' TERM; echo up; while :; do sleep 0.1; done", nodes=1)
    while not tail(job, 1):
        time.sleep(0.05)
    assert scheduler_of(job).state(pbs, job).word == "running"
    pbs.run(scheduler_of(job).cancel(job).split())
    state = waited(pbs, job)
    assert (state.word, state.exit_code) == ("ended", 3)  # it ended in order, so that its own word counts


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"partition": "nope"}, "PBS refuses the job: Unknown queue: queues are workq, debug"),
        ({"name": "no name"}, "'no name' is not a name for a job"),
    ],
)
def test_refusals_leave_nothing_behind(pbs, tmp_path, wishes, words):
    with pytest.raises(UsageError) as caught:
        submit(pbs, tmp_path, "true", nodes=1, **wishes)
    assert str(caught.value).startswith(words)
    assert known_jobs(pbs) == []
    assert list((pbs.home).glob("jobs/*")) == []


def test_a_job_that_can_never_run(pbs, tmp_path):
    state = waited(pbs, submit(pbs, tmp_path, "true", nodes=9))
    assert state.stuck and state.word == "pending" and state.reason.startswith("Can Never Run")


def test_a_server_that_forgets(staged, pbs, tmp_path):
    """Without job history the job's own end tells; a job that left nothing is lost."""
    config = tmp_path / "pbs" / "pbs-state" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"history": False}))
    job = submit(pbs, tmp_path, "sh", "-c", "exit 3", nodes=1)
    assert waited(pbs, job).exit_code == 3
    (job.place / "exit").unlink()
    assert scheduler_of(job).state(pbs, job).word == "missing"


def test_a_server_that_does_not_answer(pbs, tmp_path):
    job = submit(pbs, tmp_path, "sleep", "3", nodes=1)
    qstat = tmp_path / "pbs" / "bin" / "qstat"
    qstat.write_text(
        "#!/bin/sh\n# A stand-in for qstat without a server.\necho 'qstat: cannot connect' >&2; exit 255\n"
    )
    state = scheduler_of(job).state(pbs, job)
    assert (state.word, state.over) == ("unknown", False)
    assert "cannot connect" in state.reason
    assert waited(pbs, job).exit_code == 0  # the script's end is seen all the same


def test_states_and_hosts(pbs):
    assert [(state.host, state.state) for state in host_states(pbs, ("n2", "n9"))] == [
        ("n2", "idle"),
        ("n9", "unknown"),
    ]
    with pytest.raises(UsageError, match="no hosts are known: no allocation here"):
        find_hosts(pbs)


def test_jobs_are_found_again(pbs, tmp_path):
    with pytest.raises(UsageError, match="no job was submitted"):
        find_job(pbs, None)
    first, second = (submit(pbs, tmp_path, "true", nodes=1, run=tmp_path / name) for name in ("a.run", "b.run"))
    (pbs.home / "jobs" / "broken").mkdir()
    (pbs.home / "jobs" / "broken" / "job.json").write_text("{")
    assert known_jobs(pbs) == [second, first]
    assert find_job(pbs, None) == second
    assert find_job(pbs, first.id.partition(".")[0]) == first
    with pytest.raises(UsageError, match="no job 99"):
        find_job(pbs, "99")


def test_no_scheduler(staged, tmp_path):
    staged.variables["PATH"] = str(tmp_path)
    with pytest.raises(UsageError, match="no scheduler here: neither sbatch nor qsub"):
        find_scheduler(staged)
