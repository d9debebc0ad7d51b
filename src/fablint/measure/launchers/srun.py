"""Slurm's srun, which starts ranks by itself if its PMI fits the MPI library."""

from __future__ import annotations

import re
import secrets
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fablint.measure.launchers.launcher import SHARED_STEPS, Death, Launch, Mpiexec
from fablint.measure.launchers.rendezvous import join_options, rendezvous_port
from fablint.model import Plan, Slots
from fablint.system import System

# "srun: error: nid001003: task 3: Killed", "srun: error: nid[001000,001002]: tasks 0,2-3: Exited with exit code 1".
_ENDED = re.compile(
    r"srun: error: (?P<hosts>[^\s:]+): tasks? (?P<tasks>[\d,-]+): "
    r"(?P<reason>Exited with exit code \d+|Killed|Terminated|Aborted|Segmentation fault|Bus error"
    r"|Illegal instruction|Floating point exception|Out Of Memory|[A-Z][\w ]*\(core dumped\))"
)
_NODE_FAILED = re.compile(r"srun: error: Node failure on (?P<host>[^\s,\[]+)")
_NO_LAUNCH = re.compile(r"srun: error: Task launch for \S+ failed on node (?P<host>[^\s:]+): (?P<reason>.+)")
_ENDING = re.compile(r"srun: (?:launch/slurm: )?\S*: ?Terminating StepId|srun: Job step aborted")


@dataclass(frozen=True)
class Srun:
    """Slurm. Steps share the resources of the job: the shell in which fablint runs may be a step itself."""

    mpi: str = ""  # a type of `srun --mpi=list`; '' for the site's default

    name = "Slurm's srun"
    stop_signal = signal.SIGUSR2  # SIGTERM ends the step, SIGINT shows its state
    pmi = ()

    def recognises(self, version: str) -> bool:
        return re.match(r"slurm(-wlm)? \d", version) is not None

    def arguments(self, ranks: int, *, root: bool) -> list[str]:
        kind = [f"--mpi={self.mpi}"] if self.mpi else []
        # More ranks than CPUs are allowed, and only rank 0 reads the plan on stdin.
        return [*kind, "--overcommit", "--kill-on-bad-exit=1", "--input=0", "--export=ALL", f"--ntasks={ranks}"]

    def placed(self, slots: Sequence[Slots], command: Sequence[str], *, root: bool) -> list[str]:
        # Slurm orders hosts itself, except for this distribution: one word per rank, in the order of ranks.
        rank_hosts = [slot.host for slot in slots for _ in range(slot.ranks)]
        where = [f"--nodes={len(set(rank_hosts))}", "--distribution=arbitrary", f"--nodelist={','.join(rank_hosts)}"]
        return [*where, *self.arguments(len(rank_hosts), root=root), *command]

    def environ(self, *, oversubscribed: bool, unbound: bool) -> dict[str, str]:
        idle = {"OMPI_MCA_mpi_yield_when_idle": "1"} if oversubscribed else {}
        binding = {"SLURM_CPU_BIND": "none"} if oversubscribed or unbound else {}
        return {**SHARED_STEPS, **idle, **binding}

    def deaths(self, lines: Sequence[str]) -> list[Death]:
        """Ranks that ended before Slurm began to end the others."""
        result: list[Death] = []
        for line in lines:
            if _ENDING.search(line) and result:
                break
            if failed := _NODE_FAILED.search(line):
                result.append(Death(host=failed["host"], reason="failed (Slurm reports a node failure)"))
            if refused := _NO_LAUNCH.search(line):
                result.append(Death(host=refused["host"], reason=f"could not start ({refused['reason'].strip()})"))
            if ended := _ENDED.search(line):
                host = None if "[" in ended["hosts"] else ended["hosts"]
                reason = ended["reason"]
                reason = f"ended with status {reason.split()[-1]}" if "code" in reason else f"was ended ({reason})"
                result += [Death(task, None, host, reason) for task in unfold_tasks(ended["tasks"])]
        return result


@dataclass(frozen=True)
class SrunRendezvous(Mpiexec):
    """Start of the ranks by srun without MPI: they join at rank 0's host."""

    first_host: str = ""  # of the job: that of rank 0 where the plan names no hosts

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
        """Start the ranks. The token is a variable of srun, which it passes on to them."""
        host = plan.slots[0].host if plan.slots else self.first_host
        rank = ["--rank", "SLURM_PROCID"]
        joining = [command[0], *join_options(f"{host}:{rendezvous_port()}", plan.ranks, limit_s), *rank, *command[1:]]
        token = {"FABLINT_TOKEN": secrets.token_hex(16)}
        return super().start(system, plan, joining, {**environ, **token}, limit_s, is_served=is_served)


def unfold_tasks(text: str) -> list[int]:
    """Task numbers of a list: `0,2-3` as [0, 2, 3]."""
    ends = (part.partition("-") for part in text.split(","))
    return [task for first, _, last in ends for task in range(int(first), int(last or first) + 1)]


def mpi_types(listing: str) -> list[str]:
    """Return the MPI types in the output of `srun --mpi=list`, in its order: `["none", "pmi2", "pmix", "pmix_v4"]`.

    The output has a type per line, and versions of PMIx after a colon; other lines are ignored.
    """
    words: list[str] = []
    for line in listing.splitlines():
        text = line.removeprefix("srun:").partition("available:")[2] or line.removeprefix("srun:")
        if text.split() and len(text.split()) == 1:
            words += text.strip().split(",")
    return words
