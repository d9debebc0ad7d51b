"""Paths of which only some pairs are slow: a faulty member of parallel cables, or of ECMP paths.

If a pair's messages take an unknown path of k, a slow path shows in about 1 / k of the pairs between two switches. A
pair is slow if it is slower than the fast pairs of its path, beyond noise and tolerance. The share of slow pairs is
compared with that on the switches and on other paths by a binomial test.

If the topology declares the path of each pair, the declaration is tested as well: how well the declared paths separate
slow pairs from other pairs, compared with declared paths that are shuffled among the pairs of the two switches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fablint.analyse.explain.paths.judgement import Measure
from fablint.analyse.null_model.path_levels import PathLevels
from fablint.analyse.observations.binomial import upper_tail
from fablint.analyse.observations.message_paths import BY_HOST, MessagePaths
from fablint.analyse.observations.pair_matrix import Pairs, unordered
from fablint.analyse.observations.time_correlation import SameTime, TimedMeasurements, order_by_time
from fablint.analyse.settings import (
    CHANCE,
    CLEAR_DISTANCE,
    FEWEST_INDEPENDENT,
    FEWEST_PEERS,
    FINEST_NOISE,
    GEOMETRY_S,
    NEARLY_ALL,
    NOT_EXPLAINED,
    SMALL_SHARE,
)
from fablint.model.arrays import Codes, Floats, Mask
from fablint.model.figures.grouped_values import GroupedValues

SHUFFLES = 199


@dataclass(frozen=True)
class Mode:
    """A path of which some pairs are slow."""

    entry: int  # position in the levels
    slow: int  # slow pairs of hosts
    pairs: int  # pairs of hosts measured
    loss: float  # log-effect of the slow pairs relative to other pairs
    cells: Codes  # positions of the slow cells in the cells of the levels
    # slow pairs at the same times if these make so many slow ones likely; None: not, or times unknown
    explained_by: SameTime | None

    @property
    def share(self) -> float:
        """Share of slow pairs."""
        return self.slow / self.pairs


def find_modes(
    levels: PathLevels,
    src: Codes,
    dst: Codes,
    measure: Measure,
    is_wanted: Callable[[Mode], bool],
    started: Floats | None = None,
) -> list[Mode]:
    """Return the paths with significantly more slow pairs than elsewhere.

    Parameters
    ----------
    levels
        Levels of the view.
    src, dst
        (c,) hosts of the cells of the levels.
    measure
        Tolerance and error probability.
    is_wanted
        Whether a path is to be returned: what was slow at its times is looked up for these only.
    started
        (c,) s, begin of each measurement; None: unknown.
    """
    count = levels.level.size
    fast, noise = _fast(levels, count)
    beyond = levels.left - fast[levels.entry]
    threshold = np.maximum(measure.tolerance, CLEAR_DISTANCE * noise)
    if measure.latency:
        threshold = np.maximum(threshold, np.log1p(GEOMETRY_S / np.exp(fast)))
    is_slow = beyond > threshold[levels.entry]
    slow, pairs = _pairs(levels, src, dst, is_slow, count), levels.pairs
    share = slow / np.maximum(pairs, 1)
    usual = _usual(levels, slow, share)
    chance = measure.chance / max(1, int(levels.is_path.sum()))
    is_beyond = levels.is_path & (slow >= FEWEST_PEERS) & (upper_tail(slow, pairs, usual) <= chance)
    timed = None if started is None else _measurements(levels, (src, dst), started, is_slow)
    by_time = None if timed is None else order_by_time(timed)
    modes = []
    for entry in np.flatnonzero(is_beyond & (share >= SMALL_SHARE) & (share <= NEARLY_ALL)).tolist():
        on_path = levels.entry == entry
        cells = np.flatnonzero(on_path & is_slow)
        mode = Mode(entry, int(slow[entry]), int(pairs[entry]), float(np.median(beyond[cells])), cells, None)
        if min(np.unique(src[cells]).size, np.unique(dst[cells]).size) < FEWEST_INDEPENDENT or not is_wanted(mode):
            continue
        same_time = None if timed is None else SameTime.of(timed, on_path, by_time)
        if same_time is not None and same_time.explains(mode.slow, mode.pairs, usual, chance):
            mode = replace(mode, explained_by=same_time)
        modes.append(mode)
    return modes


def _measurements(levels: PathLevels, hosts: tuple[Codes, Codes], started: Floats, is_slow: Mask) -> TimedMeasurements:
    """Return the measurements of the levels with their times."""
    src, dst = levels.src[levels.entry], levels.dst[levels.entry]
    path = unordered(src, dst, int(max(levels.src.max(), levels.dst.max())) + 1)
    return TimedMeasurements(started, is_slow, np.stack(hosts), path)


def _fast(levels: PathLevels, count: int) -> tuple[Floats, Floats]:
    """Return the (k,) log time of the fast pairs of each entry, and their noise.

    The pairs are cut in two where that leaves the least variance within both parts (Otsu 1979). The noise is that
    within the parts, or that of all pairs if it is less.
    """
    grouped = GroupedValues.of(levels.left, levels.entry, count)
    fast, noise = grouped.medians(), np.full(count, levels.noise)
    for size in np.unique(grouped.count[grouped.count >= 2 * FEWEST_PEERS]).tolist():
        entries = np.flatnonzero(grouped.count == size)
        values = grouped.values[grouped.first[entries][:, None] + np.arange(size)]
        below = np.arange(1, size)
        total = np.cumsum(values, axis=1)
        mean = total[:, :-1] / below
        upper_mean = (total[:, -1:] - total[:, :-1]) / (size - below)
        last = np.argmax(below * (size - below) * (upper_mean - mean) ** 2, axis=1)[:, None]  # of the lower part
        low, high = (np.take_along_axis(part, last, axis=1) for part in (mean, upper_mean))
        deviations = values - np.where(np.arange(size) <= last, low, high)
        within = np.maximum(np.std(deviations, axis=1), FINEST_NOISE)
        middle = np.take_along_axis(values, np.hstack([last // 2, (last + 1) // 2]), axis=1).mean(axis=1)
        is_cut = (high - low)[:, 0] >= CLEAR_DISTANCE * within  # two halves of one distribution are less far apart
        noise[entries[is_cut]] = np.minimum(levels.noise, within[is_cut])
        fast[entries[is_cut]] = np.minimum(fast[entries], middle)[is_cut]
    return fast, noise


def _pairs(levels: PathLevels, src: Codes, dst: Codes, chosen: Mask, count: int) -> Codes:
    """Return the (k,) number of pairs of hosts most of whose cells are chosen."""
    hosts = int(max(src.max(initial=0), dst.max(initial=0))) + 1
    a, b = (np.minimum(src, dst), np.maximum(src, dst)) if levels.bidirectional else (src, dst)
    pair = (levels.entry * hosts + a) * hosts + b
    slow_pair, slow = np.unique(pair[chosen], return_counts=True)
    place = np.searchsorted(slow_pair, pair)
    is_of_slow = np.append(slow_pair, -1)[place] == pair
    mostly = 2 * slow > np.bincount(place[is_of_slow], minlength=slow.size)
    return np.bincount(slow_pair[mostly] // hosts**2, minlength=count)


def _usual(levels: PathLevels, slow: Codes, share: Floats) -> float:
    """Return the usual share of slow pairs: that of messages on a switch, or the median over the paths."""
    edge = ~levels.is_path
    judged_levels = levels.is_path & (levels.pairs >= FEWEST_PEERS)
    middle = float(np.median(share[judged_levels])) if np.count_nonzero(judged_levels) > 2 else 0.0
    on_switch = (slow[edge].sum() + 1) / (levels.pairs[edge].sum() + 2) if edge.any() else 0.0
    return max(middle, float(on_switch), 1 / (float(levels.pairs.sum()) + 2))


# ------------------------------------------------------------------------------------------------ declared routes


def declared_routes_explain(
    modes: Sequence[Mode], levels: PathLevels, pairs: Pairs, message_paths: MessagePaths
) -> bool | None:
    """Return whether the declared paths separate the slow pairs of these paths from other pairs.

    None if that is undecided.

    Parameters
    ----------
    modes
        Paths of which some pairs are slow.
    levels
        Levels of all paths.
    pairs
        Pairs of the row.
    message_paths
        Declared path of each pair.
    """
    if not modes or message_paths.routes is None or message_paths.routes.routing.kind not in BY_HOST:
        return None
    rng = np.random.default_rng(len(levels.left))
    is_declared = message_paths.segments[:-1] < message_paths.known_links
    observed, shuffled, testable = 0.0, np.zeros(SHUFFLES), False
    for mode in modes:
        positions = np.flatnonzero(levels.entry == mode.entry)
        cells = (levels.cells[0][positions], levels.cells[1][positions])
        slow = np.isin(positions, mode.cells).astype(np.float64)
        path = message_paths.of_cells(pairs, cells)
        if not is_declared[np.minimum(path, is_declared.shape[0] - 1)].all():
            return None
        label = np.unique(message_paths.segments[path], axis=0, return_inverse=True)[1].ravel()
        testable |= int(label.max()) > 0
        observed += _separated(slow, label)
        shuffled += [_separated(slow, rng.permutation(label)) for _ in range(SHUFFLES)]
    share = (1 + np.count_nonzero(shuffled >= observed - 1e-9)) / (1 + SHUFFLES)
    if not testable or CHANCE < share <= NOT_EXPLAINED:
        return None
    return bool(share <= CHANCE)


def _separated(slow: Floats, label: Codes) -> float:
    """Return the sum of squares of the means per label about the mean of all."""
    count = np.bincount(label)
    total = np.bincount(label, weights=slow)
    used = count > 0
    return float((total[used] ** 2 / count[used]).sum() - slow.sum() ** 2 / slow.size)
