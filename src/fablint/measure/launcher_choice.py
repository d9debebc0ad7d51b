"""Which launchers may start the engine, the best first: the MPI library's own, then Slurm's srun where its PMI fits.

The library's own launcher knows its library, and inside a job it asks Slurm for its hosts. srun is needed where there
is none, as on a Cray; with a PMI that fits by its name only, ranks crash or wait for each other for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fablint.errors import UsageError
from fablint.measure.launchers import LAUNCHERS
from fablint.measure.launchers.launcher import Launcher, Mpiexec
from fablint.measure.launchers.openmpi import OpenMpi
from fablint.measure.launchers.pals import Pals
from fablint.measure.launchers.srun import Srun, mpi_types
from fablint.measure.version_cache import VersionCache
from fablint.system import System

_SLURM_S = 30.0


@dataclass(frozen=True)
class Choice:
    """The launchers to try in turn, and what is wrong with srun where it is left out of a Slurm job."""

    launchers: tuple[Mpiexec, ...]
    trouble: str = ""
    mend: str = ""


def find_launchers(system: System, mpicxx: Path, libraries: Sequence[str] = (), *, cached: bool = True) -> Choice:
    """What may start an engine that is built with `mpicxx`; `libraries` are those of its MPI, by path.

    `$FABLINT_LAUNCHER` chooses one program. The version of an MPI's launcher is cached, which
    `cached` false ignores. Raises UsageError where there is none.
    """
    if chosen := system.environ.get("FABLINT_LAUNCHER"):
        return Choice((_chosen(system, chosen, mpicxx, libraries),))
    cache = VersionCache(system, (mpicxx, *map(Path, libraries))) if cached else None
    own, missing = _own(system, mpicxx, cache)
    if "SLURM_JOB_ID" not in system.environ:
        if own is None:
            raise missing
        return Choice((own,))
    found = _slurm(system, _pmi(own, libraries))
    launchers = tuple(one for one in (own, *found.launchers) if one is not None)
    if not launchers:
        raise UsageError(f"{missing.message}; {found.trouble}", found.mend)
    return Choice(launchers, found.trouble, found.mend)


def _own(system: System, mpicxx: Path, cache: VersionCache | None = None) -> tuple[Mpiexec | None, UsageError]:
    """The MPI library's own launcher, or why there is none."""
    try:
        own = find_mpiexec(system, mpicxx, cache)
    except UsageError as error:
        return None, error
    # On the PATH of a Slurm site there may be none but srun under another name.
    return own, UsageError("")


def _chosen(system: System, name: str, mpicxx: Path, libraries: Sequence[str]) -> Mpiexec:
    path = system.which(name)
    if path is None:
        raise UsageError(f"$FABLINT_LAUNCHER names {name}, which is no program", "give the path of an MPI launcher")
    chosen = identify(system, path.absolute())
    if not isinstance(chosen.kind, Srun):
        return chosen
    return next(iter(_slurm(system, _pmi(_own(system, mpicxx)[0], libraries), path).launchers), chosen)


def _pmi(own: Mpiexec | None, libraries: Sequence[str]) -> tuple[str, ...]:
    """The PMI types that fit the MPI library; where it has no launcher, its file tells: Open MPI's is number 40."""
    if own is not None:
        return own.kind.pmi
    return OpenMpi.pmi if any("/libmpi.so.40" in library for library in libraries) else Pals.pmi


def _slurm(system: System, wanted: Sequence[str], path: Path | None = None) -> Choice:
    """srun with the first of the wanted types that this Slurm has."""
    path = path or system.which("srun")
    if path is None:
        return Choice((), "srun is not on the PATH of this Slurm job", "load the slurm module")
    listed = system.run([str(path), "--mpi=list"], timeout_s=_SLURM_S)
    has = mpi_types(listed.output + listed.errors)
    # A site may have `pmix_v4` and no alias for it.
    fits = (kind for want in wanted for kind in has if kind == want or kind.startswith(f"{want}_v"))
    kind = next(fits, None)
    if kind is None:
        return Choice(
            (),
            f"srun has no PMI for this MPI library (it wants --mpi={' or '.join(wanted)}, Slurm has {', '.join(has)})",
            f"have Slurm's plugin mpi/{wanted[0]} installed, or load an MPI that srun --mpi=list knows",
        )
    version = system.run([str(path), "--version"], timeout_s=_SLURM_S)
    return Choice((Mpiexec(path, Srun(kind), f"{version.output.strip()}, --mpi={kind}"),))


def find_mpiexec(system: System, mpicxx: Path, cache: VersionCache | None = None) -> Mpiexec:
    """The launcher of the MPI that `mpicxx` belongs to: its neighbour, else the one on the PATH.

    Raises UsageError when there is none, or when it is of no kind that we know.
    """
    suffix = mpicxx.name.partition(".")[2]  # Debian: mpicxx.mpich has mpiexec.mpich as its neighbour
    names = [f"{stem}.{suffix}" for stem in ("mpiexec", "mpirun") if suffix] + ["mpiexec", "mpirun", "mpiexec.hydra"]
    beside = (mpicxx.parent / name for name in names)
    path = next((candidate for candidate in beside if candidate.exists()), None)
    path = path or next(filter(None, map(system.which, names)), None)
    if path is None:
        raise UsageError(
            f"no mpiexec beside {mpicxx} nor on the PATH", "load the MPI module that the engine is built with"
        )
    return identify(system, path, cache)


def identify(system: System, path: Path, cache: VersionCache | None = None) -> Mpiexec:
    """Return a launcher with its kind, which its version shows. The launcher does not run if `cache` has the version.

    Raises UsageError when it does not say or is of no known kind.
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
        known = ", ".join(launcher.name for launcher in LAUNCHERS)
        first = next(iter(text.splitlines()), f"exit status {answer.status}")
        raise UsageError(f"{path} is a launcher of unknown kind ({first})", f"use an MPI with one of these: {known}")
    if cache is not None and answer.status == 0:
        cache.put(argv, text)
    return Mpiexec(path, kind, _version_line(text))


def _recognised(version: str) -> Launcher | None:
    """The kind that prints this text."""
    return next((launcher for launcher in LAUNCHERS if launcher.recognises(version)), None)


def _version_line(text: str) -> str:
    """The line with the number in it: Hydra prints a headline first."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if any(letter.isdigit() for letter in line)), lines[0])
