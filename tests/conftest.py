"""What tests of several folders share."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from fablint.cli import main
from fablint.system import System
from fablint_command import COMMAND, Fablint
from pinned import pytest_addoption, pytest_assertrepr_compare, pytest_configure
from rdmavm import RunInVm, start_rdmavm
from tested_mpis import built_engine, tested_mpis
from vcluster import StartCluster, cluster

if TYPE_CHECKING:
    from browser import Reader

__all__ = ["pytest_addoption", "pytest_assertrepr_compare", "pytest_configure"]  # hooks of pytest

_MPIS = tested_mpis()

# The same examples in every run: one that fails can be repeated. `pytest --hypothesis-profile=random` tries others.
# How long an example takes says more about what else the machine does than about the code.
_UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", _UNTIMED, derandomize=True)
settings.register_profile("random", _UNTIMED, derandomize=False)
settings.load_profile("repeatable")


@dataclass
class StagedSystem(System):
    """This machine with another environment, interpreter or set of CPUs."""

    variables: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    interpreter: Path | None = None
    cpus: frozenset[int] | None = None
    root: bool | None = None

    @property
    def environ(self) -> Mapping[str, str]:
        return self.variables

    @property
    def python(self) -> Path:
        return self.interpreter or super().python

    def affinity(self) -> frozenset[int]:
        return super().affinity() if self.cpus is None else self.cpus

    def is_root(self) -> bool:
        return super().is_root() if self.root is None else self.root


@pytest.fixture
def staged(tmp_path: Path) -> StagedSystem:
    """A system whose FABLINT_HOME is empty and the test's own."""
    system = StagedSystem()
    system.variables["FABLINT_HOME"] = str(tmp_path / "home")
    return system


@pytest.fixture
def fablint(fablint_program: Fablint) -> Fablint:
    """Call fablint; folders whose tests need no other process for it override this fixture."""
    return fablint_program


@pytest.fixture
def fablint_program(tmp_path: Path) -> Fablint:
    """Call fablint as a program in an empty directory; returns status, stdout and stderr."""

    def call(*words: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *map(str, words)],
            cwd=tmp_path,
            env=os.environ | {"COLUMNS": "80"} | environ,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return call


@pytest.fixture
def fablint_in_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Fablint:
    """Call fablint as `fablint` does, but without another process, which imports numpy, scipy and xarray once more."""

    def call(*words: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
        argv = [str(word) for word in words]
        with monkeypatch.context() as patch, pytest.raises(SystemExit) as ended:
            patch.chdir(tmp_path)
            for name, value in ({"COLUMNS": "80"} | environ).items():
                patch.setenv(name, value)
            capsys.readouterr()
            main(argv)
        said = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return subprocess.CompletedProcess(argv, ended.value.code, said.out, said.err)

    return call


# All tests that were collected, by their ids, with the names of their marks.
_COLLECTED = pytest.StashKey[dict[str, set[str]]]()

# Folders and files that wait for virtual machines, clusters, compilers and launchers, or that compute for minutes. One
# of the files for SimGrid is first: it compiles the engine, for which the others would wait. The second file of the
# virtual machine follows the first on the same worker, since that has one test only: one machine is emulated at a time.
_LONGEST_FIRST = (
    "test_pages_run",
    "test_simulated_fabric",
    "test_rdma_loopback",
    "test_slurm_launch",
    "test_rdma_transports",
    "test_healthy_fabric",
    "cluster",
    "engine",
    "cli",
)

# Fixtures of the test beds: what uses one of them is part of `make test-long`.
_BEDS = {"virtual_cluster", "smpi_engine", "rdmavm"}
_MPI_FIXTURES = ("mpi", "mpicxx")  # their parameter is the name of a library


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the long tests, and put the longest files first.

    A worker would have one of the longest files to itself at the end, while the others have nothing to do. Files that
    the command line names run in its order.
    """
    for item in items:
        if _is_long(item):
            item.add_marker(pytest.mark.long)
    config.stash[_COLLECTED] = {item.nodeid: {mark.name for mark in item.iter_markers()} for item in items}
    if not all(word.partition("::")[0].endswith(".py") for word in config.args):
        items.sort(key=lambda item: _place(item.path))


@cache
def _place(path: Path) -> int:
    """Where a file of tests comes, by its name and the folders below tests/ in which it is."""
    order = {name: place for place, name in enumerate(_LONGEST_FIRST)}
    return min(order.get(name, len(order)) for name in path.relative_to(Path(__file__).parent).with_suffix("").parts)


def _is_long(item: pytest.Item) -> bool:
    """Does a test need the CPUs for itself, a test bed, or another MPI library than the first?"""
    if item.get_closest_marker("alone") or _BEDS & set(getattr(item, "fixturenames", ())):
        return True
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    return any(parameters.get(name) in _MPIS[1:] for name in _MPI_FIXTURES)


@pytest.fixture(scope="session")
def collected(request: pytest.FixtureRequest) -> dict[str, set[str]]:
    """Ids of all tests that were collected, selected or not, with the names of their marks."""
    return request.config.stash[_COLLECTED]


@pytest.fixture(scope="session")
def virtual_cluster() -> StartCluster:
    """What starts a cluster on the vcluster test bed."""
    return cluster


@pytest.fixture(scope="session")
def rdmavm() -> RunInVm:
    """What runs a command in the virtual machine of the rdmavm test bed."""
    return start_rdmavm()


@pytest.fixture(scope="session", params=_MPIS)
def mpicxx(request: pytest.FixtureRequest) -> Path | None:
    """The compiler wrapper of each MPI in turn; its engine is built, so that no test waits for it."""
    return built_engine(request.param).mpicxx


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    """A headless browser that opens pages."""
    from browser import started

    with started() as browser:
        yield browser
