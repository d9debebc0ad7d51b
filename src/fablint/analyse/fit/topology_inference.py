"""A map of switches and groups made from latencies alone, for runs without a topology.

Two hosts on one switch are closer than two on different ones, and closeness is transitive: whoever is close to one
host of a switch is close to all of them. Noise is not. So a cut through the times is tried wherever they leave a gap,
and accepted where the pairs below it form cliques (hosts that have most of their close hosts in common) that noise
would form by chance once in ten thousand runs at most. Groups are found in the same way among the switches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from fablint.analyse.data.rank_places import Codes, Places
from fablint.analyse.data.robust_stats import robust_sd
from fablint.model import Observations, Switch, Topology

Times = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]

MOST_HOSTS = 5000
FEWEST_HOSTS = 6
COVERAGE = 0.9  # of all pairs, below which the map is not drawn
CLEAR_GAP = 4.0  # robust standard deviations between pairs on one switch and on two
LOG_CHANCE = -np.log(1e4)  # that noise forms such cliques, were it never so bimodal
COMMON = 0.5  # of their close hosts, which two hosts on one switch have in common
MOST_STRANGERS = 0.1  # pairs on one switch that are not close, or close ones that are not on one switch
MOST_CUTS = 4
PASSES = 3
ALONE = 0.5  # share of hosts that have a switch for themselves, from which there is no structure to speak of
SQUARES = 4000  # of two hosts on each of two switches that are looked at
BINS = 400
DEPTH = 1.2  # how many times fewer pairs there are in a gap than on both of its sides


@dataclass(frozen=True)
class _Level:
    """Which hosts (or switches) belong together."""

    label: Labels  # (n,)
    near: float  # median seconds together
    far: float  # and apart


def infer(observations: Observations, places: Places) -> Topology | None:
    """Switches and groups that the times show; None where they show none, or too little was measured.

    `observations` is a full matrix of round trips of the smallest message, at most 5,000 hosts. Takes 4 bytes per
    pair a few times over.
    """
    times = _between_hosts(observations, places)
    if times is None:
        return None
    found = _level_of_hosts(times)
    if found is None:
        return None
    switches, left = found
    label = _in_order(switches.label)
    groups = _level(_between_parts(left, label), CLEAR_GAP)
    group = _in_order(groups.label) if groups else np.zeros(label.max() + 1, dtype=np.int64)
    names = [f"inferred-s{code}" for code in range(label.max() + 1)]
    return Topology(
        switches={name: Switch(name, f"inferred-g{group[code]}") for code, name in enumerate(names)},
        host_switch={host: names[label[code]] for code, host in enumerate(places.hosts)},
        source=f"inferred from the times of {observations.row}",
        inferred=True,
    )


def _between_hosts(observations: Observations, places: Places) -> Times | None:
    """(hosts, hosts) seconds, symmetric, NaN on the diagonal; None where too few pairs are known.

    Of both directions the larger: one reading that is too short by chance would make two hosts neighbours.
    """
    hosts = len(places.hosts)
    if observations.partner is not None or not FEWEST_HOSTS <= hosts <= MOST_HOSTS:
        return None
    sent = np.asarray(observations.sent, dtype=np.float32)
    if hosts < sent.shape[0]:  # several ranks on a host: the first of them speaks for it
        first = np.unique(places.host, return_index=True)[1]
        sent = sent[np.ix_(first, first)]
    elif (places.host != np.arange(hosts)).any():
        order = np.argsort(places.host)
        sent = sent[np.ix_(order, order)]
    times = np.fmax(sent, sent.T)
    times[~(times > 0)] = np.nan
    np.fill_diagonal(times, np.nan)
    known = np.count_nonzero(~np.isnan(times))
    return times if known >= COVERAGE * hosts * (hosts - 1) else None


def _level_of_hosts(times: Times) -> tuple[_Level, Times] | None:
    """The switches, found again and again while what each host adds to all of its pairs becomes known.

    Also returns the times without what the hosts add.
    """
    found: _Level | None = None
    left = times
    for _ in range(PASSES):
        level = _level(left, CLEAR_GAP)
        if level is None:
            # Slow hosts hide what the others show: what they add is guessed from the bulk of their pairs.
            added = _row_medians(left)
        else:
            together = level.label[:, None] == level.label[None, :]
            added = _row_medians(left - np.where(together, np.float32(level.near), np.float32(level.far)))
        left = left - (added[:, None] + added[None, :])
        settled = found is not None and (level is None or np.array_equal(level.label, found.label))
        found = level
        if settled:
            break
    if found is None or np.bincount(found.label)[found.label].tolist().count(1) > ALONE * len(times):
        return None
    return (found, left) if _in_squares(times, found.label) > found.far - found.near else None


def _in_squares(times: Times, label: Labels) -> float:
    """How much longer it takes to go across than to stay, seconds: median over two hosts on each of two switches.

    Whatever single hosts add is on both sides and cancels, so that a club of fast hosts does not look like a switch.
    0 where there are no two switches with two hosts each. Expected is twice the gap between the classes.
    """
    rng = np.random.default_rng(label.size)
    order = np.argsort(label, kind="stable")
    count = np.bincount(label)
    first = np.cumsum(count) - count
    able = np.flatnonzero(count >= 2)
    if able.size < 2:
        return 0.0
    one = rng.choice(able, SQUARES, p=count[able] / count[able].sum())
    other = rng.choice(able, SQUARES, p=count[able] / count[able].sum())
    place = rng.integers(0, count[one]), rng.integers(0, count[other])
    step = rng.integers(1, count[one]), rng.integers(1, count[other])
    i, k = (order[first[part] + at] for part, at in zip((one, other), place, strict=True))
    j, m = (
        order[first[part] + (at + by) % count[part]] for part, at, by in zip((one, other), place, step, strict=True)
    )
    use = one != other
    square = times[i, k] + times[j, m] - times[i, j] - times[k, m]
    return float(np.nan_to_num(np.nanmedian(square[use]))) if use.any() else 0.0


def _row_medians(values: Times) -> Times:
    """(n,) median of each row around their own median."""
    added = np.nanmedian(values, axis=1)
    return np.asarray(added - np.nanmedian(added), dtype=np.float32)


def _between_parts(times: Times, label: Labels) -> Times:
    """(parts, parts) mean seconds between the hosts of two parts, NaN on the diagonal."""
    from scipy import sparse

    member = sparse.csr_matrix((np.ones(label.size, np.float32), (label, np.arange(label.size))))
    known = ~np.isnan(times)
    total = member @ np.where(known, times, 0) @ member.T
    count = member @ known.astype(np.float32) @ member.T
    with np.errstate(invalid="ignore"):
        between = np.asarray(total / count, dtype=np.float32)
    np.fill_diagonal(between, np.nan)
    return between


def _in_order(label: Labels) -> Labels:
    """The same parts, numbered by their first member."""
    _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


# ------------------------------------------------------------------------------------------------ one level


def _level(times: Times, gap: float) -> _Level | None:
    """The finest partition that the times show."""
    if len(times) < 3:
        return None
    upper = times[np.triu_indices(len(times), 1)]
    upper = upper[~np.isnan(upper)]
    for cut in _cuts(upper, len(times)):
        with np.errstate(invalid="ignore"):
            close = times < cut
        label = _cliques(close)
        if label is not None and (level := _checked(times, close, label, gap)):
            return level
    return None


def _cuts(values: Times, parts: int) -> list[float]:
    """Where the times leave a gap, the lowest first: below each is at least one pair for every four parts."""
    low, high = float(values.min()), float(np.quantile(values, 0.995))
    if not high > low:
        return []
    counts, edges = np.histogram(values, bins=BINS, range=(low, high))
    wide = max(8.0, 100 / values.size**0.25)  # of the window, in bins: few values leave many bins empty
    valleys = {bin_ for width in (wide, wide / 3) for bin_ in _valleys(counts, width, fewest=parts / 4)}
    return sorted(float(edges[bin_ + 1]) for bin_ in valleys)


def _valleys(counts: Codes, width: float, *, fewest: float) -> list[int]:
    """Bins in the middle of the deepest gaps, above at least the `fewest` values."""
    from scipy.ndimage import gaussian_filter1d

    density = np.log(gaussian_filter1d(counts.astype(np.float64), width, mode="constant") + 1e-3)
    before = np.maximum.accumulate(density)
    after = np.maximum.accumulate(density[::-1])[::-1]
    depth = np.minimum(before, after) - density
    lowest = (density <= np.roll(density, 1)) & (density <= np.roll(density, -1)) & (depth > np.log(DEPTH))
    found = np.flatnonzero(lowest & (np.cumsum(counts) >= fewest))
    # One gap is one cut, in its middle, however many bins are equally empty.
    runs = [run for run in np.split(found, np.flatnonzero(np.diff(found) > 1) + 1) if run.size]
    deepest = sorted(runs, key=lambda run: (-depth[run[0]], -run.size))[:MOST_CUTS]
    return [int(run[run.size // 2]) for run in deepest]


def _cliques(close: npt.NDArray[np.bool_]) -> Labels | None:
    """(n,) parts: those who are close and have most of those close to them in common; None where all or none are."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    near = close.copy()
    np.fill_diagonal(near, True)
    degree = near.sum(axis=1)
    if degree.mean() > len(near) / 2 + 1:
        # Dense: whoever is not close is rare, and so two parts at most.
        common = near.astype(np.float32) @ near.astype(np.float32)
        both = near & (common >= COMMON * (degree[:, None] + degree[None, :] - common))
        graph = sparse.csr_matrix(both)
    else:
        near_sparse = sparse.csr_matrix(near.astype(np.float32))
        common_sparse = (near_sparse @ near_sparse).multiply(near_sparse).tocoo()
        row, column, shared = common_sparse.row, common_sparse.col, common_sparse.data
        keep = shared >= COMMON * (degree[row] + degree[column] - shared)
        graph = sparse.csr_matrix((np.ones(int(keep.sum()), np.int8), (row[keep], column[keep])), shape=near.shape)
    parts, label = connected_components(graph, directed=False)
    return label.astype(np.int64) if 1 < parts < len(near) else None


