"""Run a program once on every host of an allocation: through srun inside a Slurm job, over ssh elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from fablint.cluster import output_framing
from fablint.cluster.output_framing import Replies
from fablint.cluster.pbsdsh import over_pbsdsh
from fablint.cluster.srun import over_srun
from fablint.cluster.ssh import over_ssh
from fablint.model import Allocation, Answer
from fablint.system import System, is_here


def everywhere(
    system: System, allocation: Allocation, argv: Sequence[str], text: str = "", timeout_s: float = 20.0
) -> list[Answer]:
    """Run a program on all hosts at the same time.

    A program that fails has its last line on stderr, or its exit status, as `error`, and keeps its output. Hosts that
    do not answer are reported: all of them together cost little more than `timeout_s`, at most twice that if a launcher
    gave up because of them and the other hosts are tried again.

    Parameters
    ----------
    system
        The machine that starts the program.
    allocation
        Hosts, and how programs are started on them.
    argv
        Words of the program.
    text
        Its standard input.
    timeout_s
        Seconds until a host counts as silent.

    Returns
    -------
    list of Answer
        One for each host, in the order of the allocation.
    """
    hosts = allocation.hosts
    if not hosts:
        return []
    if allocation.scheduler == "slurm" and allocation.job and system.which("srun"):
        replies = over_srun(system, allocation.job, hosts, argv, text, timeout_s)
    elif len(hosts) == 1 and is_here(hosts[0]):
        replies = _run_locally(system, hosts[0], argv, text, timeout_s)
    else:
        replies = over_ssh(system, hosts, argv, text, timeout_s)
        rest = replies.open(hosts)
        if rest and allocation.scheduler == "pbs" and system.which("pbsdsh"):
            replies = replies.then(over_pbsdsh(system, rest, argv, text, timeout_s))
    return [
        replies.answers.get(host) or Answer(host, error=replies.silent.get(host) or "does not answer") for host in hosts
    ]


def _run_locally(system: System, host: str, argv: Sequence[str], text: str, timeout_s: float) -> Replies:
    process = system.spawn(output_framing.framed(argv, timeout_s), text=text)
    lines = output_framing.read_lines(system, process, timeout_s + output_framing.GRACE_S)
    answer = output_framing.answer(host, lines, timeout_s)
    return Replies({host: answer}) if answer else Replies(silent={host: output_framing.late(timeout_s)})
