"""Balance pairs of hosts that were measured unequally often: the number of partners counts, not of measurements.

All measurements of a pair of hosts contain the same sum: what its two hosts and the route between them add. 24
measurements of one pair cannot separate the three better than one measurement. Each pair of hosts therefore counts as
often as is usual for the pairs of both hosts.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fablint.analyse.data.pair_matrix import Pairs, unordered
from fablint.model import Placement
from fablint.model.grouped_values import GroupedValues

Mask = npt.NDArray[np.bool_]


def balanced_cells(pairs: Pairs, placement: Placement, of: Mask | None = None) -> Mask | None:
    """Return the cells that count for their ends.

    Of a pair of hosts that was measured more often than the lower median of the pairs of either host, as many cells
    count as that median allows. They are taken at even distances in the order of their times, so that a single cell is
    the median. In a matrix (whose repeats are medians already) and within a host every cell counts.

    Parameters
    ----------
    pairs
        Values of the cells; NaN where nothing was measured.
    placement
        Hosts of the ranks.
    of
        (n, m) cells to choose from; None: all.

    Returns
    -------
    Mask or None
        (n, m) mask; None if every cell counts.
    """
    if pairs.partner is None or len(placement.hosts) == 1:
        return of
    measured = ~np.isnan(pairs.value) if of is None else of & ~np.isnan(pairs.value)
    row, column = np.nonzero(measured)
    a, b = placement.host[row].astype(np.int64), placement.host[pairs.partner[row, column]].astype(np.int64)
    between = a != b
    row, column, a, b = row[between], column[between], a[between], b[between]
    hosts = len(placement.hosts)
    both, of_pair, times = np.unique(unordered(a, b, hosts), return_inverse=True, return_counts=True)
    usual = np.nan_to_num(
        GroupedValues.of(np.tile(times, 2), np.concatenate([both // hosts, both % hosts]), hosts).lower_medians()
    )
    allowed = np.minimum(times, np.minimum(usual[both // hosts], usual[both % hosts]).astype(np.int64))
    if (allowed == times).all():
        return of
    _, of_key, count = np.unique(a * hosts + b, return_inverse=True, return_counts=True)
    order = np.lexsort((pairs.value[row, column], of_key))
    place = np.arange(order.size) - (np.cumsum(count) - count)[of_key[order]]
    each, pair = count[of_key[order]], of_pair[order]
    allowed_here = -(-each * allowed[pair] // times[pair])
    counts = ((place + 1) * allowed_here + each // 2) // each > (place * allowed_here + each // 2) // each
    dropped = order[~counts]
    chosen = np.ones(pairs.value.shape, dtype=bool) if of is None else of.copy()
    chosen[row[dropped], column[dropped]] = False
    return chosen
