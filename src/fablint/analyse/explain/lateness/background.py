"""Late messages that are expected without a faulty link: those of contention, and those of the ranks themselves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fablint.analyse.explain.lateness.late_messages import Tails
from fablint.analyse.null_model.effects import Effects
from fablint.analyse.settings import FEWEST_PEERS, LEAST_LATE, MOST_OVERDISPERSION, NEARLY_ALL
from fablint.model import Placement
from fablint.model.arrays import Codes, Floats, Mask
from fablint.model.figures.grouped_values import GroupedValues
from fablint.topology.routing import Routes


def late_background(
    effects: Effects, tails: Tails, placement: Placement, routes: Routes, is_uniform: Sequence[Mask]
) -> tuple[Floats, float]:
    """Return the (k,) share of late messages without a faulty link, and its over-dispersion relative to Poisson.

    Parameters
    ----------
    effects
        Fitted model of the view.
    tails
        Late messages of each cell.
    placement
        Switches of the ranks.
    routes
        Links that messages may cross.
    is_uniform
        For each direction, sent and received, the (n,) ranks whose messages cross all links of their switch with the
        same probability.
    """
    pairs = effects.residual
    rate = tails.late / np.maximum(tails.messages, 1)
    common = np.full(rate.size, LEAST_LATE)
    to, switch = pairs.destination(tails.cells), placement.switch
    a, b = switch[tails.cells[0]], switch[to]
    detour = _distances_to_others(placement, routes)
    classes = effects.classes.of_cells(pairs, tails.cells).astype(np.int64)
    classes = classes * (int(detour.max(initial=0)) * 2 + 1) + detour[a] + detour[b]
    for code in np.unique(classes):  # more contention, more late messages
        rates_of_class = np.sort(rate[classes == code])
        common[classes == code] = max(
            np.mean(rates_of_class[: max(1, int(NEARLY_ALL * rates_of_class.size))]),
            np.mean(rates_of_class) / 2,
            LEAST_LATE,
        )
    is_local = (a == b) & (b >= 0)
    extra = [
        _extra_of_ranks(codes, rate - common, is_local, uniform)
        for codes, uniform in zip((tails.cells[0], to), is_uniform, strict=True)
    ]
    background = common + extra[0][tails.cells[0]] + extra[1][to]
    expected = background * tails.messages
    calm = rate <= np.quantile(rate, 0.95) if rate.size else np.zeros(0, dtype=bool)
    ratio = (tails.late[calm] - expected[calm]) ** 2 / expected[calm]
    return background, float(np.clip(np.mean(ratio) if ratio.size else 1.0, 1.0, MOST_OVERDISPERSION))


def _distances_to_others(placement: Placement, routes: Routes) -> Codes:
    """Return the (S + 1,) number of links from each switch to all others, on which the length of detours depends.

    0 where no message takes a detour, and for unknown switches, which are the last.
    """
    if routes.routing.kind != "adaptive":
        return np.zeros(len(placement.switches) + 1, dtype=np.int64)
    return np.append(routes.distances(routes.codes(placement.switches)).sum(axis=1, dtype=np.int64), 0)


def _extra_of_ranks(codes: Codes, rate: Floats, is_local: Mask, is_uniform: Mask) -> Floats:
    """Return the (n,) share of late messages that each rank adds to all of its cells: their median, at least 0.

    The links of a switch delay no messages within the switch. So if its links are indistinguishable and the local cells
    of a rank, those within its switch, have fewer late messages than the others, the difference is not of the rank.
    """
    everywhere, inside = (
        GroupedValues.of(rate[selected], codes[selected], is_uniform.size).medians(FEWEST_PEERS)
        for selected in (slice(None), is_local)
    )
    extra: Floats = np.where(is_uniform, np.fmin(everywhere, inside), everywhere)
    return np.maximum(np.nan_to_num(extra), 0.0)
