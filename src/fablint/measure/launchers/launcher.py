"""The interface of a launcher: how the engine's ranks are started."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

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
