"""Paths between switches that are slower than others of their kind, and what a path without others is compared with.

A kind are the paths within groups, or those between groups; of small messages, those over equally many cables. Slow is
what differs from its own kind by more than the members of the kind differ among each other. The other direction of a
path is of its kind, since cables carry both alike. A kind that is slower than messages that stay on a switch is a
design (thinner cables), unless it has so few members that a faulty one may be all of it. Then the declared speed of
its cables decides, where the topology has it.

Latency is compared in seconds: a longer cable or one more switch adds a constant that is no fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from fablint.analyse.data.pair_matrix import Codes
from fablint.analyse.data.robust_stats import Floats
from fablint.analyse.detect.timing import FEWEST_STRETCHES, STRETCHES, error_over_time
from fablint.analyse.fit.path_levels import PathLevels

Mask = npt.NDArray[np.bool_]

HOP_S, CABLE_S = 400e-9, 490e-9  # a switch, and 100 m of cable at 4.9 ns/m
GEOMETRY_S = HOP_S + CABLE_S  # by which the latency of two healthy paths of a kind may differ
MOST_HOPS = 4  # more cables than a message on one switch crosses: up, across a fabric of three levels, down
FEWEST_PAIRS = 3  # of hosts, of which a path is compared at all
FEWEST_EDGE_PAIRS = 2  # of hosts on switches, of all switches together, that show what a message takes there
FEWEST_CELLS = 6  # of which it can be at fault
FEWEST_ENDS = 2  # hosts at each end, so that it is not their own
FEWEST_MEMBERS = 3  # of a kind, that show what is usual
MANY = 0.2  # of a kind: so many equally slow members are a population of their own
ON_A_SWITCH = "messages on a switch"  # what a path without others is compared with
DECLARED = "messages on a switch and the declared speed of its cables"
WITHOUT_OTHERS = (ON_A_SWITCH, DECLARED)


class Judgement(Enum):
    """What is said of one path."""

    FEW = "measured between too few hosts, or with nothing to compare it with"
    FINE = "as fast as the others of its kind"
    DESIGN = "as slow as all others of its kind: what the network was built for"
    GEOMETRY = "later by no more than a longer cable or one more switch explains"
    SLOW = "slower than the others of its kind"
    ONCE = "slower than the others of its kind, but not evenly over time"
    BESIDE = "slower among other messages; alone it was not measured"
    LONE = "slower than messages on a switch, with nothing of its kind to compare it with"
    POPULATION = "in one of two populations, of which nothing says which is healthy"


@dataclass
class PathJudgements:
    """Judgements of the entries of `levels`; arrays are as those. Entries on a switch are FEW."""

    levels: PathLevels
    of: list[Judgement]
    reference: Floats  # log time of what each was compared with, NaN where nothing
    beside: list[str]  # what that is
    edge: Floats  # log time of messages on the switches at both ends, NaN where unknown
    kind: Codes
    group: Codes  # (S,) group of each switch
    tolerance: Floats  # log-effect that a healthy member of the kind may have
    slow_at: dict[int, str] = field(default_factory=dict)  # entry: when it was slow

    @property
    def loss(self) -> Floats:
        """(k,) log-effect beside the reference."""
        return self.levels.level - self.reference

    def entries(self, *judgements: Judgement) -> list[int]:
        """Those that were judged so."""
        return [entry for entry, judgement in enumerate(self.of) if judgement in judgements]


@dataclass(frozen=True)
class Measure:
    """How a kind of measurement is judged."""

    latency: bool
    tolerance: float  # log-effect, at least
    spread_factor: float
    chance: float  # of one false judgement among the paths of this size of the row
    in_scope: float  # loss beside messages that stay on a switch, from which something has to be said about it


def judge_paths(
    levels: PathLevels,
    group: Codes,
    apart: Codes | None,
    measure: Measure,
    started: Floats | None,
    declared: Floats | None = None,
) -> PathJudgements:
    """Judge every path.

    Args:
        levels: of k entries.
        group: (S,) group of each switch.
        apart: (S, S) cables on the way between two switches; None where unknown.
        measure: what is tolerated.
        started: (c,) s, when each cell of `levels` began; None where the run does not say.
        declared: (S, S) log time of a message at the declared speed of the slowest cable between two switches, NaN
            where that is not declared; None of round trips, which it does not limit.
    """
    size = levels.level.size
    edge = _edges(levels, measure.tolerance)
    kind = _kinds(levels, group, apart if measure.latency else None)
    nothing = np.full(size, np.nan)
    found = PathJudgements(
        levels, [Judgement.FEW] * size, nothing, [""] * size, edge, kind, group, np.full(size, measure.tolerance)
    )
    usable = levels.is_path & (levels.pairs >= FEWEST_PAIRS)
    for code in np.unique(kind[usable]):
        _judge_kind(found, np.flatnonzero(usable & (kind == code)), measure)
    if declared is not None:
        _compare_declared(found, declared, measure)
    _weigh(found, measure, started)
    return found


def _kinds(levels: PathLevels, group: Codes, apart: Codes | None) -> Codes:
    """(k,) number of the kind of each entry."""
    near = (group[levels.src] == group[levels.dst]).astype(np.int64)
    cables = np.zeros_like(near) if apart is None else np.maximum(apart[levels.src, levels.dst], 0).astype(np.int64)
    return np.asarray((cables * 2 + near) * 2 + levels.shared)


def _edges(levels: PathLevels, tolerance: float) -> Floats:
    """(k,) log time on the switches of each entry: the slower of both where they differ, else between them.

    Where hosts of a switch are slow among themselves, paths to it are not slower than that for a reason of their own.
    Where each switch has too few pairs, the median of all stands for each.
    """
    on = np.flatnonzero(~levels.is_path & (levels.pairs >= FEWEST_PAIRS))
    if not on.size:
        few = np.flatnonzero(~levels.is_path)
        known = levels.pairs[few].sum() >= FEWEST_EDGE_PAIRS
        return np.full(levels.level.size, np.median(levels.level[few]) if known else np.nan)
    own = np.full(int(max(levels.src.max(), levels.dst.max())) + 1, np.nan)
    own[levels.src[on]] = levels.level[on]
    own = np.where(np.isnan(own), np.median(levels.level[on]), own)
    a, b = own[levels.src], own[levels.dst]
    return np.asarray(np.where(np.abs(a - b) > tolerance, np.maximum(a, b), (a + b) / 2), dtype=np.float64)


# ------------------------------------------------------------------------------------------------ one kind


def _judge_kind(found: PathJudgements, members: Codes, measure: Measure) -> None:
    """Judge the members of a kind, those that are alike together."""
    levels = found.levels
    if levels.bidirectional and members.size == 1 and np.isnan(found.edge[members]).all():
        return  # the only path of its kind, no messages on a switch, and no direction of its own
    extra = _extra(found, members)
    order = members[np.argsort(extra, kind="stable")]
    extra = np.sort(extra, kind="stable")
    gap = _gaps(found, order, measure)
    clusters = np.split(order, np.flatnonzero(np.diff(extra) > gap) + 1)
    reference = _reference(found, clusters, measure)
    if reference is None:
        fast = clusters[0]
        _set(found, fast, Judgement.FINE, _centre(found, fast), "the faster of two populations")
        for slow in clusters[1:]:
            _set(found, slow, Judgement.POPULATION, _centre(found, fast), "the faster ones of its kind")
        return
    centre = _centre(found, clusters[reference])
    tolerance = max(measure.tolerance, measure.spread_factor * _own_spread(found, clusters[reference]))
    found.tolerance[members] = tolerance
    what = _what(found, clusters[reference], members)
    for at, cluster in enumerate(clusters):
        _set(found, cluster, Judgement.SLOW if at > reference else Judgement.FINE, centre, what)
        for entry in cluster.tolist() if at > reference else ():
            found.of[entry] = _of_slow(found, entry, tolerance, measure)
    _whole_kind(found, clusters[reference], members, measure)
    for entry in members.tolist() if measure.latency else ():
        noise = _quantile(levels, measure) * levels.error[entry]
        if found.of[entry] is Judgement.FINE and found.loss[entry] > max(measure.tolerance, noise):
            found.of[entry] = Judgement.GEOMETRY
    shared = [entry for entry in members.tolist() if levels.shared[entry] and found.of[entry] is Judgement.SLOW]
    for entry in shared:
        found.of[entry] = Judgement.BESIDE


def _extra(found: PathJudgements, members: Codes) -> Floats:
    """Log time beside messages on the switches at the ends; where there are none, the log time itself."""
    level, edge = found.levels.level[members], found.edge[members]
    return np.asarray(level if np.isnan(edge).any() else level - edge)


def _centre(found: PathJudgements, cluster: Codes) -> float:
    return float(np.median(_extra(found, cluster)))


def _set(found: PathJudgements, cluster: Codes, judgement: Judgement, centre: float, what: str) -> None:
    edge = found.edge[cluster]
    found.reference[cluster] = centre + np.where(np.isnan(edge), 0.0, edge)
    for entry in cluster.tolist():
        found.of[entry], found.beside[entry] = judgement, what


def _gaps(found: PathJudgements, order: Codes, measure: Measure) -> Floats:
    """(m - 1,) by how much neighbours in the order of their log times have to differ to be of two clusters."""
    levels = found.levels
    # Hosts that send faster than they receive make one direction of a path faster and the other slower: errors add.
    error = levels.error[order[:-1]] + levels.error[order[1:]]
    gap = np.maximum(measure.tolerance, _quantile(levels, measure) * error)
    if measure.latency:
        gap = np.maximum(gap, _as_log(GEOMETRY_S, levels.level[order[:-1]]))
    return np.asarray(gap, dtype=np.float64)


def _quantile(levels: PathLevels, measure: Measure) -> float:
    """Standard errors that the level of one of all paths exceeds by chance."""
    tests = max(1, int(levels.is_path.sum()))
    return float(stdtrit(levels.freedom, 1 - measure.chance / tests))


def _as_log(seconds: float, level: Floats) -> Floats:
    """Log-effect of so many seconds more than a log time."""
    return np.asarray(np.log1p(seconds / np.exp(level)))


def _own_spread(found: PathJudgements, cluster: Codes) -> float:
    """Standard deviation of healthy members beyond the error of their levels; of few members widened."""
    extra = _extra(found, cluster)
    if extra.size < FEWEST_MEMBERS:
        return 0.0
    own = float(np.var(extra, ddof=1)) - float(np.mean(found.levels.error[cluster] ** 2))
    return float(np.sqrt(max(0.0, own)))


def _reference(found: PathJudgements, clusters: list[Codes], measure: Measure) -> int | None:
    """The cluster that shows what is healthy; None where two populations are equally likely to be so."""
    if len(clusters) == 1:
        return 0
    total = sum(cluster.size for cluster in clusters)
    slow = np.concatenate(clusters[1:])
    largest = max(range(len(clusters)), key=lambda at: (clusters[at].size, -at))
    if _of_one_component(found, slow):
        return 0
    if largest == 0:
        population = max(cluster.size for cluster in clusters[1:])
        return None if population >= FEWEST_MEMBERS and population > MANY * total else 0
    if (
        clusters[0].size + (clusters[1].size if largest > 1 else 0) < FEWEST_MEMBERS
        and clusters[largest].size * 2 > total
    ):
        return None if _reaches_edge(found, clusters[0], measure) else largest
    return None


def _of_one_component(found: PathJudgements, slow: Codes) -> bool:
    """Can one component explain them all: a path in one or both directions, or what one switch sends or receives?"""
    levels = found.levels
    src, dst = levels.src[slow], levels.dst[slow]
    cables = np.unique(np.stack([np.minimum(src, dst), np.maximum(src, dst)]), axis=1)
    if cables.shape[1] == 1:
        return True
    if _components(found, slow) == 1:
        return True
    return bool(set.intersection(*({a, b} for a, b in zip(src.tolist(), dst.tolist(), strict=True))))


def _components(found: PathJudgements, entries: Codes) -> int:
    """Paths that may be parts of their own: those between two groups may all cross the same cable."""
    levels, group = found.levels, found.group
    ends = zip(levels.src[entries].tolist(), levels.dst[entries].tolist(), strict=True)
    return len({frozenset((a, b) if group[a] == group[b] else (-1 - group[a], -1 - group[b])) for a, b in ends})


def _reaches_edge(found: PathJudgements, cluster: Codes, measure: Measure) -> bool:
    edge = found.edge[cluster]
    return not np.isnan(edge).any() and abs(_centre(found, cluster)) <= measure.tolerance


def _what(found: PathJudgements, reference: Codes, members: Codes) -> str:
    """What the slow ones are compared with."""
    levels = found.levels
    cables = {frozenset(pair) for pair in zip(levels.src[members].tolist(), levels.dst[members].tolist(), strict=True)}
    if len(cables) == 1:
        return "the other direction"
    return "1 other path" if reference.size == 1 else f"{reference.size} other paths"


def _of_slow(found: PathJudgements, entry: int, tolerance: float, measure: Measure) -> Judgement:
    """Is it slower than the reference by more than is tolerated, and was it measured between enough hosts?"""
    levels = found.levels
    loss = float(levels.level[entry] - found.reference[entry])
    if loss <= tolerance:
        return Judgement.FINE
    cells = int(np.count_nonzero(levels.entry == entry))
    if cells < FEWEST_CELLS or levels.fewest_hosts[entry] < FEWEST_ENDS:
        return Judgement.LONE
    if measure.latency:
        extra_s = float(np.exp(levels.level[entry]) - np.exp(found.reference[entry]))
        if extra_s <= GEOMETRY_S:
            return Judgement.GEOMETRY
        few = np.count_nonzero(found.kind == found.kind[entry]) < FEWEST_MEMBERS
        if few and extra_s <= _hop_s(found, entry):
            return Judgement.LONE
    return Judgement.SLOW


def _hop_s(found: PathJudgements, entry: int) -> float:
    """What one more switch may cost at most: a message on one switch crosses one, and takes no less."""
    edge = found.edge[entry]
    base = found.levels.level[found.levels.is_path].min() if np.isnan(edge) else edge
    return max(GEOMETRY_S, float(np.exp(base)))


def _whole_kind(found: PathJudgements, reference: Codes, members: Codes, measure: Measure) -> None:
    """Say of a kind that is slower than messages on a switch whether that is its design."""
    edge = found.edge[reference]
    if np.isnan(edge).any():
        return
    centre = _centre(found, reference)
    levels = found.levels
    alike = _components(found, reference)
    if measure.latency:
        extra_s = float(np.median(np.exp(levels.level[reference]) - np.exp(edge)))
        hop_s = _hop_s(found, int(reference[0]))
        if extra_s <= hop_s or (alike >= FEWEST_MEMBERS and extra_s <= MOST_HOPS * hop_s):
            return
        judgement = Judgement.LONE if extra_s <= MOST_HOPS * hop_s or alike >= FEWEST_MEMBERS else Judgement.SLOW
    else:
        if centre <= -np.log1p(-measure.in_scope):
            return
        beside = bool(levels.shared[reference].any())
        judgement = Judgement.BESIDE if beside else Judgement.DESIGN if alike >= FEWEST_MEMBERS else Judgement.LONE
    _set(found, reference, judgement, 0.0, ON_A_SWITCH)
    few = [entry for entry in reference.tolist() if levels.fewest_hosts[entry] < FEWEST_ENDS]
    for entry in few if judgement is Judgement.SLOW else ():
        found.of[entry] = Judgement.LONE


def _compare_declared(found: PathJudgements, declared: Floats, measure: Measure) -> None:
    """Judge paths that have nothing of their kind to be compared with by the declared speed of their cables.

    A path is to carry what its slowest cable is declared to, or what messages on the switches at its ends reach where
    that is less.
    """
    levels = found.levels
    for entry in found.entries(Judgement.LONE, Judgement.POPULATION):
        able = float(np.maximum(found.edge[entry], declared[levels.src[entry], levels.dst[entry]]))  # NaN: unknown
        few = np.count_nonzero(levels.entry == entry) < FEWEST_CELLS or levels.fewest_hosts[entry] < FEWEST_ENDS
        if np.isnan(able) or few:
            continue
        slow = levels.level[entry] - able > max(-np.log1p(-measure.in_scope), found.tolerance[entry])
        found.reference[entry], found.beside[entry] = able, DECLARED
        found.of[entry] = Judgement.SLOW if slow else Judgement.FINE


# ------------------------------------------------------------------------------------------------ time


def _weigh(found: PathJudgements, measure: Measure, started: Floats | None) -> None:
    """Of what was slow in one stretch of time only, one cannot say whether it is the path or the time.

    The loss has to be beyond what is tolerated by more than its median over stretches of time varies. Paths that have a
    switch in common are looked at together: load on the switch varies for all of them.
    """
    times = None if started is None or np.isnan(started).all() else started
    slow = found.entries(Judgement.SLOW)
    for entry in slow:
        own = _cells_beside(found, entry, slow)
        if times is not None:
            own = own[~np.isnan(times[own])]
        if own.size and _is_unsteady(found, entry, own, measure, times):
            found.of[entry] = Judgement.ONCE
            found.slow_at[entry] = _when(found, entry, own, times)


def _cells_beside(found: PathJudgements, entry: int, slow: Sequence[int]) -> Codes:
    """Cells of the slow paths that have a switch in common with this one."""
    levels = found.levels
    ends = {int(levels.src[entry]), int(levels.dst[entry])}
    alike = [
        one
        for one in slow
        if ends & {int(levels.src[one]), int(levels.dst[one])} and levels.shared[one] == levels.shared[entry]
    ]
    return np.flatnonzero(np.isin(levels.entry, alike))


def _is_unsteady(found: PathJudgements, entry: int, own: Codes, measure: Measure, times: Floats | None) -> bool:
    """Does the loss vary so much that it may be within the tolerance in the long run, or is all in one stretch?"""
    levels = found.levels
    excess = levels.left[own] - levels.level[levels.entry[own]]
    error = error_over_time(excess, None if times is None else times[own], levels.noise)
    if error * _quantile(levels, measure) > float(found.loss[entry] - found.tolerance[entry]):
        return True
    beside = (~levels.is_path | levels.shared == levels.shared[entry])[levels.entry]
    return times is not None and _at_once(times[own], times[beside])


def _when(found: PathJudgements, entry: int, own: Codes, times: Floats | None) -> str:
    levels = found.levels
    late = own[levels.left[own] - found.reference[levels.entry[own]] > found.tolerance[entry]]
    if times is None or not late.size:
        return "its loss varies from pair to pair"
    when = times[late]
    return f"slow from {float(when.min()):.1f} s to {float(when.max()):.1f} s, not evenly"


def _at_once(own: Floats, every: Floats) -> bool:
    """Do all measurements lie in one of the stretches into which the time of all is cut?"""
    edges = np.nanquantile(every, np.linspace(0, 1, STRETCHES + 1)[1:-1])
    return np.unique(np.searchsorted(edges, own)).size < FEWEST_STRETCHES
