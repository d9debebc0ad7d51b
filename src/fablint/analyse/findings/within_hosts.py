"""Hosts whose ranks are slow among themselves: no fabric is in it, so that hosts are compared with each other."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fablint.analyse.data.flows import Usable, statistic_of
from fablint.analyse.data.places import Places
from fablint.analyse.words import relative, size_text
from fablint.model import Finding, Row, State
from fablint.names import plural

SLOW = math.log(1.5)  # log time beyond the median host, from which a host is at fault,
SIGMAS = 6.0  # and so many robust standard deviations of hosts,
EVERY = math.log(1.25)  # and each of its measurements so much beyond
NOISE = 0.02  # of healthy hosts, at least
FEWEST_HOSTS = 4


def slow_inside(rows: Sequence[Usable], places: Places) -> list[Finding]:
    """One finding for each host that is slow within itself. Latencies of containers tell of their common machine."""
    found: dict[str, Finding] = {}
    for row in (one for usable in rows for one in (usable.row, *usable.more)):
        if row.layout == "list" and not (places.containers and row.quantity == "latency"):
            for size in row.sizes:
                for finding in _of_row(row, size, places):
                    found.setdefault(finding.name, finding)
    return list(found.values())


def _of_row(row: Row, size: int, places: Places) -> list[Finding]:
    partner = np.asarray(row.arrays["dst"][:])
    sent = np.asarray(row.observations(size, statistic_of(row)).sent, dtype=np.float64)
    src, column = np.nonzero((partner >= 0) & (sent > 0))
    inside = places.host[src] == places.host[partner[src, column]]
    src, column = src[inside], column[inside]
    host, value = places.host[src], np.log(sent[src, column])
    hosts = np.unique(host)
    if hosts.size < FEWEST_HOSTS:
        return []
    median = np.array([np.median(value[host == one]) for one in hosts])
    usual = float(np.median(median))
    noise = max(NOISE, 1.4826 * float(np.median(np.abs(median - usual))))
    findings = []
    for one, middle in zip(hosts.tolist(), median.tolist(), strict=True):
        own = value[host == one] - usual
        if middle - usual > max(SLOW, SIGMAS * noise) and (own > EVERY).all():
            findings.append(_finding(row, size, places.hosts[one], middle - usual, own.size, hosts.size - 1))
    return findings


def _finding(row: Row, size: int, name: str, loss: float, measured: int, others: int) -> Finding:
    return Finding(
        state=State.FAULT,
        component="host",
        name=name,
        quantity=row.quantity,
        effect=relative(loss, row.quantity),
        evidence=f"{row.name} {size_text(size)}: {plural(measured, 'measurement')} beside those of {others} hosts",
        alternatives=(f"memory of {name}", f"CPUs of {name}: clock, binding, other processes"),
        next_step=f"look at clock frequency, memory channels and what else runs on {name}",
    )
