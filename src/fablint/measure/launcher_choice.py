"""Selection of launchers for the engine, best first: the MPI library's own, then Slurm's srun if its PMI fits.

The library's own launcher fits the library, and inside a job it gets its hosts from Slurm. srun is needed where there
is no other launcher, as on a Cray; with a PMI that fits by name only, ranks crash or wait for each other without end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fablint.errors import UsageError
from fablint.measure.launchers import LAUNCHERS
from fablint.measure.launchers.direct import DIRECT, SSH, Direct, RendezvousStart
from fablint.measure.launchers.launcher import Launcher, Mpiexec
from fablint.measure.launchers.openmpi import OpenMpi
from fablint.measure.launchers.pals import Pals
from fablint.measure.launchers.srun import Srun, SrunRendezvous, mpi_types
from fablint.measure.version_cache import VersionCache
from fablint.model import Plan
from fablint.model.registry import TRANSPORTS
from fablint.system import System

SRUN = "srun"  # of --launcher
_TRIES = 3  # if the port is in use on the first host
_SLURM_S = 30.0


@dataclass(frozen=True)
class Choice:
    """Launchers to try in turn, and the reason why srun is not one of them in a Slurm job."""

    launchers: tuple[Mpiexec, ...]
    srun_problem: str = ""
    remedy: str = ""


def connects_without_mpi(launcher: str, plan: Plan) -> bool:
    """Tell whether the ranks of a plan connect without MPI if this launcher is requested ('': none).

    Those of srun do if no row needs MPI.

    Raises
    ------
    UsageError
        The launcher starts no MPI, and a row needs it.
    """
    if launcher not in (DIRECT, SSH, SRUN):
        return False
    row = next((row.spec for row in plan.rows if TRANSPORTS[row.spec.transport].needs_mpi), None)
    if row is None or launcher == SRUN:
        return row is None
    raise UsageError(
        f"--launcher {launcher} starts no MPI, which transport {row.transport} of row {row.name or row.kernel} needs",
        "give --transport tcp, ucx, ofi or verbs, or an MPI launcher",
    )


def find_rendezvous(system: System, launcher: str, first_host: str = "") -> Choice:
    """Return the launchers of an engine without MPI.

    Parameters
    ----------
    system
        This machine.
    launcher
        `direct`, `ssh` or `srun`.
    first_host
        The first host of the job.

    Raises
    ------
    UsageError
        The program of that name is missing.
    """
    if launcher == DIRECT:
        return Choice((RendezvousStart(Path(DIRECT), Direct(), "processes of this machine"),))
    path = system.which(launcher)
    if path is None:
        raise UsageError(f"there is no {launcher} on the PATH", "install it, or give another --launcher")
    start: Mpiexec = RendezvousStart(path, Direct(), "ssh, without MPI")
    if launcher == SRUN:
        start = SrunRendezvous(path, Srun("none"), "srun, without MPI", first_host)
    return Choice((start,) * _TRIES)


def find_launchers(
    system: System, mpicxx: Path, libraries: Sequence[str] = (), *, requested: str = "", cached: bool = True
) -> Choice:
    """Launchers that may start an engine built with `mpicxx`.

    Parameters
    ----------
    requested
        Program that is used, and no other; '': the library's own launcher, then srun.
    libraries
        MPI libraries of the engine, by path.
    cached
        Whether a cached version of the launcher may be used.

    Raises
    ------
    UsageError
        There is no launcher.
    """
    if requested:
        return Choice((_chosen(system, requested, mpicxx, libraries),))
    cache = VersionCache(system, (mpicxx, *map(Path, libraries))) if cached else None
    own_launchers, missing = _own(system, mpicxx, cache)
    if "SLURM_JOB_ID" not in system.environ:
        if own_launchers is None:
            raise missing
        return Choice((own_launchers,))
    choice = _slurm(system, _pmi(own_launchers, libraries))
    launchers = tuple(launcher for launcher in (own_launchers, *choice.launchers) if launcher is not None)
    if not launchers:
        raise UsageError(f"{missing.message}; {choice.srun_problem}", choice.remedy)
    return Choice(launchers, choice.srun_problem, choice.remedy)


def _own(system: System, mpicxx: Path, cache: VersionCache | None = None) -> tuple[Mpiexec | None, UsageError]:
    """The MPI library's own launcher, or the error that explains its absence."""
    try:
        own_mpiexec = find_mpiexec(system, mpicxx, cache)
    except UsageError as error:
        return None, error
    # On a Slurm site the PATH may have only srun under another name.
    return own_mpiexec, UsageError("")


