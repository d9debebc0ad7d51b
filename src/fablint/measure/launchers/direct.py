"""Processes of this machine, without a launcher and without MPI: the engine starts its ranks itself."""

from __future__ import annotations

import os
import re
import secrets
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from fablint.errors import UsageError
from fablint.measure.launchers.launcher import Death, Mpiexec
from fablint.model import Plan, Slots
from fablint.system import System

NAME = "direct"  # in FABLINT_LAUNCHER
_ENDED = re.compile(r"fablint-engine: rank (?P<rank>\d+) was (?P<reason>ended by signal \d+ \([^)]*\))")


class Direct:
    """The engine's own processes."""

    name = NAME
    stop_signal = signal.SIGINT  # the first process passes it on
    pmi = ()

    def recognises(self, version: str) -> bool:
        """Whether the version is that of a launcher: there is no program to ask."""
        return False

    def arguments(self, ranks: int, *, root: bool) -> list[str]:
        """Options of the engine that connect `ranks` ranks of this machine."""
        port = _free_port()
        return ["--rendezvous", f"127.0.0.1:{port}", "--rank", f"0-{ranks - 1}", "--ranks", str(ranks)]

    def placed(self, slots: Sequence[Slots], command: Sequence[str], *, root: bool) -> list[str]:
        """Options of the engine. Raises UsageError for another host than this machine."""
        here = ("localhost", os.uname().nodename.split(".")[0])
        other = next((slot.host for slot in slots if slot.host.split(".")[0] not in here), None)
        if other is not None:
            raise UsageError(
                f"FABLINT_LAUNCHER={NAME} starts ranks on this machine only, not on {other}",
                "use an MPI launcher, or start fablint-engine --rendezvous on each host",
            )
        return self.arguments(sum(slot.ranks for slot in slots), root=root)

    def environ(self, *, oversubscribed: bool, unbound: bool) -> dict[str, str]:
        """A new token for each launch: no other process can join."""
        return {"FABLINT_TOKEN": secrets.token_hex(16)}

    def deaths(self, lines: Sequence[str]) -> list[Death]:
        """Ranks that the first process reports as killed."""
        matches = filter(None, map(_ENDED.search, lines))
        return [Death(int(match["rank"]), reason=f"was {match['reason']}") for match in matches]


@dataclass(frozen=True)
class DirectStart(Mpiexec):
    """Start of the engine without another program."""

    def argv(self, system: System, plan: Plan, command: Sequence[str]) -> list[str]:
        """Command line of the engine's first process."""
        program, *words = command
        root = system.is_root()
        options = (
            self.kind.placed(plan.slots, command, root=root)
            if plan.slots
            else self.kind.arguments(plan.ranks, root=root)
        )
        return [program, *options, *words]


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
