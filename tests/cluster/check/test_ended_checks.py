"""A check of which a part is killed: what was measured is kept, no process remains, and one line says why.

A host that is killed: test_check_on_cluster.py.
"""

from __future__ import annotations

import getpass
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from checked_cluster import verdict_of, wait_for
from fablint.store import read_run
from pinned import pinned_by
from tested_mpis import built_engine, wrapper_name
from vcluster import Cluster, StartCluster

pytestmark = pytest.mark.alone

PINNED = pinned_by("cluster.toml", __file__)
HOSTS = [f"nid00100{number}" for number in range(4)]
CHECK = (sys.executable, "-m", "fablint.cli", "-q", "check", "--mpicxx", wrapper_name("openmpi"))
NAMED = ("-w", ",".join(HOSTS))  # outside of a job, which would end the ranks of a check that is gone
LIMIT_S = 300
END_S = 60.0  # until no rank remains
BEGUN = Path("edge-bandwidth", "zarr.json")  # of a row that is being measured


@pytest.fixture(scope="module")
def bed(virtual_cluster: StartCluster) -> Iterator[Cluster]:
    with virtual_cluster("ended", groups=1, switches=1, hosts=4, lldp=False) as made:
        built_engine("openmpi")
        yield made


@pytest.fixture(scope="module")
def spaces(bed: Cluster) -> set[str]:
    """Network namespaces of the hosts."""
    return {bed.run(["readlink", "/proc/self/ns/net"], node=host).stdout.strip() for host in HOSTS}


@contextmanager
def started(bed: Cluster, output: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    argv = bed.command([*words, *CHECK, *(() if words else NAMED), "-o", output])
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=output.parent
    ) as process:
        yield process


def ranks_on(spaces: Collection[str]) -> list[int]:
    """Return the processes of the engine on the hosts."""
    ranks = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"/fablint-engine") and str((process / "ns" / "net").readlink()) in spaces:
                ranks.append(int(process.name))
        except OSError:  # it has ended
            continue
    return sorted(ranks)


def launcher_of(check: int) -> int:
    """Return the launcher that a check has started."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == check and b"mpiexec" in (process / "cmdline").read_bytes().split(b"\0")[0]:
                return int(process.name)
        except OSError:
            continue
    raise AssertionError("no launcher")


def assert_no_rank_remains(spaces: Collection[str]) -> None:
    deadline = time.monotonic() + END_S
    while ranks := ranks_on(spaces):
        assert time.monotonic() < deadline, ranks
        time.sleep(0.2)


def analysed(bed: Cluster, output: Path) -> str:
    """Return what `fablint analyse` says of the run."""
    done = bed.run([sys.executable, "-m", "fablint.cli", "analyse", output], timeout=LIMIT_S)
    assert done.returncode == 3, done.stdout + done.stderr
    return done.stdout


def test_a_front_end_that_is_killed_while_it_measures(bed: Cluster, spaces: set[str], tmp_path: Path) -> None:
    output = tmp_path / "a.run"
    with started(bed, output) as check:
        wait_for(output / BEGUN, check)
        check.kill()
        assert_no_rank_remains(spaces)
    said = analysed(bed, output)
    assert read_run(output).row("edge-latency").facts.state == "complete"
    assert PINNED["the run is not complete"] in said


def test_a_front_end_that_is_killed_while_it_asks_the_hosts(bed: Cluster, spaces: set[str], tmp_path: Path) -> None:
    """Ranks have started and wait for their first plan."""
    output = tmp_path / "a.run"
    with started(bed, output) as check:
        while len(ranks_on(spaces)) < len(HOSTS):
            assert check.poll() is None, check.communicate()[0]
            time.sleep(0.05)
        check.kill()
        assert_no_rank_remains(spaces)
    assert not output.exists()


@pytest.mark.parametrize("which", ["rank", "launcher"])
def test_a_launch_of_which_a_process_is_killed_is_repeated(
    bed: Cluster, spaces: set[str], tmp_path: Path, which: str
) -> None:
    """The connection to the ranks is lost with their launcher."""
    output = tmp_path / "a.run"
    with started(bed, output) as check:
        wait_for(output / BEGUN, check)
        os.kill(ranks_on(spaces)[-1] if which == "rank" else launcher_of(check.pid), signal.SIGKILL)
        said, _ = check.communicate(timeout=LIMIT_S)
    verdict = verdict_of(output)
    coverage = verdict["coverage"]
    assert coverage["pairs_measured"] == coverage["pairs_planned"] > 0, said
    (note,) = (note["text"] for note in verdict["notes"] if note["kind"] == "repeated_launch")
    assert "signal 9 (Killed)" in note
    assert_no_rank_remains(spaces)


def test_a_job_that_is_cancelled(bed: Cluster, spaces: set[str], tmp_path: Path) -> None:
    output = tmp_path / "a.run"
    with started(bed, output, "salloc", "--quiet", "-N4", "--no-kill") as check:
        wait_for(output / BEGUN, check)
        bed.run(["scancel", "--user", getpass.getuser()])
        said, _ = check.communicate(timeout=LIMIT_S)
    assert_no_rank_remains(spaces)
    assert check.returncode == 3, said
    assert f"fablint resume {output} in a new job" in said
    assert PINNED["the run is not complete"] in analysed(bed, output)
