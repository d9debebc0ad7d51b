"""Judgement of one view of the fabric: one size of one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fablint.analyse.data.message_paths import MessagePaths, find_message_paths
from fablint.analyse.data.pair_matrix import Pairs
from fablint.analyse.data.resolution import find_step
from fablint.analyse.data.robust_stats import FEWEST_VALUES
from fablint.analyse.data.samples import Flows
from fablint.analyse.detect import timing
from fablint.analyse.detect.circumstances import (
    ENDPOINT_KINDS,
    describe_detections,
    mark_usual_hosts,
)
from fablint.analyse.detect.components import ComponentType, Kind, list_component_types
from fablint.analyse.detect.coverage import (
    count_crossing_pairs,
    count_nic_partners,
    host_bounds,
    host_partners,
    link_bounds,
)
from fablint.analyse.detect.evidence import Evidence, gather_evidence
from fablint.analyse.detect.follow_ups import propose_follow_ups, propose_late_follow_ups, retests
from fablint.analyse.detect.lateness.adaptive_links import find_late_components
from fablint.analyse.detect.lateness.late_detections import late_detection
from fablint.analyse.detect.outlier_pairs import SlowestPairs, SlowPair, find_outliers, slow_hosts
from fablint.analyse.detect.pair_circumstances import describe_slow_pairs
from fablint.analyse.detect.paths.geometry import GEOMETRY_S, are_lengths_unknown, most_extra_s
from fablint.analyse.detect.paths.view_paths import Paths, paths_of, subtract_paths
from fablint.analyse.detect.search import Bar, Detection, Sides, detect_components
from fablint.analyse.detect.second_mode import SecondMode, find_second_mode
from fablint.analyse.detect.shares.share_bounds import ShareBounds
from fablint.analyse.detect.shares.slow_shares import SlowShare
from fablint.analyse.detect.shares.view_shares import shares_of_view
from fablint.analyse.fit.comparison_groups import SMALLEST_SHARED, Classes, cables_beyond, loads
from fablint.analyse.fit.effects import Effects
from fablint.analyse.fit.host_populations import Populations
from fablint.analyse.fit.median_polish import fit, without
from fablint.analyse.settings import NEAREST, Settings
from fablint.model import SCOPES, Fit, FollowUp, Placement, Scope
from fablint.model.arrays import Codes, Floats, Ints, Mask, Values
from fablint.model.limits.detection_limits import HYPOTHESES, required_evidence
from fablint.topology.routing import Routes

Quantity = Literal["latency", "bandwidth"]
MOST_CANDIDATES = 100


@dataclass(frozen=True)
class ViewResult:
    """Result of one view."""

    row: str
    quantity: Quantity  # quantity for the report
    one_way: bool  # whether this view shows the direction
    hubs: Codes  # hub ranks of a star; a star is evidence against its leaves, but not for the health of a host
    size: int
    fit: Fit
    detections: Sequence[Detection]
    candidates: Sequence[Detection]  # components with too little evidence for a detection
    follow_ups: Sequence[FollowUp]  # pairs that would decide about open components
    retests: Sequence[FollowUp]  # pairs that measure detections and candidates again
    slowest: SlowestPairs | None  # pairs slow in both directions, by chance or not; None: too little was measured
    slow_pairs: Sequence[SlowPair]
    slow_hosts: Sequence[tuple[int, float]]  # host code, log-effect
    compared: frozenset[Kind]  # types of components that had peers
    host_tolerance: float  # log-effect that a healthy host may have
    link_tolerance: float
    # number of other hosts that each NIC was measured with in its scarcer direction, by `Placement.nic_or_host`
    nic_partners: Codes
    host_partners: Codes  # (hosts,) that of the NIC of each host with the fewest
    host_bound: Floats  # (hosts,) upper 95 % bound of the log-effect, NaN where unknown
    link_pairs: Codes  # (links,) measured pairs that cross each link
    link_bound: Floats  # (links,) upper 95 % bound of its log-effect, NaN where unknown
    bounds: Values  # (3, n) lower 95 % bound, median and upper bound of each rank's worse direction
    sharing: tuple[float, float] | None  # smallest and largest factor by which sharing a link extends the time
    sample: timing.TimedCells  # measurements with their times
    links_possible: Mask  # (links,) whether enough pairs of the run's ranks can cross it
    pairs_measured: int
    paths: Paths | None  # paths between switches; None: no message crossed one
    # populations of hosts as senders, as receivers
    populations: tuple[Populations | None, Populations | None] = (None, None)
    step: float = 0.0  # resolution of the log times
    geometry_s: float = GEOMETRY_S  # s by which messages across a cable may be later than across others without a fault
    shares: Sequence[SlowShare] = ()  # components that may be slow for a share of the time, without a detection
    second_mode: SecondMode | None = None  # slow pairs that no component explains
    share_bounds: ShareBounds | None = None  # of slow measurements of each host and link; None: not counted

    @property
    def is_evidence_of_health(self) -> bool:
        """Whether this view shows healthy components as well."""
        return self.hubs.size == 0

    @property
    def has_all_partners(self) -> bool:
        """Whether each host was measured with all others."""
        return bool((self.host_partners >= self.host_partners.size - 1).all())


def judge_view(
    flows: Flows, placement: Placement, routes: Routes | None, settings: Settings, *, views: int, declared: bool = True
) -> ViewResult:
    """Fit the model of a view and search for faulty components.

    Parameters
    ----------
    flows
        The view.
    placement
        Hosts, NICs, switches and groups of the ranks.
    routes
        Links that messages cross; None if no cables are known.
    settings
        Tolerances and error probabilities.
    views
        Number of views of the run, which share the error probability.
    declared
        Whether switches were declared. Switches that were inferred from the times are not evidence about the paths
        between them.
    """
    observations = flows.observations
    pairs = Pairs.log_times(observations)
    pairs = replace(pairs, step=find_step(pairs.value[pairs.sample_cells()], at=NEAREST))
    measured = int(np.count_nonzero(~np.isnan(pairs.value)))
    bidirectional = not flows.one_way
    message_paths = find_message_paths(pairs, placement, routes)
    paths = paths_of(flows, pairs, placement, message_paths, routes, settings, views=views) if declared else None
    partners = count_nic_partners(pairs, placement, settings, scarcer=not (flows.forward and bidirectional))
    pairs = subtract_paths(pairs, paths, placement)
    # A stream is as fast over three cables as over one; only the latency grows.
    beyond = cables_beyond(placement, routes) if flows.row.quantity == "latency" else None
    is_stream = flows.row.quantity == "bandwidth"
    classes = Classes(placement, _loads(flows, pairs, message_paths), beyond, stream=is_stream, planned=flows.planned)
    stream = observations.size if is_stream else None
    # The rounds of a list cross paths of different lengths: round trips show the path, not the time.
    timed = None if flows.row.layout == "list" and stream is None else flows.started
    effects = fit(pairs, classes, message_paths, settings, bidirectional=bidirectional, started=timed, stream=stream)
    component_types = [
        component_type
        for component_type in list_component_types(pairs, placement, message_paths, bidirectional=bidirectional)
        if _is_comparable(component_type.kind, effects, settings)
        and (not flows.is_star or component_type.kind in ENDPOINT_KINDS)
    ]
    together = flows.forward and bidirectional
    sides = Sides.EACH if flows.one_way else Sides.TOGETHER if together else Sides.BOTH
    tests = HYPOTHESES * sum(len(component_type) for component_type in component_types) * views
    sample = _sample(flows, effects, placement)
    evidence = gather_evidence(effects, settings, tests=tests, later=flows.later)
    if evidence is None:
        result = _SearchResult(
            effects, count_crossing_pairs(None, message_paths), doubted=slow_hosts(effects, placement, None)
        )
    else:
        late = routes if routes is not None and _is_judged_by_late_messages(flows, routes) else None
        result = _search(
            evidence, effects, _SearchContext(flows, placement, component_types, late, sides, tests, settings, views)
        )
    effects = result.effects
    fitted = _as_fit(flows, effects, result.detections)
    return ViewResult(
        row=observations.row,
        quantity=flows.row.quantity,
        one_way=flows.one_way,
        hubs=flows.hubs,
        size=observations.size,
        fit=fitted,
        detections=result.detections,
        candidates=result.candidates,
        follow_ups=result.follow_ups,
        retests=result.again,
        slowest=result.slowest,
        slow_pairs=result.pairs,
        slow_hosts=result.doubted,
        compared=frozenset(component_type.kind for component_type in component_types),
        host_tolerance=effects.host_tolerance,
        link_tolerance=effects.link_tolerance,
        nic_partners=partners,
        host_partners=host_partners(partners, placement),
        host_bound=host_bounds(effects, placement),
        link_pairs=result.crossed,
        link_bound=link_bounds(effects, message_paths, result.late_bound),
        bounds=np.fmax(effects.sent_bounds, effects.received_bounds).astype(np.float32),
        sharing=effects.classes.sharing(effects.class_log_time, settings.tolerance),
        sample=sample,
        links_possible=np.maximum(message_paths.possible[: message_paths.known_links], result.crossed) >= FEWEST_VALUES,
        pairs_measured=measured,
        paths=paths,
        populations=effects.populations,
        step=effects.step,
        geometry_s=_geometry_s(fitted, unknown_lengths=are_lengths_unknown(routes, placement)),
        shares=result.shares,
        second_mode=result.second_mode,
        share_bounds=result.share_bounds,
    )


@dataclass(frozen=True)
class _SearchContext:
    """Input of the search in one view."""

    flows: Flows
    placement: Placement
    component_types: Sequence[ComponentType]
    late: Routes | None  # routes if links are judged by late messages
    sides: Sides
    tests: int
    settings: Settings
    views: int


@dataclass(frozen=True)
class _SearchResult:
    """Result of the search. `effects` are without the pairs that detections explain."""

    effects: Effects
    crossed: Codes  # (links,) pairs that count for each link
    detections: Sequence[Detection] = ()
    candidates: Sequence[Detection] = ()
    follow_ups: Sequence[FollowUp] = ()
    again: Sequence[FollowUp] = ()
    pairs: Sequence[SlowPair] = ()
    slowest: SlowestPairs | None = None
    doubted: Sequence[tuple[int, float]] = ()
    shares: Sequence[SlowShare] = ()
    second_mode: SecondMode | None = None
    share_bounds: ShareBounds | None = None
    late_bound: Floats | None = None  # (links,) bounds of links that messages may cross


def _search(evidence: Evidence, effects: Effects, context: _SearchContext) -> _SearchResult:
    """Search for detections, candidates and follow-up measurements. Explained pairs are removed from `evidence`."""
    flows, placement, settings = context.flows, context.placement, context.settings
    crossed = count_crossing_pairs(evidence, effects.message_paths)
    bar = Bar(required_evidence(context.tests, settings.alpha), partners=settings.min_partners)
    detected = detect_components(evidence, effects, context.component_types, bar, sides=context.sides)
    detections = describe_detections(detected, flows, effects)
    if detections:
        effects = without(effects, evidence.gain == 0)
        detections = mark_usual_hosts(detections, effects, settings, views=context.views)
    doubtful: list[Detection] = []
    late_bound = None
    if context.late is not None:
        faulty_switches = frozenset(case.name for case in detections if case.kind == "switch")
        isolated = _isolated_cells(flows, effects, context.late)
        model = (context.late, placement, effects, flows.histograms, settings)
        late = find_late_components(*model, faulty_switches=faulty_switches, alone=isolated)
        crossed, late_bound = late.exposed, late.upper
        late_detections, doubtful = (
            [
                late_detection(case, context.late, effects.residual, bidirectional=effects.bidirectional)
                for case in cases
            ]
            for cases in (late.found, late.suspects)
        )
        detections += late_detections
        for case in late_detections:
            evidence.remove(case.cells)
        if late_detections:
            effects = without(effects, evidence.gain == 0)
    shares, bounds = shares_of_view(flows, evidence, effects, settings, views=context.views)
    faulty = [share.detection for share in shares if share.is_fault]
    shares = [share for share in shares if not share.is_fault]
    detections += faulty
    if faulty:
        effects = without(effects, evidence.gain == 0)
    outliers = find_outliers(evidence, effects, settings, flows, views=context.views)
    pairs = describe_slow_pairs(outliers.slow, flows, effects, evidence)
    candidates = _find_candidates(evidence, effects, context)
    second_mode = None
    if not flows.is_star:
        reported = [pair.ranks for pair in pairs if not pair.once or pair.meanwhile is not None]
        known_cells = [share.detection.cells for share in shares]
        second_mode = find_second_mode(evidence, effects, settings, reported, known_cells, views=context.views)
    return _SearchResult(
        effects,
        crossed,
        detections,
        candidates,
        pairs=pairs,
        slowest=outliers.slowest,
        shares=shares,
        second_mode=second_mode,
        share_bounds=bounds,
        late_bound=late_bound,
        doubted=slow_hosts(effects, placement, evidence),
        again=retests([*detections, *candidates, *(share.detection for share in shares)], evidence),
        follow_ups=[
            *propose_late_follow_ups(doubtful, evidence, placement),
            *retests([share.detection for share in shares], evidence),
            *propose_follow_ups(detections, candidates, evidence, effects, context.component_types, context.sides),
        ],
    )


def _sample(flows: Flows, effects: Effects, placement: Placement) -> timing.TimedCells:
    """Return residuals from the class, with the effects of components and of the time of measurement.

    Planned rounds measure near or far pairs: without switches, they are not evidence about the time of their
    measurement.
    """
    pairs = effects.residual
    cells = pairs.sample_cells()
    is_untimed = flows.started is None or (flows.row.pattern == "rounds" and not placement.switches)
    started = np.full(cells[0].size, np.nan) if is_untimed or flows.started is None else flows.started[cells]
    row, size = flows.observations.row, flows.observations.size
    excess = pairs.value[cells].astype(np.float64)
    if effects.drift is not None:
        excess += effects.drift[cells]
    return timing.TimedCells(row, flows.row.quantity, size, cells[0], pairs.destination(cells), excess, started)


def _is_judged_by_late_messages(flows: Flows, routes: Routes) -> bool:
    """Return whether links are judged by late messages: with several paths, a median shows no single path."""
    return routes.routing.kind == "ecmp" or (routes.routing.kind == "adaptive" and flows.histograms is not None)


def _isolated_cells(flows: Flows, effects: Effects, routes: Routes) -> Mask | None:
    """Return the (n, m) cells that no other pair could delay; None: all.

    The contention of ECMP paths is unknown: of large messages only pairs that were measured one by one count.
    """
    if routes.routing.kind != "ecmp" or flows.observations.size < SMALLEST_SHARED:
        return effects.classes.unshared(effects.class_log_time, effects.link_tolerance)
    if flows.concurrent.size:
        return np.broadcast_to(~flows.concurrent[None, :], effects.residual.value.shape)
    return None if flows.row.attributes.get("order") == "serial" else np.zeros(effects.residual.value.shape, dtype=bool)


def _loads(flows: Flows, pairs: Pairs, message_paths: MessagePaths) -> Ints | None:
    """Return the step of load of each cell, if a message is large enough to fill a link and may have shared it."""
    if flows.observations.size < SMALLEST_SHARED:
        return None
    return loads(pairs, message_paths, flows.concurrent, flows.rounds)


def _find_candidates(evidence: Evidence, effects: Effects, context: _SearchContext) -> list[Detection]:
    """Return the components that would be detected with one false detection allowed per run."""
    log_e, partners = float(np.log(max(context.tests, 1))), context.settings.min_partners
    bar = Bar(log_e, surely=False, most=MOST_CANDIDATES, partners=partners)
    return detect_components(evidence, effects, context.component_types, bar, sides=context.sides)


def _is_comparable(kind: Kind, effects: Effects, settings: Settings) -> bool:
    """Return whether components of this type can be compared.

    Hosts must be homogeneous, for switches and links as well, and links for links.
    """
    is_homogeneous = effects.host_tolerance <= settings.most_tolerance
    return {
        "group": is_homogeneous,
        "switch": is_homogeneous,
        "cable": is_homogeneous and effects.link_tolerance <= settings.most_tolerance,
    }.get(kind, True)


def _geometry_s(fitted: Fit, *, unknown_lengths: bool) -> float:
    """Return the time by which messages across a cable may be later than across others without a fault, in s."""
    times = fitted.class_time
    on_switch_s = times.get(Scope.EDGE) or min(times.values(), default=0.0)
    return float(most_extra_s(on_switch_s, unknown_lengths=unknown_lengths))


def _as_fit(flows: Flows, effects: Effects, detections: Sequence[Detection]) -> Fit:
    """Return the fit for the report, without the pairs that detections explain; detected ends have their loss.

    A round trip has one effect per rank, which both of its ends share.
    """
    observations, sent, received = flows.observations, effects.sent, effects.received
    if not flows.one_way:
        known = ~np.isnan([effects.sent_bounds[1], effects.received_bounds[1]])
        sent = received = (sent + received) / np.maximum(known.sum(axis=0), 1).astype(np.float32)
    ends = [sent.copy(), received.copy()]
    for detection in detections:
        for side in detection.sides if detection.kind in ENDPOINT_KINDS else ():
            ends[side][detection.ranks] = detection.loss[1]
    classes = {
        SCOPES[code]: float(np.exp(value)) for code, value in effects.class_log_time.items() if code < len(SCOPES)
    }
    return Fit(
        observations.row,
        observations.kernel,
        observations.size,
        classes,
        ends[0],
        ends[1],
        effects.noise,
        effects.host_tolerance,
    )
