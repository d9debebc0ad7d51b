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

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fablint.analyse.data.binomial import quantile
from fablint.analyse.data.pair_matrix import Cells, Codes
from fablint.analyse.data.robust_stats import FEWEST_VALUES, Floats
from fablint.analyse.detect.lateness.late_messages import Histograms, Tails, count_late, sample_of
from fablint.analyse.fit.effects import Effects
from fablint.analyse.settings import Settings
from fablint.model import Placement
from fablint.model.grouped_values import GroupedValues
from fablint.topology.routing import Index, Routes, Shares

SHARES_LATE = (1.0, 0.5, 0.25)  # of a link's messages, tried in turn
MOST_ALIKE = 0.7  # of a pair's messages go the same way, where its fast ones are those that no single link slows
LARGEST = 4.0  # nats that one pair can bet
LEAST_LATE = 1e-4  # of all messages
EXPOSED = 0.05  # probability from which a pair tells something about a link
MOST_OVERDISPERSION = 20.0
MOST_PARTS = 200  # found in one view
SPEAKS = 3.0  # nats: what speaks against a part 20 to 1
FEWEST_ASKED = 2  # pairs from which more is asked about a part
MISSED = 0.05  # chance that a link is slower than its bound, for all links together
FEWEST_LINKS = 3  # of a switch, from which it can be told from them
TOLD = 0.5  # of a switch's links must be known, and
SHARED_BY = 0.6  # of these must make messages late, else it is not the switch


@dataclass(frozen=True)
class LatePart:
    """A link or a switch that makes messages late."""

    number: int  # link, or switch among those of the routes
    is_switch: bool
    log_e: float
    late: float  # share of its messages
    loss: tuple[float, float, float]  # log-effect on these: lower 95 % bound, median, upper bound
    pairs: int  # exposed to it
    slow: int  # of these, with more late messages than their ends explain
    cells: Cells  # exposed to it and late
    same: Codes  # other links that the same messages cross as likely: one class


@dataclass(frozen=True)
class LateParts:
    """What a view tells of links that messages may or may not cross."""

    found: tuple[LatePart, ...]
    suspects: tuple[LatePart, ...]  # against which something speaks, but not enough
    exposed: Codes  # (links,) pairs that tell something about each
    upper: Floats  # (links,) upper 95 % bound of the log-effect, of all links together; NaN where unknown


@dataclass(frozen=True)
class _Exposures:
    """Flat: cell, part, probability that a message of the cell crosses it. Parts: the links, then the switches."""

    routes: Routes
    cell: Index
    part: Index
    share: Floats

    @property
    def parts(self) -> int:
        """How many there are."""
        return len(self.routes.ends) + len(self.routes.switches)

    def around(self, switch: int) -> Codes:
        """The switch and its links, as parts."""
        return np.append(np.flatnonzero((self.routes.ends == switch).any(axis=1)), len(self.routes.ends) + switch)