def _chosen(system: System, name: str, mpicxx: Path, libraries: Sequence[str]) -> Mpiexec:
    path = system.which(name)
    if path is None:
        choice = f"{DIRECT}, {SSH}, {SRUN} or the path of an MPI launcher"
        raise UsageError(f"--launcher names {name}, which is not a program", f"give {choice}")
    chosen = identify(system, path.absolute())
    if not isinstance(chosen.kind, Srun):
        return chosen
    return next(iter(_slurm(system, _pmi(_own(system, mpicxx)[0], libraries), path).launchers), chosen)


def _pmi(own_mpiexec: Mpiexec | None, libraries: Sequence[str]) -> tuple[str, ...]:
    """PMI types that fit the MPI library; without a launcher its file decides: Open MPI's is number 40."""
    if own_mpiexec is not None:
        return own_mpiexec.kind.pmi
    return OpenMpi.pmi if any("/libmpi.so.40" in library for library in libraries) else Pals.pmi


def _slurm(system: System, requested: Sequence[str], path: Path | None = None) -> Choice:
    """srun with the first of the requested types that this Slurm supports."""
    path = path or system.which("srun")
    if path is None:
        return Choice((), "srun is not on the PATH of this Slurm job", "load the slurm module")
    listed = system.run([str(path), "--mpi=list"], timeout_s=_SLURM_S)
    has = mpi_types(listed.output + listed.errors)
    # A site may have `pmix_v4` and no alias for it.
    fits = (kind for want in requested for kind in has if kind == want or kind.startswith(f"{want}_v"))
    kind = next(fits, None)
    if kind is None:
        return Choice(
            (),
            f"srun has no PMI for this MPI library (needs --mpi={' or '.join(requested)}, Slurm has {', '.join(has)})",
            f"install Slurm's plugin mpi/{requested[0]}, or load an MPI that srun --mpi=list shows",
        )
    version = system.run([str(path), "--version"], timeout_s=_SLURM_S)
    return Choice((Mpiexec(path, Srun(kind), f"{version.output.strip()}, --mpi={kind}"),))


def find_mpiexec(system: System, mpicxx: Path, cache: VersionCache | None = None) -> Mpiexec:
    """Launcher of the MPI that `mpicxx` belongs to: in the same folder, else on the PATH.

    Raises
    ------
    UsageError
        There is no launcher, or it is of an unknown kind.
    """
    suffix = mpicxx.name.partition(".")[2]  # Debian: mpicxx.mpich has mpiexec.mpich in the same folder
    names = [f"{stem}.{suffix}" for stem in ("mpiexec", "mpirun") if suffix] + ["mpiexec", "mpirun", "mpiexec.hydra"]
    neighbours = (mpicxx.parent / name for name in names)
    path = next((candidate for candidate in neighbours if candidate.exists()), None)
    path = path or next(filter(None, map(system.which, names)), None)
    if path is None:
        raise UsageError(
            f"no mpiexec in the folder of {mpicxx} nor on the PATH", "load the MPI module that the engine is built with"
        )
    return identify(system, path, cache)


def identify(system: System, path: Path, cache: VersionCache | None = None) -> Mpiexec:
    """Launcher with its kind, which its version shows. The launcher does not run if `cache` has the version.

    Raises
    ------
    UsageError
        It prints no version or is of an unknown kind.
    """
    argv = [str(path), "--version"]
    cached = cache.get(argv) if cache is not None else None
    kind = _recognised(cached) if cached is not None else None
    if cached is not None and kind is not None:
        return Mpiexec(path, kind, _version_line(cached))
    answer = system.run(argv, timeout_s=30)
    text = answer.output + answer.errors
    kind = _recognised(text)
    if kind is None:
        names = ", ".join(launcher.name for launcher in LAUNCHERS)
        first = next(iter(text.splitlines()), f"exit status {answer.status}")
        raise UsageError(f"{path} is a launcher of unknown kind ({first})", f"use an MPI with one of these: {names}")
    if cache is not None and answer.status == 0:
        cache.put(argv, text)
    return Mpiexec(path, kind, _version_line(text))


def _recognised(version: str) -> Launcher | None:
    """Kind of launcher that prints this text; None if it is unknown."""
    return next((launcher for launcher in LAUNCHERS if launcher.recognises(version)), None)


def _version_line(text: str) -> str:
    """Line with the version number: Hydra prints a headline first, and blanks before the number."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    return next((line for line in lines if any(letter.isdigit() for letter in line)), lines[0])
