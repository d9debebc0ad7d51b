"""Hydra: the mpiexec of MPICH and its derivatives, and Intel MPI's variant."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

from fablint.measure.launchers.launcher import SHARED_STEPS, Death
from fablint.model import Slots

# MPICH: "=   PID 123 RUNNING AT n1" and "=   EXIT CODE: 9".
# Intel: "=   RANK 1 PID 123 RUNNING AT n1" and "=   KILLED BY SIGNAL: 9 (Killed)".
_RUNNING = re.compile(r"=\s+(?:RANK (?P<rank>\d+) )?PID (?P<pid>\d+) RUNNING AT (?P<host>\S+)")
_EXIT = re.compile(r"=\s+(?:EXIT CODE|KILLED BY SIGNAL|KILL SIGNAL|EXIT STATUS): (?P<code>-?\d+)")


def _reason(code: int) -> str:
    """Reason of an end: Hydra prints the number of the signal and the exit status in the same field."""
    number = code - 128 if code > 128 else code
    try:
        return f"was ended by signal {number} ({signal.strsignal(number) or 'unknown'})"
    except ValueError:
        return f"ended with status {code}"


class Hydra:
    """MPICH, MVAPICH, and the `mpich` wheel."""

    name = "MPICH (Hydra)"
    stop_signal = signal.SIGINT  # the first signal is passed on
    pmi = ("pmi2", "pmix")

    def recognises(self, version: str) -> bool:
        return "HYDRA build details" in version

    def arguments(self, ranks: int, *, root: bool) -> list[str]:
        return ["-n", str(ranks)]

    def placed(self, slots: Sequence[Slots], command: Sequence[str], *, root: bool) -> list[str]:
        hosts = ",".join(f"{slot.host}:{slot.ranks}" for slot in slots)
        ranks = sum(slot.ranks for slot in slots)
        return ["-hosts", hosts, *self.arguments(ranks, root=root), *command]

    def environ(self, *, oversubscribed: bool, unbound: bool) -> dict[str, str]:
        return dict(SHARED_STEPS)  # does not bind by default

    def deaths(self, lines: Sequence[str]) -> list[Death]:
        result: list[Death] = []
        running: re.Match[str] | None = None
        for line in lines:
            running = _RUNNING.search(line) or running
            if running and (ended := _EXIT.search(line)):
                rank = running["rank"]
                reason = _reason(int(ended["code"]))
                result.append(Death(int(rank) if rank else None, int(running["pid"]), running["host"], reason))
                running = None
        return result


class IntelHydra(Hydra):
    """Intel MPI."""

    name = "Intel MPI"

    def recognises(self, version: str) -> bool:
        return "Intel(R) MPI" in version

    def placed(self, slots: Sequence[Slots], command: Sequence[str], *, root: bool) -> list[str]:
        # Its -hosts has no counts: one argument set for every host.
        sets = (["-host", slot.host, *self.arguments(slot.ranks, root=root), *command] for slot in slots)
        return [word for words in sets for word in (":", *words)][1:]
