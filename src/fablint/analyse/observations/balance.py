"""Balance pairs of hosts that were measured unequally often: the number of partners counts, not of measurements.

All measurements of a pair of hosts contain the same sum: what its two hosts and the route between them add. 24
measurements of one pair cannot separate the three better than one measurement. Each pair of hosts therefore counts as
often as is usual for the pairs of both hosts, and for one of its hosts, as often as is usual for the pairs of this
host: a host that was excluded after the first of several levels has few partners, and keeps all that was measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from fablint.analyse.observations.pair_matrix import Pairs, unordered
from fablint.model import Placement
from fablint.model.arrays import Cells, Codes, Mask
from fablint.model.figures.distinct_codes import distinct_codes
from fablint.model.figures.grouped_values import Groups

End = Literal["both", "sender", "receiver"]


@dataclass(frozen=True)
class EndCells:
    """(n, m) masks of the cells that count for both of their ends, for the sender, for the receiver; None: all."""

    both: Mask | None
    sender: Mask | None
    receiver: Mask | None

    def counts(self, cells: Cells, end: End) -> Mask:
        """Return a (k,) mask of the cells that count for this end."""
        mask: Mask | None = getattr(self, end)
        return np.ones(cells[0].size, dtype=bool) if mask is None else mask[cells]


@dataclass(frozen=True)
class HostPairNumbers:
    """Pairs of hosts of the cells of a list of rounds, numbered once for all choices of cells."""

    number: Codes  # (n, m) pair of hosts of each cell; -1: within a host, or idle
    hosts: Codes  # (p, 2)
    sender: Codes  # (n,) host of each rank
    by_host: Groups  # of the p pairs by their first, then by their second host

    @classmethod
    def of(cls, pairs: Pairs, placement: Placement) -> Self | None:
        """Return the pairs of hosts; None of a matrix and within a host."""
        if pairs.partner is None or len(placement.hosts) == 1:
            return None
        host, hosts = placement.host, len(placement.hosts)
        a, b = np.broadcast_arrays(host[:, None], host[np.maximum(pairs.partner, 0)])
        is_between = (pairs.partner >= 0) & (a != b)
        both, of_pair, _ = distinct_codes(unordered(a[is_between], b[is_between], hosts))
        number = np.full(pairs.partner.shape, -1, dtype=np.int32)
        number[is_between] = of_pair
        ends = np.stack(np.divmod(both, hosts), axis=1)
        return cls(number, ends, host, Groups.of(ends.T.ravel(), hosts))

    def allowed(self, times: Codes) -> Codes:
        """Return how many cells of each pair count for its first, and for its second host: (2, p).

        `times` is the (p,) number of cells. As many count as is the lower median of the pairs of that host.
        """
        measured = np.where(times > 0, times, np.nan)
        usual = np.nan_to_num(self.by_host.sorted(np.tile(measured, 2)).lower_medians()).astype(np.int64)
        return np.minimum(times, usual[self.hosts.T])


def end_cells(
    pairs: Pairs, numbers: HostPairNumbers | None, both: Mask | None, sender: Mask | None, receiver: Mask | None
) -> EndCells:
    """Return those of the cells that show their ends which count for them; see `balanced_cells`."""
    return EndCells(
        both=balanced_cells(pairs, numbers, both),
        sender=balanced_cells(pairs, numbers, sender, end="sender"),
        receiver=balanced_cells(pairs, numbers, receiver, end="receiver"),
    )


def balanced_cells(
    pairs: Pairs, numbers: HostPairNumbers | None, mask: Mask | None = None, *, end: End = "both"
) -> Mask | None:
    """Return the cells that count for one end, or for both ends.

    Of a pair of hosts that was measured more often than the lower median of the pairs of that host (for both ends: of
    either host), as many cells count as that median allows. They are taken at even distances in the order of their
    times, so that a single cell is the median. In a matrix (whose repeats are medians already) and within a host every
    cell counts.

    Parameters
    ----------
    pairs
        Values of the cells; NaN where nothing was measured.
    numbers
        Pairs of hosts of the cells; None: every cell counts.
    mask
        (n, m) cells to choose from; None: all.
    end
        The end.

    Returns
    -------
    Mask or None
        (n, m) mask; None if every cell counts.
    """
    if numbers is None:
        return mask
    measured: Mask = (numbers.number >= 0) & ~np.isnan(pairs.value)
    if mask is not None:
        measured &= mask
    times = np.bincount(numbers.number[measured], minlength=len(numbers.hosts))
    allowed = numbers.allowed(times)
    is_often: Mask = np.any(allowed < times, axis=0)
    if not is_often.any():
        return mask
    row, column = np.nonzero(measured & is_often[numbers.number])
    pair = numbers.number[row, column]
    is_first: Codes = (numbers.sender[row] == numbers.hosts[pair, 0]).astype(np.int64)
    side = {"sender": 1 - is_first, "receiver": is_first}.get(end)
    allowed_of_pair = allowed.min(axis=0)[pair] if side is None else allowed[side, pair]
    _, of_key, count = distinct_codes(2 * pair.astype(np.int64) + is_first)
    order = np.lexsort((pairs.value[row, column], of_key))
    place = np.arange(order.size) - (np.cumsum(count) - count)[of_key[order]]
    each = count[of_key[order]]
    allowed_here = -(-each * allowed_of_pair[order] // times[pair[order]])
    counts = ((place + 1) * allowed_here + each // 2) // each > (place * allowed_here + each // 2) // each
    dropped = order[~counts]
    chosen = np.ones(pairs.value.shape, dtype=bool) if mask is None else mask.copy()
    chosen[row[dropped], column[dropped]] = False
    return chosen
