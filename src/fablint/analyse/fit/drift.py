"""What the time of measurement adds to all pairs: a drift of the whole fabric, a period in which everything was slow.

A run is cut into windows of time. What most hosts have in common in a window, over several pairs of switches, belongs
to the window and not to them. A window that few hosts or one path fill is left alone: there, time and component are
not distinguishable.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fablint.analyse.data.pair_matrix import Cells, Pairs, Values
from fablint.analyse.data.rank_places import Codes, Places
from fablint.analyse.data.robust_stats import MEDIAN_ERROR, Floats, lower_medians, robust_sd
from fablint.analyse.fit.comparison_groups import Classes

MOST_WINDOWS = 64
FEWEST_CELLS = 24  # in a window of one class
FEWEST_HOSTS = 6
FEWEST_PATHS = 3  # pairs of switches, unless the class is that of pairs on a switch
SIGNIFICANT = 4.0  # standard errors of a window's median, below which the window adds nothing


def drift_of(
    pairs: Pairs,
    started: Floats,
    classes: Classes,
    places: Places,
    left_of: Callable[[Cells], Values],
) -> Values | None:
    """(n, m) log-effect of the time at which each pair was measured; None where time adds nothing.

    Parameters
    ----------
    started
        (n, m) s since the start of the run, NaN where unknown.
    left_of
        What the other effects of the model leave over of cells.
    """
    cells = pairs.sample_cells()
    known = np.isfinite(started[cells])
    cells = (cells[0][known], cells[1][known])
    if cells[0].size < 2 * FEWEST_CELLS:
        return None
    window = _windows(started[cells])
    left, codes = left_of(cells), classes.of_cells(pairs, cells).astype(np.int64)
    added = np.zeros((int(window.max()) + 1, classes.count), dtype=np.float32)
    to = pairs.destination(cells)
    for code in np.unique(codes):
        in_class = codes == code
        error = MEDIAN_ERROR * robust_sd(left[in_class])
        for number in np.unique(window[in_class]):
            here = np.flatnonzero(in_class & (window == number))
            if _is_of_all(cells[0][here], to[here], places):
                middle = _over_hosts(left[here], places.host[cells[0][here]], places.host[to[here]])
                if abs(middle) > SIGNIFICANT * error / np.sqrt(here.size):
                    added[number, code] = middle
    if not added.any():
        return None
    return _spread(added, window, started, cells, pairs, classes)


def _windows(started: Floats) -> Codes:
    """(k,) number of the window of each cell: equally many cells each, what began at once is not divided."""
    count = int(np.clip(started.size // (2 * FEWEST_CELLS), 1, MOST_WINDOWS))
    edges = np.unique(np.quantile(started, np.arange(1, count) / count, method="lower"))
    return np.searchsorted(edges, started, side="left").astype(np.int64)


def _is_of_all(src: Codes, dst: Codes, places: Places) -> bool:
    """Do these cells involve half of the hosts, and several paths where they cross switches?"""
    if src.size < FEWEST_CELLS:
        return False
    hosts = np.unique(places.host[np.concatenate([src, dst])]).size
    if hosts < max(FEWEST_HOSTS, len(places.hosts) / 2):
        return False
    if not places.switches:
        return True
    a, b = places.switch[src].astype(np.int64), places.switch[dst]
    return bool((a == b).all() or np.unique(a * len(places.switches) + b).size >= FEWEST_PATHS)


def _over_hosts(left: Values, sender: Codes, receiver: Codes) -> float:
    """Median over hosts of the medians of their cells: no host and no path counts more than the others."""
    host = np.concatenate([sender, receiver])
    of_hosts = lower_medians(np.tile(left, 2), host, int(host.max(initial=-1)) + 1)
    return float(np.nanmedian(of_hosts)) if host.size else 0.0


def _spread(
    added: npt.NDArray[np.float32], window: Codes, started: Floats, cells: Cells, pairs: Pairs, classes: Classes
) -> Values:
    """(n, m) what the windows add, of all cells: those outside of the sample belong to the window before them."""
    first = np.full(added.shape[0], np.inf)
    np.minimum.at(first, window, started[cells])
    found = np.zeros(pairs.value.shape, dtype=np.float32)
    for rows in pairs.blocks():
        number = np.clip(np.searchsorted(first, np.nan_to_num(started[rows]), side="right") - 1, 0, None)
        effect = added[number, classes.of_rows(pairs, rows)]
        found[rows] = np.where(np.isfinite(started[rows]), effect, np.float32(0))
    return found
