"""Hosts whose own ranks are slow among themselves: no message crosses the fabric, so that hosts are compared.

The healthy hosts' own spread decides: a host is slow that is beyond the tolerance of the robust spread of all hosts; it
is at FAULT if it is also beyond the standard deviation of all hosts that are not slow, which is not robust, so that
hosts that differ among each other in any direction make no FAULT.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fablint.analyse.data.robust_stats import Floats, robust_sd
from fablint.analyse.data.samples import UsableRow, statistic_of
from fablint.analyse.findings.detection_text import relative
from fablint.analyse.fit.median_polish import FEW_PARTS
from fablint.analyse.settings import Settings
from fablint.model import ComponentRef, Finding, Placement, Row, State
from fablint.model.grouped_values import GroupedValues
from fablint.model.verdict import advise, seen

FEWEST_HOSTS = 4
FEWEST_MEASUREMENTS = 3  # of a host in a FAULT


def slow_inside(rows: Sequence[UsableRow], placement: Placement, settings: Settings) -> list[Finding]:
    """The gravest finding about each host that is slow within itself; containers share those of one machine."""
    found: dict[str, Finding] = {}
    for row in (one for usable in rows for one in (usable.row, *usable.more)):
        if row.layout == "list" and not placement.shared_machines:
            for size in row.sizes:
                for finding in _of_row(row, size, placement, settings):
                    found[finding.name] = min(found.get(finding.name, finding), finding, key=lambda one: one.rank)
    return list(found.values())


def _of_row(row: Row, size: int, placement: Placement, settings: Settings) -> list[Finding]:
    partner = np.asarray(row.arrays["dst"][:])
    sent = np.asarray(row.observations(size, statistic_of(row)).sent, dtype=np.float64)
    src, column = np.nonzero((partner >= 0) & (sent > 0))
    inside = placement.host[src] == placement.host[partner[src, column]]
    src, column = src[inside], column[inside]
    host, value = placement.host[src], np.log(sent[src, column])
    hosts, of_host = np.unique(host, return_inverse=True)
    if hosts.size < FEWEST_HOSTS:
        return []
    medians = GroupedValues.of(value, of_host, hosts.size).medians()
    usual = float(np.median(medians))
    loss = medians - usual
    slow = loss > _tolerance(robust_sd(loss), hosts.size, settings) + settings.smallest_fault
    if slow.all():
        return []
    healthy: Floats = loss[~slow]
    tolerance = _tolerance(float(np.sqrt(np.mean(healthy**2))), healthy.size, settings)
    findings = []
    for one, middle in zip(hosts[slow].tolist(), loss[slow].tolist(), strict=True):
        own = value[host == one] - usual
        steady = own.size >= FEWEST_MEASUREMENTS and bool((own > tolerance).all())
        state = State.FAULT if steady and middle > tolerance + settings.smallest_fault else State.SUSPECT
        findings.append(_finding(state, row, size, placement.hosts[one], middle, own.size, hosts.size - 1))
    return findings


def _tolerance(spread: float, hosts: int, settings: Settings) -> float:
    """How much slower than the median a healthy host may be, log; the spread of few hosts is widened."""
    return max(settings.tolerance, settings.spread_factor * spread * (1 + FEW_PARTS / hosts))


def _finding(state: State, row: Row, size: int, name: str, loss: float, measured: int, others: int) -> Finding:
    return Finding(
        state=state,
        components=(ComponentRef.of("host", name),),
        quantity=row.quantity,
        effect=relative(loss, row.quantity),
        evidence=(seen("intra_node", row=row.name, size=size, measured=measured, others=others),),
        ambiguity_group=(
            ComponentRef.of("host", name, title="memory"),
            ComponentRef.of("host", name, title="CPUs (clock, binding, other processes)"),
        ),
        next_step=advise("inspect_memory", ComponentRef.of("host", name)),
    )
