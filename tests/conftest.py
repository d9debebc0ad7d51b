"""What tests of several folders share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fablint.measure import Silent, build_engine
from fablint.system import System


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


# Folders and files that wait for virtual machines, clusters, compilers and launchers.
_LONGEST_FIRST = ("test_rdma_loopback", "cluster", "engine", "cli")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first: at the end a worker would have one of them to itself, and the others nothing."""
    order = {folder: place for place, folder in enumerate(_LONGEST_FIRST)}
    items.sort(key=lambda item: order.get(item.path.stem, order.get(item.path.parent.name, len(order))))


def _wrappers() -> list[str]:
    """The MPI compilers to test with: those that FABLINT_TEST_MPI names, else the one that fablint finds."""
    named = [f"mpicxx.{suffix}" for suffix in os.environ.get("FABLINT_TEST_MPI", "").split()]
    return named or ["default"]


@pytest.fixture(scope="session", params=_wrappers())
def mpicxx(request: pytest.FixtureRequest) -> Path | None:
    """Each MPI in turn; its engine is built, so that no test waits for it."""
    wrapper = None if request.param == "default" else shutil.which(request.param)
    assert wrapper or request.param == "default", f"FABLINT_TEST_MPI: no {request.param} here"
    path = Path(wrapper) if wrapper else None
    build_engine(System(), Silent(), mpicxx=path)
    return path
