"""Effect of the time of measurement on all pairs: drift of the whole fabric, or periods in which all pairs were slow.

A run is cut into windows of time. What most hosts have in common in a window, over several pairs of switches, is
attributed to the window and not to the hosts. A window with few hosts or one path is ignored: there, time and component
are indistinguishable. What begins at one time is not divided, so that a burst of one round has a window of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fablint.analyse.null_model.comparison_groups import Classes
from fablint.analyse.observations.pair_matrix import Pairs
from fablint.analyse.observations.robust_stats import MEDIAN_ERROR, robust_sd
from fablint.analyse.settings import CLEAR_DISTANCE, FEWEST_OF_WINDOW, FEWEST_PEERS, FEWEST_VALUES, HALF
from fablint.model import Placement
from fablint.model.arrays import Cells, Codes, Floats, Mask, Values
from fablint.model.figures.distinct_codes import distinct_codes
from fablint.model.figures.grouped_values import GroupedValues

MOST_WINDOWS = 512


def drift_of(
    pairs: Pairs,
    started: Floats,
    classes: Classes,
    placement: Placement,
    left_of: Callable[[Cells], Values],
) -> Values | None:
    """Return the (n, m) log-effect of the time at which each pair was measured; None if time has no effect.

    A class with too few cells in a window has the effect of all cells of the window, if its own cells are nearer to
    that than to none.

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
    is_timed = np.isfinite(started[cells])
    cells = (cells[0][is_timed], cells[1][is_timed])
    if cells[0].size < 2 * FEWEST_OF_WINDOW:
        return None
    window = _windows(started[cells], len(placement.hosts))
    left, codes = left_of(cells), classes.of_cells(pairs, cells).astype(np.int64)
    timed = _Windows(window, left, cells[0], pairs.destination(cells), placement)
    added = np.zeros((timed.count, classes.count), dtype=np.float32)
    of_all = timed.effects(np.ones(left.size, dtype=bool))
    for code in np.unique(codes).tolist():
        in_class = codes == code
        effects = timed.effects(in_class)
        near = of_all * (2 * timed.medians(in_class) - of_all) > 0  # nearer to the effect of all cells than to none
        added[:, code] = np.where(np.isnan(effects), np.where(near, of_all, np.nan), effects)
    added = np.nan_to_num(added)
    return _spread(added, window, started, cells, pairs, classes) if added.any() else None


def _windows(started: Floats, hosts: int) -> Codes:
    """Return the (k,) window of each cell: successive times, together of enough cells to show what hosts have in
    common.
    """
    least = max(FEWEST_OF_WINDOW, HALF * hosts, started.size // MOST_WINDOWS)
    _, moment, count = np.unique(started, return_inverse=True, return_counts=True)
    number, cells, of_moments = 0, 0, []
    for size in count.tolist():
        if cells >= least:
            number, cells = number + 1, 0
        of_moments.append(number)
        cells += size
    return np.array(of_moments, dtype=np.int64)[moment.ravel()]


@dataclass(frozen=True)
class _Windows:
    """Cells of a view, and the window of each."""

    window: Codes  # (k,)
    left: Values  # (k,) residuals
    src: Codes  # (k,) ranks
    dst: Codes
    placement: Placement

    @property
    def count(self) -> int:
        """Number of windows."""
        return int(self.window.max()) + 1

    def medians(self, chosen: Mask) -> Floats:
        """Return the (windows,) median of the chosen cells, NaN where there are none."""
        return GroupedValues.of(self.left[chosen], self.window[chosen], self.count).medians()

    def effects(self, chosen: Mask) -> Floats:
        """Return the (windows,) clear effect that hosts have in common in the chosen cells; 0: none, NaN: unknown.

        It is the median over hosts of the medians of their cells: each host counts equally. It is known where these
        cells are FEWEST_OF_WINDOW or more, of half of the hosts, over several paths if they cross switches.
        """
        window, left = self.window[chosen], self.left[chosen]
        hosts = self.placement.host[np.concatenate([self.src[chosen], self.dst[chosen]])].astype(np.int64)
        key, of_host, _ = distinct_codes(np.tile(window, 2) * len(self.placement.hosts) + hosts)
        of_hosts = GroupedValues.of(np.tile(left, 2), of_host, key.size).lower_medians()
        grouped = GroupedValues.of(of_hosts, key // len(self.placement.hosts), self.count)
        cells, middle = np.bincount(window, minlength=self.count), grouped.medians()
        is_known = (cells >= FEWEST_OF_WINDOW) & self._have_several_paths(chosen)
        is_known &= grouped.count >= max(FEWEST_VALUES, HALF * len(self.placement.hosts))
        error = MEDIAN_ERROR * robust_sd(left - self.medians(chosen)[window])
        is_clear = np.abs(middle) > CLEAR_DISTANCE * error / np.sqrt(np.maximum(cells, 1))
        return np.where(is_known, np.where(is_clear, middle, 0.0), np.nan)

    def _have_several_paths(self, chosen: Mask) -> Mask:
        """Return (windows,) whether the chosen cells have several pairs of switches, or cross none."""
        switches = len(self.placement.switches)
        if not switches:
            return np.ones(self.count, dtype=bool)
        window = self.window[chosen]
        a, b = (self.placement.switch[end[chosen]].astype(np.int64) for end in (self.src, self.dst))
        crossing = np.bincount(window, weights=a != b, minlength=self.count)
        paths = np.unique((window * (switches + 1) + a + 1) * (switches + 1) + b + 1) // (switches + 1) ** 2
        return np.asarray((crossing == 0) | (np.bincount(paths, minlength=self.count) >= FEWEST_PEERS))


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
