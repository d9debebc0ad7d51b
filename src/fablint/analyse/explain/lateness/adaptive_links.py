"""Detection of slow links whose messages cannot be followed (adaptive routing, ECMP), by the number of late messages.

A message of pair p crosses link l with probability E_pl, which follows from the topology and the share of shortest
paths. With adaptive routing the median of a pair hardly changes if one of its links is faulty, but a share of its
messages is late, and that share follows E. The messages of pair p that take longer than healthy messages are counted,

    late_p ~ Poisson(n_p (b_p + sum over links of E_pl q_l)) / over-dispersion

where b_p is the share of late messages of these two ends without a fault, and q_l the share of a link's messages that
it delays. The search is greedy: it takes the link with the most evidence, adds its late messages to the background of
its pairs, and repeats. Without histograms (an ECMP path that does not change) a pair is one message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fablint.analyse.candidates.exposures import Exposures, exposures_of_components
from fablint.analyse.explain.ambiguity import AmbiguityGroup, GroupMember
from fablint.analyse.explain.lateness.background import late_background
from fablint.analyse.explain.lateness.late_messages import Tails, count_late, sample_positions
from fablint.analyse.explain.search import Detection
from fablint.analyse.null_model.effects import Effects
from fablint.analyse.null_model.timing import uneven_times
from fablint.analyse.observations.binomial import quantile
from fablint.analyse.observations.pair_matrix import unordered
from fablint.analyse.observations.robust_stats import robust_sd
from fablint.analyse.observations.samples import Flows
from fablint.analyse.settings import (
    CLEAR_EVIDENCE,
    CLUSTER,
    CONFIDENCE,
    FEWEST_INDEPENDENT,
    FEWEST_PEERS,
    FEWEST_VALUES,
    HALF,
    MOST,
    MOSTLY,
    NOISIER,
    SMALL_SHARE,
    SMALLEST_SHARED,
    Settings,
)
from fablint.model import ComponentRef, Placement
from fablint.model.arrays import Cells, Codes, Floats, Ints, Mask
from fablint.model.figures.grouped_values import GroupedValues
from fablint.text import evidence as seen
from fablint.topology.routing import Routes

SHARES_LATE = (1.0, 0.5, 0.25)  # shares of a link's messages that are late; each is tried
MOST_PARTS = 200  # components that one view can report


@dataclass(frozen=True)
class LateComponent:
    """A link or a switch that delays messages."""

    number: int  # position of the link or switch in the routes
    is_switch: bool
    log_e: float
    late: float  # share of its messages that are late
    loss: tuple[float, float, float]  # log-effect on late messages: lower 95 % bound, median, upper bound
    scatter: float  # robust standard deviation of the log-effects of the pairs with late messages
    pairs: int  # pairs that may cross it
    slow: int  # pairs with more late messages than their ends explain
    crossing: Cells  # cells that may cross it
    is_late: Mask  # those with more late messages than their ends explain
    same: Codes  # other links that the same messages cross with the same probability: an ambiguity group

    @property
    def cells(self) -> Cells:
        """Cells with late messages."""
        return self.crossing[0][self.is_late], self.crossing[1][self.is_late]


@dataclass(frozen=True)
class LateComponents:
    """Result of one view for links that messages may cross."""

    found: tuple[LateComponent, ...]
    suspects: tuple[LateComponent, ...]  # components with some evidence, below the limit
    exposed: Codes  # (links,) pairs that count for each link
    upper: Floats  # (links,) upper 95 % bound of the log-effect, for all links together; NaN where unknown


def find_late_components(
    routes: Routes,
    placement: Placement,
    effects: Effects,
    histograms: tuple[Ints, Floats] | None,
    settings: Settings,
    *,
    faulty_switches: frozenset[str] = frozenset(),
    alone: Mask | None = None,
) -> LateComponents:
    """Detect links and switches that delay messages.

    With several paths per pair, a message is late compared with the fast messages of its own pair: what delays all
    messages of a pair is not a link. If an oversubscribed link delays even those, only other pairs show it: the
    comparison with other pairs follows.

    Parameters
    ----------
    routes
        Links and the probabilities of crossing them.
    placement
        Switches of the ranks.
    effects
        Fitted model of the view.
    histograms
        (n, m, buckets) counts, and lower edges of the buckets in s; None: one value per pair.
    settings
        Tolerance and error probability.
    faulty_switches
        Switches that were localised from the messages of their own hosts; late messages that cross them are attributed
        to them.
    alone
        (n, m) cells that no other pair delayed; None: all. Other cells localise no component, since the contention of
        messages with several paths is unknown, but they select follow-up measurements.
    """
    mixed = routes.routing.kind == "adaptive" and routes.routing.minimal_share <= MOSTLY
    references = (True, False) if histograms is not None and mixed else (False,)
    least_share = SMALL_SHARE if histograms is not None else 0.0
    search, exposed, upper = _Search({}, {}, np.zeros(0, dtype=bool)), None, np.zeros(0)
    for mask in (None,) if alone is None else (alone, None):
        compared = [
            count_late(effects, histograms, settings.tolerance, mask, without_common_delay=flag) for flag in references
        ]
        exposures = exposures_of_components(routes, placement, effects, compared[0].cells, least=least_share)
        counts = np.bincount(exposures.part, minlength=exposures.parts)
        bar = float(
            np.log(len(references) * len(SHARES_LATE) * max(exposures.parts, 1) / settings.alpha_of("components"))
        )
        is_uniform = [exposures.has_uniform_links(end, placement) for end in (0, 1)]
        backgrounds = [late_background(effects, tails, placement, routes, is_uniform) for tails in compared]
        for tails, (background, spread) in zip(compared, backgrounds, strict=True):
            scores_of_late = _LateScores(tails, background, spread, exposures)
            search = replace(search, rejected=counts < FEWEST_INDEPENDENT)
            search.set_aside(
                scores_of_late, [code for code, name in enumerate(routes.switches) if name in faulty_switches]
            )
            search.run(scores_of_late, bar if exposed is None else np.inf)
        if exposed is None:
            exposed = counts[: len(routes.ends)]
            upper = (
                _upper_bounds(compared[0], exposures)
                if histograms is None
                else _bounds_of_messages(compared[0], exposures, backgrounds[0][1])
            )
    assert exposed is not None
    if effects.bidirectional:
        exposed[1::2], upper[1::2] = exposed[0::2], upper[0::2]
    suspects = [case for part, case in search.suspects.items() if part not in search.found]
    return LateComponents(tuple(search.found.values()), tuple(suspects), exposed, upper)


def _upper_bounds(tails: Tails, exposures: Exposures) -> Floats:
    """Return the (links,) loss that a link can hide among pairs that cross it with a known probability.

    Of n pairs that cross a link with probability q each, n q are as slow as the link, and half of these are slower than
    its loss. So if the binomial distribution of n and q / 2 is at least k, the k-th slowest pair is a bound.
    """
    links = len(exposures.routes.ends)
    count = np.bincount(exposures.part, minlength=exposures.parts)[:links]
    share = np.bincount(exposures.part, weights=exposures.share, minlength=exposures.parts)[:links]
    fewest = quantile((1 - CONFIDENCE) / max(1, links), count, share / np.maximum(count, 1) / 2)
    excess = np.nan_to_num(tails.excess, nan=-np.inf)[exposures.cell]
    of_links = exposures.part < links
    grouped = GroupedValues.of(-excess[of_links], exposures.part[of_links], links)
    return np.where(fewest >= 1, np.maximum(tails.limit, -grouped.at(fewest.astype(np.int64) - 1)), np.nan)


def _bounds_of_messages(tails: Tails, exposures: Exposures, spread: float) -> Floats:
    """Return the (links,) loss that a link can hide among messages that cross it with a known probability.

    Half of the messages that cross a link are later than its loss. So where fewer messages are late than half of those
    that must have crossed it, its loss is below the limit from which a message is late. The `spread` is the
    over-dispersion of late messages: the number of independent messages is smaller by it.
    """
    links = len(exposures.routes.ends)
    messages, crossing, late = (
        np.bincount(exposures.part, weights=weights, minlength=exposures.parts)[:links] / spread
        for weights in (
            tails.messages[exposures.cell],
            tails.messages[exposures.cell] * exposures.share,
            tails.late[exposures.cell],
        )
    )
    fewest = quantile(
        (1 - CONFIDENCE) / max(1, links), messages.astype(np.int64), crossing / np.maximum(messages, 1) / 2
    )
    return np.where(late < fewest, tails.limit, np.nan)


@dataclass(frozen=True)
class _Search:
    """Greedy search for the component with the most evidence, whose pairs are then explained. Keys are components."""

    found: dict[int, LateComponent]
    suspects: dict[int, LateComponent]
    rejected: Mask  # (components,) excluded from the search

    def set_aside(self, scores_of_late: _LateScores, faulty_switches: Sequence[int]) -> None:
        """Explain the late messages of faulty switches and of components that were found before."""
        links = len(scores_of_late.exposures.routes.ends)
        for part in [*(links + switch for switch in faulty_switches), *self.found]:
            scores_of_late.explain(part, int(np.argmax(scores_of_late.scores[:, part])))
            self._close(part, scores_of_late)

    def run(self, scores_of_late: _LateScores, bar: float) -> None:
        """Search all components; `bar` is the evidence for a detection, in nats."""
        while len(self.found) + len(self.suspects) < MOST_PARTS:
            scores = np.where(self.rejected, -np.inf, scores_of_late.scores)
            choice, part = (int(index) for index in np.unravel_index(int(np.argmax(scores)), scores.shape))
            if not scores[choice, part] >= CLEAR_EVIDENCE:
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
        """Exclude the component, of a switch its links as well, and of a link those that are indistinguishable."""
        exposures = scores_of_late.exposures
        switch = part - len(exposures.routes.ends)
        others = exposures.around(switch) if switch >= 0 else exposures.indistinguishable(part)
        self.rejected[part] = self.rejected[others] = True


class _LateScores:
    """Clipped log-likelihood ratio of each (pair, component), for each share of late messages in SHARES_LATE."""

    def __init__(self, tails: Tails, background: Floats, spread: float, exposures: Exposures) -> None:
        """Compute all ratios."""
        self.tails, self.background, self.spread, self.exposures = tails, background, spread, exposures
        self.by_cell = np.argsort(exposures.cell, kind="stable")
        self.first = np.searchsorted(exposures.cell[self.by_cell], np.arange(tails.late.size + 1))
        sampled = sample_positions(tails.late.size)
        pool = (tails.late[sampled], tails.messages[sampled], background[sampled])
        self.normalisers = [self._normalisers(exposures.share * tried, pool) for tried in SHARES_LATE]
        entries = np.arange(exposures.cell.size)
        self.gains = [self._increments(entries, index) for index in range(len(SHARES_LATE))]
        self.scores = np.stack(
            [np.bincount(exposures.part, weights=gain, minlength=exposures.parts) for gain in self.gains]
        )

    def _normalisers(self, more: Floats, pool: tuple[Floats, Floats, Floats]) -> Floats:
        """Return for each entry the log of the mean likelihood ratio over all pairs.

        Subtracted from a ratio, it gives an e-value increment, whatever the noise is.
        """
        if not more.size:
            return more
        level, inverse = np.unique(np.round(2 * np.log2(more)), return_inverse=True)
        normalisers = [
            np.log(np.mean(np.exp(_ratio(*pool, np.array([2 ** (exponent / 2)]), self.spread)))) for exponent in level
        ]
        return np.asarray(np.maximum(np.array(normalisers), 0.0)[inverse])

    def _increments(self, entries: Codes, index: int) -> Floats:
        """Return the e-value increments of some entries."""
        cell = self.exposures.cell[entries]
        more = self.exposures.share[entries] * SHARES_LATE[index]
        late, messages, usual = self.tails.late[cell], self.tails.messages[cell], self.background[cell]
        return np.asarray(_ratio(late, messages, usual, more, self.spread) - self.normalisers[index][entries])

    def explain(self, part: int, index: int) -> None:
        """Add the late messages of a component to the background of its pairs, and update their increments.

        Several of the links that are indistinguishable may be slow, and messages that share a slow link delay each
        other: what is late beyond the share that was tried is of the same links.
        """
        is_member = self.exposures.part == part
        cells, share = self.exposures.cell[is_member], self.exposures.share[is_member]
        others, late = self.exposures.indistinguishable(part).size, SHARES_LATE[index]
        if others:
            messages = self.tails.messages[cells]
            unexplained = np.sum(self.tails.late[cells] - self.background[cells] * messages)
            late = float(np.clip(unexplained / np.sum(share * messages), late, 1 + others))
        np.add.at(self.background, cells, share * late)
        touched = np.unique(cells)
        entries = np.concatenate(
            [self.by_cell[self.first[cell] : self.first[cell + 1]] for cell in touched] or [np.empty(0, np.int64)]
        )
        for number, gain in enumerate(self.gains):
            new = self._increments(entries, number)
            np.add.at(self.scores[number], self.exposures.part[entries], new - gain[entries])
            gain[entries] = new


def _ratio(late: Floats, messages: Floats, usual: Floats, more: Floats, spread: float) -> Floats:
    """Return the clipped log-likelihood ratio of a number of late messages.

    The share `more` is late in addition to the usual share.
    """
    ratio = (late * np.log1p(more / usual) - messages * more) / spread
    return np.asarray(np.clip(ratio, -CLUSTER, CLUSTER))


def _examine(part: int, choice: int, scores_of_late: _LateScores) -> LateComponent | None:
    """Return the component if enough pairs show it, and of a switch most links; else None."""
    exposures, tails, scores = scores_of_late.exposures, scores_of_late.tails, scores_of_late.scores
    links = len(exposures.routes.ends)
    if part >= links:
        outgoing = np.flatnonzero(exposures.routes.ends[:, 0] == part - links)
        crossed = outgoing[np.isin(outgoing, exposures.part)]
        if (
            crossed.size < max(FEWEST_PEERS, HALF * outgoing.size)
            or np.mean(scores[choice, crossed] > 0) < MOST
            or np.unique(exposures.signature[crossed].round(6)).size < FEWEST_PEERS
        ):
            return None
    is_member = exposures.part == part
    positive = scores_of_late.gains[choice][is_member] > 0
    at = exposures.cell[is_member]
    if np.count_nonzero(positive) < FEWEST_INDEPENDENT:
        return None
    excess = tails.excess[at[positive]]
    lower, middle, upper = np.nanquantile(excess, (0.025, 0.5, 0.975)).tolist()
    return LateComponent(
        number=part - links if part >= links else part,
        is_switch=part >= links,
        log_e=float(scores[choice, part]),
        late=SHARES_LATE[choice],
        loss=(lower, middle, upper),
        scatter=robust_sd(excess),
        pairs=at.size,
        slow=int(np.count_nonzero(positive)),
        crossing=(tails.cells[0][at], tails.cells[1][at]),
        is_late=positive,
        same=exposures.indistinguishable(part),
    )


def late_detection(case: LateComponent, routes: Routes, effects: Effects, flows: Flows) -> Detection:
    """Return a component that delays messages as a detection: a switch, one direction of a cable, or both
    directions.

    Load delays messages for a while, and not all of them equally. Hashed streams may share a cable that no topology
    tells, and of one switch more than of others.
    """
    pairs, bidirectional = effects.residual, effects.bidirectional
    when = None if flows.histograms is not None or case.scatter <= NOISIER * effects.noise else seen.unsteady()
    if may_share_hashed_links(routes, flows) and not flows.alone(case.crossing).all():
        when = seen.sent_together()
    if flows.started is not None and when is None:
        pair = unordered(case.crossing[0], pairs.destination(case.crossing), pairs.ranks)
        when = uneven_times(np.asarray(flows.started[case.crossing], np.float64), case.is_late, pair)
    is_confirmed = flows.later is not None and bool(flows.later[case.crossing].any())
    sides = (0,) if case.is_switch else (0, 1) if bidirectional else (case.number % 2,)
    links = () if case.is_switch else (case.number, case.number ^ 1)
    return Detection(
        kind="switch" if case.is_switch else "cable",
        whole=(
            ComponentRef.of("switch", routes.switches[case.number])
            if case.is_switch
            else routes.cable_component(case.number)
        ),
        ranks=np.unique(np.concatenate([case.cells[0], pairs.destination(case.cells)])),
        sides=sides,
        loss=case.loss,
        pairs=case.pairs,
        slow=case.slow,
        log_e=case.log_e,
        cells=case.cells,
        ambiguity_group=AmbiguityGroup(
            same=tuple(_link_member(int(link), routes, bidirectional=bidirectional) for link in case.same)
        ),
        own=tuple(_link_member(link, routes, bidirectional=False) for link in links[: len(sides)]),
        late=case.late,
        circumstances=() if when is None else (when,),
        lasting=when is None or is_confirmed,
    )


def may_share_hashed_links(routes: Routes, flows: Flows) -> bool:
    """Return whether messages of pairs that are measured at once may delay each other on links that are not known."""
    return routes.routing.kind == "ecmp" and flows.observations.size >= SMALLEST_SHARED


def _link_member(link: int, routes: Routes, *, bidirectional: bool) -> GroupMember:
    """Return a link as a member of an ambiguity group; of round trips its cable."""
    return GroupMember(
        "link", link, link % 2, routes.cable_component(link) if bidirectional else routes.component(link)
    )