def late_parts(
    routes: Routes,
    placement: Placement,
    effects: Effects,
    histograms: tuple[Histograms, Floats] | None,
    settings: Settings,
    *,
    faulty_switches: frozenset[str] = frozenset(),
    alone: npt.NDArray[np.bool_] | None = None,
) -> LateParts:
    """Find them. `sick` are switches that were convicted by what starts or ends there: what crosses them is theirs.

    `histograms`: (n, m, buckets) counts, lower edges of the buckets in s; None: one value a pair. `alone`: (n, m) cells
    that no other pair made late, None: all. The others convict nobody: how messages collide that choose their way
    nobody knows. But they tell where to look.

    Late means later than this pair's own fast messages, where a pair's messages go several ways: what slows them all
    alike is no link. Where a crowded link slows even those, only a comparison with other pairs tells: it comes second.
    """
    mixed = routes.routing.kind == "adaptive" and routes.routing.minimal_share <= MOST_ALIKE
    references = (True, False) if histograms is not None and mixed else (False,)
    least = EXPOSED if histograms is not None else 0.0
    search, exposed = _Search({}, {}, np.zeros(0, dtype=bool)), None
    upper = np.full(len(routes.ends), np.nan)
    for only in (None,) if alone is None else (alone, None):
        compared = [count_late(effects, histograms, settings.tolerance, only, own=own) for own in references]
        exposures = _of_parts(routes, placement, effects, compared[0].cells, least=least)
        counts = np.bincount(exposures.part, minlength=exposures.parts)
        bar = float(
            np.log(len(references) * len(SHARES_LATE) * max(exposures.parts, 1) / settings.alpha_of("components"))
        )
        for tails in compared:
            scores_of_late = _LateScores(tails, *_background(effects, tails), exposures)
            search = replace(search, rejected=counts < FEWEST_ASKED)
            search.set_aside(
                scores_of_late, [code for code, name in enumerate(routes.switches) if name in faulty_switches]
            )
            search.run(scores_of_late, bar if exposed is None else np.inf)
        if exposed is None:
            exposed = counts[: len(routes.ends)]
            upper = upper if histograms is not None else _upper_bounds(compared[0], exposures)
    assert exposed is not None
    if effects.bidirectional:
        exposed[1::2], upper[1::2] = exposed[0::2], upper[0::2]
    suspects = [case for part, case in search.suspects.items() if part not in search.found]
    return LateParts(tuple(search.found.values()), tuple(suspects), exposed, upper)


def _upper_bounds(tails: Tails, exposures: _Exposures) -> Floats:
    """(links,) loss that a link can hide among pairs each of which crosses it with a known probability.

    Of n pairs that cross a link with probability q each, n q are as slow as the link, and half of these are slower than
    its loss. So where the binomial distribution of n and q / 2 is at least k, the k-th slowest pair is a bound.
    """
    links = len(exposures.routes.ends)
    count = np.bincount(exposures.part, minlength=exposures.parts)[:links]
    share = np.bincount(exposures.part, weights=exposures.share, minlength=exposures.parts)[:links]
    fewest = quantile(MISSED / max(1, links), count, share / np.maximum(count, 1) / 2)
    excess = np.nan_to_num(tails.excess, nan=-np.inf)[exposures.cell]
    of_links = exposures.part < links
    grouped = GroupedValues.of(-excess[of_links], exposures.part[of_links], links)
    return np.where(fewest >= 1, np.maximum(tails.limit, -grouped.at(fewest.astype(np.int64) - 1)), np.nan)


@dataclass(frozen=True)
class _Search:
    """Greedy: the part with the most evidence, what it explains set aside, the next. Keys are parts."""

    found: dict[int, LatePart]
    suspects: dict[int, LatePart]
    rejected: npt.NDArray[np.bool_]  # (parts,) not to be looked at

    def set_aside(self, scores_of_late: _LateScores, faulty_switches: Sequence[int]) -> None:
        """What sick switches and the parts that were found before make late is explained."""
        links = len(scores_of_late.exposures.routes.ends)
        for part in [*(links + switch for switch in faulty_switches), *self.found]:
            scores_of_late.explain(part, int(np.argmax(scores_of_late.scores[:, part])))
            self._close(part, scores_of_late)

    def run(self, scores_of_late: _LateScores, bar: float) -> None:
        """Find all that `bets` tell; `bar` is what convicts, in nats."""
        while len(self.found) + len(self.suspects) < MOST_PARTS:
            scores = np.where(self.rejected, -np.inf, scores_of_late.scores)
            choice, part = (int(index) for index in np.unravel_index(int(np.argmax(scores)), scores.shape))
            if not scores[choice, part] >= SPEAKS:
                break
            self.rejected[part] = True
            case = _examine(part, choice, scores_of_late)
            if case is None:
                continue
            sure = case.log_e >= bar and case.slow >= FEWEST_VALUES
            (self.found if sure else self.suspects)[part] = case
            scores_of_late.explain(part, choice)
            self._close(part, scores_of_late)

    def _close(self, part: int, scores_of_late: _LateScores) -> None:
        """A switch's links are the switch's."""
        links = len(scores_of_late.exposures.routes.ends)
        self.rejected[scores_of_late.exposures.around(part - links) if part >= links else part] = True


