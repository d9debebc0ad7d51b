"""Circumstances that explain a slow pair without a slow route: load of others, or a time when all were slow.

Both directions of a pair are measured in one moment, so that a moment of load slows both. Such a moment shows in other
pairs as well: in those that were measured next to it, without a common host and on another path between switches. A
route that is slow by itself does not slow them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from fablint.analyse.explain.evidence import Evidence
from fablint.analyse.explain.outlier_pairs import Meanwhile, SlowPair
from fablint.analyse.null_model.effects import Effects
from fablint.analyse.observations.binomial import upper_tail
from fablint.analyse.observations.pair_matrix import unordered
from fablint.analyse.observations.round_starts import round_starts
from fablint.analyse.observations.samples import Flows
from fablint.analyse.settings import CHANCE, FEWEST_OF_SPREAD, HALF, QUARTER
from fablint.model.arrays import Codes, Floats, Mask

NEAREST = (4, 8, 16, 32, 64)  # numbers of measurements of unrelated pairs next to a slow one, each of which is tried


def describe_slow_pairs(
    slow_pairs: Sequence[SlowPair], flows: Flows, effects: Effects, evidence: Evidence
) -> list[SlowPair]:
    """Return the slow pairs with `alone`, `beside` and `meanwhile` set."""
    if not slow_pairs:
        return []
    marked = _mark_concurrent(
        [replace(pair, alone=_is_alone(pair, flows, effects)) for pair in slow_pairs], flows, effects
    )
    if flows.started is None:
        return marked
    moments = _Moments.of(flows, effects, evidence)
    hosts = np.array([effects.classes.placement.host[list(pair.ranks)] for pair in marked])
    described = [
        replace(pair, meanwhile=_find_meanwhile(pair, moments, _related_hosts(hosts_of_pair, hosts)))
        if pair.loss > 0
        else pair
        for pair, hosts_of_pair in zip(marked, hosts, strict=True)
    ]
    return _of_slow_rounds(described, moments)


def _is_alone(pair: SlowPair, flows: Flows, effects: Effects) -> bool:
    """Return whether no other pair could delay the messages of a pair."""
    (source, target), partner = pair.ranks, effects.residual.partner
    columns = np.array([target]) if partner is None else np.flatnonzero(partner[source] == target)
    return bool(flows.alone((np.full(columns.size, source), columns)).all())


def _mark_concurrent(slow_pairs: Sequence[SlowPair], flows: Flows, effects: Effects) -> list[SlowPair]:
    """Return the slow pairs with `beside` set if they were never measured alone, where sharing a link costs time.

    The load that the routes predict is that of one turn of a round. A turn that lasts longer than the begin of the next
    turn shares its links with that turn as well. Where the topology does not name all hosts, the links that messages of
    the other hosts cross are unknown, and so is the cost of sharing them.
    """
    pairs, switch = effects.residual, effects.classes.placement.switch
    routes_known = (switch >= 0).all() or (switch < 0).all()
    if routes_known and effects.classes.sharing(effects.class_log_time, effects.link_tolerance) is None:
        return list(slow_pairs)

    def beside(source: int, target: int) -> bool:
        if switch[source] == switch[target] >= 0:
            return False
        if pairs.partner is None:
            return flows.rounds is not None
        return bool(flows.concurrent[pairs.partner[source] == target].all())

    return [replace(pair, beside=pair.one_way and beside(*pair.ranks)) for pair in slow_pairs]


@dataclass(frozen=True)
class _Moments:
    """Measurements of pairs in order of time: both directions of a pair in one round are one measurement."""

    pair: Codes  # (u,) number of the pair of ranks
    hosts: Codes  # (2, u) codes of the hosts
    path: Codes  # (u,) number of the pair of switches, one number where no switch is known
    scope: Codes  # (u,)
    started: Floats  # (u,) s
    # (u,) log time less its class of the faster direction, and of the slower one; effects of components are not
    # subtracted, since they may be effects of a time
    faster: Floats
    slower: Floats
    ranks: int

    def number(self, pair: SlowPair) -> int:
        """Return the number of a pair of ranks."""
        return min(pair.ranks) * self.ranks + max(pair.ranks)

    @classmethod
    def of(cls, flows: Flows, effects: Effects, evidence: Evidence) -> Self:
        """Return the measurements that no detection explains and whose time is known."""
        pairs, placement, started = effects.residual, effects.classes.placement, round_starts(flows)
        assert started is not None
        cells = pairs.sample_cells()
        live = (evidence.gain[cells] != 0) & np.isfinite(started[cells])
        cells = (cells[0][live], cells[1][live])
        to, time = pairs.destination(cells), np.log(np.asarray(flows.observations.sent)[cells].astype(np.float64))
        time -= effects.usual(cells)
        pair = unordered(cells[0], to, pairs.ranks)
        width = 1 if pairs.partner is None else pairs.value.shape[1]
        moment = pair * width + (0 if pairs.partner is None else cells[1])
        order = np.lexsort((started[cells], moment))
        first = np.flatnonzero(np.diff(moment[order], prepend=-1))
        a, b = cells[0][order][first], to[order][first]
        begin = started[cells][order][first]
        by_time = np.argsort(begin, kind="stable")
        a, b = a[by_time], b[by_time]
        return cls(
            pair=pair[order][first][by_time],
            hosts=np.stack([placement.host[a], placement.host[b]]).astype(np.int64),
            path=unordered(placement.switch[a], placement.switch[b], len(placement.switches) + 1),
            scope=placement.scopes(a, b).astype(np.int64),
            started=begin[by_time],
            faster=np.minimum.reduceat(time[order], first)[by_time] if first.size else time,
            slower=np.maximum.reduceat(time[order], first)[by_time] if first.size else time,
            ranks=pairs.ranks,
        )


def _related_hosts(hosts_of_pair: Codes, hosts: Codes) -> Codes:
    """Return the hosts of a slow pair, (2,), and of the slow pairs that share a host with it, of all (p, 2).

    These may have one cause.
    """
    return np.unique(hosts[(hosts[:, :, None] == hosts_of_pair).any(axis=(1, 2))])


def _of_slow_rounds(slow_pairs: Sequence[SlowPair], moments: _Moments) -> list[SlowPair]:
    """Return the slow pairs with `meanwhile` set if their round was slow, and slow rounds are no chance.

    A round of a few pairs shows little by itself. All rounds with slow pairs together show whether the pairs of a round
    are slow together; then a round is slow if most of its other pairs were as slow, and as many rounds of a single pair
    are slow as of others.
    """
    open_pairs = [
        at for at, pair in enumerate(slow_pairs) if pair.loss > 0 and pair.meanwhile is None and not pair.one_way
    ]
    moments_of_pairs = [np.flatnonzero(moments.pair == moments.number(slow_pairs[at])) for at in open_pairs]
    single = [(at, int(index[0])) for at, index in zip(open_pairs, moments_of_pairs, strict=True) if index.size == 1]
    if not single:
        return list(slow_pairs)
    least = HALF * min(slow_pairs[at].loss for at, _ in single)
    slow, (_, of_round, size) = (
        moments.faster >= least,
        np.unique(moments.started, return_inverse=True, return_counts=True),
    )
    of_round = of_round.ravel()
    slow_of_round = np.bincount(of_round, weights=slow).astype(np.int64)
    has_slow = np.unique(of_round[[moment for _, moment in single]])
    others, slow_others = int((size[has_slow] - 1).sum()), int((slow_of_round[has_slow] - 1).sum())
    usual = (slow_of_round.sum() - slow_of_round[has_slow].sum() + 1) / (size.sum() - size[has_slow].sum() + 2)
    if not others or upper_tail(slow_others, others, usual) >= CHANCE or slow_others <= HALF * others:
        return list(slow_pairs)
    is_slow, alone = 2 * slow_of_round > size, size == 1
    rate = (np.count_nonzero(is_slow & ~alone) + 1) / (np.count_nonzero(~alone) + 2)
    is_usual = upper_tail(int(np.count_nonzero(is_slow & alone)), int(np.count_nonzero(alone)), rate) >= CHANCE
    result = list(slow_pairs)
    for at, moment in single:
        number = of_round[moment]
        if is_slow[number] and (is_usual or not alone[number]):
            rest = slow_of_round.sum() - slow_of_round[number], size.sum() - size[number]
            counts = slow_of_round[number] - 1, size[number] - 1, *rest
            result[at] = replace(slow_pairs[at], meanwhile=Meanwhile(*map(int, counts)))
    return result


def _find_meanwhile(pair: SlowPair, moments: _Moments, related: Codes) -> Meanwhile | None:
    """Return how many unrelated pairs were slow at the time of a slow pair; None if that does not explain the pair.

    A pair that was measured in several rounds is explained if it was slow at other times in no more than half of them.
    """
    time = moments.slower if pair.one_way else moments.faster
    moments_of_pair = np.flatnonzero(moments.pair == moments.number(pair))
    if not moments_of_pair.size:
        return None
    slow = moments_of_pair[time[moments_of_pair] >= np.median(time[moments_of_pair]) - HALF * pair.loss]
    reasons = [_slow_nearby(int(moment), time - time[moment], pair.loss, moments, related) for moment in slow]
    slow_reasons = [reason for reason in reasons if reason is not None]
    if not slow_reasons or 2 * (len(reasons) - len(slow_reasons)) > moments_of_pair.size:
        return None
    return max(slow_reasons, key=lambda reason: reason.slow / reason.measured)


def _slow_nearby(moment: int, beside: Floats, loss: float, moments: _Moments, related: Codes) -> Meanwhile | None:
    """Return the slow ones among unrelated pairs near a moment; None if these do not show that the time is the cause.

    They show it if most of them were as slow, or if more of them were slow than at other times by chance.

    Parameters
    ----------
    moment
        Number of the measurement.
    beside
        (u,) log time of each measurement relative to that one.
    loss
        Loss of the slow pair.
    moments
        All measurements.
    related
        Codes of the hosts that may have a cause in common with the slow pair.
    """
    is_unrelated = ~np.isin(moments.hosts, related).any(axis=0)
    is_elsewhere = is_unrelated & (moments.path != moments.path[moment])
    unrelated = np.flatnonzero(is_elsewhere if is_elsewhere.any() else is_unrelated)  # all pairs may have one path
    order = unrelated[np.argsort(np.abs(moments.started[unrelated] - moments.started[moment]), kind="stable")]
    as_slow, slow = (beside[order] >= -(1 - share) * loss for share in (HALF, QUARTER))
    sizes = [size for size in NEAREST if 2 * size <= order.size]
    chances = [len(sizes) * _chance(slow, size, moments.scope[order]) for size in sizes]
    for chance, size in sorted(zip(chances, sizes, strict=True)):
        if chance < CHANCE or np.count_nonzero(as_slow[:size]) > HALF * size >= HALF * FEWEST_OF_SPREAD:
            near, others = int(slow[:size].sum()), int(slow[size:].sum())
            return Meanwhile(near, size, others, order.size - size)
    return None


def _chance(slow: Mask, size: int, scope: Codes) -> float:
    """Return the probability that so many of the first `size` measurements are slow, by the others of each scope."""
    scopes = int(scope.max()) + 1
    others, slow_others = (np.bincount(codes, minlength=scopes) for codes in (scope[size:], scope[size:][slow[size:]]))
    share = ((slow_others + 1) / (others + 2))[scope[:size]].mean()
    count = np.count_nonzero(slow[:size])
    return float(upper_tail(count, size, share)) if count else 1.0
