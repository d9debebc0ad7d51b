"""Time that the ranks of each host waited for a CPU that other processes used, from the row attribute `cpu_wait_s`.

The kernel counts it (proc_pid_schedstat(5)). A message that meets such a wait takes longer, on a healthy fabric too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from fablint.model.run import Run

NOTABLE = 0.01  # share of the time: kernel threads alone take less than a thousandth on an idle host
DISTINCT = 5.0  # times the share of the other hosts


@dataclass(frozen=True)
class CpuWait:
    """Shares of the measured time, from 0 to 1."""

    share: float  # of the rank of this host that waited longest
    others: float  # median of the other hosts; 0 without other hosts

    @property
    def is_notable(self) -> bool:
        """Whether the waits are long enough to change the times of messages."""
        return self.share >= NOTABLE

    @property
    def is_distinct(self) -> bool:
        """Whether the waits are notable, and those of this host in particular."""
        return self.is_notable and self.share >= DISTINCT * self.others


def cpu_waits(run: Run) -> dict[str, CpuWait]:
    """Return the waits of each host; none where the kernel did not count them.

    Ranks of an oversubscribed run wait for each other: their waits say nothing about other processes.
    """
    if run.attributes.get("instrument", {}).get("oversubscribed"):
        return {}
    shares = rank_shares([row.attributes for row in run.rows], len(run.rank_host))
    longest: dict[str, float] = {}
    for host, share in zip(run.rank_host, shares, strict=True):
        if np.isfinite(share):
            longest[host] = max(share, longest.get(host, 0.0))
    waits = {}
    for host, share in longest.items():
        others = [other for name, other in longest.items() if name != host]
        waits[host] = CpuWait(share, float(np.median(others)) if others else 0.0)
    return waits


def rank_shares(rows: Sequence[Mapping[str, Any]], ranks: int) -> list[float]:
    """Return the share of the time of `rows` that each rank waited, by their attributes; NaN where it is unknown."""
    waited, measured = np.zeros(ranks), np.zeros(ranks)
    for row in rows:
        known = np.array(row.get("cpu_wait_s") or (), dtype=float)  # null becomes NaN
        if known.shape != (ranks,):
            continue
        counted = np.isfinite(known)
        waited[counted] += known[counted]
        measured[counted] += float(row.get("wall_s", 0.0))
    return [float(share) for share in np.where(measured > 0, waited / np.where(measured > 0, measured, 1.0), np.nan)]
