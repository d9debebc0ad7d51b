"""Run a program on the hosts of a Slurm job through `srun`: one step with a task on each, which gets stdin.

A host that is down ends the step of the others when srun gives it up, some 10 s later: hosts that had not answered by
then are tried once more without it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fablint.cluster import output_framing
from fablint.cluster.host_states import host_states
from fablint.cluster.output_framing import Replies
from fablint.model.host_name import HostNames
from fablint.model.names import fold
from fablint.system import System

_LABELLED = re.compile(r"\s*(\d+): ?(.*)")
_REFUSED = re.compile(r"srun: error: Task launch for \S+ failed on node ([^\s:]+): (.*)")
_ABORTED = "error: *** STEP "
_AT_ONCE = 32  # sruns in parallel, if each host gets its own


def over_srun(
    system: System, job: str, hosts: Sequence[str], argv: Sequence[str], text: str, timeout_s: float
) -> Replies:
    """Answers of hosts of Slurm job `job`; takes little more than twice `timeout_s`, however many hosts are down."""

    def step(subset: Sequence[str]) -> Replies:
        return _one_step(system, job, subset, argv, text, timeout_s)

    began = system.monotonic()
    replies = step(hosts)
    rest = replies.open(hosts)
    if not rest or system.monotonic() - began >= timeout_s:
        return replies
    down = {state.host: state.reason for state in host_states(system, rest) if state.state == "down"}
    replies = replies.then(Replies(silent={host: f"down: {reason}" for host, reason in down.items()}))
    again = [host for host in rest if host not in down and not _given_up(replies, host)]
    if len(again) < len(hosts):
        return replies.then(step(again)) if again else replies
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:  # no step could be created at all
        for replies_of_host in pool.map(lambda host: step([host]), again):
            replies = replies.then(replies_of_host)
    return replies


def _given_up(replies: Replies, host: str) -> bool:
    return replies.silent.get(host, "").startswith("launch failed")


def _one_step(
    system: System, job: str, hosts: Sequence[str], argv: Sequence[str], text: str, timeout_s: float
) -> Replies:
    count = str(len(hosts))
    command = ["srun", "--jobid", job, "--nodelist", fold(hosts), "--nodes", count, "--ntasks", count]
    command += ["--ntasks-per-node=1", "--distribution=block", "--cpu-bind=none", "--mpi=none", "--input=all"]
    command += ["--label", "--no-kill", "--wait=0", "--kill-on-bad-exit=0", *output_framing.framed(argv, timeout_s)]
    # As a variable, because releases before 20.11 have no such option; without it a step waits for the CPUs of the
    # others.
    process = system.spawn(command, text=text, environ={"SLURM_OVERLAP": "1"})
    lines = output_framing.read_lines(system, process, timeout_s + output_framing.GRACE_S, task_of)
    late = process.poll() != 0 and not any(line.startswith("srun: error:") for line in lines)
    return parsed(hosts, lines, timeout_s, output_framing.late(timeout_s) if late else "")


def task_of(line: str) -> tuple[str, int]:
    """Number of the task that printed a line and length of the label; '' for a line of srun itself."""
    match = _LABELLED.fullmatch(line)
    return (match[1], match.start(2)) if match else ("", 0)


def parsed(hosts: Sequence[str], lines: Sequence[str], limit_s: float, otherwise: str = "") -> Replies:
    """Answers in srun's labelled lines; every task prints the name of its host.

    Of tasks that print one name none counts: each has a host of its own, so that all but one of them name another host.
    """
    tasks: dict[str, list[str]] = {}
    for line in lines:
        if match := _LABELLED.fullmatch(line):
            tasks.setdefault(match[1], []).append(match[2])
    roster = HostNames(hosts, complete=True)
    aborted = any(_ABORTED in line for line in lines)
    named = {task: roster.find(output_framing.named_host(task_lines)) for task, task_lines in tasks.items()}
    tasks_of: dict[str, list[str]] = {}
    for task, host in named.items():
        if host:
            tasks_of.setdefault(host, []).append(task)
    replies = (
        output_framing.answer(host, tasks[numbers[0]], limit_s, aborted)
        for host, numbers in tasks_of.items()
        if len(numbers) == 1
    )
    answers = {answered.host: answered for answered in replies if answered}
    refused = {match[1]: f"launch failed: {match[2]}" for line in lines if (match := _REFUSED.match(line))}
    refused |= {
        host: f"tasks {' and '.join(numbers)} of srun name this host"
        for host, numbers in tasks_of.items()
        if len(numbers) > 1
    }
    errors = [line.removeprefix("srun: error: ") for line in lines if line.startswith("srun: error: ")]
    reason = otherwise or next(iter(errors), "")
    silent = {host: refused.get(host) or reason for host in hosts if host not in answers}
    return Replies(answers, {host: output_framing.one_line(why) for host, why in silent.items() if why})
