"""Which MPI libraries the tests run with, by the suffixes of Debian's compiler wrappers: `openmpi mpich`.

FABLINT_TEST_MPI names them. Without it they are those that are installed, that of the mpicxx on the PATH first, which
is called `default` if it is not a library of Debian. `make test` uses the first library, `make test-long` the others.
Run as a program, this module prints the list, for engine/tests/run.sh.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

from fablint.measure import Engine, NoProgress, build_engine
from fablint.system import System

DEFAULT = "default"
_SUFFIXES = ("openmpi", "mpich")


def tested_mpis() -> list[str]:
    """Return the libraries to test with; never empty."""
    if named := os.environ.get("FABLINT_TEST_MPI", "").split():
        return named
    installed = [mpi for mpi in _SUFFIXES if shutil.which(f"mpicxx.{mpi}")]
    first = next((mpi for mpi in installed if _is_on_path(mpi)), DEFAULT)
    return [first, *(mpi for mpi in installed if mpi != first)]


def wrapper_name(mpi: str) -> str:
    """Return the compiler wrapper of a library: the plain mpicxx, for which `make dev` built, where both are equal."""
    return "mpicxx" if mpi == DEFAULT or _is_on_path(mpi) else f"mpicxx.{mpi}"


def built_engine(mpi: str) -> Engine:
    """Return the engine for a library, built by one worker of pytest-xdist while the others wait."""
    name = wrapper_name(mpi)
    wrapper = shutil.which(name)
    assert wrapper or mpi == DEFAULT, f"FABLINT_TEST_MPI: {name} is not installed"
    with (System().home_folder("engines") / "tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return build_engine(System(), NoProgress(), mpicxx=Path(wrapper) if wrapper else None)


def _is_on_path(mpi: str) -> bool:
    """Is a library the one of the plain mpicxx, which Debian makes a link to a wrapper?"""
    programs = {Path(found).resolve() for name in ("mpicxx", f"mpicxx.{mpi}") if (found := shutil.which(name))}
    return shutil.which(f"mpicxx.{mpi}") is not None and shutil.which("mpicxx") is not None and len(programs) == 1


if __name__ == "__main__":
    print(*tested_mpis())
