"""Slow pairs of hosts that no component explains, and what explains some of them: these are notes, and no findings.

A pair is no component: what is judged are its hosts and links, by all of their pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fablint.analyse.explain.outlier_pairs import SlowPair
from fablint.analyse.explain.view import ViewResult
from fablint.analyse.findings.detection_text import relative, seen_in
from fablint.analyse.findings.paths.pair_moments import Ends, ends_of, slow_at_two_times
from fablint.analyse.settings import Settings
from fablint.model import Note, Placement
from fablint.text import notes as noted
from fablint.text.notes.fabric_notes import PairReason

Case = tuple[SlowPair, ViewResult]

MOST_NAMED = 6  # pairs in the name of a finding


@dataclass(frozen=True)
class SlowPairs:
    """The slow pairs of a run, each in the view that shows it best.

    Attributes
    ----------
    both
        Pairs of hosts that are slow in both directions.
    one_way
        Directions, sender first, of pairs that are not slow in both.
    """

    both: dict[Ends, Case]
    one_way: dict[Ends, Case]

    @classmethod
    def of(cls, views: Sequence[ViewResult], placement: Placement, reported: set[int], settings: Settings) -> SlowPairs:
        """Return the slow pairs; `reported` are codes of the hosts that findings are about."""
        repeated = slow_at_two_times(views, placement, settings.route_rate)
        both: dict[Ends, Case] = {}
        one_way: dict[Ends, Case] = {}
        for view in views:
            hosts_of_shares = {share.candidate.number for share in view.shares if share.candidate.kind == "host"}
            for pair in view.slow_pairs:
                a, b = (int(placement.host[rank]) for rank in pair.ranks)
                if a in reported or b in reported or placement.oversubscribed[[a, b]].any() or pair.loss < 0:
                    continue
                if pair.once and not hosts_of_shares.isdisjoint((a, b)):
                    continue
                cases, ends = (one_way, (a, b)) if pair.one_way else (both, ends_of(pair.ranks, placement))
                if not pair.one_way and ends in repeated:
                    pair = replace(pair, once=False)
                if ends not in cases or _weight(pair) > _weight(cases[ends][0]):
                    cases[ends] = pair, view
        return cls(both, {ends: case for ends, case in one_way.items() if (min(ends), max(ends)) not in both})

    def unexplained(self, settings: Settings) -> SlowPairs:
        """Return the pairs that nothing explains."""
        kinds = (
            {ends: case for ends, case in cases.items() if reason_of(*case, settings) is None}
            for cases in (self.both, self.one_way)
        )
        return SlowPairs(*kinds)


def explained_pairs(
    views: Sequence[ViewResult],
    placement: Placement,
    reported: set[int],
    settings: Settings,
    *,
    measurable: bool,
) -> Iterator[Note]:
    """Yield a note for each view and reason of the slow pairs that are no finding, since something explains them.

    `reported` are codes of the hosts that findings are about. Where fablint can measure (`measurable`: neither a
    simulated fabric nor files of another tool) they say how.
    """
    slow = SlowPairs.of(views, placement, reported, settings)
    by_reason: dict[tuple[int, PairReason], list[Case]] = {}
    for pair, view in (*slow.both.values(), *slow.one_way.values()):
        if (reason := reason_of(pair, view, settings)) is not None:
            by_reason.setdefault((id(view), reason), []).append((pair, view))
    for (_, reason), cases in by_reason.items():
        ordered, view = sorted((pair for pair, _ in cases), key=lambda pair: -pair.loss), cases[0][1]
        names = [
            (">" if pair.one_way else "=").join(placement.hosts[placement.host[rank]] for rank in pair.ranks)
            for pair in ordered[:MOST_NAMED]
        ]
        note = noted.explained_pairs(
            reason=reason,
            number=len(ordered),
            directed=all(pair.one_way for pair in ordered),
            pairs=tuple(names),
            effects=tuple(relative(pair.loss, view.quantity) for pair in ordered[:MOST_NAMED]),
            limit=settings.loss_in_scope,
            measurable=measurable,
        )
        yield seen_in(view, note)


def reason_of(pair: SlowPair, view: ViewResult, settings: Settings) -> PairReason | None:
    """Return what explains a slow pair, so that it has a note and no finding; None: nothing does.

    `time`: it was slow only while others were slow; `load`: moments of load of the run, which are as frequent; `once`:
    one of a few among thousands of directions that were measured once; `scope`: it is slower by no more than a
    component that passes may be.
    """
    if pair.meanwhile is not None:
        return "time"
    if pair.moments > 0:
        return "load"
    if abs(relative(pair.loss, view.quantity)) <= settings.loss_in_scope:
        return "scope"
    return "once" if pair.rare and not pair.beside else None


def _weight(pair: SlowPair) -> tuple[bool, bool, float]:
    """Sort key of the results of several views about one pair: one that no other cause explains counts first."""
    return pair.meanwhile is None, not pair.once, pair.loss
