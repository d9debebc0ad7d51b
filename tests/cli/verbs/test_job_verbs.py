"""fablint status and fablint wait, of jobs that a stand-in for OpenPBS really runs."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fablint_command import COMMAND
from pinned import pinned_by

PINNED = pinned_by("cli.toml", __file__)

_FILE = Path(__file__).parents[2] / "cluster" / "pbs_stand_in.py"

SUBMIT = """
import json, sys
from pathlib import Path
from fablint.cluster import JobRequest, find_scheduler
from fablint.system import System
wishes = json.loads(sys.argv[1])
hosts, run = tuple(wishes.get("hosts", ("n1", "n2"))), Path(wishes["run"]).absolute()
request = JobRequest(tuple(wishes["command"]), Path.cwd(), hosts=hosts, run=run, time_s=wishes.get("time_s"))
print(find_scheduler(System()).submit(System(), request).id)
"""

HAND_OVER = """
import sys
from pathlib import Path
from fablint import cli, cluster
from fablint.cli.session import verb
from fablint.cli.jobs import submit_job, submit_options

@verb()
@submit_options
def burn(session, submit, dry_run, detach, **values):
    request = cluster.JobRequest(("sh", "-c", "sleep 1; exit 1"), Path.cwd(), nodes=2, **values)
    done = submit_job(session, request, dry_run=dry_run, detach=detach)
    return done[1].exit_code if done else 0

