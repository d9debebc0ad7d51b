"""Run a program on hosts over ssh, many at once, through ClusterShell."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    collected = _collect(system, str(ssh), hosts, _remote(output_framing.framed(argv, timeout_s)), text, limit_s)
    answers: dict[str, Answer] = {}
    silent: dict[str, str] = {}
    for host in hosts:
        session = collected[host]
        answer = output_framing.answer(host, session.lines, timeout_s)
        if answer:
            answers[host] = replace(answer, login_s=session.login_s)
        elif session.status is None:
            silent[host] = f"does not answer ssh within {limit_s:g} s"
        else:
            silent[host] = output_framing.one_line(
                "\n".join(session.lines) or f"ssh ended with status {session.status}"
            )
    return Replies(answers, silent)


def _remote(command: Sequence[str]) -> str:
    """Command as read by the login shell of the host; ClusterShell must not find its own `%hosts` in it."""
    return shlex.join(command).replace("%hosts", "%''hosts").replace("%{hosts}", "%''{hosts}")


@dataclass
class _SshSession:
    """One ssh client and what it printed."""

    begun_s: float = 0.0  # of the monotonic clock
    output: output_framing.HostLines = field(default_factory=output_framing.HostLines)
    login_s: float | None = None  # until the frame of the program began
    status: int | None = None  # None after a timeout

    @property
    def lines(self) -> list[str]:
        return self.output.lines


def _collect(
    system: System, ssh: str, hosts: Sequence[str], command: str, text: str, limit_s: float
) -> Mapping[str, _SshSession]:
    """Run a command on every host; return the sessions by host."""
    from ClusterShell.Event import EventHandler
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
    from ClusterShell.Task import task_cleanup, task_self

    sessions = {host: _SshSession() for host in hosts}

    class Collector(EventHandler):  # type: ignore[misc]
        def ev_pickup(self, worker: Any, node: str) -> None:
            """Note when the client of a host begins: those of a large job wait for each other."""
            sessions[node].begun_s = system.monotonic()

        def ev_read(self, worker: Any, node: str, sname: str, msg: bytes) -> None:
            session = sessions[node]
            line = msg.decode(errors="replace")
            session.output.add(line)
            if session.login_s is None and output_framing.is_begin(line):
                session.login_s = system.monotonic() - session.begun_s

        def ev_hup(self, worker: Any, node: str, rc: int) -> None:
            sessions[node].status = rc

    with _ONE_TASK:
        task = task_self()
        try:
            task.set_default("stdout_msgtree", False)  # else ClusterShell keeps all lines as well, without a limit
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
    return sessions
