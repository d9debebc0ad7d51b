"""Interface of a launcher: how the engine's ranks are started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fablint.errors import UsageError
from fablint.model import Plan, Slots
from fablint.system import System

# Inside a Slurm job every launcher starts its daemons as a step, which must not wait for the CPUs of a step that has
# not ended because its host died. A variable, because Slurm before 20.11 has no such option; elsewhere it has no
# effect.
SHARED_STEPS = {"SLURM_OVERLAP": "1"}


@dataclass(frozen=True)
class Death:
    """Report of a launcher about a rank that ended by itself; None where the launcher does not say."""

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
        """Signal that the launcher passes on to all ranks without ending itself; the engine stops on it."""
        ...

    @property
    def pmi(self) -> tuple[str, ...]:
        """MPI types with which ranks of this launcher's library connect under Slurm's srun, the best first."""
        ...

    def recognises(self, version: str) -> bool:
        """Tell whether this is the output of `mpiexec --version` of this kind."""
        ...

    def arguments(self, ranks: int, *, root: bool) -> list[str]:
        """Arguments between `mpiexec` and the engine to start `ranks` ranks."""
        ...

    def placed(self, slots: Sequence[Slots], command: Sequence[str], *, root: bool) -> list[str]:
        """Arguments after `mpiexec` to run `command` with the first ranks on the first host of `slots`, and so on."""
        ...

    def environ(self, *, oversubscribed: bool, unbound: bool) -> dict[str, str]:
        """Environment that the ranks need in addition; `unbound`: allowed on all CPUs of their host."""
        ...

    def deaths(self, lines: Sequence[str]) -> list[Death]:
        """Ranks that the launcher reports as killed or crashed, from its whole output."""
        ...


class Launch(Protocol):
    """Processes that a launcher has started: `fablint.system.Process`, or several of them."""

    def read_line(self, timeout_s: float) -> str | None:
        """Next line of the output, or None if none came in time. Raises EOFError after the last line."""

    def poll(self) -> int | None:
        """Exit status; None while a process runs."""

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Exit status, or None if a process still runs after `timeout_s`."""

    def feed(self, text: str) -> None:
        """Write to the stdin of rank 0, which must be open; return at once."""

    def signal_program(self, program: Path, number: int) -> int:
        """Send a signal to the descendants that execute `program`; return their number."""

    def signal(self, number: int) -> None:
        """Pass a signal on to the ranks."""

    def kill(self) -> None:
        """Kill the processes with all descendants."""


@dataclass(frozen=True)
class Mpiexec:
    """An installed launcher."""

    path: Path
    kind: Launcher
    version: str  # first line of its version

    def argv(self, system: System, plan: Plan, command: Sequence[str]) -> list[str]:
        """Command line that starts the ranks of a plan on the hosts of the plan.

        Raises
        ------
        UsageError
            A host is an IPv6 address, which launchers of MPI take apart at its colons.
        """
        root = system.is_root()
        if address := next((slot.host for slot in plan.slots if ":" in slot.host), ""):
            raise UsageError(f"{self.kind.name} starts no ranks on IPv6 addresses such as {address}", "name the hosts")
        if plan.slots:
            return [str(self.path), *self.kind.placed(plan.slots, command, root=root)]
        return [str(self.path), *self.kind.arguments(plan.ranks, root=root), *command]

    def start(
        self,
        system: System,
        plan: Plan,
        command: Sequence[str],
        environ: Mapping[str, str],
        limit_s: float,
        *,
        is_served: bool = False,
    ) -> Launch:
        """Start the ranks of a plan; ranks that connect without MPI have `limit_s` for it.

        The stdin of rank 0 is the plan; if `is_served`, the requests of `--serve` that follow.
        """
        text = "" if is_served else plan.text
        return system.spawn(self.argv(system, plan, command), text=text, environ=environ, is_input_open=is_served)