def _checked(times: Times, close: npt.NDArray[np.bool_], label: Labels, gap: float) -> _Level | None:
    """The partition, if the close pairs are those inside its parts, too well for chance, and the classes lie apart."""
    upper = np.triu(np.ones(times.shape, dtype=bool), 1) & ~np.isnan(times)
    inside = upper & (label[:, None] == label[None, :])
    within, across = int(inside.sum()), int(upper.sum() - inside.sum())
    edges = int((close & upper).sum())
    missing, extra = within - int((close & inside).sum()), edges - int((close & inside).sum())
    if min(within, across) < 1 or missing > MOST_STRANGERS * within or extra > MOST_STRANGERS * edges:
        return None
    sizes = np.bincount(label)
    partitions = gammaln(label.size + 1) - gammaln(sizes + 1).sum() - _log_repeats(sizes) + np.log(label.size) * 2
    chance = (
        partitions + _log_choose(within, missing) + _log_choose(across, extra) - _log_choose(within + across, edges)
    )
    if chance > LOG_CHANCE:
        return None
    on, off = times[inside], times[upper & ~inside]
    nearest = off[off <= np.median(off)] if off.size > 4 * on.size else off
    near, far = float(np.median(on)), float(np.median(off))
    if far - near < gap * max(robust_sd(on), robust_sd(nearest)):
        return None
    return _Level(label, near, far)


def _log_choose(n: int, k: int) -> float:
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def _log_repeats(sizes: Codes) -> float:
    """Parts of one size are alike: their order is no other partition."""
    return float(gammaln(np.bincount(sizes)[1:] + 1).sum())
