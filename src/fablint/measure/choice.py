"""Which launchers may start the engine, the best first: the MPI library's own, then Slurm's srun where its PMI fits.

The library's own launcher knows its library, and inside a job it asks Slurm for its hosts. srun is needed where there
is none, as on a Cray; with a PMI that fits by its name only, ranks crash or wait for each other for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fablint.errors import UsageError
from fablint.measure.launcher import Mpiexec, find_mpiexec, identify
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
