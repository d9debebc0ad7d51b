"""Run a program on hosts over ssh, many at once, through ClusterShell."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from threading import Lock
from typing import Any

from fablint.cluster import output_framing
from fablint.cluster.output_framing import Replies
from fablint.model import Answer
from fablint.system import System

_FANOUT = 256  # ssh clients at once
_CONNECT_S = 10  # limit for a host whose network is down
_ONE_TASK = Lock()  # ClusterShell has one task per thread; it is created and ended here


def over_ssh(system: System, hosts: Sequence[str], argv: Sequence[str], text: str, timeout_s: float) -> Replies:
    """Answers of `hosts`. A host is given up a little after `timeout_s`; all dead hosts together cost that once.

    Passwords are never requested: a host that needs one is reported.
    """
    ssh = system.which("ssh")
    if ssh is None:
        return Replies(silent=dict.fromkeys(hosts, "there is no ssh on the PATH"))
    limit_s = timeout_s + output_framing.GRACE_S
    collected = _collect(str(ssh), hosts, _remote(output_framing.framed(argv, timeout_s)), text, limit_s)
    answers: dict[str, Answer] = {}
    silent: dict[str, str] = {}
    for host in hosts:
        lines, status = collected.get(host, ([], None))
        answer = output_framing.answer(host, lines, timeout_s)
        if answer:
            answers[host] = answer
        elif status is None:
            silent[host] = f"does not answer ssh within {limit_s:g} s"
        else:
            silent[host] = output_framing.one_line("\n".join(lines) or f"ssh ended with status {status}")
    return Replies(answers, silent)


def _remote(command: Sequence[str]) -> str:
    """Command as read by the login shell of the host; ClusterShell must not find its own `%hosts` in it."""
    return shlex.join(command).replace("%hosts", "%''hosts").replace("%{hosts}", "%''{hosts}")


def _collect(
    ssh: str, hosts: Sequence[str], command: str, text: str, limit_s: float
) -> dict[str, tuple[list[str], int | None]]:
    """Lines and exit status of every host; the status is None after a timeout."""
    from ClusterShell.Event import EventHandler
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
    from ClusterShell.Task import task_cleanup, task_self

    lines: dict[str, list[str]] = {host: [] for host in hosts}
    status: dict[str, int | None] = dict.fromkeys(hosts)

    class Collector(EventHandler):  # type: ignore[misc]
        def ev_read(self, worker: Any, node: str, sname: str, msg: bytes) -> None:
            lines[node].append(msg.decode(errors="replace"))

        def ev_hup(self, worker: Any, node: str, rc: int) -> None:
            status[node] = rc

    with _ONE_TASK:
        task = task_self()
        try:
            task.set_info("fanout", _FANOUT)
            task.set_info("ssh_path", shlex.quote(ssh))
            task.set_info("ssh_options", "-oNumberOfPasswordPrompts=0 -oLogLevel=ERROR")
            task.set_info("connect_timeout", max(1, min(_CONNECT_S, int(limit_s))))
            nodes = NodeSet.fromlist(list(hosts), resolver=RESOLVER_NOGROUP)
            settings = {"handler": Collector(), "timeout": limit_s, "stderr": False, "tree": False}
            worker = task.shell(command, nodes=nodes, **settings)
            if text:
                worker.write(text.encode())
            worker.set_write_eof()
            task.resume()
        finally:
            task_cleanup()
    return {host: (lines[host], status[host]) for host in hosts}
