"""Judge one view of the fabric: one size of one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from fablint.analyse.data.message_paths import MessagePaths, find_message_paths
from fablint.analyse.data.pair_matrix import Codes, Pairs
from fablint.analyse.data.robust_stats import FEWEST_VALUES, Floats
from fablint.analyse.data.samples import Flows
from fablint.analyse.detect import timing
from fablint.analyse.detect.ambiguity import AmbiguityGroup, GroupMember
from fablint.analyse.detect.circumstances import ENDPOINT_KINDS, described, mark_usual_hosts, when_slow
from fablint.analyse.detect.components import Family, Kind, families
from fablint.analyse.detect.evidence import Evidence, gather
from fablint.analyse.detect.follow_ups import propose_follow_ups, propose_late_follow_ups, retests
from fablint.analyse.detect.lateness.adaptive_links import LatePart, late_parts
from fablint.analyse.detect.outlier_pairs import SlowPair, mark_concurrent_pairs, slow_hosts, slow_pairs
from fablint.analyse.detect.paths.view_paths import Paths, paths_of, without_paths
from fablint.analyse.detect.search import Bar, Detection, Sides, detect_components
from fablint.analyse.detect.unexplained_pairs import Stratum, unexplained
from fablint.analyse.fit.comparison_groups import SMALLEST_SHARED, Classes, cables_beyond, loads
from fablint.analyse.fit.effects import Effects
from fablint.analyse.fit.host_populations import Populations
from fablint.analyse.fit.median_polish import fit, median_error, without
from fablint.analyse.settings import Settings
from fablint.model import SCOPES, Fit, FollowUp, Placement
from fablint.model.detection_limits import HYPOTHESES, required_evidence
from fablint.topology.routing import Routes

Quantity = Literal["latency", "bandwidth"]
MOST_SUSPICIONS = 100


@dataclass(frozen=True)
class ViewResult:
    """What one view says."""

    row: str
    quantity: Quantity  # what an administrator calls it
    one_way: bool  # does this view tell the direction?
    hubs: Codes  # of a star: ranks that all others shared; a star accuses, but shows nobody to be fine
    size: int
    fit: Fit
    detections: Sequence[Detection]
    candidates: Sequence[Detection]  # parts that the evidence is against, but not enough to convict
    follow_ups: Sequence[FollowUp]  # what would decide about the open parts
    retests: Sequence[FollowUp]  # what would test again those who are accused
    slow_pairs: Sequence[SlowPair]
    slow_hosts: Sequence[tuple[int, float]]  # host code, log-effect
    compared: frozenset[Kind]  # kinds of parts that had peers to be compared with
    host_tolerance: float  # log-effect that a healthy host may have here
    link_tolerance: float
    host_partners: Codes  # (hosts,) other hosts that each was measured with, in its scarcer direction
    host_bound: Floats  # (hosts,) upper 95 % bound of the log-effect, NaN where unknown
    link_pairs: Codes  # (links,) measured pairs that cross each link
    link_bound: Floats  # (links,) upper 95 % bound of its log-effect, NaN where unknown
    bounds: npt.NDArray[np.float32]  # (3, n) lower 95 % bound, median and upper bound of each rank's worse side
    sharing: tuple[float, float] | None  # time of pairs that shared a link, in those of pairs that did not: least, most
    sample: timing.TimedCells  # what was measured when, for what makes pairs slow without a part being at fault
    links_possible: npt.NDArray[np.bool_]  # (links,) could enough pairs of this run's ranks cross it?
    pairs_measured: int
    paths: Paths | None  # between switches; None where no message crossed one
    populations: tuple[Populations | None, Populations | None] = (None, None)  # of hosts as senders, as receivers
    step: float = 0.0  # smallest step between two figures, log
    unexplained: Sequence[Stratum] = ()  # slow pairs that no component explains
    unexplained_when: Sequence[str] = ()  # when each of them were slow

    @property
    def clears(self) -> bool:
        """Does this view show who is fine as well?"""
        return self.hubs.size == 0


def judge_view(
    flows: Flows, placement: Placement, routes: Routes | None, settings: Settings, *, views: int, declared: bool = True
) -> ViewResult:
    """Fit, weigh, convict.

    `views` is the number of views of the run, among which the chance of error is shared. Switches that are not
    `declared` were inferred from the times themselves, and say nothing about the paths between them.
    """
    observations = flows.observations
    pairs = Pairs.log_times(observations)
    measured = int(np.count_nonzero(~np.isnan(pairs.value)))
    bidirectional = not flows.one_way
    message_paths = find_message_paths(pairs, placement, routes)
    paths = paths_of(flows, pairs, placement, message_paths, routes, settings, views=views) if declared else None
    partners = _host_partners(pairs, placement, settings, scarcer=not (flows.forward and bidirectional))
    pairs = without_paths(pairs, paths, placement)
    # A stream is as fast over three cables as over one; only the answer to a message comes later.
    beyond = cables_beyond(placement, routes) if flows.row.quantity == "latency" else None
    classes = Classes(placement, _loads(flows, pairs, message_paths), beyond, stream=flows.row.quantity == "bandwidth")
    stream = observations.size if flows.row.quantity == "bandwidth" else None
    # The rounds of a list go over paths of different lengths, and round trips show that, not the time.
    timed = None if flows.row.layout == "list" and stream is None else flows.started
    effects = fit(pairs, classes, message_paths, settings, bidirectional=bidirectional, started=timed, stream=stream)
    parts = [
        family
        for family in families(pairs, placement, message_paths, bidirectional=bidirectional)
        if _comparable(family.component, effects, settings)
        and (not flows.is_star or family.component in ENDPOINT_KINDS)
    ]
    together = flows.forward and bidirectional
    sides = Sides.EACH if flows.one_way else Sides.TOGETHER if together else Sides.BOTH
    tests = HYPOTHESES * sum(len(family) for family in parts) * views
    fitted = _as_fit(flows, effects)
    sample = _sample(flows, effects, placement)
    evidence = gather(effects, settings, tests=tests, later=flows.later)
    if evidence is None:
        found = _SearchResult(effects, _crossed(None, message_paths), doubted=slow_hosts(effects, placement, None))
    else:
        late = routes if routes is not None and _followed_by_tails(flows, routes) else None
        found = _weigh(evidence, effects, _SearchContext(flows, placement, parts, late, sides, tests, settings, views))
    effects = found.effects
    return ViewResult(
        row=observations.row,
        quantity=flows.row.quantity,
        one_way=flows.one_way,
        hubs=flows.hubs,
        size=observations.size,
        fit=fitted,
        detections=found.detections,
        candidates=found.candidates,
        follow_ups=found.follow_ups,
        retests=found.again,
        slow_pairs=found.pairs,
        slow_hosts=found.doubted,
        compared=frozenset(family.component for family in parts),
        host_tolerance=effects.host_tolerance,
        link_tolerance=effects.link_tolerance,
        host_partners=partners,
        host_bound=_host_bounds(effects, placement),
        link_pairs=found.crossed,
        link_bound=_link_bounds(effects, message_paths, found.late_bound),
        bounds=np.fmax(effects.sent_bounds, effects.received_bounds).astype(np.float32),
        sharing=effects.classes.sharing(effects.class_log_time, settings.tolerance),
        sample=sample,
        links_possible=np.maximum(message_paths.possible[: message_paths.known_links], found.crossed) >= FEWEST_VALUES,
        pairs_measured=measured,
        paths=paths,
        populations=effects.populations,
        step=effects.step,
        unexplained=found.unexplained,
        unexplained_when=[when_slow(stratum, flows, effects) for stratum in found.unexplained],
    )


@dataclass(frozen=True)
class _SearchContext:
    """Before which the evidence of a view is brought."""

    flows: Flows
    placement: Placement
    parts: Sequence[Family]
    late: Routes | None  # where links are judged by late messages
    sides: Sides
    tests: int
    settings: Settings
    views: int


@dataclass(frozen=True)
class _SearchResult:
    """What became of it. `effects` are without the pairs that culprits explain."""

    effects: Effects
    crossed: Codes  # (links,) pairs that tell of each
    detections: Sequence[Detection] = ()
    candidates: Sequence[Detection] = ()
    follow_ups: Sequence[FollowUp] = ()
    again: Sequence[FollowUp] = ()
    pairs: Sequence[SlowPair] = ()
    doubted: Sequence[tuple[int, float]] = ()
    unexplained: Sequence[Stratum] = ()
    late_bound: Floats | None = None  # (links,) of links that messages may or may not cross


def _weigh(evidence: Evidence, effects: Effects, context: _SearchContext) -> _SearchResult:
    """Convict, suspect and ask. `evidence` is used up on the way."""
    flows, placement, settings = context.flows, context.placement, context.settings
    crossed = _crossed(evidence, effects.message_paths)
    bar = Bar(required_evidence(context.tests, settings.alpha), partners=settings.min_partners)
    found = detect_components(evidence, effects, context.parts, bar, sides=context.sides)
    detections = described(found, flows, effects)
    if detections:
        effects = without(effects, evidence.gain == 0)
        detections = mark_usual_hosts(detections, effects, settings, views=context.views)
    doubtful: list[Detection] = []
    late_bound = None
    if context.late is not None:
        faulty_switches = frozenset(case.name for case in detections if case.kind == "switch")
        alone = _alone(flows, effects, context.late)
        late = late_parts(
            context.late, placement, effects, flows.histograms, settings, faulty_switches=faulty_switches, alone=alone
        )
        crossed, late_bound = late.exposed, late.upper
        late_detections, doubtful = (
            [
                _late_detection(case, context.late, effects.residual, bidirectional=effects.bidirectional)
                for case in cases
            ]
            for cases in (late.found, late.suspects)
        )
        detections += late_detections
        for case in late_detections:
            evidence.remove(case.cells)
        if late_detections:
            effects = without(effects, evidence.gain == 0)
    pairs = mark_concurrent_pairs(
        slow_pairs(evidence, effects, settings, views=context.views, one_way=flows.one_way), flows, effects
    )
    candidates = _find_candidates(evidence, effects, context)
    left_over = [] if flows.is_star else unexplained(evidence, effects, settings, [pair.ranks for pair in pairs])
    return _SearchResult(
        effects,
        crossed,
        detections,
        candidates,
        pairs=pairs,
        unexplained=left_over,
        late_bound=late_bound,
        doubted=slow_hosts(effects, placement, evidence),
        again=retests([*detections, *candidates], evidence),
        follow_ups=[
            *propose_late_follow_ups(doubtful, evidence, placement),
            *propose_follow_ups(detections, candidates, evidence, effects, context.parts, context.sides),
        ],
    )


def _sample(flows: Flows, effects: Effects, placement: Placement) -> timing.TimedCells:
    """Residuals from the class, with what the parts and the time of measurement add still in them.

    Planned rounds go near or far: where nobody knows which, they say nothing about the time of their measurement.
    """
    pairs = effects.residual
    cells = pairs.sample_cells()
    unlike = flows.started is None or (flows.row.pattern == "rounds" and not placement.switches)
    started = np.full(cells[0].size, np.nan) if unlike or flows.started is None else flows.started[cells]
    row, size = flows.observations.row, flows.observations.size
    excess = pairs.value[cells].astype(np.float64)
    if effects.drift is not None:
        excess += effects.drift[cells]
    return timing.TimedCells(row, flows.row.quantity, size, cells[0], pairs.destination(cells), excess, started)


def _followed_by_tails(flows: Flows, routes: Routes) -> bool:
    """Are links judged by late messages? With adaptive routing a median says nothing of the ways of single messages."""
    return routes.routing.kind == "ecmp" or (routes.routing.kind == "adaptive" and flows.histograms is not None)


def _alone(flows: Flows, effects: Effects, routes: Routes) -> npt.NDArray[np.bool_] | None:
    """(n, m) cells that no other pair could make late; None: all.

    How much hashed pairs collide nobody knows: of large messages only those count that were measured one by one.
    """
    if routes.routing.kind != "ecmp" or flows.observations.size < SMALLEST_SHARED:
        return effects.classes.unshared(effects.class_log_time, effects.link_tolerance)
    if flows.concurrent.size:
        return np.broadcast_to(~flows.concurrent[None, :], effects.residual.value.shape)
    return None if flows.row.attributes.get("order") == "serial" else np.zeros(effects.residual.value.shape, dtype=bool)


def _late_detection(case: LatePart, routes: Routes, pairs: Pairs, *, bidirectional: bool) -> Detection:
    """A part that makes messages late: a switch, one direction of a cable, or both where that cannot be told."""
    sides = (0,) if case.is_switch else (0, 1) if bidirectional else (case.number % 2,)
    both = () if case.is_switch else (case.number, case.number ^ 1)
    return Detection(
        kind="switch" if case.is_switch else "cable",
        name=routes.switches[case.number] if case.is_switch else routes.cable(case.number),
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
        own=tuple(GroupMember("link", link, link % 2, f"link {routes.names[link]}") for link in both[: len(sides)]),
        late=case.late,
    )


def _link_member(link: int, routes: Routes, *, bidirectional: bool) -> GroupMember:
    return GroupMember(
        "link", link, link % 2, f"cable {routes.cable(link)}" if bidirectional else f"link {routes.names[link]}"
    )


def _loads(flows: Flows, pairs: Pairs, message_paths: MessagePaths) -> npt.NDArray[np.uint8] | None:
    """Steps of load, where a message is large enough to fill a link and somebody may have shared it."""
    if flows.observations.size < SMALLEST_SHARED:
        return None
    return loads(pairs, message_paths, flows.concurrent, flows.rounds)


def _find_candidates(evidence: Evidence, effects: Effects, context: _SearchContext) -> list[Detection]:
    """Parts that would be convicted if one false name per run were allowed: to be measured again."""
    log_e, partners = float(np.log(max(context.tests, 1))), context.settings.min_partners
    bar = Bar(log_e, surely=False, most=MOST_SUSPICIONS, partners=partners)
    return detect_components(evidence, effects, context.parts, bar, sides=context.sides)


def _link_bounds(effects: Effects, message_paths: MessagePaths, late: Floats | None) -> Floats:
    """(links,) upper bound of the log-effect of each known link, NaN where unknown."""
    bound = effects.segment_upper[: message_paths.known_links].astype(np.float64)
    return bound if late is None else np.where(np.isnan(bound), late, bound)


def _crossed(evidence: Evidence | None, message_paths: MessagePaths) -> Codes:
    """(links,) measured pairs that cross each link."""
    if evidence is None:
        return np.zeros(message_paths.known_links, dtype=np.int64)
    return evidence.live.segment[: message_paths.known_links].copy()


def _comparable(kind: Kind, effects: Effects, settings: Settings) -> bool:
    """Switches and links are compared through their hosts, which must be alike; links must be so themselves."""
    alike = effects.host_tolerance <= settings.most_tolerance
    return {
        "group": alike,
        "switch": alike,
        "cable": alike and effects.link_tolerance <= settings.most_tolerance,
    }.get(kind, True)


def _as_fit(flows: Flows, effects: Effects) -> Fit:
    """The fit for the report. A round trip has one effect per rank, which both of its ends share."""
    observations, sent, received = flows.observations, effects.sent, effects.received
    if not flows.one_way:
        known = ~np.isnan([effects.sent_bounds[1], effects.received_bounds[1]])
        sent = received = (sent + received) / np.maximum(known.sum(axis=0), 1).astype(np.float32)
    classes = {
        SCOPES[code]: float(np.exp(value)) for code, value in effects.class_log_time.items() if code < len(SCOPES)
    }
    return Fit(observations.row, observations.kernel, observations.size, classes, sent, received, effects.noise)


def _host_partners(pairs: Pairs, placement: Placement, settings: Settings, *, scarcer: bool) -> Codes:
    """(hosts,) distinct other hosts measured with: in the `scarcer` direction, or in both together.

    Counted exactly only where it may fall short of what is asked for.
    """
    if not scarcer:
        return np.array(
            [_distinct_partners(pairs, placement, host, sides=(True, False)) for host in range(len(placement.hosts))],
            dtype=np.int64,
        )
    hosts = len(placement.hosts)
    if pairs.partner is not None:  # a list may hold a pair many times
        return _partners_in_list(pairs, placement)
    most_ranks = int(np.bincount(placement.host, minlength=hosts).max())
    counts = np.full(hosts, np.iinfo(np.int64).max)
    for sent in (True, False):
        count = np.zeros(hosts, dtype=np.int64)
        for rows in pairs.blocks():
            measured = ~np.isnan(pairs.sent(rows) if sent else pairs.received(rows))
            np.maximum.at(count, placement.host[rows], -(-measured.sum(axis=1) // most_ranks))
        for host in np.nonzero(count < max(settings.min_partners, 1))[0]:
            count[host] = _distinct_partners(pairs, placement, int(host), sides=(sent,))
        counts = np.minimum(counts, count)
    return counts


def _partners_in_list(pairs: Pairs, placement: Placement) -> Codes:
    """(hosts,) distinct other hosts that each sent to or received from, whichever are fewer."""
    row, column = np.nonzero(~np.isnan(pairs.value))
    a, b = (placement.host[end].astype(np.int64) for end in (row, pairs.destination((row, column))))
    hosts = len(placement.hosts)
    between = np.unique((a * hosts + b)[a != b])
    sent, received = (np.bincount(one, minlength=hosts) for one in (between // hosts, between % hosts))
    return np.minimum(sent, received)


def _distinct_partners(pairs: Pairs, placement: Placement, host: int, *, sides: Sequence[bool]) -> int:
    """Other hosts that one sent to (side True) or received from (False)."""
    ranks = np.nonzero(placement.host == host)[0]
    hosts: set[int] = set()
    for sent in sides:
        cells = pairs.cells_from(ranks) if sent else pairs.cells_to(ranks)
        measured = ~np.isnan(pairs.value[cells])
        partners = (pairs.destination(cells) if sent else cells[0])[measured]
        hosts.update(placement.host[partners].tolist())
    return len(hosts)


def _host_bounds(effects: Effects, placement: Placement) -> Floats:
    """(hosts,) the largest loss that a host can hide: of its worst rank, in its worse direction."""
    pairs = effects.residual
    met = np.zeros((2, pairs.ranks), dtype=np.int64)
    for rows in pairs.blocks():
        known = ~np.isnan(pairs.value[rows])
        if effects.informative is not None:
            known &= effects.informative[rows]
        met[0, rows] = np.count_nonzero(known, axis=1)
        partners = np.broadcast_to(pairs.partners(rows), known.shape)[known]
        met[1] += np.bincount(partners, minlength=pairs.ranks)
    sides = zip((effects.sent_bounds, effects.received_bounds), met, strict=True)
    upper = np.fmax(*(np.fmin(side[2], side[1] + median_error(count, effects.noise)) for side, count in sides))
    bound = np.full(len(placement.hosts), np.nan)
    np.fmax.at(bound, placement.host, upper)
    return bound
