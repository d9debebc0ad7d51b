"""Launchers, from what real ones print."""

from __future__ import annotations

from pathlib import Path

import pytest

from fablint.errors import UsageError
from fablint.measure.launcher import Death, Mpiexec, find_mpiexec, identify
from fablint.measure.launchers import LAUNCHERS
from fablint.measure.launchers.hydra import Hydra, IntelHydra
from fablint.measure.launchers.openmpi import OpenMpi
from fablint.model import Plan, Slots

VERSIONS = {
    "mpiexec (OpenRTE) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n": OpenMpi,
    "mpirun (Open MPI) 5.0.3\n": OpenMpi,
    "HYDRA build details:\n    Version:                                 4.0.2\n": Hydra,
    "Intel(R) MPI Library for Linux* OS, Version 2021.10 Build 20230619 (id: c2e19c2f3e)\n": IntelHydra,
}

OPENMPI_KILLED = """\
--------------------------------------------------------------------------
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
--------------------------------------------------------------------------
--------------------------------------------------------------------------
mpiexec noticed that process rank 5 with PID 0 on node nid000007 exited on
signal 9 (Killed).
--------------------------------------------------------------------------
"""

MPICH_KILLED = """\
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 7301 RUNNING AT vm
=   EXIT CODE: 9
=   CLEANING UP REMAINING PROCESSES
=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES
===================================================================================
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)
"""

INTEL_KILLED = """\
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   RANK 1 PID 4711 RUNNING AT n12
=   KILLED BY SIGNAL: 11 (Segmentation fault)
===================================================================================
"""


def launcher_script(folder: Path, name: str, version: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "version.txt").write_text(version)
    program = folder / name
    program.write_text(f"#!/bin/sh\ncat {folder}/version.txt\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(("version", "kind"), VERSIONS.items())
def test_a_launcher_is_known_by_its_version(version, kind):
    assert [type(launcher) for launcher in LAUNCHERS if launcher.recognises(version)] == [kind]


def test_open_mpi_gives_the_rank():
    assert OpenMpi().deaths(OPENMPI_KILLED.splitlines()) == [
        Death(5, None, "nid000007", "was ended by signal 9 (Killed)")
    ]


def test_mpich_gives_the_pid():
    assert Hydra().deaths(MPICH_KILLED.splitlines()) == [Death(None, 7301, "vm", "was ended by signal 9 (Killed)")]


def test_intel_gives_both():
    assert IntelHydra().deaths(INTEL_KILLED.splitlines()) == [
        Death(1, 4711, "n12", "was ended by signal 11 (Segmentation fault)")
    ]


@pytest.mark.parametrize("launcher", LAUNCHERS, ids=lambda launcher: launcher.name)
def test_ordinary_words_are_no_death(launcher):
    assert launcher.deaths(["fablint-engine: error: rank 3 has no PID", "exit code 9"]) == []


def test_open_mpi_lets_root_and_many_ranks_run():
    assert OpenMpi().arguments(8, root=True) == ["--allow-run-as-root", "--oversubscribe", "-n", "8"]
    assert OpenMpi().arguments(8, root=False) == ["--oversubscribe", "-n", "8"]


SLOTS = (Slots("server2", 2), Slots("client1", 1))
ENGINE = ["fablint-engine", "--plan", "-"]


def test_open_mpi_fills_one_host_after_the_other():
    words = OpenMpi().placed(SLOTS, ENGINE, root=False)
    assert words == ["--host", "server2:2,client1:1", "--map-by", "slot", "--oversubscribe", "-n", "3", *ENGINE]


def test_hydra_fills_one_host_after_the_other():
    assert Hydra().placed(SLOTS, ENGINE, root=False) == ["-hosts", "server2:2,client1:1", "-n", "3", *ENGINE]


def test_intel_starts_every_host_by_itself():
    first, second = ["-host", "server2", "-n", "2", *ENGINE], ["-host", "client1", "-n", "1", *ENGINE]
    assert IntelHydra().placed(SLOTS, ENGINE, root=False) == [*first, ":", *second]


def test_a_plan_that_says_where_is_placed(staged):
    staged.root = False
    mpiexec = Mpiexec(Path("/opt/mpiexec"), Hydra(), "")
    assert mpiexec.argv(staged, Plan(3, ()), ENGINE) == ["/opt/mpiexec", "-n", "3", *ENGINE]
    placed = mpiexec.argv(staged, Plan(3, (), SLOTS), ENGINE)
    assert placed == ["/opt/mpiexec", "-hosts", "server2:2,client1:1", "-n", "3", *ENGINE]


def test_the_neighbour_of_mpicxx_is_taken_before_the_path(tmp_path, staged):
    near = launcher_script(tmp_path / "near", "mpiexec.mpich", "HYDRA build details:\n    Version: 4.0.2\n")
    far = launcher_script(tmp_path / "far", "mpiexec", "mpiexec (OpenRTE) 4.1.4\n")
    staged.variables["PATH"] = f"{far.parent}:/usr/bin:/bin"
    found = find_mpiexec(staged, near.with_name("mpicxx.mpich"))
    assert (found.path, found.kind.name, found.version) == (near, "MPICH (Hydra)", "Version: 4.0.2")
    elsewhere = find_mpiexec(staged, tmp_path / "nowhere" / "mpicxx")
    assert (elsewhere.path, elsewhere.version) == (far, "mpiexec (OpenRTE) 4.1.4")


def test_no_launcher_and_an_unknown_one_are_refused(tmp_path, staged):
    staged.variables["PATH"] = str(tmp_path)
    with pytest.raises(UsageError, match=r"no mpiexec beside .*mpicxx nor on the PATH: load the MPI module"):
        find_mpiexec(staged, tmp_path / "mpicxx")
    staged.variables["PATH"] = "/usr/bin:/bin"
    with pytest.raises(
        UsageError, match=r"unknown kind \(Some MPI 1.0\): use an MPI with one of these: Open MPI, Intel"
    ):
        identify(staged, launcher_script(tmp_path / "odd", "mpiexec", "Some MPI 1.0\n"))


def test_open_mpi_binds_nobody_when_the_engine_binds() -> None:
    kind = next(launcher for launcher in LAUNCHERS if launcher.name == "Open MPI")
    assert "none" not in kind.environ(oversubscribed=True, unbound=False).values()
    assert set(kind.environ(oversubscribed=False, unbound=True).values()) == {"none"}
