"""Whether a pair that is slow in one moment of a row is slow at another time as well: in a moment of another row.

Both directions of a pair are measured in the same moment, so that a moment of load slows both of them: they are one
observation, and not two. Rows are measured one after the other. A pair that is slow in two of them is slow at two
times, unless so many pairs are as slow at one time that some are slow twice by chance.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence, Set
from itertools import combinations
from math import isqrt

from fablint.analyse.explain.view import ViewResult
from fablint.model import Placement

Ends = tuple[int, int]  # codes of two hosts, the lower first

MOST_COMPARED = 1000  # slowest pairs of a row, which are compared with those of other rows


def ends_of(ranks: Sequence[int], placement: Placement) -> Ends:
    """Return the hosts of a pair of ranks."""
    a, b = sorted(int(placement.host[rank]) for rank in ranks)
    return a, b


def slow_at_two_times(views: Sequence[ViewResult], placement: Placement, chance: float) -> set[Ends]:
    """Return the pairs of hosts that are slow in both directions in two rows, and not by chance.

    Pairs that are slow in one of two rows only are its moments of load. If k and l of them are as slow as a pair in
    each row, its ranks have the product (k + 1) (l + 1). Of n pairs whose ranks in two rows are independent, as many
    have a product as low by chance as there are such products of two ranks, divided by n.

    Parameters
    ----------
    views
        All views of the run; a pair that was slow while others were slow does not count in that view.
    placement
        Hosts of the ranks.
    chance
        Number of pairs slow by chance, over all rows, up to which the pairs of two rows are believed.
    """
    losses_of_views = [(view, _losses(view, placement)) for view in views if view.slowest is not None]
    twos = [two for two in combinations(losses_of_views, 2) if two[0][0].row != two[1][0].row]
    result: set[Ends] = set()
    for (first, losses), (second, other_losses) in twos:
        assert first.slowest is not None and second.slowest is not None
        both = losses.keys() & other_losses.keys()
        pairs = min(first.slowest.measured, second.slowest.measured)
        as_slow = _numbers_as_slow(losses, both), _numbers_as_slow(other_losses, both)
        products = {ends: (as_slow[0][ends] + 1) * (as_slow[1][ends] + 1) for ends in both}
        by_chance = {ends: _products_up_to(product) / pairs for ends, product in products.items()}
        result |= {ends for ends, number in by_chance.items() if number <= chance / len(twos)}
    return result


def _products_up_to(most: int) -> int:
    """Return how many pairs of two positive numbers have a product up to a number: those below the square twice."""
    root = isqrt(most)
    return 2 * sum(most // number for number in range(1, root + 1)) - root**2


def _losses(view: ViewResult, placement: Placement) -> Mapping[Ends, float]:
    """Return the loss of each pair of hosts that is slow in both directions and that its time does not explain."""
    assert view.slowest is not None
    by_time = {ends_of(pair.ranks, placement) for pair in view.slow_pairs if pair.meanwhile is not None}
    losses: dict[Ends, float] = {}
    slowest = view.slowest.ranks[:MOST_COMPARED].tolist(), view.slowest.loss[:MOST_COMPARED].tolist()
    for ranks, loss in zip(*slowest, strict=True):
        ends = ends_of(ranks, placement)
        if ends not in by_time:
            losses.setdefault(ends, loss)
    return losses


def _numbers_as_slow(losses: Mapping[Ends, float], both: Set[Ends]) -> dict[Ends, int]:
    """Return, for each pair that is slow in both rows, how many of those slow in this row only are as slow."""
    single = sorted(loss for ends, loss in losses.items() if ends not in both)
    return {ends: len(single) - bisect_left(single, losses[ends]) for ends in both}
