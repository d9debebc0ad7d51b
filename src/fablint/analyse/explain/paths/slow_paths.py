"""Paths between switches that are slower than other paths of their kind, and the reference of paths without peers.

A kind is the paths within groups, or those between groups; for small messages, those over equally many cables. A path
is slow if it differs from its kind by more than the members of the kind differ among each other. The other direction of
a path belongs to its kind, since cables carry both directions equally. A kind that is slower than messages that stay on
a switch is a design (thinner cables), unless it has so few members that one faulty component may explain all of them.
Then the declared speed of its cables decides, if the topology has it.

Latency is compared in seconds: a longer cable or one more switch adds a constant that is not a fault (geometry.py).
"""

from __future__ import annotations

import numpy as np

from fablint.analyse.explain.paths.judgement import Judgement, Measure, PathJudgements, Reference, error_quantile
from fablint.analyse.explain.paths.steadiness import judge_steadiness
from fablint.analyse.null_model.geometry import most_cables_s, most_hop_s
from fablint.analyse.null_model.path_levels import PathLevels
from fablint.analyse.settings import (
    FEWEST_INDEPENDENT,
    FEWEST_OF_SPREAD,
    FEWEST_PEERS,
    FEWEST_VALUES,
    MOST_HOPS,
    POPULATION_SHARE,
)
from fablint.model.arrays import Codes, Floats

ON_A_SWITCH, DECLARED = Reference("switch"), Reference("declared")  # references of a path without peers


def judge_paths(
    levels: PathLevels,
    group: Codes,
    apart: Codes | None,
    measure: Measure,
    started: Floats | None,
    declared: Floats | None = None,
    *,
    unknown_lengths: bool = False,
) -> PathJudgements:
    """Judge every path.

    Parameters
    ----------
    levels
        Levels with k entries.
    group
        (S,) group of each switch.
    apart
        (S, S) cables of a path between two switches; None: unknown.
    measure
        Parameters of the judgement.
    started
        (c,) s, start of each cell of `levels`; None: unknown.
    declared
        (S, S) log time of a message at the declared speed of the slowest cable between two switches, NaN where it is
        not declared; None for round trips, which the speed does not limit.
    unknown_lengths
        Whether the numbers of cables of the paths are unknown.
    """
    size = levels.level.size
    edge, edge_error = _edges(levels, measure.tolerance)
    cables = np.zeros(size, dtype=np.int64)
    if apart is not None and measure.latency:
        cables = np.maximum(apart[levels.src, levels.dst], 0).astype(np.int64)
    kind = _kinds(levels, group, cables)
    nothing = np.full(size, np.nan)
    judgements = PathJudgements(
        levels,
        [Judgement.FEW] * size,
        nothing,
        [Reference("")] * size,
        edge,
        edge_error,
        kind,
        cables,
        group,
        np.full(size, measure.tolerance),
        unknown_lengths=unknown_lengths,
    )
    usable = levels.is_path & (levels.pairs >= FEWEST_PEERS)
    for code in np.unique(kind[usable]):
        _judge_kind(judgements, np.flatnonzero(usable & (kind == code)), measure, started)
    if declared is not None:
        _compare_declared(judgements, declared, measure)
    judge_steadiness(judgements, measure, started)
    return judgements


def _kinds(levels: PathLevels, group: Codes, cables: Codes) -> Codes:
    """Return the (k,) number of the kind of each entry."""
    near = (group[levels.src] == group[levels.dst]).astype(np.int64)
    return np.asarray((cables * 2 + near) * 2 + levels.shared)


def _edges(levels: PathLevels, tolerance: float) -> tuple[Floats, Floats]:
    """Return the (k,) log time on the switches of each entry, and its standard error from scatter beyond the noise.

    It is the time of the slower switch if they differ, else the mean.

    If hosts of a switch are slow among themselves, paths to it are not slower for a reason of their own. If each switch
    has too few pairs, the median of all pairs is the reference.
    """
    on = np.flatnonzero(~levels.is_path & (levels.pairs >= FEWEST_PEERS))
    if not on.size:
        on_switches = np.flatnonzero(~levels.is_path)
        is_enough = levels.pairs[on_switches].sum() >= FEWEST_INDEPENDENT
        edge = np.full(levels.level.size, np.median(levels.level[on_switches]) if is_enough else np.nan)
        return edge, np.zeros(levels.level.size)
    of_switch = np.full(int(max(levels.src.max(), levels.dst.max())) + 1, np.nan)
    error = np.zeros(of_switch.size)
    of_switch[levels.src[on]], error[levels.src[on]] = levels.level[on], levels.unsteadiness[on]
    of_switch = np.where(np.isnan(of_switch), np.median(levels.level[on]), of_switch)
    a, b = of_switch[levels.src], of_switch[levels.dst]
    edge = np.where(np.abs(a - b) > tolerance, np.maximum(a, b), (a + b) / 2)
    return np.asarray(edge, dtype=np.float64), np.maximum(error[levels.src], error[levels.dst])