cli.cli.add_command(burn)
cli.main(["burn", *sys.argv[1:]])
"""


@pytest.fixture
def pbs(fablint, tmp_path):
    """fablint where the stand-in is the only scheduler; `pbs.submit` submits a job that writes a run directory."""
    spec = importlib.util.spec_from_file_location("pbs_stand_in", _FILE)
    stand_in = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stand_in)
    programs = stand_in.install(tmp_path / "pbs", ("n1", "n2"))
    for name in ("sh", "mkdir", "sleep", "cat"):
        (programs / name).symlink_to(shutil.which(name))
    environ = {"PATH": str(programs), "FABLINT_HOME": str(tmp_path / "home"), "TERM": "dumb"}

    def call(*words):
        return fablint(*words, **environ)

    def submit(script, **wishes):
        facts = json.dumps({"command": ["sh", "-c", script], "run": "night.run", **wishes})
        done = subprocess.run(
            [sys.executable, "-c", SUBMIT, facts],
            env=os.environ | environ,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    call.submit, call.environ = submit, environ
    return call


def test_wait_has_the_exit_code_of_the_job(pbs, tmp_path):
    job = pbs.submit("mkdir night.run; while [ ! -e go ]; do sleep 0.1; done; exit 1")
    with subprocess.Popen(
        [*COMMAND, "wait", job],
        env=os.environ | pbs.environ,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as waiting:
        assert waiting.stderr.readline().startswith(f"fablint: job {job} ")
        (tmp_path / "go").touch()
        assert waiting.wait(60) == 1
        assert waiting.stdout.read() == PINNED["job job ended with exit code"].filled(job=job, tmp_path=tmp_path)
    facts = json.loads(pbs("wait", "--json", "-q").stdout)
    assert (facts["id"], facts["state"], facts["exit_code"], facts["hosts"]) == (job, "ended", 1, ["n1", "n2"])


def test_a_job_that_runs_out_of_time_keeps_what_it_has(pbs, tmp_path):
    job = pbs.submit("mkdir night.run; sleep 60", time_s=1)
    done = pbs("wait", "-q", job)
    assert (done.returncode, done.stdout) == (3, "")
    kept = f"measured rounds are kept, continue with fablint resume {tmp_path}/night.run"
    assert done.stderr == f"fablint: job {job} exceeded its time limit: {kept}\n"


def test_a_job_that_wrote_nothing(pbs):
    job = pbs.submit("exit 2")
    done = pbs("wait", job)
    assert done.returncode == 2
    assert "no run was written, see " in done.stdout


def test_status_lists_jobs(pbs, tmp_path):
    assert pbs("status").stdout == "no job was submitted from here\n"
    first = pbs.submit("exit 0")
    pbs("wait", first)
    second = pbs.submit("while [ ! -e go ]; do sleep 0.1; done")
    done = pbs("status")
    assert done.returncode == 0
    newest, oldest = done.stdout.splitlines()
    assert newest.split()[:2] in ([second, "pending"], [second, "running"]) and "n[1-2]" in newest
    assert oldest.split() == [first, "ended", "exit", "0", "n[1-2]", f"{tmp_path}/night.run"]
    facts = json.loads(pbs("status", "--json", first).stdout)
    assert [one["id"] for one in facts["jobs"]] == [first]
    assert f"cancel it with: qdel {second}" in pbs("status", second).stderr
    (tmp_path / "go").touch()


def test_a_job_by_the_path_of_its_run(pbs, tmp_path):
    pbs.submit("exit 0", run="first.run")
    job = pbs.submit("exit 1")
    pbs.submit("exit 0", run="other.run")
    done = pbs("wait", tmp_path / "night.run")  # which the job did not write
    assert (done.returncode, done.stdout.splitlines()[0]) == (1, f"job {job} ended with exit code 1")
    assert pbs("status", "./night.run").stdout.split()[:2] == [job, "ended"]


@pytest.mark.parametrize("verb", ["wait", "status"])
def test_jobs_that_there_are_not(pbs, verb):
    done = pbs(verb, "17")
    assert done.returncode == 2
    assert PINNED["no job was submitted"].begins(done.stderr)
    pbs.submit("exit 0")
    done = pbs(verb, "17")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == PINNED["no job 17 was submitted"]


# ------------------------------------------------------------------------------------------------ verbs that submit


@pytest.fixture
def burn(pbs, tmp_path):
    """A verb with the options of submission."""

    def call(*words):
        argv = [sys.executable, "-c", HAND_OVER, *words]
        environ = os.environ | pbs.environ
        return subprocess.run(argv, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)

    return call


def test_dry_run_prints_the_script_and_submits_nothing(burn, tmp_path):
    done = burn("--dry-run", "--time", "90s", "--account", "proj1", "--mail-user", "me@site.org", "--begin", "22:00")
    assert done.returncode == 0, done.stderr
    for line in ("#PBS -l walltime=00:01:30", "#PBS -A proj1", "#PBS -M me@site.org", "#PBS -a 2200"):
        assert f"{line}\n" in done.stdout
    assert not (tmp_path / "home").exists()


def test_submit_and_wait(burn):
    done = burn("--time", "1m")
    assert done.returncode == 1, done.stderr
    assert PINNED["submitted PBS job 1.stand-in"] in done.stderr


def test_submit_and_detach(burn, pbs):
    done = burn("--detach")
    assert (done.returncode, done.stdout) == (0, PINNED["PBS job 1.stand-in: fablint"])
    assert pbs("wait", "1").returncode == 1


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--partition", "nope"), "PBS refuses the job: Unknown queue: queues are workq, debug"),
        (
            ("--account", "a'b"),
            '--account "a\'b" cannot be in a job script: write it without quotes and line breaks',
        ),
        (("--begin", "whenever"), "--begin 'whenever' is not a time for PBS: write HH:MM or YYYY-MM-DDTHH:MM"),
    ],
)
def test_what_the_scheduler_refuses_is_one_line(burn, words, line):
    done = burn(*words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"fablint: {line}\n")


def test_a_job_that_can_never_run_is_not_waited_for(pbs):
    pbs.submit("exit 0", hosts=["n7"])
    done = pbs("wait", "-q")
    assert done.returncode == 3
    assert "does not start (Can Never Run" in done.stderr and "qdel 1.stand-in" in done.stderr


def test_without_a_scheduler(burn, pbs):
    pbs.environ["PATH"] = "/nowhere"
    done = burn("--dry-run")
    assert done.returncode == 2
    assert PINNED["no scheduler here: neither"].begins(done.stderr)
