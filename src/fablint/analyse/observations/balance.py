"""Balance pairs of hosts that were measured unequally often: the number of partners counts, not of measurements.

All measurements of a pair of hosts contain the same sum: what its two hosts and the route between them add. 24
measurements of one pair cannot separate the three better than one measurement. Each pair of hosts therefore counts as
often as is usual for the pairs of both hosts, and for one of its hosts, as often as is usual for the pairs of this
host: a host that was excluded after the first of several levels has few partners, and keeps all that was measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fablint.analyse.observations.pair_matrix import Pairs, unordered
from fablint.model import Placement
from fablint.model.arrays import Cells, Mask
from fablint.model.figures.distinct_codes import distinct_codes
from fablint.model.figures.grouped_values import GroupedValues

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


def end_cells(
    pairs: Pairs, placement: Placement, both: Mask | None, sender: Mask | None, receiver: Mask | None
) -> EndCells:
    """Return those of the cells that show their ends which count for them; see `balanced_cells`."""
    return EndCells(
        both=balanced_cells(pairs, placement, both),
        sender=balanced_cells(pairs, placement, sender, end="sender"),
        receiver=balanced_cells(pairs, placement, receiver, end="receiver"),
    )


def balanced_cells(pairs: Pairs, placement: Placement, mask: Mask | None = None, *, end: End = "both") -> Mask | None:
    """Return the cells that count for one end, or for both ends.

    Of a pair of hosts that was measured more often than the lower median of the pairs of that host (for both ends: of
    either host), as many cells count as that median allows. They are taken at even distances in the order of their
    times, so that a single cell is the median. In a matrix (whose repeats are medians already) and within a host every
    cell counts.

    Parameters
    ----------
    pairs
        Values of the cells; NaN where nothing was measured.
    placement
        Hosts of the ranks.
    mask
        (n, m) cells to choose from; None: all.
    end
        The end.

    Returns
    -------
    Mask or None
        (n, m) mask; None if every cell counts.
    """
    if pairs.partner is None or len(placement.hosts) == 1:
        return mask
    measured = ~np.isnan(pairs.value) if mask is None else mask & ~np.isnan(pairs.value)
    row, column = np.nonzero(measured)
    a, b = placement.host[row].astype(np.int64), placement.host[pairs.partner[row, column]].astype(np.int64)
    between = a != b
    row, column, a, b = row[between], column[between], a[between], b[between]
    hosts = len(placement.hosts)
    both, of_pair, times = distinct_codes(unordered(a, b, hosts))
    usual = np.nan_to_num(
        GroupedValues.of(np.tile(times, 2), np.concatenate([both // hosts, both % hosts]), hosts).lower_medians()
    )
    usual_of_ends = {"both": np.minimum(usual[a], usual[b]), "sender": usual[a], "receiver": usual[b]}[end]
    times = times[of_pair]
    allowed = np.minimum(times, usual_of_ends.astype(np.int64))
    is_often = allowed < times
    if not is_often.any():
        return mask
    row, column, a, b, allowed, times = (values[is_often] for values in (row, column, a, b, allowed, times))
    _, of_key, count = distinct_codes(a * hosts + b)
    order = np.lexsort((pairs.value[row, column], of_key))
    place = np.arange(order.size) - (np.cumsum(count) - count)[of_key[order]]
    each = count[of_key[order]]
    allowed_here = -(-each * allowed[order] // times[order])
    counts = ((place + 1) * allowed_here + each // 2) // each > (place * allowed_here + each // 2) // each
    dropped = order[~counts]
    chosen = np.ones(pairs.value.shape, dtype=bool) if mask is None else mask.copy()
    chosen[row[dropped], column[dropped]] = False
    return chosen
