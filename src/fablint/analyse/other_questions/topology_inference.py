"""Inference of switches and groups from latencies, for runs without a topology.

Two hosts on one switch are closer than two hosts on different switches, and closeness is transitive: a host that is
close to one host of a switch is close to all of them. Noise is not transitive. A cut through the times is tried at each
gap, and accepted if the pairs below it form cliques (hosts that share most of their close hosts) that noise would form
by chance in at most one of ten thousand runs. Groups are found among the switches by the same method.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from fablint.analyse.observations.robust_stats import robust_sd
from fablint.analyse.settings import CHANCE_OF_CLIQUES, CLEAR_DISTANCE, FEWEST_VALUES, HALF, NEARLY_ALL
from fablint.model import Observations, Placement, Switch, Topology
from fablint.model.arrays import Codes, Mask, Values

MOST_HOSTS = 5000
MOST_CUTS = 4
PASSES = 3
SQUARES = 4000  # samples of two hosts on each of two switches
BINS = 400
DEPTH = 1.2  # factor by which a gap has fewer pairs than both of its sides


@dataclass(frozen=True)
class _Level:
    """Partition of hosts (or switches)."""

    label: Codes  # (n,)
    near: float  # median seconds within a part
    far: float  # median seconds between parts


def infer_topology(observations: Observations, placement: Placement) -> Topology | None:
    """Return the switches and groups that the times show; None if they show none, or too little was measured.

    Parameters
    ----------
    observations
        Full matrix of round trips of the smallest message, of at most 5,000 hosts. A few copies of it (4 bytes per
        pair) are made.
    placement
        Hosts of the ranks.
    """
    times = _between_hosts(observations, placement)
    if times is None:
        return None
    partition = _level_of_hosts(times)
    if partition is None:
        return None
    switches, left = partition
    label = _in_order(switches.label)
    groups = _level(_between_parts(left, label))
    group = _in_order(groups.label) if groups else np.zeros(label.max() + 1, dtype=np.int64)
    names = [f"inferred-s{code}" for code in range(label.max() + 1)]
    return Topology(
        switches={name: Switch(name, f"inferred-g{group[code]}") for code, name in enumerate(names)},
        host_switch={host: names[label[code]] for code, host in enumerate(placement.hosts)},
        source=f"inferred from the times of {observations.row}",
        inferred=True,
    )


def _between_hosts(observations: Observations, placement: Placement) -> Values | None:
    """Return (hosts, hosts) seconds, symmetric, NaN on the diagonal; None if too few pairs are known.

    The larger time of both directions counts: one reading that is too short by chance would make two hosts neighbours.
    """
    hosts = len(placement.hosts)
    if observations.partner is not None or not FEWEST_VALUES <= hosts <= MOST_HOSTS:
        return None
    sent = np.asarray(observations.sent, dtype=np.float32)
    if hosts < sent.shape[0]:  # several ranks on a host: the first one counts
        first = np.unique(placement.host, return_index=True)[1]
        sent = sent[np.ix_(first, first)]
    elif (placement.host != np.arange(hosts)).any():
        order = np.argsort(placement.host)
        sent = sent[np.ix_(order, order)]
    times = np.fmax(sent, sent.T)
    times[~(times > 0)] = np.nan
    np.fill_diagonal(times, np.nan)
    measured = np.count_nonzero(~np.isnan(times))
    return times if measured >= NEARLY_ALL * hosts * (hosts - 1) else None


def _level_of_hosts(times: Values) -> tuple[_Level, Values] | None:
    """Return the switches, and the times without the effects of hosts; None if there is no structure.

    The partition is repeated while the effect of each host on its pairs becomes known.
    """
    accepted: _Level | None = None
    corrected = times
    for _ in range(PASSES):
        level = _level(corrected)
        if level is None:
            # Slow hosts hide the structure: their effect is estimated from the bulk of their pairs.
            added = _row_medians(corrected)
        else:
            is_same = level.label[:, None] == level.label[None, :]
            added = _row_medians(corrected - np.where(is_same, np.float32(level.near), np.float32(level.far)))
        corrected = corrected - (added[:, None] + added[None, :])
        settled = accepted is not None and (level is None or np.array_equal(level.label, accepted.label))
        accepted = level
        if settled:
            break
    if accepted is None or np.bincount(accepted.label)[accepted.label].tolist().count(1) > HALF * len(times):
        return None
    return (accepted, corrected) if _crossing_time(times, accepted.label) > accepted.far - accepted.near else None


def _crossing_time(times: Values, label: Codes) -> float:
    """Return how much longer messages between two switches take than messages on one, in s.

    It is the median over two hosts on each of two switches. Effects of single hosts occur on both sides and cancel, so
    that a set of fast hosts does not look like a switch. 0 if no two switches have two hosts each. The expected value
    is twice the gap between the classes.
    """
    rng = np.random.default_rng(label.size)
    order = np.argsort(label, kind="stable")
    count = np.bincount(label)
    first = np.cumsum(count) - count
    able = np.flatnonzero(count >= 2)
    if able.size < 2:
        return 0.0
    first_switch = rng.choice(able, SQUARES, p=count[able] / count[able].sum())
    second_switch = rng.choice(able, SQUARES, p=count[able] / count[able].sum())
    place = rng.integers(0, count[first_switch]), rng.integers(0, count[second_switch])
    step = rng.integers(1, count[first_switch]), rng.integers(1, count[second_switch])
    i, k = (order[first[part] + at] for part, at in zip((first_switch, second_switch), place, strict=True))
    j, m = (
        order[first[part] + (at + by) % count[part]]
        for part, at, by in zip((first_switch, second_switch), place, step, strict=True)
    )
    use = first_switch != second_switch
    square = times[i, k] + times[j, m] - times[i, j] - times[k, m]
    return float(np.nan_to_num(np.nanmedian(square[use]))) if use.any() else 0.0


def _row_medians(values: Values) -> Values:
    """Return the (n,) median of each row, centred on their median."""
    added = np.nanmedian(values, axis=1)
    return np.asarray(added - np.nanmedian(added), dtype=np.float32)


def _between_parts(times: Values, label: Codes) -> Values:
    """Return the (parts, parts) mean seconds between the hosts of two parts, NaN on the diagonal."""
    from scipy import sparse

    member = sparse.csr_matrix((np.ones(label.size, np.float32), (label, np.arange(label.size))))
    is_measured = ~np.isnan(times)
    total = member @ np.where(is_measured, times, 0) @ member.T
    count = member @ is_measured.astype(np.float32) @ member.T
    with np.errstate(invalid="ignore"):
        between = np.asarray(total / count, dtype=np.float32)
    np.fill_diagonal(between, np.nan)
    return between


def _in_order(label: Codes) -> Codes:
    """Return the labels renumbered in the order of the first member of each part."""
    _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


# ------------------------------------------------------------------------------------------------ one level


def _level(times: Values) -> _Level | None:
    """Return the finest partition that the times show; None if there is none."""
    if len(times) < 3:
        return None
    upper = times[np.triu_indices(len(times), 1)]
    upper = upper[~np.isnan(upper)]
    for cut in _cuts(upper, len(times)):
        with np.errstate(invalid="ignore"):
            close = times < cut
        label = _cliques(close)
        if label is not None and (level := _checked(times, close, label)):
            return level
    return None


def _cuts(values: Values, parts: int) -> list[float]:
    """Return the gaps of the times, the lowest first; below each is at least one pair for every four parts."""
    low, high = float(values.min()), float(np.quantile(values, 0.995))
    if not high > low:
        return []
    counts, edges = np.histogram(values, bins=BINS, range=(low, high))
    wide = max(8.0, 100 / values.size**0.25)  # of the window, in bins: few values leave many bins empty
    valleys = {bin_ for width in (wide, wide / 3) for bin_ in _valleys(counts, width, fewest=parts / 4)}
    return sorted(float(edges[bin_ + 1]) for bin_ in valleys)


def _valleys(counts: Codes, width: float, *, fewest: float) -> list[int]:
    """Return the bins in the middle of the deepest gaps, above at least the `fewest` values."""
    from scipy.ndimage import gaussian_filter1d

    density = np.log(gaussian_filter1d(counts.astype(np.float64), width, mode="constant") + 1e-3)
    before = np.maximum.accumulate(density)
    after = np.maximum.accumulate(density[::-1])[::-1]
    depth = np.minimum(before, after) - density
    lowest = (density <= np.roll(density, 1)) & (density <= np.roll(density, -1)) & (depth > np.log(DEPTH))
    low_bins = np.flatnonzero(lowest & (np.cumsum(counts) >= fewest))
    # A gap is one cut, in its middle, however many of its bins are equally empty.
    runs = [run for run in np.split(low_bins, np.flatnonzero(np.diff(low_bins) > 1) + 1) if run.size]
    deepest = sorted(runs, key=lambda run: (-depth[run[0]], -run.size))[:MOST_CUTS]
    return [int(run[run.size // 2]) for run in deepest]


def _cliques(close: Mask) -> Codes | None:
    """Return the (n,) parts: close hosts that share most of their close hosts; None if all or no hosts form one
    part.
    """
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    near = close.copy()
    np.fill_diagonal(near, True)
    degree = near.sum(axis=1)
    if degree.mean() > len(near) / 2 + 1:
        # Dense: few pairs are not close, and so there are at most two parts.
        common = near.astype(np.float32) @ near.astype(np.float32)
        is_edge = near & (common >= HALF * (degree[:, None] + degree[None, :] - common))
        graph = sparse.csr_matrix(is_edge)
    else:
        near_sparse = sparse.csr_matrix(near.astype(np.float32))
        common_sparse = (near_sparse @ near_sparse).multiply(near_sparse).tocoo()
        row, column, shared = common_sparse.row, common_sparse.col, common_sparse.data
        keep = shared >= HALF * (degree[row] + degree[column] - shared)
        graph = sparse.csr_matrix((np.ones(int(keep.sum()), np.int8), (row[keep], column[keep])), shape=near.shape)
    parts, label = connected_components(graph, directed=False)
    return label.astype(np.int64) if 1 < parts < len(near) else None


def _checked(times: Values, close: Mask, label: Codes) -> _Level | None:
    """Return the partition if its parts contain the close pairs, better than by chance, and the classes are separate.

    None otherwise.
    """
    upper = np.triu(np.ones(times.shape, dtype=bool), 1) & ~np.isnan(times)
    inside = upper & (label[:, None] == label[None, :])
    within, across = int(inside.sum()), int(upper.sum() - inside.sum())
    edges = int((close & upper).sum())
    both = int((close & inside).sum())
    missing, extra = within - both, edges - both
    if min(within, across) < 1 or both < NEARLY_ALL * max(within, edges):
        return None
    sizes = np.bincount(label)
    partitions = gammaln(label.size + 1) - gammaln(sizes + 1).sum() - _log_repeats(sizes) + np.log(label.size) * 2
    chance = (
        partitions + _log_choose(within, missing) + _log_choose(across, extra) - _log_choose(within + across, edges)
    )
    if chance > np.log(CHANCE_OF_CLIQUES):
        return None
    on, off = times[inside], times[upper & ~inside]
    nearest = off[off <= np.median(off)] if off.size > 4 * on.size else off
    near, far = float(np.median(on)), float(np.median(off))
    if far - near < CLEAR_DISTANCE * max(robust_sd(on), robust_sd(nearest)):
        return None
    return _Level(label, near, far)


def _log_choose(n: int, k: int) -> float:
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def _log_repeats(sizes: Codes) -> float:
    """Return the log of the number of orders of parts of the same size, which are the same partition."""
    return float(gammaln(np.bincount(sizes)[1:] + 1).sum())
