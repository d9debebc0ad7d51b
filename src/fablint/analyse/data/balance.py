"""Partners count, not measurements: the cells that show how fast their ends are, of pairs measured unequally often.

A pair that was measured 24 times shows 24 times what its two hosts and the route between them add together; none of it
tells one from the other. So each pair of hosts speaks for its ends as often as is usual for the pairs of both hosts.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fablint.analyse.data.pair_matrix import Pairs, unordered
from fablint.analyse.data.rank_places import Places
from fablint.analyse.data.robust_stats import lower_medians

Mask = npt.NDArray[np.bool_]


def balanced(pairs: Pairs, places: Places, of: Mask | None = None) -> Mask | None:
    """(n, m) cells that count for their ends, among those in `of` (None: all); None: all cells.

    Of a pair of hosts measured more often than the lower median of either host's pairs, as many cells count as that
    median allows: those at even distances in the order of their times, so that a single one is the median. In a matrix
    (of which repeats are medians already) and within a host every cell counts.
    """
    if pairs.partner is None or len(places.hosts) == 1:
        return of
    measured = ~np.isnan(pairs.value) if of is None else of & ~np.isnan(pairs.value)
    row, column = np.nonzero(measured)
    a, b = places.host[row].astype(np.int64), places.host[pairs.partner[row, column]].astype(np.int64)
    between = a != b
    row, column, a, b = row[between], column[between], a[between], b[between]
    hosts = len(places.hosts)
    both, of_pair, times = np.unique(unordered(a, b, hosts), return_inverse=True, return_counts=True)
    usual = np.nan_to_num(lower_medians(np.tile(times, 2), np.concatenate([both // hosts, both % hosts]), hosts))
    allowed = np.minimum(times, np.minimum(usual[both // hosts], usual[both % hosts]).astype(np.int64))
    if (allowed == times).all():
        return of
    _, of_key, count = np.unique(a * hosts + b, return_inverse=True, return_counts=True)
    order = np.lexsort((pairs.value[row, column], of_key))
    place = np.arange(order.size) - (np.cumsum(count) - count)[of_key[order]]
    each, pair = count[of_key[order]], of_pair[order]
    wanted = -(-each * allowed[pair] // times[pair])
    counts = ((place + 1) * wanted + each // 2) // each > (place * wanted + each // 2) // each
    dropped = order[~counts]
    found = np.ones(pairs.value.shape, dtype=bool) if of is None else of.copy()
    found[row[dropped], column[dropped]] = False
    return found
