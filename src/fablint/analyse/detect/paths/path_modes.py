"""Paths of which some pairs are slow and others are not: one of several parallel cables, or of the paths of ECMP.

Where a pair's messages take one of k paths and nobody knows which, a slow one shows in about 1 / k of the pairs between
two switches. Pairs are counted that are slower than the fast ones of their path beyond noise and tolerance; the share
is compared with that on the switches and on the other paths, by a binomial test.

Where the topology declares which path each pair takes, this is tested as well: by how much the declared paths separate
slow pairs from others, beside the same after the declared paths were shuffled among the pairs of the two switches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fablint.analyse.data.binomial import upper_tail
from fablint.analyse.data.message_paths import BY_HOST, MessagePaths
from fablint.analyse.data.pair_matrix import Codes, Pairs
from fablint.analyse.data.robust_stats import Floats
from fablint.analyse.detect.paths.slow_paths import GEOMETRY_S, Measure
from fablint.analyse.fit.effects import FINEST_NOISE
from fablint.analyse.fit.path_levels import PathLevels
from fablint.model.grouped_values import GroupedValues

Mask = npt.NDArray[np.bool_]

NOISES = 4.0  # standard deviations of the noise, beyond which a pair is slow
FEWEST_SLOW = 3  # pairs
FEWEST_ENDS = 2  # hosts at each end of the slow pairs: else it is theirs
LEAST_SHARE, MOST_SHARE = 0.05, 0.9  # of the pairs of a path that are slow
SHUFFLES = 199
# Share of the shuffled assignments that separate slow pairs as well as the declared one: it explains them, or does not.
EXPLAINED, NOT_EXPLAINED = 0.02, 0.2


@dataclass(frozen=True)
class Mode:
    """A path of which some pairs are slow."""

    entry: int  # of the levels
    slow: int  # pairs of hosts
    pairs: int
    loss: float  # log-effect of the slow ones beside the others
    cells: Codes  # positions of the slow ones among the cells of the levels

    @property
    def share(self) -> float:
        return self.slow / self.pairs


def find_modes(levels: PathLevels, src: Codes, dst: Codes, measure: Measure) -> list[Mode]:
    """Paths of which significantly more pairs are slow than elsewhere. `src` and `dst` (c,): hosts of the cells."""
    count = levels.level.size
    fast, noise = _fast(levels, count)
    beyond = levels.left - fast[levels.entry]
    threshold = np.maximum(measure.tolerance, NOISES * noise)
    if measure.latency:
        threshold = np.maximum(threshold, np.log1p(GEOMETRY_S / np.exp(fast)))
    is_slow = beyond > threshold[levels.entry]
    slow, pairs = _pairs(levels, src, dst, is_slow, count), levels.pairs
    share = slow / np.maximum(pairs, 1)
    usual = _usual(levels, slow, share)
    tests = max(1, int(levels.is_path.sum()))
    chance = upper_tail(slow, pairs, usual)
    found = []
    for entry in np.flatnonzero(levels.is_path & (slow >= FEWEST_SLOW) & (chance <= measure.chance / tests)):
        cells = np.flatnonzero((levels.entry == entry) & is_slow)
        ends = min(np.unique(src[cells]).size, np.unique(dst[cells]).size)
        if LEAST_SHARE <= share[entry] <= MOST_SHARE and ends >= FEWEST_ENDS:
            loss = float(np.median(beyond[cells]))
            found.append(Mode(int(entry), int(slow[entry]), int(pairs[entry]), loss, cells))
    return found


def _fast(levels: PathLevels, count: int) -> tuple[Floats, Floats]:
    """(k,) log time of the fast pairs of each entry, and their noise.

    The pairs are cut in two where that leaves the least variance within both (Otsu 1979); the noise is that within, or
    that of all where it is less.
    """
    fast, noise = np.full(count, np.nan), np.full(count, levels.noise)
    order = np.lexsort((levels.left, levels.entry))
    for entry, own in enumerate(
        np.split(levels.left[order], np.cumsum(np.bincount(levels.entry, minlength=count))[:-1])
    ):
        fast[entry] = np.median(own) if own.size else np.nan
        if own.size < 2 * FEWEST_SLOW:
            continue
        below = np.arange(1, own.size)
        total = np.cumsum(own)
        mean = total[:-1] / below
        rest = (total[-1] - total[:-1]) / (own.size - below)
        cut = int(np.argmax(below * (own.size - below) * (rest - mean) ** 2)) + 1
        inside = np.concatenate([own[:cut] - mean[cut - 1], own[cut:] - rest[cut - 1]])
        noise[entry] = min(levels.noise, max(float(np.std(inside)), FINEST_NOISE))
        fast[entry] = min(fast[entry], float(np.median(own[:cut])))
    return fast, noise


def _pairs(levels: PathLevels, src: Codes, dst: Codes, chosen: Mask, count: int) -> Codes:
    """(k,) pairs of hosts most of whose cells are chosen."""
    hosts = int(max(src.max(initial=0), dst.max(initial=0))) + 1
    a, b = (np.minimum(src, dst), np.maximum(src, dst)) if levels.bidirectional else (src, dst)
    pair, of_cell = np.unique((levels.entry * hosts + a) * hosts + b, return_inverse=True)
    mostly = GroupedValues.of(chosen.astype(np.float64), of_cell, pair.size).medians() > 0.5
    return np.bincount(pair[mostly] // hosts**2, minlength=count)


def _usual(levels: PathLevels, slow: Codes, share: Floats) -> float:
    """Share of slow pairs that is usual: of messages on a switch, or of the middle one of the paths."""
    edge = ~levels.is_path
    known = levels.is_path & (levels.pairs >= FEWEST_SLOW)
    middle = float(np.median(share[known])) if np.count_nonzero(known) > 2 else 0.0
    on_switch = (slow[edge].sum() + 1) / (levels.pairs[edge].sum() + 2) if edge.any() else 0.0
    return max(middle, float(on_switch), 1 / (float(levels.pairs.sum()) + 2))


# ------------------------------------------------------------------------------------------------ declared routes


def declared_routes_explain(
    modes: Sequence[Mode], levels: PathLevels, pairs: Pairs, message_paths: MessagePaths
) -> bool | None:
    """Do the declared paths separate the slow pairs of these paths from the others? None where that is not decided.

    Args:
        modes: paths of which some pairs are slow.
        levels: of all paths.
        pairs: of the row.
        ways: the declared path of each pair.
    """
    if not modes or message_paths.routes is None or message_paths.routes.routing.kind not in BY_HOST:
        return None
    rng = np.random.default_rng(len(levels.left))
    known = message_paths.segments[:-1] < message_paths.known_links
    observed, shuffled, testable = 0.0, np.zeros(SHUFFLES), False
    for mode in modes:
        at = np.flatnonzero(levels.entry == mode.entry)
        cells = (levels.cells[0][at], levels.cells[1][at])
        slow = np.isin(at, mode.cells).astype(np.float64)
        path = message_paths.of_cells(pairs, cells)
        if not known[np.minimum(path, known.shape[0] - 1)].all():
            return None
        label = np.unique(message_paths.segments[path], axis=0, return_inverse=True)[1].ravel()
        testable |= int(label.max()) > 0
        observed += _separated(slow, label)
        shuffled += [_separated(slow, rng.permutation(label)) for _ in range(SHUFFLES)]
    as_good = (1 + np.count_nonzero(shuffled >= observed - 1e-9)) / (1 + SHUFFLES)
    if not testable or EXPLAINED < as_good <= NOT_EXPLAINED:
        return None
    return bool(as_good <= EXPLAINED)


def _separated(slow: Floats, label: Codes) -> float:
    """Sum of squares of the labels' means about the mean of all."""
    count = np.bincount(label)
    total = np.bincount(label, weights=slow)
    used = count > 0
    return float((total[used] ** 2 / count[used]).sum() - slow.sum() ** 2 / slow.size)
