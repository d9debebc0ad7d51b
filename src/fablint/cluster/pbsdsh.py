"""Run a program on the hosts of a PBS job through `pbsdsh`, for sites without ssh between hosts.

pbsdsh gives its tasks no stdin and sends their output to the job's own output, so that both go through files in a
folder below FABLINT_HOME, which the hosts must share.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from fablint.cluster import output_framing
from fablint.cluster.output_framing import Replies
from fablint.model import Answer
from fablint.model.host_name import HostNames
from fablint.system import System

# A host has a task for each of its chunks; the first task to create its folder does the work.
_TASK = 'cd "$1" || exit; mkdir "host-$(uname -n)" || exit 0; shift; "$@" <stdin >"host-$(uname -n)/answer" 2>&1'


def over_pbsdsh(system: System, hosts: Sequence[str], argv: Sequence[str], text: str, timeout_s: float) -> Replies:
    """Answers of the `hosts` that pbsdsh reaches; takes little more than `timeout_s`."""
    with system.temporary_folder(system.home_folder("asking")) as folder:
        (folder / "stdin").write_text(text)
        command = ["/bin/sh", "-c", _TASK, "sh", str(folder), *output_framing.framed(argv, timeout_s)]
        process = system.spawn(["pbsdsh", "--", *command])
        lines = output_framing.read_lines(system, process, timeout_s + output_framing.GRACE_S)
        answers = _answers(folder, hosts, timeout_s)
    complaint = output_framing.one_line("\n".join(lines)) if lines else "does not answer pbsdsh"
    return Replies(answers, {host: complaint for host in hosts if host not in answers})


def _lines(file: Path) -> list[str]:
    """Return the lines of the file of a host, which may have made anything of it; none if it is not a regular file."""
    try:
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                return []
            return stream.read(output_framing.MOST_LETTERS + 1).decode(errors="replace").splitlines()
    except OSError:
        return []


def _answers(folder: Path, hosts: Sequence[str], timeout_s: float) -> dict[str, Answer]:
    roster = HostNames(hosts, complete=True)
    answers: dict[str, Answer] = {}
    for file in sorted(folder.glob("host-*/answer")):
        host = roster.find(file.parent.name.removeprefix("host-"))
        lines = _lines(file)
        answered = output_framing.answer(host, lines, timeout_s) if host else None
        if answered:
            answers[answered.host] = answered
    return answers
