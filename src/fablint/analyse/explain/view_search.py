"""Search for faulty components in one view: by shifts, late messages, shares of slow measurements, and single pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fablint.analyse.candidates.components import ComponentType, Kind
from fablint.analyse.explain.circumstances import describe_detections, effects_of_others, mark_usual_hosts
from fablint.analyse.explain.coverage import count_crossing_pairs
from fablint.analyse.explain.evidence import Evidence, gather_evidence
from fablint.analyse.explain.follow_ups import propose_follow_ups, propose_late_follow_ups, retests
from fablint.analyse.explain.lateness.adaptive_links import find_late_components, late_detection, may_share_hashed_links
from fablint.analyse.explain.losses.loss_intervals import with_intervals
from fablint.analyse.explain.losses.named_losses import named_losses
from fablint.analyse.explain.outlier_pairs import SlowestPairs, SlowPair, find_outliers, slow_hosts
from fablint.analyse.explain.pair_circumstances import describe_slow_pairs
from fablint.analyse.explain.search import Bar, Detection, Sides, detect_components
from fablint.analyse.explain.second_mode import SecondMode, find_second_mode
from fablint.analyse.explain.shares.share_bounds import ShareBounds
from fablint.analyse.explain.shares.slow_shares import SlowShare, shares_of_view
from fablint.analyse.null_model.effects import Effects
from fablint.analyse.null_model.median_polish import with_healthy_classes, without
from fablint.analyse.null_model.recorded_facts import Facts
from fablint.analyse.observations.samples import Flows
from fablint.analyse.settings import FAR, FEWEST_POOL, FEWEST_VALUES, MOST_FOLLOW_UPS, Settings
from fablint.model import FollowUp, Placement
from fablint.model.arrays import Floats, Mask
from fablint.model.limits.detection_limits import HYPOTHESES, required_evidence
from fablint.topology.routing import Routes


@dataclass(frozen=True)
class View:
    """Input of the judgement of one view."""

    flows: Flows
    placement: Placement  # hosts, NICs, switches and groups of the ranks
    routes: Routes | None  # links that messages cross; None if no cables are known
    settings: Settings
    views: int  # of the run, which share the error probability
    facts: Facts = field(default_factory=dict)  # what is recorded of the hosts

    @property
    def is_bidirectional(self) -> bool:
        """True if the messages of a cell cross the path back as well."""
        return not self.flows.one_way

    @property
    def sides(self) -> Sides:
        """Rule for the two directions of a host."""
        if self.flows.one_way:
            return Sides.EACH
        return Sides.TOGETHER if self.flows.forward else Sides.BOTH

    @property
    def late_routes(self) -> Routes | None:
        """Routes if links are judged by late messages: with several paths, a median shows no single path."""
        if self.routes is None:
            return None
        routing, histograms = self.routes.routing.kind, self.flows.histograms
        return self.routes if routing == "ecmp" or (routing == "adaptive" and histograms is not None) else None


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """Components that may be faulty in one view."""

    detections: Sequence[Detection] = ()
    candidates: Sequence[Detection] = ()  # components with too little evidence for a detection
    follow_ups: Sequence[FollowUp] = ()  # pairs that would decide about open components
    retests: Sequence[FollowUp] = ()  # pairs that measure detections and candidates again
    # pairs slow in both directions, by chance or not; None: too little was measured
    slowest: SlowestPairs | None = None
    slow_pairs: Sequence[SlowPair] = ()
    slow_hosts: Sequence[tuple[int, float]] = ()  # host code, log-effect
    shares: Sequence[SlowShare] = ()  # components that may be slow for a share of the time, without a detection
    second_mode: SecondMode | None = None  # slow pairs that no component explains
    named_losses: Mapping[Kind, float] = field(default_factory=dict)  # log-effects named in 9 of 10 cases
    share_bounds: ShareBounds | None = None  # of slow measurements of each host and link; None: not counted


class ViewSearch:
    """Search for faulty components in one view: one method after the other, each in what the methods before left over.

    Attributes
    ----------
    effects
        The model, fitted without the pairs that detections explain.
    link_pairs
        (links,) pairs that count for each link.
    late_bound
        (links,) bounds of links that messages may cross; None where links are not judged by late messages.
    """

    def __init__(self, view: View, effects: Effects, component_types: Sequence[ComponentType]) -> None:
        self.effects = effects
        self.late_bound: Floats | None = None
        self._view = view
        self._component_types = component_types
        self._tests = HYPOTHESES * sum(len(component_type) for component_type in component_types) * view.views
        self._evidence = self._gathered()
        self.link_pairs = count_crossing_pairs(self._evidence, effects.message_paths)

    @property
    def links_possible(self) -> Mask:
        """(links,) whether enough pairs of the run's ranks can cross each link."""
        paths = self.effects.message_paths
        return np.maximum(paths.possible[: paths.known_links], self.link_pairs) >= FEWEST_VALUES

    def run(self) -> SearchResult:
        """Return what is faulty, and what may be: nothing but slow hosts where too little was measured."""
        view = self._view
        if self._evidence is None:
            return SearchResult(slow_hosts=slow_hosts(self.effects, view.placement, None))
        evidence, detections = self._slow_components(self._evidence)
        losses = self._named_losses(evidence, detections)
        late, doubtful = self._late_components(evidence, detections)
        shares, bounds = shares_of_view(view.flows, evidence, self.effects, view.settings, views=view.views)
        faulty = [share.detection for share in shares if share.is_fault]
        shares = [share for share in shares if not share.is_fault]
        self._refit(evidence, faulty)
        detections = [*detections, *late, *self._with_usual_hosts(faulty)]
        outliers = find_outliers(evidence, self.effects, view.settings, view.flows, views=view.views)
        pairs = describe_slow_pairs(outliers.slow, view.flows, self.effects, evidence)
        candidates = self._candidates(evidence)
        open_shares = [share.detection for share in shares]
        return SearchResult(
            detections=detections,
            candidates=candidates,
            named_losses=losses,
            slow_pairs=pairs,
            slowest=outliers.slowest,
            shares=shares,
            second_mode=self._second_mode(evidence, pairs, open_shares),
            share_bounds=bounds,
            slow_hosts=slow_hosts(self.effects, view.placement, evidence),
            retests=retests([*detections, *candidates, *open_shares], evidence),
            follow_ups=[
                *propose_late_follow_ups(doubtful, evidence, view.placement),
                *retests(open_shares, evidence),
                *propose_follow_ups(detections, candidates, evidence, self.effects, self._component_types, view.sides),
            ],
        )

    @property
    def _bar(self) -> Bar:
        """Requirements of a detection."""
        settings = self._view.settings
        return Bar(required_evidence(self._tests, settings.alpha), partners=settings.min_partners)

    @property
    def _alpha_of_spread(self) -> float:
        """Expected number of healthy hosts as slow, above which a slow host is within their spread."""
        return self._view.settings.alpha_of("components", each_look=False) / self._view.views

    def _named_losses(self, evidence: Evidence, detections: Sequence[Detection]) -> Mapping[Kind, float]:
        """Return the smallest losses of other components that this view would have named."""
        healthy, sides = effects_of_others(detections, self.effects), self._view.sides
        return named_losses(
            evidence, self.effects, healthy, self._component_types, self._bar, sides, self._alpha_of_spread
        )

    def _gathered(self) -> Evidence | None:
        """Return the evidence of all pairs; None if too little was measured."""
        view = self._view
        return gather_evidence(self.effects, view.settings, tests=self._tests, later=view.flows.later)

    def _refit(self, evidence: Evidence, detections: Sequence[Detection]) -> None:
        """Fit the model without the pairs that `detections` have removed from the evidence."""
        if detections:
            self.effects = without(self.effects, evidence.gain == 0)

    def _slow_components(self, evidence: Evidence) -> tuple[Evidence, Sequence[Detection]]:
        """Return the evidence without the pairs of components that are slow, and these components."""
        view = self._view
        detected = detect_components(evidence, self.effects, self._component_types, self._bar, sides=view.sides)
        tolerance = max(self.effects.host_tolerance, self.effects.link_tolerance)
        refitted = with_healthy_classes(self.effects, evidence.gain == 0, tolerance) if detected else self.effects
        if refitted is not self.effects:
            self.effects, evidence = refitted, self._gathered() or evidence
            detected = detect_components(evidence, refitted, self._component_types, self._bar, sides=view.sides)
        detections = describe_detections(detected, view.flows, self.effects)
        self._refit(evidence, detections)
        return evidence, self._with_usual_hosts(with_intervals(detections, view.flows, self.effects))

    def _with_usual_hosts(self, detections: Sequence[Detection]) -> Sequence[Detection]:
        """Return the detections, with hosts marked that differ no more than healthy hosts of this view do."""
        return mark_usual_hosts(detections, self.effects, self._alpha_of_spread) if detections else detections

    def _late_components(
        self, evidence: Evidence, detections: Sequence[Detection]
    ) -> tuple[list[Detection], list[Detection]]:
        """Return components that delay some of the messages, certain and doubtful ones.

        The pairs of certain ones are removed from the evidence.
        """
        view, routes = self._view, self._view.late_routes
        if routes is None:
            return [], []
        faulty_switches = frozenset(case.name for case in detections if case.kind == "switch")
        isolated = _isolated_cells(view, self.effects, routes)
        model = (routes, view.placement, self.effects, view.flows.histograms, view.settings)
        late = find_late_components(*model, faulty_switches=faulty_switches, alone=isolated)
        self.link_pairs, self.late_bound = late.exposed, late.upper
        certain, doubtful = (
            [late_detection(case, routes, self.effects, view.flows) for case in cases]
            for cases in (late.found, late.suspects)
        )
        for case in certain:
            evidence.remove(case.cells)
        self._refit(evidence, certain)
        return certain, doubtful

    def _candidates(self, evidence: Evidence) -> list[Detection]:
        """Return the components that would be detected with one false detection allowed per run."""
        view = self._view
        log_e, partners = float(np.log(max(self._tests, 1))), view.settings.min_partners
        bar = Bar(log_e, fewest=partners, surely=False, most=MOST_FOLLOW_UPS, partners=partners)
        candidates = detect_components(evidence, self.effects, self._component_types, bar, sides=view.sides)
        return with_intervals(candidates, view.flows, self.effects)

    def _second_mode(
        self, evidence: Evidence, pairs: Sequence[SlowPair], open_shares: Sequence[Detection]
    ) -> SecondMode | None:
        """Return slow pairs that no component explains."""
        view = self._view
        if view.flows.is_star:
            return None
        reported = [pair.ranks for pair in pairs if not pair.once or pair.meanwhile is not None]
        cells = [detection.cells for detection in open_shares]
        return find_second_mode(evidence, self.effects, view.settings, reported, cells, views=view.views)


