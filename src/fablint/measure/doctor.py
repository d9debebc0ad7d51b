"""`fablint doctor`: whether this machine is ready, and a remedy for each problem."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from fablint.errors import FablintError
from fablint.measure.empty_launch import find_each_other, try_exchange
from fablint.measure.engine import Compiler, Engine, describe_compiler, find_engine, find_mpicxx, list_engines
from fablint.measure.launcher_choice import find_launchers
from fablint.measure.launchers.launcher import Mpiexec
from fablint.measure.launchers.srun import Srun
from fablint.measure.loaded_library import LoadedLibrary, load_library
from fablint.model import Medium, Plan
from fablint.model.names import plural
from fablint.model.registry import MEMORIES, TRANSPORTS
from fablint.system import System

_PINNED_MEMORY = 64 * 2**20  # memory that an RDMA stack registers for a few connections
SRUN_REMEDY = "another launcher is used; for srun load an MPI whose PMI srun --mpi=list shows, or install that PMI"
_FOLDERS = ("engines", "jobs")  # of FABLINT_HOME: a cache, and what a user keeps
_FIRST_NODE = 0  # NUMA node, of a memory that is bound to one
_EXTRAS = {  # optional package: what needs it, what it writes, and the extra of pip that installs it
    "h5netcdf": ("export to netcdf and hdf5", "netcdf, hdf5", "export"),
    "pyarrow": ("export to parquet", "parquet", "export"),
    "xarray": ("fablint.open_run in Python", "", "xarray"),
    "reportlab": ("report --pdf and --png", "pdf, png", "pdf"),
}


# What the engine says of a transport or a memory that a machine need not have.
_NOT_HERE = ("this host has no ", "cannot open shared object file", "no huge pages")


@dataclass(frozen=True)
class DoctorCheck:
    """One line of the doctor: subject, state, and a remedy if it is not `ok`."""

    name: str
    ok: bool
    state: str
    remedy: str = ""
    needed: bool = True  # nothing can be measured without it
    is_here: bool = True  # False: this machine does not have it, and need not have it
    ability: str = ""  # what the machine can do if it is ok, for the summary

    @property
    def mark(self) -> str:
        """`ok`, `FAIL` (stops every measurement), `-` (not here) or `warn`."""
        return "ok" if self.ok else "FAIL" if self.needed else "warn" if self.is_here else "-"


# Begin of the summary's enumerations, by the name of the checks.
_ABILITIES = {"transport": "measure over", "memory": "with buffers in host memory,", "extra": "write"}


def summary(checks: Sequence[DoctorCheck]) -> str:
    """One line: what the machine can do, or what stops a measurement."""
    if failed := [check.name for check in checks if check.mark == "FAIL"]:
        return f"this machine cannot measure: {', '.join(dict.fromkeys(failed))}"
    parts = [
        f"{begin} {', '.join(able)}"
        for name, begin in _ABILITIES.items()
        if (able := [check.ability for check in checks if check.name == name and check.ok and check.ability])
    ]
    if not any(check.name == "transport" for check in checks):
        parts.insert(0, "measure over mpi, after the engine is built")
    return f"this machine can: {'; '.join(parts)}"


def examine(system: System) -> Iterator[DoctorCheck]:
    """All checks, in the order in which a first run needs the parts. Each is made when it is asked for."""
    looks: tuple[Callable[[System], Iterator[DoctorCheck]], ...] = (
        _python,
        _home,
        _mpi,
        _engines,
        _transports,
        _cpus,
        _memory,
        _extras,
    )
    for look in looks:
        yield from look(system)


def _python(system: System) -> Iterator[DoctorCheck]:
    yield DoctorCheck("python", True, f"{platform.python_version()} at {system.python}")


def _home(system: System) -> Iterator[DoctorCheck]:
    """Check of FABLINT_HOME: the nearest existing folder decides whether it can be written; nothing is created."""
    folders = dict.fromkeys(system.own_path(name).parent for name in _FOLDERS)
    text = str(system.home)
    if system.home not in folders:
        text += f", read only; files of this user are in {' and '.join(map(str, folders))}"
    for folder in folders:
        existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
        if not (existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)):
            yield DoctorCheck("FABLINT_HOME", False, text, "set FABLINT_HOME to a directory you can write")
            return
    yield DoctorCheck("FABLINT_HOME", True, text)


def _mpi(system: System) -> Iterator[DoctorCheck]:
    try:
        path, origin = find_mpicxx(system)
        compiler = describe_compiler(system, path, origin)
    except FablintError as error:
        yield DoctorCheck("mpicxx", False, error.message, error.hint)
        return
    yield DoctorCheck("mpicxx", True, f"{path} ({origin}), {compiler.version}")
    yield from _launchers(system, compiler)


def _launchers(system: System, compiler: Compiler) -> Iterator[DoctorCheck]:
    """Launchers in the order in which they are tried; srun is tried now."""
    try:
        choice = find_launchers(system, compiler.path, compiler.libraries, cached=False)
    except FablintError as error:
        yield DoctorCheck("mpiexec", False, error.message, error.hint)
        return
    if choice.srun_problem:
        yield DoctorCheck("srun", False, choice.srun_problem, choice.remedy, False)
    for mpiexec in choice.launchers:
        result = f"{mpiexec.path}, {mpiexec.kind.name}: {mpiexec.version}"
        wrong = _connection_error(system, mpiexec) if isinstance(mpiexec.kind, Srun) else ""
        name = "srun" if isinstance(mpiexec.kind, Srun) else "mpiexec"
        yield DoctorCheck(
            name, not wrong, f"{result}: {wrong}" if wrong else result, SRUN_REMEDY if wrong else "", False
        )


def _connection_error(system: System, srun: Mpiexec) -> str:
    """Return why two ranks that srun starts do not connect; '' if they connect, or if there is no engine that
    starts.
    """
    engine = _engine_of_path(system)
    if engine is None or load_library(system, engine.path).problem:
        return ""
    return find_each_other(system, srun, engine, Plan(2, ()))


def _engine_of_path(system: System) -> Engine | None:
    """Engine for the mpicxx that measurements use; None if it is not built."""
    try:
        return find_engine(system)
    except FablintError:
        return None


def _engines(system: System) -> Iterator[DoctorCheck]:
    engines = list_engines(system)  # latest first
    latest = {engine.mpicxx: engine for engine in reversed(engines)}
    used = _engine_of_path(system)
    for engine in latest.values():
        # Others belong to MPI modules that are not loaded.
        loaded = load_library(system, engine.path) if engine == used else LoadedLibrary()
        words = loaded.problem or (f"MPI library {loaded.text}" if loaded.text else "")
        state = f"{engine.path}, for {engine.mpicxx}" + (f": {words}" if words else "")
        yield DoctorCheck("engine", not loaded.problem, state)
    if earlier := len(engines) - len(latest):
        yield DoctorCheck("engine", True, f"{plural(earlier, 'earlier one')}: fablint engine list")
    if not engines:
        yield DoctorCheck("engine", True, "not built; the first measurement builds it, as does fablint engine build")


def _transports(system: System) -> Iterator[DoctorCheck]:
    """An exchange of two ranks of this host over each transport and in each memory, with an engine that starts."""
    engine = _engine_of_path(system)
    if engine is None or load_library(system, engine.path).problem:
        return
    try:
        launchers = find_launchers(system, engine.mpicxx, engine.libraries).launchers
        mpiexec = next(launcher for launcher in launchers if not isinstance(launcher.kind, Srun))
    except (FablintError, StopIteration):
        return
    for transport in TRANSPORTS.values():
        if transport.moves_nothing or transport.damages_payloads:
            continue
        failure = try_exchange(system, mpiexec, engine, "--transport", transport.name)
        state = f"{transport.name}: {failure or 'two ranks of this host exchanged messages'}"
        needed = transport.name == "mpi"
        yield DoctorCheck("transport", not failure, state, "", needed, _is_here(failure), transport.name)
    for name, parameter in MEMORIES.items():
        if name == Medium.memory:
            continue  # that of the transports
        memory = f"{name}:{_FIRST_NODE}" if parameter else name
        failure = try_exchange(system, mpiexec, engine, "--memory", memory)
        state = f"{memory}: {failure or 'messages were written, sent and read'}"
        yield DoctorCheck("memory", not failure, state, "", False, _is_here(failure), name)


def _is_here(failure: str) -> bool:
    return not any(words in failure for words in _NOT_HERE)


def _cpus(system: System) -> Iterator[DoctorCheck]:
    usable, cpus = len(system.affinity()), system.cpu_count()
    result = f"{usable} of {cpus} usable"
    bound = usable == 1 and cpus > 1
    yield DoctorCheck(
        "CPUs",
        not bound,
        result,
        "this shell is bound to one CPU: request more CPUs, or use another shell" if bound else "",
        False,
    )


def _memory(system: System) -> Iterator[DoctorCheck]:
    limit = system.locked_memory_limit()
    result = "unlimited" if limit is None else f"{limit / 2**20:.0f} MiB"
    rdma = any(Path("/sys/class/infiniband").glob("*"))
    scarce = rdma and limit is not None and limit < _PINNED_MEMORY
    yield DoctorCheck(
        "locked memory", not scarce, result, "RDMA needs more: raise memlock in limits.conf" if scarce else "", False
    )


def _extras(system: System) -> Iterator[DoctorCheck]:
    for package, (purpose, written, extra) in _EXTRAS.items():
        result = find_spec(package) is not None
        words = f"{package} for {purpose}" + ("" if result else " is not installed")
        remedy = "" if result else f"pip install 'fablint[{extra}]'"
        yield DoctorCheck("extra", result, words, remedy, False, False, written)
