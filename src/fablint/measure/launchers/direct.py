"""Ranks without MPI: processes of the engine on this machine, and over ssh on other hosts, join at rank 0's host.

The token of the launch, which is new each time, and the plan are on the stdin of each host's first process. The end of
its stdin requests a stop, and a process whose output no program reads ends itself: no rank survives its ssh.
"""

from __future__ import annotations

import os
import re
import secrets
import shlex
import signal
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fablint.errors import UsageError
from fablint.measure.launchers.launcher import Death, Launch, Mpiexec
from fablint.measure.launchers.process_group import HostProcess, ProcessGroup
from fablint.measure.launchers.rendezvous import join_options, rendezvous_port
from fablint.model import Plan, Slots
from fablint.system import System, is_here

DIRECT, SSH = "direct", "ssh"  # of --launcher
_ENDED = re.compile(r"fablint-engine: rank (?P<rank>\d+) was (?P<reason>ended by signal \d+ \([^)]*\))")
_SETTINGS = ("UCX_", "FI_", "NCCL_", "PSM", "RDMAV_", "LD_LIBRARY_PATH", "CUDA_VISIBLE_", "ROCR_VISIBLE_")
_OPTIONS = ("-T", "-oNumberOfPasswordPrompts=0", "-oLogLevel=ERROR", "-oConnectTimeout=10", "-oServerAliveInterval=10")
# A login shell that is a csh must pass it on unharmed. The folder may be one of this machine only.
_SCRIPT = 'cd "$1" 2>/dev/null; shift; exec env "$@"'


class Direct:
    """The engine's own processes."""

    name = DIRECT
    stop_signal = signal.SIGINT  # the first process of each host passes it on
    pmi = ()

    def recognises(self, version: str) -> bool:
        """Tell whether the version is that of a launcher: there is no program to ask."""
        return False

    def arguments(self, ranks: int, *, root: bool) -> list[str]:
        """Options of the engine that connect `ranks` ranks."""
        return ["--ranks", str(ranks)]

    def placed(self, slots: Sequence[Slots], command: Sequence[str], *, root: bool) -> list[str]:
        """Command of the engine."""
        return [*command, *self.arguments(sum(slot.ranks for slot in slots), root=root)]

    def environ(self, *, oversubscribed: bool, unbound: bool) -> dict[str, str]:
        """No variable: the engine does not bind its ranks without being asked."""
        return {}

    def deaths(self, lines: Sequence[str]) -> list[Death]:
        """Ranks that the first process of a host reports as killed."""
        matches = filter(None, map(_ENDED.search, lines))
        return [Death(int(match["rank"]), reason=f"was {match['reason']}") for match in matches]


@dataclass(frozen=True)
class RendezvousStart(Mpiexec):
    """Start of a process of the engine on each host: here, or by the ssh at `path`."""

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
        """Start the ranks. Raises UsageError if only this machine may be used and the plan has another host."""
        slots = plan.slots or (Slots("localhost", plan.ranks),)
        remote = [slot.host for slot in slots if not is_here(slot.host)]
        if remote and self.path == Path(DIRECT):
            raise UsageError(
                f"--launcher {DIRECT} starts ranks on this machine only, not on {remote[0]}",
                f"give --launcher {SSH} or srun, or an MPI launcher",
            )
        place = _place(slots[0].host, is_local=not remote)
        options = [*join_options(place, plan.ranks, limit_s), "--supervised"]
        token, first, processes = secrets.token_hex(16), 0, []
        for slot in slots:
            text = plan.text if first == 0 and not is_served else ""  # the others have it from rank 0
            argv = [command[0], *options, "--rank", f"{first}-{first + slot.ranks - 1}", *command[1:]]
            argv = self._over_ssh(slot.host, argv, system.environ) if slot.host in remote else argv
            stdin = f"{token}\n{len(text.encode())}\n{text}"
            started = system.spawn(argv, text=stdin, environ=environ, is_input_open=True)
            processes.append(HostProcess(slot.host if slot.host in remote else "", started))
            first += slot.ranks
        return ProcessGroup(processes)

    def _over_ssh(self, host: str, argv: Sequence[str], environ: Mapping[str, str]) -> list[str]:
        settings = [f"{name}={value}" for name, value in environ.items() if name.startswith(_SETTINGS)]
        remote = ["/bin/sh", "-c", _SCRIPT, "sh", str(Path.cwd()), *settings, *argv]
        return [str(self.path), *_OPTIONS, host, shlex.join(remote)]


def _place(host: str, *, is_local: bool) -> str:
    """HOST:PORT of rank 0."""
    if is_local:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            return f"127.0.0.1:{listener.getsockname()[1]}"
    return f"{os.uname().nodename if host == 'localhost' else host}:{rendezvous_port()}"
