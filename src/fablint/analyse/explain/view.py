"""Judgement of one view of the fabric: one size of one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fablint.analyse.candidates.components import ComponentType, Kind, list_component_types
from fablint.analyse.explain.circumstances import ENDPOINT_KINDS
from fablint.analyse.explain.coverage import (
    count_nic_partners,
    host_bounds,
    host_partners,
    link_bounds,
)
from fablint.analyse.explain.paths.view_paths import Paths, paths_of, subtract_paths
from fablint.analyse.explain.search import Detection, Sides
from fablint.analyse.explain.view_search import SearchResult, View, ViewSearch
from fablint.analyse.null_model import timing
from fablint.analyse.null_model.comparison_groups import Classes, cables_beyond
from fablint.analyse.null_model.effects import Effects
from fablint.analyse.null_model.geometry import are_lengths_unknown, most_extra_s
from fablint.analyse.null_model.host_populations import Populations
from fablint.analyse.null_model.loads import NicLoad, loads, median_of_loads, nic_load
from fablint.analyse.null_model.median_polish import fit
from fablint.analyse.null_model.offsets.allocation_levels import (
    AllocationLevels,
    fit_allocation_levels,
    subtract_allocation_levels,
)
from fablint.analyse.null_model.offsets.nic_offsets import NicOffsets, fit_nic_offsets, subtract_nic_offsets
from fablint.analyse.observations.message_paths import MessagePaths, SharedPaths
from fablint.analyse.observations.pair_matrix import Pairs
from fablint.analyse.observations.resolution import find_step
from fablint.analyse.observations.round_starts import round_starts
from fablint.analyse.observations.samples import Flows
from fablint.analyse.settings import GEOMETRY_S, QUARTER, SMALLEST_SHARED, Settings
from fablint.model import SCOPES, Fit, Placement, Scope
from fablint.model.arrays import Codes, Floats, Ints, Mask, Values
from fablint.model.registry import Quantity


@dataclass(frozen=True, kw_only=True)
class ViewResult(SearchResult):
    """Result of one view."""

    row: str
    quantity: Quantity  # quantity for the report
    one_way: bool  # whether this view shows the direction
    share_links: bool  # whether messages of several pairs filled links at the same time
    isolates: bool  # whether it has follow-up measurements, one pair at a time
    hubs: Codes  # hub ranks of a star; a star is evidence against its leaves, but not for the health of a host
    size: int
    fit: Fit
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
    nic_offsets: NicOffsets | None = None  # effects of the kinds of NICs; None: none
    levels: AllocationLevels | None = None  # of the allocations that measured it; None: they do not differ
    step: float = 0.0  # resolution of the log times
    geometry_s: float = GEOMETRY_S  # s by which messages across a cable may be later than across others without a fault

    @property
    def is_evidence_of_health(self) -> bool:
        """True if this view shows healthy components as well."""
        return self.hubs.size == 0

    @property
    def has_all_partners(self) -> bool:
        """True if each host was measured with all others."""
        return bool((self.host_partners >= self.host_partners.size - 1).all())

    def added_s(self, detection: Detection) -> float:
        """Return the time in s that the messages of a component take longer: of late messages, than the far ones."""
        return detection.added_s(max(self.fit.class_time.values(), default=np.inf))


def judge_view(view: View, shared_paths: SharedPaths | None = None, *, declared: bool = True) -> ViewResult:
    """Fit the model of a view and search for faulty components.

    Parameters
    ----------
    view
        The view.
    shared_paths
        Paths of the pairs of all views; None: there is no other view.
    declared
        Whether switches were declared. Switches that were inferred from the times are not evidence about the paths
        between them.
    """
    flows, placement, routes, settings = view.flows, view.placement, view.routes, view.settings
    pairs, nic_offsets = _log_times(flows, placement)
    measured = int(np.count_nonzero(~np.isnan(pairs.value)))
    message_paths = (shared_paths or SharedPaths(placement, routes)).of(pairs)
    classes = _classes(view, pairs, message_paths, nic_offsets)
    levels = fit_allocation_levels(
        pairs, lambda cells: classes.of_cells(pairs, cells), flows.allocations, settings.tolerance
    )
    subtract_allocation_levels(pairs, levels)
    paths = paths_of(flows, pairs, classes, message_paths, settings, views=view.views) if declared else None
    partners = count_nic_partners(pairs, placement, settings, scarcer=view.sides is not Sides.TOGETHER)
    effects = _fit_model(view, subtract_paths(pairs, paths, placement), message_paths, classes)
    component_types = _comparable_types(view, effects)
    sample = _sample(flows, effects, placement)
    search = ViewSearch(view, effects, component_types)
    result = search.run()
    effects = search.effects  # without the pairs that detections explain
    fitted = _as_fit(flows, effects, result.detections)
    return ViewResult(
        **vars(result),
        row=flows.observations.row,
        quantity=flows.row.quantity,
        one_way=flows.one_way,
        share_links=flows.share_links,
        isolates=flows.isolates,
        hubs=flows.hubs,
        size=flows.observations.size,
        fit=fitted,
        compared=frozenset(component_type.kind for component_type in component_types),
        host_tolerance=effects.host_tolerance,
        link_tolerance=effects.link_tolerance,
        nic_partners=partners,
        host_partners=host_partners(partners, placement),
        host_bound=host_bounds(effects, placement),
        link_pairs=search.link_pairs,
        link_bound=link_bounds(effects, message_paths, search.late_bound),
        bounds=np.fmax(effects.sent_bounds, effects.received_bounds).astype(np.float32),
        sharing=effects.classes.sharing(effects.class_log_time, settings.tolerance),
        sample=sample,
        links_possible=search.links_possible,
        pairs_measured=measured,
        paths=paths,
        populations=effects.populations,
        nic_offsets=nic_offsets,
        levels=levels,
        step=effects.step,
        geometry_s=_geometry_s(fitted, unknown_lengths=are_lengths_unknown(routes, placement)),
    )


def _log_times(flows: Flows, placement: Placement) -> tuple[Pairs, NicOffsets | None]:
    """Return the log times without the offsets of the kinds of NICs, and these offsets."""
    pairs = Pairs.log_times(flows.observations)
    pairs = replace(pairs, step=find_step(pairs.value[pairs.sample_cells()], at=QUARTER))
    nic_offsets = fit_nic_offsets(pairs, placement, is_stream=flows.row.quantity == "bandwidth")
    subtract_nic_offsets(pairs, nic_offsets)
    return pairs, nic_offsets


def _classes(view: View, pairs: Pairs, message_paths: MessagePaths, nic_offsets: NicOffsets | None) -> Classes:
    """Return the classes of comparable pairs."""
    flows, placement = view.flows, view.placement
    # A stream is as fast over three cables as over one; only the latency grows.
    beyond = cables_beyond(placement, view.routes) if flows.row.quantity == "latency" else None
    load, of_nics = _loads(view, pairs, message_paths)
    return Classes(
        placement,
        load,
        beyond=beyond,
        nic_load=of_nics,
        nic_offsets=nic_offsets,
        stream=flows.row.quantity == "bandwidth",
        planned=flows.planned,
        facts=view.facts,
    )


def _fit_model(view: View, pairs: Pairs, message_paths: MessagePaths, classes: Classes) -> Effects:
    """Fit the effects of components to log times without the offsets of NICs; these become residuals."""
    flows = view.flows
    stream = flows.observations.size if classes.stream else None
    # The rounds of a list cross paths of different lengths: round trips show the path, not the time.
    timed = None if flows.row.layout == "list" and stream is None else round_starts(flows)
    bidirectional = view.is_bidirectional
    return fit(pairs, classes, message_paths, view.settings, bidirectional=bidirectional, started=timed, stream=stream)


def _comparable_types(view: View, effects: Effects) -> list[ComponentType]:
    """Return the types of components that have peers in this view."""
    pairs, message_paths = effects.residual, effects.message_paths
    return [
        component_type
        for component_type in list_component_types(
            pairs, view.placement, message_paths, bidirectional=view.is_bidirectional
        )
        if _is_comparable(component_type.kind, effects, view.settings)
        and (not view.flows.is_star or component_type.kind in ENDPOINT_KINDS)
    ]


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
    left = pairs.value[cells].astype(np.float64)
    excess = left if effects.drift is None else left + effects.drift[cells]
    return timing.TimedCells(row, flows.row.quantity, size, cells[0], pairs.destination(cells), excess, started, left)


def _loads(view: View, pairs: Pairs, message_paths: MessagePaths) -> tuple[Ints | None, NicLoad | None]:
    """Return the step of load of each cell, and that of NICs; None if messages do not fill a link or shared none."""
    flows = view.flows
    if flows.observations.size < SMALLEST_SHARED:
        return None, None
    at_once, repeats = not flows.takes_turns, (None,) if flows.rounds is None else flows.rounds
    of_nics = NicLoad.of_repeats(
        [nic_load(pairs, view.placement, flows.concurrent, rounds, at_once=at_once) for rounds in repeats], flows.rounds
    )
    load = median_of_loads(
        [loads(pairs, message_paths, flows.concurrent, rounds, at_once=at_once) for rounds in repeats], flows.rounds
    )
    if of_nics is not None:
        load = of_nics.step if load is None else np.maximum(load, of_nics.step)
    return load, of_nics


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
        has_bound = ~np.isnan([effects.sent_bounds[1], effects.received_bounds[1]])
        sent = received = (sent + received) / np.maximum(has_bound.sum(axis=0), 1).astype(np.float32)
    ends = [sent.copy(), received.copy()]
    for detection in detections:
        for side in detection.sides if detection.kind in ENDPOINT_KINDS else ():
            ends[side][detection.ranks] = detection.loss[1]
    classes: dict[Scope, float] = {}  # of each scope the nearest pairs that share least
    for code, value in sorted(effects.class_log_time.items()):
        classes.setdefault(SCOPES[code % len(SCOPES)], float(np.exp(value)))
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
