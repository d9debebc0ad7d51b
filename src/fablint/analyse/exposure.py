"""Links whose messages nobody can follow: adaptive routing and hashed ways, judged by how often messages are late.

A message of pair p crosses link l with probability E_pl, which the topology and the share of shortest ways tell. With
adaptive routing the median of a pair hardly moves when one of the links that it may take is sick; but a part of its
messages is late, and that part follows E. The messages of pair p that take longer than healthy ones do are counted,

    late_p ~ Poisson(n_p (b_p + sum over links of E_pl q_l)) / over-dispersion

where b_p is what is late anyway at these two ends, and q_l the share of a link's messages that it makes late. Greedy:
the link with the most evidence is taken, its lateness is added to the background of its pairs, and so on. Without
histograms (a hashed way that stays the same) a pair is one message.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fablint.analyse.fit import Effects
from fablint.analyse.pairs import Cells
from fablint.analyse.places import Codes, Places
from fablint.analyse.quantiles import FEWEST_VALUES, Floats
from fablint.analyse.settings import Settings
from fablint.routing import Index, Routes, Shares, codes_of

LATE = 0.985  # quantile of all messages from which one is rare,
FAR = 2.0  # distances of the quartiles beyond the upper one from which it is far from the bulk
SHARES_LATE = (1.0, 0.5, 0.25)  # of a link's messages, tried in turn
LARGEST = 6.0  # nats that one pair can bet
EXPOSED = 0.05  # probability from which a pair tells something about a link
MOST_OVERDISPERSION = 20.0
MOST_LINKS = 200  # convicted in one view

Histograms = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Tails:
    """Messages of each measured cell."""

    cells: Cells
    messages: Floats  # (k,) how many
    late: Floats  # (k,) how many of them were late
    excess: Floats  # (k,) log of how much longer the late ones took than this pair's messages do, NaN: none


@dataclass(frozen=True)
class LateLink:
    """A link that makes messages late."""

    link: int
    log_e: float
    late: float  # share of its messages
    loss: tuple[float, float, float]  # log-effect on these: lower 95 % bound, median, upper bound
    pairs: int  # exposed to it
    slow: int  # of these, with more late messages than their ends explain
    cells: Cells  # exposed to it and late


@dataclass(frozen=True)
class LateLinks:
    """What a view tells of links that messages may or may not cross."""

    found: tuple[LateLink, ...]
    exposed: Codes  # (links,) pairs that tell something about each


def late_links(
    routes: Routes, places: Places, effects: Effects, histograms: tuple[Histograms, Floats] | None, settings: Settings
) -> LateLinks:
    """Find them. `histograms`: (n, m, buckets) counts, lower edges of the buckets in s; None: one value a pair."""
    tails = count_late(effects, histograms)
    to = effects.residual.destination(tails.cells)
    entry, link, share = _exposures(routes, places, tails.cells[0], to)
    if effects.mutual:  # the way back is late as well, and which of the two it was cannot be told
        back = _exposures(routes, places, to, tails.cells[0])
        entry, link, share = (np.concatenate(both) for both in zip((entry, link, share), back, strict=True))
        link -= link % 2
    known = share >= EXPOSED if histograms is not None else share > 0
    entry, link, chance = entry[known], link[known], share[known].astype(np.float64)
    exposed = np.bincount(link, minlength=len(routes.ends))
    rejected = exposed < FEWEST_VALUES
    if effects.mutual:
        exposed[1::2] = exposed[0::2]
    background, spread = _background(effects, tails)
    bar = float(np.log(len(SHARES_LATE) * max(len(routes.ends), 1) / settings.alpha))
    found: list[LateLink] = []
    while len(found) < MOST_LINKS:
        scores, gains = _scores(tails, background, spread, entry, link, chance, len(routes.ends))
        scores[:, rejected] = -np.inf
        choice, best = np.unravel_index(int(np.argmax(scores)), scores.shape)
        if not scores[choice, best] >= bar:
            break
        mine = link == best
        rejected[best] = True
        case = _examine(int(best), float(scores[choice, best]), SHARES_LATE[choice], mine, entry, gains[choice], tails)
        if case is None:
            continue
        found.append(case)
        np.add.at(background, entry[mine], chance[mine] * SHARES_LATE[choice])
    return LateLinks(tuple(found), exposed)


def count_late(effects: Effects, histograms: tuple[Histograms, Floats] | None) -> Tails:
    """Messages per cell that are late, relative to what the pair's class and ends make usual."""
    pairs = effects.residual
    row, column = np.nonzero(~np.isnan(pairs.value))
    cells = (row, column)
    most = effects.host_tolerance
    to = pairs.destination(cells)
    ends = np.clip(effects.sent, -most, most)[row] + np.clip(effects.received, -most, most)[to]
    if histograms is None:
        left = (pairs.value[cells] - ends).astype(np.float64)
        bound = _late_from(np.sort(left), np.arange(1, left.size + 1), effects.link_tolerance)
        beyond_it = left > bound
        excess = np.where(beyond_it, left, np.nan)
        return Tails(cells, np.ones(row.size), beyond_it.astype(np.float64), excess)
    counts, edges = histograms
    centre = np.log(np.append(np.sqrt(edges[:-1] * edges[1:]), edges[-1]))
    known = np.full(effects.classes.count, np.nan)
    for code, value in effects.class_log_time.items():
        known[code] = value
    usual = known[effects.classes.of_cells(pairs, cells)] + ends
    bound = _late_from(*_sampled(counts, centre, usual, cells), effects.link_tolerance)
    late, messages, excess = np.zeros(row.size), np.zeros(row.size), np.full(row.size, np.nan)
    for first in range(0, row.size, 1 << 15):
        some = slice(first, first + (1 << 15))
        block = counts[row[some], column[some]].astype(np.float64)
        beyond = centre[None, :] - usual[some, None]
        tail = np.where(beyond > bound, block, 0.0)
        messages[some], late[some] = block.sum(axis=1), tail.sum(axis=1)
        half = tail.cumsum(axis=1) >= np.maximum(late[some], 1)[:, None] / 2
        excess[some] = np.where(
            late[some] > 0, np.take_along_axis(beyond, half.argmax(axis=1)[:, None], 1)[:, 0], np.nan
        )
    return Tails(cells, messages, late, excess)


