"""Commands that take hosts out of service, with a reason that says why in few letters."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fablint.act.host_findings import HostFindings
from fablint.act.short_texts import check_of, part_of
from fablint.model import Finding, State
from fablint.model.host_name import HostNames
from fablint.model.names import fold, printable

SCHEDULERS = ("slurm", "pbs")
MOST_LETTERS = 60  # of a reason; `sinfo -R` shows the first 20, which is why the check comes first
_ROUNDING = 1e-9  # 29 % of 100 hosts are 29
_BY = " (fablint)"  # a site returns only hosts to service that this took out
_QUOTES = re.compile("[\"'`\\\\]")


class Drain(NamedTuple):
    """Hosts that have the same reason to be drained."""

    reason: str
    hosts: Sequence[str]


class DrainLimit(NamedTuple):
    """How many hosts may be drained at once: a number, or a share of all hosts; one host is always allowed."""

    number: int | None = None
    share: float = 0.1

    def allows(self, drained: int, hosts: int) -> bool:
        """Return whether `drained` of `hosts` hosts may be drained; one host always may."""
        return drained <= max(1, self.number if self.number is not None else int(self.share * hosts + _ROUNDING))

    def __str__(self) -> str:
        return f"{self.number}" if self.number is not None else f"{100 * self.share:g}%"


def unheard(source: HostFindings) -> frozenset[str]:
    """Silent hosts that are not drained, since most hosts did not answer: the cause is not a host."""
    return frozenset() if 2 * len(source.silent) < len(source.hosts or ()) else source.silent


def too_many(source: HostFindings, limit: DrainLimit) -> str:
    """Return why the hosts at fault are not drained all at once; empty where the limit allows it.

    Where the number of hosts is not known one host may be drained, or as many as the limit says as a number.
    """
    drained = {host for drain in drains(source) for host in drain.hosts}
    hosts = len(source.hosts or ())
    if limit.allows(len(drained), hosts):
        return ""
    return f"{len(drained)} of {hosts or 'an unknown number of'} hosts would be drained, --most allows {limit}"


def drains(source: HostFindings) -> list[Drain]:
    """Hosts that are at fault, by reason. A suspected host is not drained."""
    faults: dict[str, list[Finding]] = defaultdict(list)
    kept = unheard(source)
    for finding in source.findings:
        if finding.state is State.FAULT:
            for host in source.reported_hosts(finding):
                if host not in kept:
                    faults[host].append(finding)
    result: dict[str, list[str]] = defaultdict(list)
    for host, findings in faults.items():
        result[_reason(findings)].append(host)
    return [Drain(reason, hosts) for reason, hosts in result.items()]


def drain_command(drain: Drain, scheduler: str, hosts: Iterable[str] = ()) -> str:
    """Return the command that drains hosts, as one line for a shell.

    Parameters
    ----------
    drain
        Hosts and the reason.
    scheduler
        `slurm` or `pbs`.
    hosts
        All hosts of the cluster, as far as they are known: names are shortened as long as none of these has the
        same.
    """
    reason = shlex.quote(drain.reason)
    if scheduler == "pbs":
        return f"pbsnodes -o -C {reason} {shlex.join(drain.hosts)}"
    names = HostNames([*drain.hosts, *hosts])
    nodes = fold(map(names.shortest, drain.hosts))
    return f"scontrol update NodeName={shlex.quote(nodes)} State=DRAIN Reason={reason}"


def _reason(findings: Sequence[Finding]) -> str:
    """The gravest, with all parts of the host that have it, and how many other things are wrong."""
    parts: dict[tuple[str, str], list[str]] = defaultdict(list)
    for finding in sorted(findings, key=lambda one: -abs(one.effect or 0.0)):
        parts[check_of(finding)].append(part_of(finding))
    (check, words), targets = next(iter(parts.items()))
    more = f" +{len(parts) - 1}" if len(parts) > 1 else ""
    line = _plain(" ".join(filter(None, [check, fold(filter(None, targets), ", "), words])))
    room = MOST_LETTERS - len(more) - len(_BY)
    return (line if len(line) <= room else line[: room - 3] + "...") + more + _BY


def _plain(words: str) -> str:
    """Letters that schedulers keep as they are."""
    return "".join(letter if letter.isascii() else "?" for letter in _QUOTES.sub("", printable(words)))
