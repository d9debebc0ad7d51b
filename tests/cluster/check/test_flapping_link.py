"""`fablint check` of a virtual cluster under real Slurm, one of whose links goes down and up while it is measured.

Counters and launches tell what happened, and not times that are measured: others may run beside it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from checked_cluster import LIMIT_S, reported, wait_for
from tested_mpis import built_engine, wrapper_name
from vcluster import StartCluster

CHECK = (sys.executable, "-m", "fablint.cli", "check", "--mpicxx", wrapper_name("openmpi"), "--budget", "20s")
FLAPPING = "nid001003"
FLAPS = "for _ in 1 2 3 4 5 6; do ip link set hsn0 down; ip link set hsn0 up; done"  # in less time than a level takes


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A FABLINT_HOME without readings: preflight refuses hosts whose links went down since the last one."""
    engine = built_engine("openmpi").path.parent  # only this one: tests beside this one build others
    home = tmp_path / "home"
    shutil.copytree(engine, home / "engines" / engine.name)
    monkeypatch.setenv("FABLINT_HOME", str(home))


@pytest.mark.usefixtures("own_home")
def test_a_link_that_flapped_while_it_was_measured_is_named(virtual_cluster: StartCluster, tmp_path: Path) -> None:
    output = tmp_path / "a.run"
    with virtual_cluster("flap", groups=2, switches=2, hosts=2) as bed:
        argv = bed.command(["salloc", "--quiet", "-N8", *CHECK, "-o", output])
        with subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path
        ) as process:
            wait_for(output / "zarr.json", process)
            bed.run(["sh", "-c", FLAPS], node=FLAPPING)
            said, _ = process.communicate(timeout=LIMIT_S)
    # A launch that finds the link down names the NIC; else the carrier changes name the cable, also where a rank was
    # killed meanwhile and the host was excluded.
    named = {name for component, name, _ in reported(output) if component in ("cable", "nic")}
    assert named == {f"{FLAPPING}/hsn0"}, said
