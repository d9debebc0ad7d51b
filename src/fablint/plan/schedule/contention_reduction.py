"""Exchange partners within a round until its messages collide less: local search, many exchanges at a time."""

from __future__ import annotations

import numpy as np

from fablint.model import Scope
from fablint.model.arrays import Codes, RankPairs, Values
from fablint.topology.contention import link_flows
from fablint.topology.routed_placement import RoutedPlacement

FEWEST_PASSES, MOST_PASSES = 2, 16
EASY_RANKS = 30_000  # passes times ranks that are worth waiting for
PATIENCE = 3  # passes without anything better, after which it ends
AT_ONCE = 8  # one pair in so many is exchanged in a pass
EVENNESS = 0.5  # what a crossing more than others have is worth, in flows


def reduce_contention(
    pairs: RankPairs, placement: RoutedPlacement, scope: Scope, crossed: Values, random: np.random.Generator
) -> RankPairs:
    """Return the same ranks in a round with less contention; the round itself without contention or known paths.

    Two pairs (a, b), (c, d) become (a, d), (c, b) where that stays in the stratum and lowers the sum of squared flows;
    `crossed` says how often earlier rounds crossed each link, so that links that they left out are preferred.
    """
    if placement.routes is None or not placement.routes.certain:
        return pairs
    crossed = crossed if crossed.size else np.zeros(len(placement.routes.ends), np.float32)
    spread = EVENNESS * (crossed - crossed.mean()) if crossed.size else crossed
    best, flows = pairs, link_flows(pairs, placement)
    lowest, since = _tangle(flows, spread), 0
    for _ in range(min(max(FEWEST_PASSES, EASY_RANKS // placement.ranks), MOST_PASSES)):
        if flows.max(initial=0.0) <= 1.0 or since == PATIENCE:
            break
        tried = _exchanged(best, placement, scope, (flows, spread), random)
        flows_tried = link_flows(tried, placement)
        tangle = _tangle(flows_tried, spread)
        since += 1
        if tangle < lowest:
            best, flows, lowest, since = tried, flows_tried, tangle, 0
    return best


def _tangle(flows: Values, spread: Values) -> float:
    return float((flows.astype(np.float64) ** 2).sum() + (flows.sum(axis=0) * spread).sum())


def _exchanged(
    pairs: RankPairs,
    placement: RoutedPlacement,
    scope: Scope,
    state: tuple[Values, Values],
    random: np.random.Generator,
) -> RankPairs:
    """Some of the pairs that collide, each with another pair, exchange partners where both gain by it."""
    hot = _hot(pairs, placement, state[0])
    count = min(hot.size, len(pairs) // 2, max(1, len(pairs) // AT_ONCE))
    item = random.permutation(hot)[:count]
    is_other = np.ones(len(pairs), dtype=bool)
    is_other[item] = False
    other = random.permutation(np.flatnonzero(is_other))[:count]
    item = item[: other.size]
    turned = np.where(random.random(other.size)[:, None] < 0.5, pairs[other], pairs[other, ::-1])
    first = np.stack([pairs[item, 0], turned[:, 1]], axis=1)
    second = np.stack([turned[:, 0], pairs[item, 1]], axis=1)
    allowed = placement.in_stratum(first, scope) & placement.in_stratum(second, scope)
    before = _price(pairs[item], placement, state, 0.0) + _price(pairs[other], placement, state, 0.0)
    after = _price(first, placement, state, 1.0) + _price(second, placement, state, 1.0)
    better = allowed & (after < before)
    result = pairs.copy()
    result[item[better]], result[other[better]] = first[better], second[better]
    return result


def _hot(pairs: RankPairs, placement: RoutedPlacement, flows: Values) -> Codes:
    """Pairs that share a link with others."""
    hot = np.zeros(len(pairs), dtype=bool)
    for direction in (0, 1):
        query, link, _ = placement.crossings_of_pairs(pairs, direction)
        hot[query[flows[direction][link] > 1.0]] = True
    return np.flatnonzero(hot)


def _price(pairs: RankPairs, placement: RoutedPlacement, state: tuple[Values, Values], more: float) -> Values:
    """(k,) what each pair adds to the tangle: of a pair that is in it, or (`more` is 1) of one that would come."""
    flows, spread = state
    price = np.zeros(len(pairs), dtype=np.float32)
    for direction in (0, 1):
        query, link, share = placement.crossings_of_pairs(pairs, direction)
        each = 2 * (flows[direction][link] + more) - 1 + spread[link]
        price += np.bincount(query, weights=share * each, minlength=len(pairs)).astype(np.float32)
    return price