def _isolated_cells(view: View, effects: Effects, routes: Routes) -> Mask | None:
    """Return the (n, m) cells that no other pair could delay; None: all.

    The contention of ECMP paths is unknown: of large messages only pairs that were measured one by one count, unless
    streams of different pairs do not delay each other.
    """
    flows = view.flows
    if not may_share_hashed_links(routes, flows) or not _do_collide(effects, view):
        return effects.classes.unshared(effects.class_log_time, effects.link_tolerance)
    if flows.concurrent.size:
        return np.broadcast_to(~flows.concurrent[None, :], effects.residual.value.shape)
    return None if flows.row.facts.schedule.order == "serial" else np.zeros(effects.residual.value.shape, dtype=bool)


def _do_collide(effects: Effects, view: View) -> bool:
    """Return whether streams that share hashed paths delay each other: then some are slow behind several switches.

    A single switch, the one with most slow messages, may have a slow cable.
    """
    pairs, placement = effects.residual, view.placement
    cells = pairs.sample_cells()
    ends = placement.switch[np.stack([cells[0], pairs.destination(cells)])].astype(np.int64)
    crosses = (ends[0] != ends[1]) & (ends >= 0).all(axis=0)
    limit = max(effects.link_tolerance, FAR * effects.noise)
    ends, slow = ends[:, crosses], pairs.value[cells][crosses] > limit
    worst = np.bincount(ends[:, slow].ravel(), minlength=1).argmax()
    elsewhere = (ends != worst).all(axis=0)
    return int(elsewhere.sum()) < FEWEST_POOL or float(slow[elsewhere].mean()) > view.settings.shares.usual
