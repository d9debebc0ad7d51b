"""The MPI library that an engine loads on this host: it may be another one than the engine is compiled for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from fablint.system import Completed, System

_OPTION = "--mpi-library"  # docs/reference/engine.md; the engine ends before MPI starts
_ERROR = "fablint-engine: error: "
_MISSING_SYMBOL = re.compile(r"undefined symbol: (?:ompi|opal|P?MPI|MPIR|mpi)\w*", re.ASCII)
_LIBRARY = re.compile(r"^\s*(\S*mpi\S*) => (/\S+)", re.ASCII | re.MULTILINE)
REMEDY = "load the MPI module of the engine's mpicxx only, and check LD_LIBRARY_PATH and LD_PRELOAD"


@dataclass(frozen=True)
class LoadedLibrary:
    """What one start of an engine shows."""

    text: str = ""  # name, version and path of the library; '' if the engine does not start
    problem: str = ""  # why it does not start
    is_other: bool = False  # because the library is not the one that the engine is compiled for


def load_library(system: System, program: Path) -> LoadedLibrary:
    """Start an engine once, without MPI; return the MPI library that it loads, or why it does not start."""
    done = system.run([str(program), _OPTION])
    if done.status == 0:
        return LoadedLibrary(text=done.output.strip())
    lines = done.errors.splitlines() or [f"exit status {done.status}"]
    reported = next((line.removeprefix(_ERROR) for line in lines if line.startswith(_ERROR)), "")
    if reported:
        return LoadedLibrary(problem=reported, is_other=True)
    symbol = _MISSING_SYMBOL.search(done.errors)
    if symbol is None:
        return LoadedLibrary(problem=lines[0])
    libraries = _mpi_libraries(system.run(["ldd", str(program)]))
    problem = f"the engine loads another MPI library than it is compiled for: {libraries}{symbol[0]}: {REMEDY}"
    return LoadedLibrary(problem=problem, is_other=True)


def _mpi_libraries(linked: Completed) -> str:
    """Name and real path of the MPI libraries in the output of `ldd`; '' without such a line."""
    return "".join(f"{name} is {Path(path).resolve()}, " for name, path in _LIBRARY.findall(linked.output))
