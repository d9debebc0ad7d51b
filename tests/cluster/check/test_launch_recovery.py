"""`fablint check` of a virtual cluster of which a host keeps launches from starting: real MPI, real frames dropped.

It waits for launches that do not start, and what it says depends on no time that is measured: others may run beside it.
Pings would show the host, and which hosts do not reach each other, before the first launch.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tested_mpis import wrapper_name
from vcluster import Cluster, StartCluster

HOSTS = "nid[001000-001003]"
BAD = "nid001002"
LIMIT_S = 600
# The program with a time limit of 10 s for the start of ranks, which takes 2 s here, in the place of a minute.
SOONER = "from fablint.cli import main; from fablint.measure import session; session.START_S = 10; "
NO_PINGS = "from fablint.workflows import host_preflight; host_preflight.ping_each_other = lambda *given: given[2]; "


@pytest.fixture(scope="module")
def bed(virtual_cluster: StartCluster) -> Iterator[Cluster]:
    with virtual_cluster("launch", groups=2, switches=1, hosts=2, slurm=False, lldp=False) as made:
        yield made


@pytest.fixture
def faulty(bed: Cluster) -> Iterator[Cluster]:
    """The cluster, repaired afterwards."""
    yield bed
    bed.heal()


def checked(
    bed: Cluster, output: Path, program: str, *options: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """A check from the login node, and its verdict."""
    verb = (sys.executable, "-c", f"{program}main()", "check", "--mpicxx", wrapper_name("openmpi"), "--budget", "30s")
    done = bed.run([*verb, *options, "-w", HOSTS, "-o", output], timeout=LIMIT_S, cwd=output.parent)
    page = output / "report" / "verdict.json"
    assert page.exists(), done.stdout + done.stderr
    return done, json.loads(page.read_text())


def launch_findings(verdict: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        one
        for one in verdict["findings"]
        if one["text"]["evidence"].startswith("launches that include it do not start")
    ]


def test_a_host_to_which_frames_are_dropped_is_named_and_the_rest_measured(faulty: Cluster, tmp_path: Path) -> None:
    faulty.fault("loss", BAD, "--percent", "99.9999", "--dir", "rx")
    output = tmp_path / "a.run"
    done, verdict = checked(faulty, output, SOONER + NO_PINGS)
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    (finding,) = launch_findings(verdict)
    assert (finding["state"], finding["text"]["component"], finding["text"]["name"]) == ("FAULT", "host", BAD), said
    assert "its own ranks alone do" in finding["text"]["evidence"]
    faults = [one for one in verdict["findings"] if one["state"] == "FAULT"]
    assert all(BAD in fault["text"]["name"] for fault in faults), faults
    assert verdict["coverage"]["hosts"] == 3
    assert (output / "global-bandwidth" / "zarr.json").exists()


def test_a_black_hole_between_two_switches_is_the_fault_and_no_launch_fails(faulty: Cluster, tmp_path: Path) -> None:
    """In one direction: no ping comes back, and MPI would not start."""
    for host in ("nid001002", "nid001003"):
        faulty.fault("misroute", "x1000c0r0b0", "--host", host, "--via", "none")
    done, verdict = checked(faulty, tmp_path / "a.run", SOONER, "--blocks", "2", "--suite", "edge")
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    faults = [one["text"]["name"] for one in verdict["findings"] if one["state"] == "FAULT"]
    assert faults == ["block0=block1"], said
    excluded = [one for one in verdict["findings"] if "without it the ranks" in one["text"]["evidence"]]
    assert {one["state"] for one in excluded} == {"NOT JUDGED"}
    assert verdict["coverage"]["hosts"] == 2
    assert "did not start" not in said
    assert any(note["values"].get("launches") == 1 for note in verdict["notes"]), verdict["notes"]