def _late_from(values: Floats, below: npt.NDArray[np.floating | np.integer], tolerance: float) -> float:
    """Log of relative time beyond which a message is late: beyond what is tolerated, and rare or far from the bulk.

    `values` are sorted, `below` counts the messages up to each.
    """
    if not values.size or below[-1] == 0:
        return tolerance
    lower, upper, rare = (float(values[np.searchsorted(below, share * below[-1])]) for share in (0.25, 0.75, LATE))
    return max(tolerance, min(rare, upper + FAR * (upper - lower)))


def _sampled(counts: Histograms, centre: Floats, usual: Floats, cells: Cells) -> tuple[Floats, Floats]:
    """Relative log times of a sample of all messages, sorted, and how many there are up to each."""
    at = slice(None, None, max(1, usual.size // 4096))
    block = counts[cells[0][at], cells[1][at]].astype(np.float64)
    beyond = (centre[None, :] - usual[at, None]).ravel()
    order = np.argsort(beyond)
    return beyond[order], block.ravel()[order].cumsum()


def _exposures(routes: Routes, places: Places, src: Codes, dst: Codes) -> tuple[Index, Index, Shares]:
    """Flat: pair of ranks, link, probability that a message of the pair crosses the link."""
    size = len(places.switches)
    code = codes_of(places.switches, {name: index for index, name in enumerate(routes.switches)})
    here, there = places.switch[src].astype(np.int64), places.switch[dst].astype(np.int64)
    known = (here >= 0) & (there >= 0)
    key = np.where(known, here * size + there, 0)
    unique, inverse = np.unique(key, return_inverse=True)
    query, link, share = routes.exposure(code[unique // size], code[unique % size])
    # From the pairs of switches to the cells: each cell has the entries of its pair.
    first = np.searchsorted(query, np.arange(unique.size))
    width = np.bincount(query, minlength=unique.size)
    width_of = np.where(known, width[inverse], 0)
    cell = np.repeat(np.arange(inverse.size), width_of)
    offset = np.arange(cell.size) - np.repeat(np.cumsum(width_of) - width_of, width_of)
    at = first[inverse[cell]] + offset
    return cell.astype(np.int32), link[at], share[at]


def _background(effects: Effects, tails: Tails) -> tuple[Floats, float]:
    """(k,) share of late messages that the ends of each cell explain, and how much more than Poisson it scatters."""
    pairs = effects.residual
    rate = tails.late / np.maximum(tails.messages, 1)
    common = float(np.mean(np.sort(rate)[: max(1, int(0.9 * rate.size))])) if rate.size else 0.0
    common = max(common, float(np.mean(rate)) / 2 if rate.size else 0.0, 1e-4)
    to = pairs.destination(tails.cells)
    extra = [_median_beyond(codes, rate, pairs.ranks, common) for codes in (tails.cells[0], to)]
    background = common + extra[0][tails.cells[0]] + extra[1][to]
    expected = background * tails.messages
    calm = rate <= np.quantile(rate, 0.95) if rate.size else np.zeros(0, dtype=bool)
    ratio = (tails.late[calm] - expected[calm]) ** 2 / expected[calm]
    return background, float(np.clip(np.mean(ratio) if ratio.size else 1.0, 1.0, MOST_OVERDISPERSION))


def _median_beyond(codes: Codes, rate: Floats, ranks: int, common: float) -> Floats:
    """(n,) how much the median rate of each rank's cells is beyond the common one."""
    order = np.lexsort((rate, codes))
    count = np.bincount(codes, minlength=ranks)
    first = np.cumsum(count) - count
    middle = rate[order][np.minimum(first + count // 2, max(0, rate.size - 1))] if rate.size else np.zeros(ranks)
    return np.where(count >= 3, np.maximum(middle - common, 0.0), 0.0)


def _scores(
    tails: Tails, background: Floats, spread: float, entry: Index, link: Index, share: Floats, links: int
) -> tuple[Floats, list[Floats]]:
    """(shares tried, links) evidence in nats, and the gain of each entry."""
    late, messages, usual = tails.late[entry], tails.messages[entry], background[entry]
    scores, gains = np.zeros((len(SHARES_LATE), links)), []
    for index, tried in enumerate(SHARES_LATE):
        more = share * tried
        gain = np.clip((late * np.log1p(more / usual) - messages * more) / spread, -LARGEST, LARGEST)
        gains.append(gain)
        scores[index] = np.bincount(link, weights=gain, minlength=links)
    return scores, gains


def _examine(
    link: int,
    log_e: float,
    late: float,
    mine: npt.NDArray[np.bool_],
    entry: Index,
    gain: Floats,
    tails: Tails,
) -> LateLink | None:
    """Do most of the pairs that may cross it show it, and not a few of them?"""
    at = entry[mine]
    positive = gain[mine] > 0
    if np.count_nonzero(positive) < FEWEST_VALUES:
        return None
    excess = np.sort(tails.excess[at[positive]])
    excess = excess[~np.isnan(excess)]
    lower, upper = np.quantile(excess, (0.025, 0.975))
    cells = (tails.cells[0][at[positive]], tails.cells[1][at[positive]])
    loss = (float(lower), float(np.median(excess)), float(upper))
    return LateLink(link, log_e, late, loss, at.size, int(np.count_nonzero(positive)), cells)
