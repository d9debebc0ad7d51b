"""How the engine's ranks are started: the interface of a launcher, and the choice of the one that fits the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fablint.errors import UsageError
from fablint.measure.version_cache import VersionCache
from fablint.model import Plan, Slots
from fablint.system import System

# Inside a Slurm job every launcher starts its daemons as a step, which shall not wait for the CPUs of a step that has
# not ended because its host died. A variable, for Slurm before 20.11 has no such option; elsewhere it means nothing.
SHARED_STEPS = {"SLURM_OVERLAP": "1"}


@dataclass(frozen=True)
class Death:
    """What a launcher says about a rank that ended without being asked to; None where it does not say."""

    rank: int | None = None
    pid: int | None = None
    host: str | None = None
    reason: str = "ended unexpectedly"


class Launcher(Protocol):
    """One kind of MPI launcher."""

    @property
    def name(self) -> str: ...

    @property
    def stop_signal(self) -> int:
        """What the launcher passes on to all ranks without ending itself, and the engine takes for a wish to stop."""
        ...

    @property
    def pmi(self) -> tuple[str, ...]:
        """How ranks of this launcher's library find each other under Slurm's srun: its MPI types, the best first."""
        ...

    def recognises(self, version: str) -> bool:
        """Is this the text that `mpiexec --version` of this kind prints?"""
        ...

    def arguments(self, ranks: int, *, root: bool) -> list[str]:
        """What stands between `mpiexec` and the engine to start `ranks` ranks."""
        ...

    def placed(self, slots: Sequence[Slots], command: Sequence[str], *, root: bool) -> list[str]:
        """What follows `mpiexec` to run `command` with the first ranks on the first host of `slots`, and so on."""
        ...

    def environ(self, *, oversubscribed: bool, unbound: bool) -> dict[str, str]:
        """Environment that the ranks need in addition; `unbound`: to be on all CPUs of their host."""
        ...

    def deaths(self, lines: Sequence[str]) -> list[Death]:
        """The ranks that the launcher reports as killed or crashed, from all that it printed."""
        ...


@dataclass(frozen=True)
class Mpiexec:
    """A launcher as it is installed here."""

    path: Path
    kind: Launcher
    version: str  # its first line

    def argv(self, system: System, plan: Plan, command: Sequence[str]) -> list[str]:
        """The command line that starts the ranks of a plan where the plan wants them."""
        root = system.is_root()
        if plan.slots:
            return [str(self.path), *self.kind.placed(plan.slots, command, root=root)]
        return [str(self.path), *self.kind.arguments(plan.ranks, root=root), *command]


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
        from fablint.measure.launchers import LAUNCHERS

        known = ", ".join(launcher.name for launcher in LAUNCHERS)
        first = next(iter(text.splitlines()), f"exit status {answer.status}")
        raise UsageError(f"{path} is a launcher of unknown kind ({first})", f"use an MPI with one of these: {known}")
    if cache is not None and answer.status == 0:
        cache.put(argv, text)
    return Mpiexec(path, kind, _version_line(text))


def _recognised(version: str) -> Launcher | None:
    """The kind that prints this text."""
    from fablint.measure.launchers import LAUNCHERS

    return next((launcher for launcher in LAUNCHERS if launcher.recognises(version)), None)


def _version_line(text: str) -> str:
    """The line with the number in it: Hydra prints a headline first."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if any(letter.isdigit() for letter in line)), lines[0])
