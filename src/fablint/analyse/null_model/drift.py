"""Effect of the time of measurement on all pairs: drift of the whole fabric, or a period in which all pairs were slow.

A run is cut into windows of time. What most hosts have in common in a window, over several pairs of switches, is
attributed to the window and not to the hosts. A window with few hosts or one path is ignored: there, time and component
are indistinguishable.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fablint.analyse.null_model.comparison_groups import Classes
from fablint.analyse.observations.pair_matrix import Pairs
from fablint.analyse.observations.robust_stats import MEDIAN_ERROR, robust_sd
from fablint.analyse.settings import CLEAR_DISTANCE, FEWEST_OF_WINDOW, FEWEST_PEERS, FEWEST_VALUES
from fablint.model import Placement
from fablint.model.arrays import Cells, Codes, Floats, Values
from fablint.model.figures.grouped_values import GroupedValues

MOST_WINDOWS = 64


def drift_of(
    pairs: Pairs,
    started: Floats,
    classes: Classes,
    placement: Placement,
    left_of: Callable[[Cells], Values],
) -> Values | None:
    """Return the (n, m) log-effect of the time at which each pair was measured; None if time has no effect.

    Parameters
    ----------
    pairs
        Residuals from the classes.
    started
        (n, m) s since the start of the run, NaN where unknown.
    classes
        Classes of the pairs.
    placement
        Hosts and switches of the ranks.
    left_of
        Function that returns the (k,) residual of cells from the other effects of the model.
    """
    cells = pairs.sample_cells()
    known = np.isfinite(started[cells])
    cells = (cells[0][known], cells[1][known])
    if cells[0].size < 2 * FEWEST_OF_WINDOW:
        return None
    window = _windows(started[cells])
    left, codes = left_of(cells), classes.of_cells(pairs, cells).astype(np.int64)
    added = np.zeros((int(window.max()) + 1, classes.count), dtype=np.float32)
    to = pairs.destination(cells)
    for code in np.unique(codes):
        in_class = codes == code
        error = MEDIAN_ERROR * robust_sd(left[in_class])
        for number in np.unique(window[in_class]):
            of_window = np.flatnonzero(in_class & (window == number))
            if _covers_fabric(cells[0][of_window], to[of_window], placement):
                middle = _over_hosts(
                    left[of_window], placement.host[cells[0][of_window]], placement.host[to[of_window]]
                )
                if abs(middle) > CLEAR_DISTANCE * error / np.sqrt(of_window.size):
                    added[number, code] = middle
    if not added.any():
        return None
    return _spread(added, window, started, cells, pairs, classes)


def _windows(started: Floats) -> Codes:
    """Return the (k,) window of each cell.

    Windows have equally many cells; cells that began at the same time are not divided.
    """
    count = int(np.clip(started.size // (2 * FEWEST_OF_WINDOW), 1, MOST_WINDOWS))
    edges = np.unique(np.quantile(started, np.arange(1, count) / count, method="lower"))
    return np.searchsorted(edges, started, side="left").astype(np.int64)


def _covers_fabric(src: Codes, dst: Codes, placement: Placement) -> bool:
    """Return whether these cells involve half of the hosts, and several paths if they cross switches."""
    if src.size < FEWEST_OF_WINDOW:
        return False
    hosts = np.unique(placement.host[np.concatenate([src, dst])]).size
    if hosts < max(FEWEST_VALUES, len(placement.hosts) / 2):
        return False
    if not placement.switches:
        return True
    a, b = placement.switch[src].astype(np.int64), placement.switch[dst]
    return bool((a == b).all() or np.unique(a * len(placement.switches) + b).size >= FEWEST_PEERS)


def _over_hosts(left: Values, sender: Codes, receiver: Codes) -> float:
    """Return the median over hosts of the medians of their cells: each host and each path counts equally."""
    host = np.concatenate([sender, receiver])
    of_hosts = GroupedValues.of(np.tile(left, 2), host, int(host.max(initial=-1)) + 1).lower_medians()
    return float(np.nanmedian(of_hosts)) if host.size else 0.0


def _spread(added: Values, window: Codes, started: Floats, cells: Cells, pairs: Pairs, classes: Classes) -> Values:
    """Return the (n, m) effect of the windows on all cells. Cells outside the sample belong to the window before
    them.
    """
    first = np.full(added.shape[0], np.inf)
    np.minimum.at(first, window, started[cells])
    drift = np.zeros(pairs.value.shape, dtype=np.float32)
    for rows in pairs.blocks():
        number = np.clip(np.searchsorted(first, np.nan_to_num(started[rows]), side="right") - 1, 0, None)
        effect = added[number, classes.of_rows(pairs, rows)]
        drift[rows] = np.where(np.isfinite(started[rows]), effect, np.float32(0))
    return drift
