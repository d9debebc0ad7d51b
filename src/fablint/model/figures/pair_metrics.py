"""Figures of each measured pair as they are quoted: thresholds and reports read the same figures.

A bandwidth of kernels that send both ways at once counts both, as OSU's and LinkTest's tables do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fablint.model import Placement, Row, Run
from fablint.model.arrays import Codes, Floats, Mask
from fablint.model.registry import moves_nothing

OF_NO_PAIR = frozenset({"world", "victim-aggressor", "fan-in", "fan-out", "clients-servers"})  # patterns


@dataclass(frozen=True)
class PairMetrics:
    """Cells of one size of one row, flat: all arrays are (k,). `value` is in seconds, or bytes/s of a bandwidth."""

    src: Codes
    dst: Codes
    round: Codes  # of a list; -1 in a matrix, whose rounds are not looked at
    scope: Codes  # index into `model.SCOPES`
    value: Floats

    def where(self, kept: Mask | Codes) -> PairMetrics:
        """Return those that a mask or a list of places keeps."""
        return PairMetrics(self.src[kept], self.dst[kept], self.round[kept], self.scope[kept], self.value[kept])

    def by_pair(self) -> PairMetrics:
        """One figure for each ordered pair: the median of what was measured of it (of two, the one with less)."""
        key = self.src.astype(np.int64) * (int(self.dst.max(initial=0)) + 1) + self.dst
        pairs, of_pair = np.unique(key, return_inverse=True)
        order = np.lexsort((self.value, of_pair))
        count = np.bincount(of_pair, minlength=pairs.size)
        return self.where(order[np.cumsum(count) - count + (count - 1) // 2])


def quotable(run: Run) -> list[Row]:
    """Rows of pairs that moved something, and long enough."""
    simulated = run.facts.simulated is not None
    return [
        row
        for row in run.rows
        if row.pattern not in OF_NO_PAIR
        and row.purpose != "rate_probe"  # too short to be quoted
        and (simulated or not moves_nothing(row.facts.carrier.transport))
        and row.statistic
    ]


def reference_rows(run: Run) -> list[Row]:
    """Return the quotable rows over the run's first transport and memory: what a site promises holds for these."""
    rows = quotable(run)
    return [row for row in rows if row.medium == rows[0].medium]


def figures_of(row: Row, size: int, placement: Placement) -> PairMetrics:
    """Return the measured cells of a row at a size as figures of pairs.

    Parameters
    ----------
    row
        A row of a run.
    size
        Bytes of a message.
    placement
        Hosts and switches of the ranks.
    """
    seen = row.observations(size)
    src, column = np.nonzero(seen.sent > 0)
    listed = seen.partner is not None
    dst = np.asarray(seen.partner)[src, column].astype(np.int64) if listed else column
    has_partner = dst >= 0
    src, dst, column = src[has_partner], dst[has_partner], column[has_partner]
    value = seen.sent[src, column].astype(np.float64)
    if row.quantity == "bandwidth":
        value = row.counted_bytes(size) / value
    rounds = column if listed else np.full(column.size, -1)
    return PairMetrics(src, dst, rounds, placement.scopes(src, dst), value)


def joined(parts: list[PairMetrics]) -> PairMetrics:
    """Cells of several rows together; `parts` is not empty."""
    names = ("src", "dst", "round", "scope", "value")
    return PairMetrics(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
