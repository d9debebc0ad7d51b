"""The real engine under the real MPI libraries of this machine.

FABLINT_TEST_MPI names them by the suffixes of Debian's wrappers (`openmpi mpich`); without it: the default `mpicxx`.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_mpi import Mpi, Start, ranks_of, with_signal
from simgrid_bed import build_smpi_engine

from fablint.measure import build_engine, find_mpiexec
from fablint.measure.progress import Silent
from fablint.system import System


@pytest.fixture(scope="session", params=os.environ.get("FABLINT_TEST_MPI", "default").split())
def mpi(request: pytest.FixtureRequest) -> Mpi:
    suffix = "" if request.param == "default" else f".{request.param}"
    system = System()
    mpicxx = system.which(f"mpicxx{suffix}")
    engine = build_engine(system, Silent(), mpicxx=mpicxx)
    return Mpi(request.param, engine.path, find_mpiexec(system, engine.mpicxx))


@pytest.fixture(scope="session")
def smpi_engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The engine for SimGrid, where it is installed: built once for all workers of pytest-xdist."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "smpi"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        engine = folder / "fablint-engine"
        return engine if engine.exists() else build_smpi_engine(folder)


@pytest.fixture
def started(mpi: Mpi) -> Iterator[Start]:
    """Starts runs in the background and ends what is left of them after the test."""
    processes: list[subprocess.Popen[str]] = []

    def start(ranks: int, *arguments: str | Path) -> subprocess.Popen[str]:
        processes.append(mpi.start(ranks, *arguments))
        return processes[-1]

    yield start
    for process in processes:
        for pid in [*ranks_of(process), process.pid]:
            with_signal(pid, signal.SIGKILL)
        process.wait()