def _of_parts(routes: Routes, placement: Placement, effects: Effects, cells: Cells, *, least: float) -> _Exposures:
    """Exposures to links and switches above `least`."""
    to = effects.residual.destination(cells)
    cell, link, share = _exposures(routes, placement, cells[0], to)
    if effects.bidirectional:  # the way back is late as well, and which of the two it was cannot be told
        back = _exposures(routes, placement, to, cells[0])
        cell, link, share = (np.concatenate(both) for both in zip((cell, link, share), back, strict=True))
    leaves = routes.ends[link, 0] if len(routes.ends) else link
    if effects.bidirectional:
        link = link - link % 2
    # A message leaves a switch once: what leaves it by any of its links crosses it.
    key = cell.astype(np.int64) * len(routes.switches) + leaves
    unique, inverse = np.unique(key, return_inverse=True)
    through = np.minimum(np.bincount(inverse, weights=share, minlength=unique.size), 1.0)
    cell = np.concatenate([cell, (unique // len(routes.switches)).astype(np.int32)])
    part = np.concatenate([link, (len(routes.ends) + unique % len(routes.switches)).astype(np.int32)])
    chance = np.concatenate([share.astype(np.float64), through])
    known = chance > least
    return _Exposures(routes, cell[known], part[known], chance[known])


def _exposures(routes: Routes, placement: Placement, src: Codes, dst: Codes) -> tuple[Index, Index, Shares]:
    """Flat: pair of ranks, link, probability that a message of the pair crosses the link."""
    code = np.append(routes.codes(placement.switches), np.int32(-1))
    return routes.exposure(code[placement.switch[src]], code[placement.switch[dst]])


def _background(effects: Effects, tails: Tails) -> tuple[Floats, float]:
    """(k,) share of late messages that the ends of each cell explain, and how much more than Poisson it scatters."""
    pairs = effects.residual
    rate = tails.late / np.maximum(tails.messages, 1)
    common = np.full(rate.size, LEAST_LATE)
    classes = effects.classes.of_cells(pairs, tails.cells)
    for code in np.unique(classes):  # pairs that collide more are late more often
        own = np.sort(rate[classes == code])
        common[classes == code] = max(np.mean(own[: max(1, int(0.9 * own.size))]), np.mean(own) / 2, LEAST_LATE)
    to = pairs.destination(tails.cells)
    extra = [_median_beyond(codes, rate - common, pairs.ranks) for codes in (tails.cells[0], to)]
    background = common + extra[0][tails.cells[0]] + extra[1][to]
    expected = background * tails.messages
    calm = rate <= np.quantile(rate, 0.95) if rate.size else np.zeros(0, dtype=bool)
    ratio = (tails.late[calm] - expected[calm]) ** 2 / expected[calm]
    return background, float(np.clip(np.mean(ratio) if ratio.size else 1.0, 1.0, MOST_OVERDISPERSION))


def _median_beyond(codes: Codes, rate: Floats, ranks: int) -> Floats:
    """(n,) how much the median of each rank's cells is beyond 0."""
    grouped = GroupedValues.of(rate, codes, ranks)
    return np.where(grouped.count >= 3, np.maximum(grouped.upper_medians(), 0.0), 0.0)


class _LateScores:
    """What every pair bets on every part that its messages may cross, for each share of late messages that is tried."""

    def __init__(self, tails: Tails, background: Floats, spread: float, exposures: _Exposures) -> None:
        """Bet on everything."""
        self.tails, self.background, self.spread, self.exposures = tails, background, spread, exposures
        self.by_cell = np.argsort(exposures.cell, kind="stable")
        self.first = np.searchsorted(exposures.cell[self.by_cell], np.arange(tails.late.size + 1))
        some = sample_of(tails.late.size)
        pool = (tails.late[some], tails.messages[some], background[some])
        self.normalisers = [self._normalisers(exposures.share * tried, pool) for tried in SHARES_LATE]
        every = np.arange(exposures.cell.size)
        self.gains = [self._increments(every, index) for index in range(len(SHARES_LATE))]
        # Parts to which the same pairs are exposed in the same way have the same sum of random numbers.
        weights = exposures.share * np.random.default_rng(1).random(tails.late.size)[exposures.cell]
        self.signature: Floats = np.bincount(exposures.part, weights=weights, minlength=exposures.parts).astype(
            np.float64
        )
        self.scores = np.stack(
            [np.bincount(exposures.part, weights=gain, minlength=exposures.parts) for gain in self.gains]
        )

    def _normalisers(self, more: Floats, pool: tuple[Floats, Floats, Floats]) -> Floats:
        """Log of what each bet wins on the pool of all pairs: taken off, it is an e-value whatever the noise is."""
        if not more.size:
            return more
        level, inverse = np.unique(np.round(2 * np.log2(more)), return_inverse=True)
        normalisers = [np.log(np.mean(np.exp(_ratio(*pool, np.array([2 ** (one / 2)]), self.spread)))) for one in level]
        return np.asarray(np.maximum(np.array(normalisers), 0.0)[inverse])

    def _increments(self, entries: Codes, index: int) -> Floats:
        cell = self.exposures.cell[entries]
        more = self.exposures.share[entries] * SHARES_LATE[index]
        late, messages, usual = self.tails.late[cell], self.tails.messages[cell], self.background[cell]
        return np.asarray(_ratio(late, messages, usual, more, self.spread) - self.normalisers[index][entries])

    def explain(self, part: int, index: int) -> None:
        """Messages that this part makes late are expected from now on: the bets of its pairs change."""
        mine = self.exposures.part == part
        cells = self.exposures.cell[mine]
        np.add.at(self.background, cells, self.exposures.share[mine] * SHARES_LATE[index])
        touched = np.unique(cells)
        entries = np.concatenate(
            [self.by_cell[self.first[cell] : self.first[cell + 1]] for cell in touched] or [np.empty(0, np.int64)]
        )
        for number, gain in enumerate(self.gains):
            new = self._increments(entries, number)
            np.add.at(self.scores[number], self.exposures.part[entries], new - gain[entries])
            gain[entries] = new


def _ratio(late: Floats, messages: Floats, usual: Floats, more: Floats, spread: float) -> Floats:
    """Log-likelihood ratio of so many late messages with `more` of them than usual, bounded."""
    ratio = (late * np.log1p(more / usual) - messages * more) / spread
    return np.asarray(np.clip(ratio, -LARGEST, LARGEST))


def _alike(link: int, signature: Floats) -> Codes:
    """Other links with the same exposures."""
    alike = np.flatnonzero(np.isclose(signature, signature[link], rtol=1e-6, atol=0))
    others: Codes = alike[alike != link].astype(np.int64)
    return others


def _examine(part: int, choice: int, scores_of_late: _LateScores) -> LatePart | None:
    """Do enough of the pairs that may cross it show it, and of a switch most of its links?"""
    exposures, tails, scores = scores_of_late.exposures, scores_of_late.tails, scores_of_late.scores
    links = len(exposures.routes.ends)
    if part >= links:
        own = np.flatnonzero(exposures.routes.ends[:, 0] == part - links)
        told = own[np.isin(own, exposures.part)]
        if told.size < max(FEWEST_LINKS, TOLD * own.size) or np.mean(scores[choice, told] > 0) < SHARED_BY:
            return None
    mine = exposures.part == part
    positive = scores_of_late.gains[choice][mine] > 0
    at = exposures.cell[mine]
    if np.count_nonzero(positive) < FEWEST_ASKED:
        return None
    excess = tails.excess[at[positive]]
    lower, middle, upper = np.nanquantile(excess, (0.025, 0.5, 0.975)).tolist()
    return LatePart(
        number=part - links if part >= links else part,
        is_switch=part >= links,
        log_e=float(scores[choice, part]),
        late=SHARES_LATE[choice],
        loss=(lower, middle, upper),
        pairs=at.size,
        slow=int(np.count_nonzero(positive)),
        cells=(tails.cells[0][at[positive]], tails.cells[1][at[positive]]),
        same=_alike(part, scores_of_late.signature[:links]) if part < links else np.empty(0, dtype=np.int64),
    )
