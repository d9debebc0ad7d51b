"""Launches over several hosts of a virtual cluster, with real Slurm: placement, stopping, hosts that are lost."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from real_mpi import wait_until, with_signal

from fablint.measure import NoProgress, build_engine
from fablint.store import missing_rounds, read_run
from fablint.system import System
from pinned import pinned_by
from vcluster import Cluster, StartCluster

PINNED = pinned_by("engine.toml", __file__)

DRIVER = Path(__file__).with_name("launch_on_cluster.py")
FABLINT = (sys.executable, "-m", "fablint.cli")
LONG = "bandwidth --pattern all-pairs --repeats 40 --sizes 64K --window 4 --budget 0.3"
SHORT = "latency --pattern all-pairs --sizes 8 --samples 3"
ORDER = ("nid001002", "nid001000", "nid001003", "nid001001")  # not Slurm's
VICTIM = 2  # a rank
IN_JOB = ("salloc", "--quiet", "--nodes=4")
METHODS = [pytest.param(("srun", IN_JOB), id="srun"), pytest.param(("mpiexec", ()), id="mpirun-over-ssh")]
ALL_METHODS = [*METHODS, pytest.param(("mpiexec", IN_JOB), id="mpirun-in-a-job")]
HOW = (signal.SIGKILL, signal.SIGSTOP)
WITHOUT_MPI = [
    pytest.param(("without-mpi-ssh", ()), id="ssh-without-mpi"),
    pytest.param(("without-mpi-srun", IN_JOB), id="srun-without-mpi"),
]
StartMethod = tuple[str, tuple[str, ...]]


@dataclass(frozen=True)
class Bed:
    """A cluster whose MPI is Open MPI, as Slurm's PMIx wants it."""

    cluster: Cluster

    def start(self, method: StartMethod, places: str, path: Path, row: str, *options: str) -> subprocess.Popen[str]:
        launcher, before = method
        row += " --transport tcp" if "without-mpi" in launcher else ""
        argv = [*before, sys.executable, DRIVER, launcher, places, path, row, *options]
        return subprocess.Popen(
            self.cluster.command(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=path.parent,
        )

    def end(self, process: subprocess.Popen[str], limit_s: float = 240) -> dict[str, Any]:
        output, errors = process.communicate(timeout=limit_s)
        assert output.startswith("{"), output + errors
        said: dict[str, Any] = json.loads(output)
        return said

    def in_progress(self, method: StartMethod, path: Path) -> subprocess.Popen[str]:
        """A measurement of one rank per host, in its second or third round."""
        process = self.start(method, ",".join(f"{host}:1" for host in ORDER), path, LONG, "--watchdog", "5")
        count = path / "bandwidth" / "count"

        def measures() -> bool:
            assert process.poll() is None, process.communicate()
            return any(chunk.read_bytes().strip(b"\0") for chunk in count.glob("c.*"))

        wait_until(measures, "measuring", 240)  # the driver gives up before, and says why
        return process


@pytest.fixture(scope="module")
def bed(virtual_cluster: StartCluster) -> Iterator[Bed]:
    if shutil.which("mpirun.openmpi") is None:
        pytest.skip("Slurm's PMIx goes with Open MPI, which is not installed")
    build_engine(System(), NoProgress(), mpicxx=System().which("mpicxx.openmpi"))
    build_engine(System(), NoProgress(), with_mpi=False)
    before = os.environ.get("FABLINT_MPICXX")
    os.environ["FABLINT_MPICXX"] = "mpicxx.openmpi"
    try:
        with virtual_cluster("launch", switches=1, lldp=False) as made:
            yield Bed(made)
    finally:
        os.environ.pop("FABLINT_MPICXX")
        if before is not None:
            os.environ["FABLINT_MPICXX"] = before


def pid_of(path: Path, rank: int) -> int:
    return int(read_run(path).facts.rank_pid[rank])


@pytest.mark.parametrize("method", ALL_METHODS)
def test_ranks_sit_where_they_are_wanted(bed: Bed, tmp_path: Path, method: StartMethod) -> None:
    """Uneven, in an order that is not Slurm's, one host in two places, more ranks than CPUs of the job."""
    path = tmp_path / "a.run"
    said = bed.end(bed.start(method, "nid001003:2,nid001000:1,nid001001:3,nid001003:1", path, SHORT))
    assert (said["status"], said["error"]) == (0, "")
    assert said["hosts"] == [f"nid00100{host}" for host in (3, 3, 0, 1, 1, 1, 3)]
    assert said["launchers"] == (["mpiexec.openmpi", "srun"] if method[1] else ["mpiexec.openmpi"])


@pytest.mark.parametrize("method", WITHOUT_MPI)
def test_ranks_without_mpi_sit_where_they_are_wanted(bed: Bed, tmp_path: Path, method: StartMethod) -> None:
    path = tmp_path / "a.run"
    said = bed.end(bed.start(method, "nid001003:2,nid001000:1", path, SHORT))
    assert (said["status"], said["error"]) == (0, "")
    assert said["hosts"] == ["nid001003", "nid001003", "nid001000"]
    assert read_run(path).facts.launch.mpi is None


def test_tcp_over_ipv6_between_hosts(bed: Bed, tmp_path: Path) -> None:
    for number, host in enumerate(ORDER[:2], 1):
        add = f"echo 0 >/proc/sys/net/ipv6/conf/hsn0/disable_ipv6; ip -6 addr add fd15::{number}/64 dev hsn0 nodad"
        added = bed.cluster.run(["sh", "-c", add], node=host)
        assert added.returncode == 0, added.stderr
    places = ",".join(f"{host}:1" for host in ORDER[:2])
    said = bed.end(bed.start(WITHOUT_MPI[0].values[0], places, tmp_path / "a.run", f"{SHORT} --device fd15::/64"))
    assert (said["status"], said["error"], said["hosts"]) == (0, "", [*ORDER[:2]])


@pytest.mark.parametrize("method", ALL_METHODS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_wish_to_stop_reaches_the_ranks_of_other_hosts(
    bed: Bed, tmp_path: Path, method: StartMethod, number: int
) -> None:
    path = tmp_path / "a.run"
    process = bed.in_progress(method, path)
    began = time.monotonic()
    for pid in drivers(path):
        with_signal(pid, number)
    said = bed.end(process)
    assert (said["stopped_by"], said["state"], said["lost"]) == (number, "interrupted", [])
    assert time.monotonic() - began < 30  # and not after the deadline, 75 s later
    assert 0 < len(missing_rounds(read_run(path).rows[0])) < 120


@pytest.mark.parametrize("method", [*ALL_METHODS, *WITHOUT_MPI])
def test_a_killed_driver_ends_the_ranks_of_other_hosts(bed: Bed, tmp_path: Path, method: StartMethod) -> None:
    """Also in a job that goes on: the end of the job would end them."""
    path = tmp_path / "a.run"
    launcher, before = method
    process = bed.in_progress((launcher, (*before, "sh", "-c", '"$@"; cat', "sh")), path)
    for pid in drivers(path):
        with_signal(pid, signal.SIGKILL)
    wait_until(lambda: not processes_of(path, 0, b"fablint-engine"), "end of the ranks", 60)
    assert process.poll() is None
    process.communicate(timeout=60)


def drivers(path: Path) -> list[int]:
    """The driver's own process: a signal to salloc would end the job."""
    return processes_of(path, 1, str(DRIVER).encode())


def processes_of(path: Path, index: int, program: bytes) -> list[int]:
    """Processes of a run whose word of that index ends with `program`."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:  # ended while we looked
            continue
        if len(words) > 2 and words[index].endswith(program) and str(path).encode() in words:
            found.append(int(entry.parent.name))
    return found


@pytest.mark.parametrize(
    ("method", "how"),
    [
        *(pytest.param(*method.values, how, id=f"{method.id}-{how.name}") for method in METHODS for how in HOW),
        *(pytest.param(*method.values, HOW[0], id=f"{method.id}-{HOW[0].name}") for method in WITHOUT_MPI),
    ],
)
def test_a_host_that_dies_or_stalls_is_named(bed: Bed, tmp_path: Path, method: StartMethod, how: int) -> None:
    path = tmp_path / "a.run"
    process = bed.in_progress(method, path)
    with_signal(pid_of(path, VICTIM), how)
    said = bed.end(process, 60)
    assert (said["status"], {*said["lost"]}, said["apart"]) == (3, {ORDER[VICTIM]}, False)


# mpirun first: after the cut of a Slurm job, the start of the next Open MPI failed in half of the runs, in a TCP
# connection. The cause is not known.
@pytest.mark.parametrize("method", [*reversed(METHODS), WITHOUT_MPI[0]])
def test_a_host_that_is_cut_off_is_one_of_two_named(bed: Bed, tmp_path: Path, method: StartMethod) -> None:
    path = tmp_path / "a.run"
    process = bed.in_progress(method, path)
    try:
        bed.cluster.fault("down", ORDER[VICTIM])
        said = bed.end(process, 60)
    finally:
        bed.cluster.heal()
    assert said["status"] == 3
    # Neither end of the measurement knows which of the two is cut off. A launcher that ends all ranks at the first
    # report may leave no time for the second one: the text of one report names both ends as well.
    assert VICTIM in {end for one in said["reported"] for end in (one["rank"], one["partner"])}
    assert len({one["host"] for one in said["reported"]}) <= 2
    assert ORDER[VICTIM] in said["error"]


def test_a_run_goes_on_where_it_was(bed: Bed, tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    row = "latency --pattern all-pairs --repeats 20 --sizes 8 --budget 0.2"
    process = bed.start(("srun", IN_JOB), ",".join(f"{host}:1" for host in ORDER), path, row)
    wait_until(lambda: (path / "latency" / "count" / "c.0.0.0.0").exists(), "the first flush")
    for pid in read_run(path).facts.rank_pid:
        with_signal(pid, signal.SIGKILL)
    assert bed.end(process)["status"] == 3
    before = len(missing_rounds(read_run(path).rows[0]))
    assert before > 0
    done = bed.cluster.run([*IN_JOB, *FABLINT, "-q", "resume", path], timeout=120)
    assert done.returncode in (0, 3), done.stderr  # of the verdict: four hosts are too few to judge all
    assert done.stdout.splitlines()[0].split()[0] in ("PASS", "INCOMPLETE")
    assert read_run(path).state == "complete"
    assert tuple(read_run(path).rank_host) == ORDER
    assert missing_rounds(read_run(path).rows[0]) == []


def test_ranks_that_do_not_find_each_other_are_started_by_the_next_launcher(bed: Bed, tmp_path: Path) -> None:
    """A fake srun, which gives the real one another PMI than it was asked for."""
    folder = tmp_path / "bin"
    folder.mkdir()
    fake = folder / "srun"
    real = shutil.which("srun")
    fake.write_text(f'#!/bin/bash\nexec {real} "${{@/#--mpi=pmix/--mpi=none}}"\n')
    fake.chmod(0o755)
    inside = (*IN_JOB, "env", f"PATH={folder}:{os.environ['PATH']}")
    said = bed.end(bed.start(("all", inside), "nid001000:1,nid001001:1", tmp_path / "a.run", SHORT))
    assert (said["status"], said["hosts"]) == (0, ["nid001000", "nid001001"])
    (note,) = said["notes"]
    assert PINNED["srun is replaced"].begins(note)
    assert "SLURM's PMI" in note
    doctor = bed.cluster.run([*inside, *FABLINT, "doctor"])
    (line,) = (line for line in doctor.stdout.splitlines() if "SLURM's PMI" in line)
    assert "--mpi=pmix" in line and "srun --mpi=list" in line


@pytest.mark.parametrize(
    ("method", "message"),
    [
        pytest.param(("all", IN_JOB), "Requested node configuration is not available (are all hosts in", id="srun"),
        pytest.param(("mpiexec", IN_JOB), "All nodes which are allocated for this job", id="mpirun-in-a-job"),
        pytest.param(("mpiexec", ()), "Could not resolve hostname nowhere", id="mpirun-over-ssh"),
    ],
)
def test_a_host_that_is_not_there_is_one_line(bed: Bed, tmp_path: Path, method: StartMethod, message: str) -> None:
    said = bed.end(bed.start(method, "nowhere:1,nid001000:1", tmp_path / "a.run", SHORT), 60)
    assert (said["status"], said["hosts"]) == (3, [])
    assert message in said["error"]
