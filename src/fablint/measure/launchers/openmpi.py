"""Open MPI's mpiexec, mpirun and prterun."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fablint.measure.launcher import Death
from fablint.model import Slots

# 4.x: "mpirun noticed that process rank 1 with PID 0 on node n1 exited on signal 9 (Killed).", 5.x: "prterun noticed".
# The PID is 0 in 4.x when the job is ended at the same time: then it says nothing.
_NOTICED = re.compile(
    r"noticed that process rank (?P<rank>\d+) with PID (?P<pid>\d+) on node (?P<host>\S+) "
    r"exited on (?P<reason>signal \d+ \([^)]*\))"
)


class OpenMpi:
    """Open MPI 4 and 5."""

    name = "Open MPI"

    def recognises(self, version: str) -> bool:
        return "Open MPI" in version or "OpenRTE" in version or "prterun" in version.lower()

    def arguments(self, ranks: int, *, root: bool) -> list[str]:
        as_root = ["--allow-run-as-root"] if root else []
        return [*as_root, "--oversubscribe", "-n", str(ranks)]

    def placed(self, slots: Sequence[Slots], command: Sequence[str], *, root: bool) -> list[str]:
        hosts = ",".join(f"{slot.host}:{slot.ranks}" for slot in slots)
        ranks = sum(slot.ranks for slot in slots)
        # By slot: one host after the other is filled. The default scatters ranks over sockets first.
        return ["--host", hosts, "--map-by", "slot", *self.arguments(ranks, root=root), *command]

    def environ(self, *, oversubscribed: bool, unbound: bool) -> dict[str, str]:
        idle = {"OMPI_MCA_mpi_yield_when_idle": "1"} if oversubscribed else {}
        # The names of version 4 and of version 5.
        policies = ("OMPI_MCA_hwloc_base_binding_policy", "PRTE_MCA_hwloc_default_binding_policy")
        return idle | (dict.fromkeys(policies, "none") if unbound else {})

    def deaths(self, lines: Sequence[str]) -> list[Death]:
        # The message is wrapped at 76 columns, at any blank.
        text = " ".join(line.strip() for line in lines)
        return [
            Death(int(found["rank"]), int(found["pid"]) or None, found["host"], f"was ended by {found['reason']}")
            for found in _NOTICED.finditer(text)
        ]
