"""Single pairs and hosts that remain slow after all detections. They need a retest and are never a FAULT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fablint.analyse.explain.evidence import Evidence
from fablint.analyse.null_model.effects import Effects, leftover
from fablint.analyse.null_model.pair_tails import beyond_gap, least_beyond_shared_effects
from fablint.analyse.observations.binomial import upper_tail
from fablint.analyse.observations.pair_matrix import Pairs
from fablint.analyse.observations.robust_stats import adjust_p_values, robust_sd
from fablint.analyse.observations.samples import Flows
from fablint.analyse.settings import (
    FAR_ALONE,
    FEWEST_POOL,
    MOST_ISOLATED,
    RARE_DIRECTIONS,
    SMALL_SHARE,
    Settings,
)
from fablint.model import Placement
from fablint.model.arrays import Codes, Mask, Values
from fablint.model.figures.grouped_values import GroupedValues

SAMPLE_CELLS = 1 << 19  # cells of the sample that determines where the tail begins
TAIL_SHARE = 0.01  # share of the slowest pairs, which are examined individually,
TAIL_CELLS = 1000  # and their smallest number


@dataclass(frozen=True)
class Meanwhile:
    """Numbers of unrelated pairs that were as slow as a slow pair: next to it in time, and at other times."""

    slow: int
    measured: int
    slow_at_other_times: int
    measured_at_other_times: int


@dataclass(frozen=True)
class SlowPair:
    """Two ranks whose pair is slow without an explanation, or faster than all other pairs of its kind."""

    ranks: tuple[int, int]
    # log-effect of the better direction, or of the direction from the first rank to the second; below 0: faster
    loss: float
    one_way: bool = False  # whether only the messages from the first rank to the second are slow
    # whether it was measured in one moment only, in a run in rounds, which a check continues; both directions of a pair
    # are measured in the same moment
    once: bool = False
    # of a direction: number of other measurements that were about as slow, if at their rate a direction is expected to
    # be slow in most of its rounds by chance
    moments: int = 0
    # of a direction of a matrix: measured once, and one of a few among thousands
    rare: bool = False
    # whether it was measured only while other pairs sent, in a view where sharing a link costs time
    beside: bool = False
    # whether no other pair sent at any time when it was measured
    alone: bool = False
    meanwhile: Meanwhile | None = None  # why its time and not its route may be the cause


@dataclass(frozen=True)
class SlowestPairs:
    """The pairs of a view that are slower than tolerated in both directions, the slowest first."""

    ranks: Codes  # (k, 2), the lower rank first
    loss: Values  # (k,) log-effect of the better direction
    once: Mask  # (k,) whether the pair was measured in one round
    measured: int  # number of pairs measured, slow or not


@dataclass(frozen=True)
class Outliers:
    """Pairs and directions that are slow beyond chance, and all pairs that are slow in both directions."""

    slow: Sequence[SlowPair]
    slowest: SlowestPairs


@dataclass(frozen=True)
class _Tail:
    """The slowest measured directions of a view: residuals, one value per direction of a pair.

    If a pair was measured in several rounds, the value is the (lower) median of the rounds, and the direction is in the
    tail only if it was slow in most rounds: a slow moment slows both directions of one round.
    """

    ranks: int
    in_rounds: bool  # whether it is a list of rounds that a check continues: no matrix, and no pair measured again
    key: Codes  # (k,) source times `ranks` plus destination, ascending
    loss: Values  # (k,) log-effect
    rounds: Codes  # (k,) number of rounds in which the direction was measured
    moments: Values  # (m,) log-effects of slow measurements of directions that were slow in the fewer of their rounds
    directions: Codes  # number of directions that were measured in 0, 1, 2, ... rounds, in the tail and outside

    @property
    def cells(self) -> int:
        """Number of directions measured."""
        return int(self.directions.sum())


def find_outliers(evidence: Evidence, effects: Effects, settings: Settings, flows: Flows, *, views: int) -> Outliers:
    """Return pairs for a retest: slow in both directions, and of streams also isolated slow directions.

    If no pair is slow and switches are known: pairs that are faster than all other pairs of their kind.

    Parameters
    ----------
    evidence
        Evidence of the view after the search; explained pairs are excluded.
    effects
        Fitted model of the view.
    settings
        Tolerance and `route_rate`.
    flows
        The view. A round trip that was slow once of twice was a slow moment, and not a direction.
    views
        Number of views of the run, which share the error probability.
    """
    one_way = flows.one_way
    tail = _tail_of(evidence, effects, settings, flows)
    slowest = _slowest_pairs(tail, settings)
    slow = _slow_in_both_directions(tail, slowest, settings, views)
    least = least_beyond_shared_effects(
        slowest.loss, len(slow), effects, evidence.gain != 0, settings.route_rate / views
    )
    slow = [pair for pair in slow if pair.loss >= least]
    if one_way:
        slow_pairs = {tuple(sorted(pair.ranks)) for pair in slow}
        isolated = _isolated(tail, evidence.noise, settings, views)
        slow += [pair for pair in isolated if tuple(sorted(pair.ranks)) not in slow_pairs]
    if slow or not evidence.placement.switches:  # without a topology, pairs on one switch may be faster by design
        return Outliers(slow, slowest)
    mirrored = _tail_of(evidence, effects, settings, flows, sign=-1)
    if one_way:
        fast = _isolated(mirrored, evidence.noise, settings, views)
    else:
        fast = _slow_in_both_directions(mirrored, _slowest_pairs(mirrored, settings), settings, views)
    fast = [replace(pair, loss=-pair.loss) for pair in fast if pair.loss > settings.log_loss_in_scope]
    return Outliers(fast, slowest)


def _slowest_pairs(tail: _Tail, settings: Settings) -> SlowestPairs:
    """Return the pairs that are slower than tolerated in both directions."""
    a, b = tail.key // tail.ranks, tail.key % tail.ranks
    back = np.minimum(np.searchsorted(tail.key, b * tail.ranks + a), max(0, tail.key.size - 1))
    smaller = np.minimum(tail.loss, tail.loss[back]) if tail.key.size else tail.loss
    both = (a < b) & (tail.key[back] == b * tail.ranks + a) & (smaller > settings.tolerance) if tail.key.size else a < b
    order = np.flatnonzero(both)[np.argsort(-smaller[both], kind="stable")]
    ranks = np.stack([a[order], b[order]], axis=1)
    return SlowestPairs(ranks, smaller[order], tail.rounds[order] == 1, tail.cells // 2)


def _slow_in_both_directions(tail: _Tail, slowest: SlowestPairs, settings: Settings, views: int) -> list[SlowPair]:
    """Return pairs slow in both directions, by the Benjamini-Hochberg procedure on p-values at `settings.route_rate`.

    A pair is measured in each direction, and a faulty route slows both. The pairs that are slow in one direction only
    show how often a direction is as slow as the better of the two by chance; two independent directions multiply: with
    k such cells of n, two given cells are both among the slowest k + 2 with probability (k + 1) (k + 2) / n^2. Many
    slow pairs do not hide each other. In a pair that was measured in one round the two directions had the same moment,
    and a moment of load slows both: `once`.
    """
    loss = slowest.loss
    if not loss.size:
        return []
    slower = tail.loss.size - np.searchsorted(np.sort(tail.loss), loss, side="left")
    single = slower - 2 * np.arange(1, loss.size + 1)
    p = np.minimum(1.0, views * (single + 1.0) * (single + 2.0) / (tail.cells + 1.0) ** 2)
    by_p = np.argsort(p, kind="stable")
    # The p-values of all other directions are 1.
    passes = adjust_p_values(p) * (tail.cells / 2) / p.size <= settings.route_rate
    chosen = by_p[passes[by_p]]
    once = (tail.in_rounds & slowest.once)[chosen].tolist()
    result = zip(slowest.ranks[chosen].tolist(), loss[chosen].tolist(), once, strict=True)
    return [SlowPair((a, b), x, once=is_single) for (a, b), x, is_single in result]


def _isolated(tail: _Tail, noise: Values, settings: Settings, views: int) -> list[SlowPair]:
    """Return directions with a loss in scope beyond the tail of the noise.

    With fewer than 4 FEWEST_POOL directions the tail is unknown: all directions far from the bulk are returned.

    The gap separates slow routes from the tail, and also moments of load, which have a tail of their own.
    """
    order = np.argsort(-tail.loss, kind="stable")
    loss = tail.loss[order].astype(np.float64)
    most = min(MOST_ISOLATED, int(np.count_nonzero(loss > settings.log_loss_in_scope)))
    if tail.cells < 4 * FEWEST_POOL:
        count = min(most, int(np.count_nonzero(loss > FAR_ALONE * robust_sd(noise))))
    else:
        shift = robust_sd(noise) if tail.cells < 10 * FEWEST_POOL else 0.0
        count = beyond_gap(loss[loss > 0] + shift, most, settings.route_rate / views)
    if not count:
        return []
    isolated = order[:count]
    ends = np.stack(np.divmod(tail.key[isolated], tail.ranks), axis=1).tolist()
    once = (tail.in_rounds & (tail.rounds[isolated] == 1)).tolist()
    moments = _moments(tail, isolated, settings.route_rate / views).tolist()
    single = ~tail.in_rounds & (tail.rounds[isolated] == 1)
    rare = (single & (np.count_nonzero(single) <= RARE_DIRECTIONS * tail.cells)).tolist()
    return [
        SlowPair((a, b), x, one_way=True, once=is_single, moments=others, rare=is_rare)
        for (a, b), x, is_single, others, is_rare in zip(ends, loss[:count].tolist(), once, moments, rare, strict=True)
    ]


def _moments(tail: _Tail, isolated: Codes, chance: float) -> Codes:
    """Return the number of moments of load that explain each of the isolated directions; 0: they do not explain it.

    With fewer than 4 FEWEST_POOL directions a slow cable is as few slow directions as moments are: none is explained.

    A moment of load during one measurement slows one direction, as a slow route does: one measurement does not show
    which it was. The rate of such moments is counted on the other measurements beyond the gap: the only ones of their
    directions, and those of directions that were fast in most of their rounds. Moments explain a direction if, at this
    rate, a direction that was measured as often is expected to be slow in most of its rounds with more than `chance`.
    """
    if tail.cells < 4 * FEWEST_POOL:
        return np.zeros(isolated.size, dtype=np.int64)
    rounds = tail.rounds[isolated]
    source, target = np.divmod(tail.key[isolated], tail.ranks)
    both = np.isin(target * tail.ranks + source, tail.key[isolated])  # a slow pair
    once = (rounds == 1) & ~both
    slow_moments = np.count_nonzero(tail.moments >= tail.loss[isolated[-1]])
    others = np.count_nonzero(once) + slow_moments - once
    measured = tail.directions @ np.arange(tail.directions.size)
    expected = tail.directions[rounds] * upper_tail(rounds // 2 + 1, rounds, others / measured)
    return np.where(expected > chance, others, 0)


def _tail_of(evidence: Evidence, effects: Effects, settings: Settings, flows: Flows, sign: int = 1) -> _Tail:
    """Return the slowest hundredth of all cells, at least the slowest thousand; with `sign` -1 the fastest."""
    pairs = evidence.pairs
    sample_rows = np.arange(0, pairs.ranks, max(1, pairs.value.size // SAMPLE_CELLS))
    sample = sign * leftover(effects, sample_rows, cap=True)[evidence.gain[sample_rows] != 0]
    if not sample.size:
        none, no_loss = np.empty(0, np.int64), np.empty(0, np.float32)
        return _Tail(pairs.ranks, False, none, no_loss, none, no_loss, none)
    share = min(1.0, max(TAIL_SHARE, TAIL_CELLS / sample.size))
    floor, rare = np.maximum(0.0, np.quantile(sample, (1 - share, 1 - share * SMALL_SHARE))).tolist()
    if share == TAIL_SHARE:  # tolerated losses of a large run with little noise are not examined
        floor = max(floor, min(settings.tolerance, rare))
    keys, losses, measured_keys, cells = [], [], [], 0
    for rows in pairs.blocks():
        live = evidence.gain[rows] != 0
        cells += int(np.count_nonzero(live))
        residuals = sign * leftover(effects, rows, cap=True)
        with np.errstate(invalid="ignore"):
            row, column = np.nonzero((residuals > floor) & live)
        losses.append(residuals[row, column])
        keys.append(_keys(pairs, rows, row, column))
        if pairs.partner is not None:
            measured_keys.append(_keys(pairs, rows, *np.nonzero(live)))
    key, loss = np.concatenate(keys), np.concatenate(losses).astype(np.float32)
    order = np.lexsort((loss, key))
    key, loss = key[order], loss[order]
    if pairs.partner is not None:
        return replace(
            _in_most_rounds(pairs.ranks, key, loss, np.concatenate(measured_keys)), in_rounds=not _has_retest(flows)
        )
    rounds, directions = _rounds_of_matrix(flows, key, pairs.ranks, cells)
    return _Tail(pairs.ranks, False, key, loss, rounds, np.empty(0, np.float32), directions)


def _has_retest(flows: Flows) -> bool:
    """Return whether the slowest pairs of a list were measured again, and have the shorter of both times."""
    return flows.later is not None and bool(flows.later[:, : flows.row.arrays["dst"].shape[1]].any())


def _rounds_of_matrix(flows: Flows, key: Codes, ranks: int, cells: int) -> tuple[Codes, Codes]:
    """Return the number of measurements of each (k,) direction, and of directions measured 0, 1, 2, ... times.

    A matrix has one value for all repeats of a direction; a direction may have been measured again by itself.
    """
    repeats = flows.row.facts.schedule.repeats
    rounds, directions = np.full(key.size, repeats), np.zeros(repeats + 2, dtype=np.int64)
    if flows.later is not None:
        rounds += flows.later[key // ranks, key % ranks]
        directions[-1] = np.count_nonzero(flows.later)
    directions[repeats] = cells - directions[-1]
    return rounds, directions


def _keys(pairs: Pairs, rows: slice, row: Codes, column: Codes) -> Codes:
    """Return a (k,) number for each directed pair of ranks."""
    return np.asarray((row + rows.start) * pairs.ranks + pairs.destination((row + rows.start, column)))


def _in_most_rounds(ranks: int, key: Codes, loss: Values, measured_keys: Codes) -> _Tail:
    """Return the directions that were slow in most of their rounds, each with the (lower) median of its losses.

    Parameters
    ----------
    ranks
        Number of ranks.
    key
        (k,) directions of slow measurements.
    loss
        (k,) loss of each.
    measured_keys
        Directions of all measurements.
    """
    directions, rounds = np.unique(measured_keys, return_counts=True)
    slow_keys, of_pair, slow = np.unique(key, return_inverse=True, return_counts=True)
    measured = rounds[np.searchsorted(directions, slow_keys)]
    most = 2 * slow > measured
    middle = GroupedValues.of(loss, of_pair, slow_keys.size).at((measured - 1) // 2 - (measured - slow))
    return _Tail(
        ranks,
        True,
        slow_keys[most],
        middle[most].astype(np.float32),
        measured[most],
        loss[~most[of_pair]],
        np.bincount(rounds),
    )


def slow_hosts(effects: Effects, placement: Placement, evidence: Evidence | None) -> list[tuple[int, float]]:
    """Return code and log-effect of hosts whose median loss is surely beyond the tolerance, without a detection.

    Hosts that a detection explains have no evidence left and are excluded. `evidence` is None if too little was
    measured for a detection.
    """
    losses = []
    hosts = placement.host
    lower = np.fmax(effects.sent_bounds[0], effects.received_bounds[0])
    median = np.fmax(effects.sent_bounds[1], effects.received_bounds[1])
    with np.errstate(invalid="ignore"):
        slow = lower > effects.host_tolerance
    if evidence:
        slow &= evidence.total.own_sent + evidence.total.own_received > 0
    for host in np.unique(hosts[slow]):
        members = hosts == host
        if slow[members].all():
            losses.append((int(host), float(np.min(median[members]))))
    return losses
