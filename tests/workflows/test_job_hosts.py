"""Verbs that go on with hosts of a run, in a job that has others: refused before anything is launched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from test_retest_verb import HOST, a_run

from fablint.errors import UsageError
from fablint.model import Slots
from fablint.plan import parse_hosts
from fablint.workflows.job_hosts import slots_of_job
from fablint_command import Fablint
from pinned import pinned_by

PINNED = pinned_by("workflows.toml", __file__)

# Programs that would ask Slurm or build an engine are not there.
JOB = {"SLURM_JOB_ID": "42", "SLURM_JOB_NODELIST": "h[00-03]", "PATH": "/nowhere"}


def test_a_retest_names_the_hosts_that_the_job_lacks(fablint: Fablint, tmp_path: Path) -> None:
    a_run(tmp_path / "x.run", HOST)
    done = fablint("retest", "x.run", "-o", "y.run", **JOB)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    said, needed = line.split(": nothing was launched; start it in a job that has ")
    absent, end = said.removeprefix("fablint: ").split(" are not in ")
    assert end == "Slurm job 42, whose hosts are h[00-03]"
    assert "h05" in parse_hosts(absent)
    hosts = needed.partition("],")[0] + "]"
    assert needed == f"{hosts}, such as salloc --nodelist='{hosts}'"
    assert set(parse_hosts(hosts)) - set(parse_hosts(absent)) <= {"h00", "h01", "h02", "h03"}
    assert not (tmp_path / "y.run").exists()


def test_a_resumed_run_names_the_hosts_that_the_job_lacks(fablint: Fablint, tmp_path: Path) -> None:
    path = a_run(tmp_path / "x.run", HOST)
    for count in path.glob("latency*/count/c*"):
        count.unlink()
    done = fablint("resume", "x.run", **JOB)
    assert done.returncode == 2
    assert PINNED["are not in Slurm job 42"] in done.stderr


def test_a_benchmark_names_the_hosts_that_the_job_lacks(fablint: Fablint) -> None:
    done = fablint("bench", "osu_latency", "--hosts", "h[02,05]", **JOB)
    assert (done.returncode, done.stdout) == (2, "")
    assert PINNED["h05 is not in Slurm job 42"].begins(done.stderr)


def slots(*hosts: str) -> list[Slots]:
    return [Slots(host, 2) for host in hosts]


def test_hosts_are_called_as_the_job_calls_them(staged) -> None:
    staged.variables |= JOB
    assert slots_of_job(staged, slots("h02.site.org", "h00")) == (Slots("h02", 2), Slots("h00", 2))
    staged.variables |= {"SLURM_JOB_NODELIST": "h02.site.org,h00.site.org"}
    assert slots_of_job(staged, slots("h02", "h00.site.org")) == (Slots("h02.site.org", 2), Slots("h00.site.org", 2))


def test_a_pbs_job_is_asked_for_by_the_names_of_its_hosts(staged, tmp_path: Path) -> None:
    (tmp_path / "nodes").write_text("n1\nn1\nn2\n")
    for name in ("SLURM_JOB_ID", "SLURM_JOB_NODELIST"):
        staged.variables.pop(name, None)
    staged.variables |= {"PBS_NODEFILE": str(tmp_path / "nodes"), "PBS_JOBID": "7.head"}
    with pytest.raises(UsageError, match=r"n3 is not in PBS job 7\.head") as caught:
        slots_of_job(staged, slots("n1", "n3"))
    assert PINNED["such as qsub -I -l"].ends(str(caught.value))


def test_ranks_of_this_machine_are_of_every_job_and_without_a_job_nothing_is_refused(staged) -> None:
    here = os.uname().nodename
    staged.variables |= JOB
    assert [slot.ranks for slot in slots_of_job(staged, slots(here))] == [2]
    del staged.variables["SLURM_JOB_ID"]
    staged.variables.pop("PBS_NODEFILE", None)
    assert slots_of_job(staged, slots("h05", "h09.site.org")) == tuple(slots("h05", "h09.site.org"))
