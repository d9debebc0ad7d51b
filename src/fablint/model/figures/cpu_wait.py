"""Time that the ranks of each host waited for a CPU that other processes used, from the row attribute `cpu_wait_s`.

The kernel counts it (proc_pid_schedstat(5)). A message that meets such a wait takes longer, on a healthy fabric too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fablint.model.run import Row, Run

NOTABLE = 0.01  # share that changes the times of messages: on an idle host it is below a thousandth
DISTINCT = 5.0  # times the share of the other hosts


@dataclass(frozen=True)
class CpuWait:
    """Shares of the measured time, from 0 to 1."""

    share: float  # of the rank of this host that waited longest
    others: float  # median of the other hosts; 0 without other hosts

    @property
    def is_distinct(self) -> bool:
        """True if the waits change the times of messages, and are those of this host in particular."""
        return self.share >= max(NOTABLE, DISTINCT * self.others)


def cpu_wait_of(run: Run, host: str) -> CpuWait | None:
    """Return the wait of a host beside that of the others; None where the kernel did not count it."""
    shares = host_shares(run)
    if host not in shares:
        return None
    share = shares.pop(host)
    return CpuWait(share, float(np.median(list(shares.values()))) if shares else 0.0)


def host_shares(run: Run) -> dict[str, float]:
    """Return the share of the rank that waited longest, by host; none where the kernel did not count it.

    Ranks of an oversubscribed run wait for each other: their waits say nothing about other processes.
    """
    if run.facts.instrument.oversubscribed:
        return {}
    shares = rank_shares(run.rows, len(run.rank_host))
    longest: dict[str, float] = {}
    for host, share in zip(run.rank_host, shares, strict=True):
        if np.isfinite(share):
            longest[host] = max(share, longest.get(host, 0.0))
    return longest


def rank_shares(rows: Sequence[Row], ranks: int) -> list[float]:
    """Return the share of the time of `rows` that each rank waited; NaN where it is unknown."""
    waited, measured = np.zeros(ranks), np.zeros(ranks)
    for row in rows:
        waits = np.array(row.facts.result.cpu_wait_s, dtype=float)  # null becomes NaN
        if waits.shape != (ranks,):
            continue
        counted = np.isfinite(waits)
        waited[counted] += waits[counted]
        measured[counted] += row.facts.result.wall_s or 0.0
    return [float(share) for share in np.where(measured > 0, waited / np.where(measured > 0, measured, 1.0), np.nan)]
