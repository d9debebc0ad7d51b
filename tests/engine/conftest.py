"""The real engine under the real MPI libraries of this machine."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from real_mpi import Mpi, Start, ranks_of, with_signal
from simgrid_bed import build_smpi_engine

from fablint.measure import find_mpiexec
from fablint.system import System
from tested_mpis import built_engine, tested_mpis

ENGINE = Path(__file__).parents[2] / "engine"
FAKES = ("libcuda.so.1", "libamdhip64.so", "libnccl.so.2", "librccl.so.1")


@pytest.fixture(scope="session", params=tested_mpis())
def mpi(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Mpi:
    """Each MPI library of tests/tested_mpis.py in turn, with its engine."""
    engine = built_engine(request.param)
    linked = subprocess.run(["ldd", engine.path], capture_output=True, text=True, check=True).stdout
    preloaded = _built_wrapper(tmp_path_factory) if "libucp" in linked else None
    return Mpi(request.param, engine.path, find_mpiexec(System(), engine.mpicxx), preloaded)


def _built_wrapper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build engine/tests/fakes/yielding_ucx.cpp: ranks of MPICH yield their CPUs while they wait."""
    with _folder_of_all_workers(tmp_path_factory, "wrapper") as folder:
        library = folder / "fake" / "libyielding_ucx.so"
        subprocess.run(["make", "-s", "-C", ENGINE, f"BUILD={folder}", library], check=True)
        return library


@contextmanager
def _folder_of_all_workers(tmp_path_factory: pytest.TempPathFactory, name: str) -> Iterator[Path]:
    """A folder of all workers of pytest-xdist, for one of them at a time: what it has built, the others find."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


@pytest.fixture(scope="session")
def smpi_engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The engine for SimGrid, where it is installed."""
    with _folder_of_all_workers(tmp_path_factory, "smpi") as folder:
        engine = folder / "fablint-engine"
        return engine if engine.exists() else build_smpi_engine(folder)


@pytest.fixture(scope="session")
def built_drivers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the fakes of the driver libraries of GPUs: engine/tests/fakes."""
    with _folder_of_all_workers(tmp_path_factory, "fakes") as folder:
        subprocess.run(["make", "-s", "-C", ENGINE, f"BUILD={folder}", "fake_drivers"], check=True)
        return folder / "fake"


@pytest.fixture
def fake_drivers(built_drivers: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, without the part of UCX for GPUs: it calls more functions of the driver than the fakes have."""
    monkeypatch.setenv("UCX_MODULES", "^cuda,rocm")
    return built_drivers


@pytest.fixture
def fake_gpus(fake_drivers: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The fakes, loaded instead of the driver libraries; returns their folder.

    Preloaded too: Open MPI's mpiexec puts /usr/lib, where a driver can be, before the LD_LIBRARY_PATH of its ranks.
    """
    monkeypatch.setenv("LD_LIBRARY_PATH", str(fake_drivers), prepend=os.pathsep)
    monkeypatch.setenv("LD_PRELOAD", os.pathsep.join(str(fake_drivers / name) for name in FAKES))
    return fake_drivers


@pytest.fixture
def four_fake_gpus(fake_gpus: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same with four GPUs."""
    monkeypatch.setenv("FAKE_GPU_DEVICES", "4")
    return fake_gpus


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