# ------------------------------------------------------------------------------------------------ one kind


def _judge_kind(judgements: PathJudgements, members: Codes, measure: Measure, started: Floats | None) -> None:
    """Judge the members of a kind, homogeneous members together."""
    levels = judgements.levels
    if levels.bidirectional and members.size == 1 and np.isnan(judgements.edge[members]).all():
        return  # the only path of its kind, without messages on a switch and without a direction
    extra = _extra(judgements, members)
    order = members[np.argsort(extra, kind="stable")]
    extra = np.sort(extra, kind="stable")
    gap = _gaps(judgements, order, measure)
    clusters = np.split(order, np.flatnonzero(np.diff(extra) > gap) + 1)
    reference = _reference(judgements, clusters, measure)
    if reference is None:
        fast = clusters[0]
        _set(judgements, fast, Judgement.FINE, _centre(judgements, fast), Reference("faster_population"))
        for slow in clusters[1:]:
            _set(judgements, slow, Judgement.POPULATION, _centre(judgements, fast), Reference("faster_of_kind"))
        return
    centre = _centre(judgements, clusters[reference])
    tolerance = max(measure.tolerance, measure.spread_factor * _own_spread(judgements, clusters[reference]))
    judgements.tolerance[members] = tolerance
    shown = _reference_of(judgements, clusters[reference], members)
    for at, cluster in enumerate(clusters):
        _set(judgements, cluster, Judgement.SLOW if at > reference else Judgement.FINE, centre, shown)
        for entry in cluster.tolist() if at > reference else ():
            judgements.of[entry] = _of_slow(judgements, entry, tolerance, measure)
    _whole_kind(judgements, clusters[reference], members, measure, started)
    for entry in members.tolist() if measure.latency else ():
        noise = error_quantile(levels, measure) * float(np.hypot(levels.error[entry], judgements.edge_error[entry]))
        if judgements.of[entry] is Judgement.FINE and judgements.loss[entry] > max(measure.tolerance, noise):
            judgements.of[entry] = Judgement.GEOMETRY
    shared = [entry for entry in members.tolist() if levels.shared[entry] and judgements.of[entry] is Judgement.SLOW]
    for entry in shared:
        judgements.of[entry] = Judgement.BESIDE


def _extra(judgements: PathJudgements, members: Codes) -> Floats:
    """Return log times relative to messages on the switches at the ends; without such messages, the log times."""
    level, edge = judgements.levels.level[members], judgements.edge[members]
    return np.asarray(level if np.isnan(edge).any() else level - edge)


def _centre(judgements: PathJudgements, cluster: Codes) -> float:
    """Return the median log time of a cluster, as given by `_extra`."""
    return float(np.median(_extra(judgements, cluster)))


def _set(judgements: PathJudgements, cluster: Codes, judgement: Judgement, centre: float, what: Reference) -> None:
    """Set judgement and reference of a cluster."""
    edge = judgements.edge[cluster]
    judgements.reference[cluster] = centre + np.where(np.isnan(edge), 0.0, edge)
    for entry in cluster.tolist():
        judgements.of[entry], judgements.beside[entry] = judgement, what


def _gaps(judgements: PathJudgements, order: Codes, measure: Measure) -> Floats:
    """Return the (m - 1,) differences of adjacent log times from which they belong to two clusters."""
    levels = judgements.levels
    # Hosts that send faster than they receive make one direction of a path faster and the other slower: errors add.
    errors = np.hypot(levels.error, judgements.edge_error)[order]
    error = errors[:-1] + errors[1:]
    gap = np.maximum(measure.tolerance, error_quantile(levels, measure) * error)
    if measure.latency:
        gap = np.maximum(gap, _as_log(judgements.geometry_s[order[:-1]], levels.level[order[:-1]]))
    return np.asarray(gap, dtype=np.float64)


