"""Open MPI's mpiexec, mpirun and prterun."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

from fablint.measure.launchers.launcher import SHARED_STEPS, Death
from fablint.model import Slots

# 4.x: "mpirun noticed that process rank 1 with PID 0 on node n1 exited on signal 9 (Killed).", 5.x: "prterun noticed".
# The PID is 0 in 4.x when the job is ended at the same time: then it is useless.
_NOTICED = re.compile(
    r"noticed that process rank (?P<rank>\d+) with PID (?P<pid>\d+) on node (?P<host>\S+) "
    r"exited on (?P<reason>signal \d+ \([^)]*\))"
)


# Both versions, when the machine or the network of a host is gone: "ORTE has lost communication with a remote daemon.",
# "  HNP daemon   : [[37055,0],0] on node head", "  Remote daemon: [[37055,0],2] on node n2".
_DAEMON_LOST = re.compile(r"lost communication with a remote daemon.*?Remote daemon: \S+ on node (?P<host>[^\s,]+)")


class OpenMpi:
    """Open MPI 4 and 5."""

    name = "Open MPI"
    stop_signal = signal.SIGUSR2  # it ends its ranks a second after SIGINT and SIGTERM
    pmi = ("pmix",)

    def recognises(self, version: str) -> bool:
        return "Open MPI" in version or "OpenRTE" in version or "prterun" in version.lower()

    def arguments(self, ranks: int, *, root: bool) -> list[str]:
        return [*self._common(root=root), "-n", str(ranks)]

    def _common(self, *, root: bool) -> list[str]:
        return [*(["--allow-run-as-root"] if root else []), "--oversubscribe"]

    def placed(self, slots: Sequence[Slots], command: Sequence[str], *, root: bool) -> list[str]:
        hosts = [slot.host for slot in slots]
        if hosts != sorted(set(hosts), key=_in_order):
            # In a Slurm job ranks follow Slurm's order of hosts and not fablint's, but contexts are filled one by one.
            first, *later_contexts = (
                ["-n", str(slot.ranks), "--host", f"{slot.host}:{slot.ranks}", *command] for slot in slots
            )
            return [*self._common(root=root), *first, *(word for words in later_contexts for word in (":", *words))]
        # By slot: one host after the other is filled. The default distributes ranks over sockets first.
        where = ",".join(f"{slot.host}:{slot.ranks}" for slot in slots)
        ranks = sum(slot.ranks for slot in slots)
        return ["--host", where, "--map-by", "slot", *self.arguments(ranks, root=root), *command]

    def environ(self, *, oversubscribed: bool, unbound: bool) -> dict[str, str]:
        idle = {"OMPI_MCA_mpi_yield_when_idle": "1"} if oversubscribed else {}
        # The names of version 4 and of version 5.
        policies = ("OMPI_MCA_hwloc_base_binding_policy", "PRTE_MCA_hwloc_default_binding_policy")
        return SHARED_STEPS | idle | (dict.fromkeys(policies, "none") if unbound else {})

    def deaths(self, lines: Sequence[str]) -> list[Death]:
        # The message is wrapped at 76 columns, at any blank.
        text = " ".join(line.strip() for line in lines)
        ended = [
            Death(int(match["rank"]), int(match["pid"]) or None, match["host"], f"was ended by {match['reason']}")
            for match in _NOTICED.finditer(text)
        ]
        gone = [
            Death(host=match["host"], reason="failed (its mpirun daemon is gone)")
            for match in _DAEMON_LOST.finditer(text)
        ]
        return gone + ended


def _in_order(host: str) -> list[tuple[int, str]]:
    """Sorting key as in schedulers: n2 before n10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", host)]
