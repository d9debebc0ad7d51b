"""fablint as Slurm's HealthCheckProgram and Prolog, with the scripts of integrations/slurm."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from vcluster import Cluster, StartCluster

SCRIPTS = Path(__file__).parents[2] / "integrations" / "slurm"
FABLINT = Path(sys.executable).with_name("fablint")
PROGRAMS = {"HealthCheckProgram": "healthcheck", "Prolog": "prolog"}  # words of slurm.conf
FAULTY_HOST, *WELL = "nid001001", "nid001000", "nid001002"


@pytest.fixture(scope="module")
def bed(virtual_cluster: StartCluster) -> Iterator[Cluster]:
    with virtual_cluster("health", groups=1, switches=1, hosts=3, lldp=False) as made:
        yield made


@pytest.fixture
def faulty(bed: Cluster, tmp_path: Path) -> Iterator[Cluster]:
    """One link of the cluster is down; all is well again afterwards."""
    bed.fault("down", FAULTY_HOST)
    yield bed
    bed.heal()
    configure(bed)
    for program in PROGRAMS.values():  # slurmd may read the configuration later, and start a script once more
        (tmp_path / program).unlink(missing_ok=True)
    wait_for_scripts(tmp_path)
    control(bed, "update", f"NodeName={FAULTY_HOST}", "State=RESUME")


def wait_for_scripts(folder: Path, within_s: float = 30) -> None:
    """Wait until no script of this folder runs: a health check that ends later drains the node again."""
    deadline = time.monotonic() + within_s
    mark = os.fsencode(folder)
    while time.monotonic() < deadline:
        if not any(mark in command_line(process) for process in Path("/proc").glob("[0-9]*")):
            return
        time.sleep(0.2)


def command_line(process: Path) -> bytes:
    """Arguments of a process; none of one that has ended."""
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


def script(bed: Cluster, word: str, folder: Path) -> Path:
    """Copy of the script for a word of slurm.conf with this test's settings; Slurm starts it with no environment."""
    for source in SCRIPTS.iterdir():
        shutil.copy(source, folder)
    settings = {"FABLINT": FABLINT, "FABLINT_HOME": folder, "FABLINT_PROMETHEUS": folder / "fablint.prom"}
    lines = [f"{name}={value}\n" for name, value in settings.items()]
    (folder / "settings.sh").write_text("".join([*lines, f"export SLURM_CONF={slurm_conf(bed)}\n"]))
    common = folder / "common.sh"
    text = common.read_text()
    assert "/etc/fablint/slurm.sh" in text
    common.write_text(text.replace("/etc/fablint/slurm.sh", str(folder / "settings.sh")))
    return folder / PROGRAMS[word]


def slurm_conf(bed: Cluster) -> Path:
    """Not where Slurm looks for it by itself."""
    return Path(bed.run(["printenv", "SLURM_CONF"]).stdout.strip())


def configure(bed: Cluster, **words: object) -> None:
    """Give slurm.conf these words, and none of an earlier test."""
    conf = slurm_conf(bed)
    kept = [line for line in conf.read_text().splitlines() if not line.startswith(("HealthCheck", "Prolog"))]
    conf.write_text("\n".join([*(f"{word}={value}" for word, value in words.items()), *kept]) + "\n")
    control(bed, "reconfigure")


def control(bed: Cluster, *words: str) -> None:
    done = bed.run(["scontrol", *words])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Invalid" not in done.stderr, done.stderr


def drained(bed: Cluster, within_s: float = 45) -> dict[str, str]:
    """Nodes that are drained and why, once there is one."""
    deadline = time.monotonic() + within_s
    while True:
        lines = bed.run(["sinfo", "-h", "-N", "-t", "drain", "-o", "%N|%E"]).stdout.splitlines()
        if lines or time.monotonic() > deadline:
            return dict(line.split("|", 1) for line in lines)
        time.sleep(0.5)


def test_a_health_check_drains_the_node_whose_link_is_down(faulty: Cluster, tmp_path: Path) -> None:
    program = script(faulty, "HealthCheckProgram", tmp_path)
    configure(faulty, HealthCheckProgram=program, HealthCheckInterval=3, HealthCheckNodeState="IDLE")
    found = drained(faulty)
    assert set(found) == {FAULTY_HOST}, found
    assert found[FAULTY_HOST].startswith("net.link.up hsn0"), found
    assert "fablint_preflight_unfit" in (tmp_path / "fablint.prom").read_text()


def test_a_prolog_drains_the_node_before_its_job_starts(faulty: Cluster, tmp_path: Path) -> None:
    configure(faulty, Prolog=script(faulty, "Prolog", tmp_path))
    well = faulty.run(["srun", "-w", ",".join(WELL), "-N2", "hostname"], timeout=90)
    assert sorted(well.stdout.split()) == WELL, well.stderr
    assert faulty.run(["srun", "-w", FAULTY_HOST, "-N1", "hostname"], timeout=90).stdout == ""
    found = drained(faulty)
    assert set(found) == {FAULTY_HOST}, found
    assert "Prolog" in found[FAULTY_HOST]