def _as_log(seconds: Floats, level: Floats) -> Floats:
    """Return the log-effect of some seconds in addition to a log time."""
    return np.asarray(np.log1p(seconds / np.exp(level)))


def _own_spread(judgements: PathJudgements, cluster: Codes) -> float:
    """Return the standard deviation of healthy members beyond the error of their levels."""
    extra = _extra(judgements, cluster)
    if extra.size < FEWEST_PEERS:
        return 0.0
    variance = float(np.var(extra, ddof=1)) - float(np.mean(judgements.levels.error[cluster] ** 2))
    return float(np.sqrt(max(0.0, variance)))


def _reference(judgements: PathJudgements, clusters: list[Codes], measure: Measure) -> int | None:
    """Return the cluster that is healthy; None if two populations are equally likely to be healthy."""
    if len(clusters) == 1:
        return 0
    total = sum(cluster.size for cluster in clusters)
    slow = np.concatenate(clusters[1:])
    largest = max(range(len(clusters)), key=lambda at: (clusters[at].size, -at))
    if _of_one_component(judgements, slow):
        return 0
    if largest == 0:
        population = max(cluster.size for cluster in clusters[1:])
        return None if population >= FEWEST_PEERS and population > POPULATION_SHARE * total else 0
    if (
        clusters[0].size + (clusters[1].size if largest > 1 else 0) < FEWEST_PEERS
        and clusters[largest].size * 2 > total
    ):
        return None if _reaches_edge(judgements, clusters[0], measure) else largest
    return None


def _of_one_component(judgements: PathJudgements, slow: Codes) -> bool:
    """Return whether one component can explain all paths: a path in one or both directions, or one switch."""
    levels = judgements.levels
    src, dst = levels.src[slow], levels.dst[slow]
    cables = np.unique(np.stack([np.minimum(src, dst), np.maximum(src, dst)]), axis=1)
    if cables.shape[1] == 1:
        return True
    if _components(judgements, slow) == 1:
        return True
    return bool(set.intersection(*({a, b} for a, b in zip(src.tolist(), dst.tolist(), strict=True))))


def _components(judgements: PathJudgements, entries: Codes) -> int:
    """Return the number of paths that may be separate components: paths between two groups may cross the same cable."""
    levels, group = judgements.levels, judgements.group
    ends = zip(levels.src[entries].tolist(), levels.dst[entries].tolist(), strict=True)
    return len({frozenset((a, b) if group[a] == group[b] else (-1 - group[a], -1 - group[b])) for a, b in ends})


def _reaches_edge(judgements: PathJudgements, cluster: Codes, measure: Measure) -> bool:
    """Return whether a cluster is as fast as messages on a switch."""
    edge = judgements.edge[cluster]
    return not np.isnan(edge).any() and abs(_centre(judgements, cluster)) <= measure.tolerance


def _reference_of(judgements: PathJudgements, reference: Codes, members: Codes) -> Reference:
    """Return what slow paths are compared with."""
    levels = judgements.levels
    cables = {frozenset(pair) for pair in zip(levels.src[members].tolist(), levels.dst[members].tolist(), strict=True)}
    if len(cables) == 1:
        return Reference("other_direction")
    return Reference("other_paths", int(reference.size))


def _of_slow(judgements: PathJudgements, entry: int, tolerance: float, measure: Measure) -> Judgement:
    """Return the judgement of a slow path: by its loss, and by the number of hosts at its ends."""
    levels = judgements.levels
    loss = float(levels.level[entry] - judgements.reference[entry])
    if loss <= tolerance:
        return Judgement.FINE
    cells = int(np.count_nonzero(levels.entry == entry))
    if cells < FEWEST_VALUES or levels.fewest_hosts[entry] < FEWEST_INDEPENDENT:
        return Judgement.LONE
    if measure.latency:
        extra_s = float(np.exp(levels.level[entry]) - np.exp(judgements.reference[entry]))
        if extra_s <= judgements.geometry_s[entry]:
            return Judgement.GEOMETRY
        is_small_kind = np.count_nonzero(judgements.kind == judgements.kind[entry]) < FEWEST_PEERS
        if is_small_kind and extra_s <= _hop_s(judgements, entry):
            return Judgement.LONE
    return Judgement.SLOW


def _hop_s(judgements: PathJudgements, entry: int) -> float:
    """Return the largest time that one more switch may add, in s."""
    return float(most_hop_s(judgements.on_switch_s[entry]))


def _whole_kind(
    judgements: PathJudgements, reference: Codes, members: Codes, measure: Measure, started: Floats | None
) -> None:
    """Judge a kind that is slower than messages on a switch."""
    edge = judgements.edge[reference]
    if np.isnan(edge).any():
        return
    centre = _centre(judgements, reference)
    levels = judgements.levels
    components = _components(judgements, reference)
    if measure.latency:
        extra_s = float(np.median(np.exp(levels.level[reference]) - np.exp(edge)))
        hop_s = _hop_s(judgements, int(reference[0]))
        several = components >= FEWEST_PEERS or judgements.unknown_lengths
        most_s = MOST_HOPS * hop_s if several else max(hop_s, most_cables_s(int(judgements.cables[reference[0]])))
        if extra_s <= most_s:
            return
        is_sure = components < FEWEST_PEERS and extra_s > MOST_HOPS * hop_s
        is_sure = is_sure and centre > _change_over_time(levels, members, started)
        judgement = Judgement.SLOW if is_sure else Judgement.LONE
        tolerance = float(np.log1p(most_s / np.exp(np.median(edge))))
    else:
        tolerance = -float(np.log1p(-measure.in_scope))
        if centre <= tolerance:
            return
        is_concurrent = bool(levels.shared[reference].any())
        judgement = (
            Judgement.BESIDE if is_concurrent else Judgement.DESIGN if components >= FEWEST_PEERS else Judgement.LONE
        )
    _set(judgements, reference, judgement, 0.0, ON_A_SWITCH)
    judgements.tolerance[reference] = tolerance
    sparse_entries = [entry for entry in reference.tolist() if levels.fewest_hosts[entry] < FEWEST_INDEPENDENT]
    for entry in sparse_entries if judgement is Judgement.SLOW else ():
        judgements.of[entry] = Judgement.LONE


def _change_over_time(levels: PathLevels, members: Codes, started: Floats | None) -> float:
    """Return the largest difference of log time between two periods of the messages that are not of a kind.

    What all messages of a later level of a check have in common may be the load of that time: a kind is slow if it
    exceeds what other messages changed by. The difference is 0 if messages on switches were measured meanwhile.
    """
    if started is None:
        return 0.0
    in_kind, is_known = np.isin(levels.entry, members), np.isfinite(started)
    of_kind, on_switch = started[in_kind & is_known], started[~levels.is_path[levels.entry] & is_known]
    begin, end = of_kind.min(initial=np.inf), of_kind.max(initial=-np.inf)
    if np.count_nonzero((on_switch >= begin) & (on_switch <= end)) >= FEWEST_PEERS:
        return 0.0
    others = np.flatnonzero(~in_kind & is_known)
    others = others[np.argsort(started[others], kind="stable")]
    count = len(others) // FEWEST_OF_SPREAD or 1
    periods = np.array_split(levels.left[others] - levels.level[levels.entry[others]], count)
    medians = [float(np.median(period)) for period in periods if period.size]
    return max(medians) - min(medians) if medians else 0.0


def _compare_declared(judgements: PathJudgements, declared: Floats, measure: Measure) -> None:
    """Judge paths without peers by the declared speed of their cables.

    A path should reach the speed of its slowest cable, or that of messages on the switches at its ends if it is lower.
    """
    levels = judgements.levels
    for entry in judgements.entries(Judgement.LONE, Judgement.POPULATION):
        expected = float(np.maximum(judgements.edge[entry], declared[levels.src[entry], levels.dst[entry]]))
        is_sparse = np.count_nonzero(levels.entry == entry) < FEWEST_VALUES
        if np.isnan(expected) or is_sparse or levels.fewest_hosts[entry] < FEWEST_INDEPENDENT:
            continue
        slow = levels.level[entry] - expected > max(-np.log1p(-measure.in_scope), judgements.tolerance[entry])
        judgements.reference[entry], judgements.beside[entry] = expected, DECLARED
        judgements.of[entry] = Judgement.SLOW if slow else Judgement.FINE


# ------------------------------------------------------------------------------------------------ time
