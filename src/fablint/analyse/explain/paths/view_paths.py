"""Paths between switches in one view: their losses, judgements, and bounds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from fablint.analyse.explain.paths.judgement import Judgement, Measure, PathJudgements, Reference
from fablint.analyse.explain.paths.path_modes import Mode, declared_routes_explain, find_modes
from fablint.analyse.explain.paths.slow_paths import DECLARED, ON_A_SWITCH, judge_paths
from fablint.analyse.null_model.comparison_groups import Classes
from fablint.analyse.null_model.geometry import are_lengths_unknown
from fablint.analyse.null_model.loads import UNCERTAIN
from fablint.analyse.null_model.path_levels import PathLevels, fit_path_levels
from fablint.analyse.observations.message_paths import MessagePaths
from fablint.analyse.observations.pair_matrix import Pairs
from fablint.analyse.observations.samples import Flows
from fablint.analyse.settings import CONFIDENCE, FEWEST_PEERS, HALF, Settings
from fablint.model import ComponentRef, Placement
from fablint.model.arrays import Codes, Floats, Mask
from fablint.model.figures.grouped_values import GroupedValues
from fablint.topology.routing import Routes

Entries = dict[tuple[int, int], int]  # entry of each ordered pair of switches; of round trips unordered


@dataclass(frozen=True)
class Paths:
    """Judgement of the paths between switches in one view."""

    judgements: PathJudgements
    modes: tuple[Mode, ...]  # paths of which some pairs are slow
    declared: bool | None  # whether declared routes explain them; None: not declared, or not testable
    followed: bool  # whether the topology declares the links of each path
    compared: bool  # whether there are enough declared links to compare them with each other
    hosts: tuple[Codes, Codes]  # (c,) hosts of the cells of the levels
    ranks: tuple[Codes, Codes]  # (c,) their ranks: sender and receiver
    any_length: bool  # whether these are latencies of paths of unknown lengths, whose differences are no evidence

    @property
    def levels(self) -> PathLevels:
        """Levels of the paths."""
        return self.judgements.levels

    @cached_property
    def best(self) -> Entries:
        """Entry of each path with the most information: of isolated messages, if there were enough."""
        entries: Entries = {}
        levels, judgement_of = self.levels, self.judgements.of
        order = sorted(
            np.flatnonzero(levels.is_path).tolist(),
            key=lambda entry: (judgement_of[entry] is not Judgement.FEW, not levels.shared[entry]),
        )
        for entry in order:
            entries[int(levels.src[entry]), int(levels.dst[entry])] = entry
        return entries

    def taken_out(self, switches: int) -> Floats:
        """Return the values to subtract from the log times between two switches.

        (S + 1, S + 1), the last row and column for unknown switches. They are the time that longer cables and more
        switches add to a small message, and NaN for paths that are slow for a reason of their own: neither is evidence
        about the hosts at the ends. Links that are compared with each other explain slow pairs themselves.
        """
        table = np.zeros((switches + 1, switches + 1))
        levels, judged = self.levels, self.judgements
        for entry in np.flatnonzero(levels.is_path):
            judgement, ends = judged.of[entry], (levels.src[entry], levels.dst[entry])
            if judgement is Judgement.GEOMETRY or (self.any_length and judgement is Judgement.FINE):
                table[ends] += judged.loss[entry]
            elif judgement in (Judgement.SLOW, Judgement.ONCE) and not self.compared:
                table[ends] = np.nan
        return np.asarray(np.where(table == 0, table.T, table)) if levels.bidirectional else table


def paths_of(
    flows: Flows,
    pairs: Pairs,
    classes: Classes,
    message_paths: MessagePaths,
    settings: Settings,
    *,
    views: int,
) -> Paths | None:
    """Return the paths of a view; None if no message crossed one.

    Parameters
    ----------
    flows
        The view.
    pairs
        Log times.
    classes
        Switches and groups of the ranks, and the load of the cells.
    message_paths
        Paths of the pairs, and the links that messages cross.
    settings
        Tolerances and error probabilities.
    views
        Number of views of the run, which share the error probability.
    """
    placement, routes = classes.placement, message_paths.routes
    followed = routes is not None and len(routes.ends) > 0 and routes.routing.kind not in UNCERTAIN
    levels = fit_path_levels(flows, pairs, placement, settings.tolerance, classes.load, is_counted=followed)
    if levels is None:
        return None
    size = len(placement.switches)
    group = np.zeros(size, dtype=np.int64)
    has_switch = placement.switch >= 0
    group[placement.switch[has_switch]] = placement.group[has_switch]
    latency = flows.row.quantity == "latency"
    chance = settings.alpha_of("paths") / max(1, views)
    measure = Measure(latency, settings.tolerance, settings.spread_factor, chance, settings.loss_in_scope)
    started = None if flows.started is None else np.asarray(flows.started[levels.cells], dtype=np.float64)
    compared = _links_compared(message_paths)
    able = None if latency or compared else _at_declared_speed(flows, placement, routes)
    unknown = are_lengths_unknown(routes, placement)
    judgements = judge_paths(levels, group, _apart(placement, routes), measure, started, able, unknown_lengths=unknown)
    _exonerate_fastest(judgements, pairs)
    to = pairs.destination(levels.cells)
    hosts = (placement.host[levels.cells[0]].astype(np.int64), placement.host[to].astype(np.int64))
    # The search explains most slow pairs over compared links: the rest must be gross, and not most of a path.
    most, least = (HALF, settings.log_loss_in_scope) if compared else (np.inf, -np.inf)

    def is_wanted(mode: Mode) -> bool:
        is_open = judgements.of[mode.entry] not in (Judgement.SLOW, Judgement.FEW)
        return is_open and mode.share <= most and mode.loss > least

    modes = find_modes(levels, *hosts, measure, is_wanted, started)
    declared = declared_routes_explain(modes, levels, pairs, message_paths) if followed else None
    strangers = not has_switch.all() and (flows.rounds is not None or bool(flows.concurrent.any()))
    if (declared and compared) or strangers:
        modes = []  # links are judged by the declared routes; links shared with hosts without a switch are unknown
    ranks = (levels.cells[0], to)
    return Paths(judgements, tuple(modes), declared, followed, compared, hosts, ranks, latency and unknown)


def _exonerate_fastest(judgements: PathJudgements, pairs: Pairs) -> None:
    """Judge paths as healthy whose messages are as fast as any of their kind, whatever their ends seem to add.

    If most hosts of a switch are slow, their effect is not distinguishable from that of the paths to the switch.
    """
    levels = judgements.levels
    middle = GroupedValues.of(pairs.value[levels.cells], levels.entry, levels.level.size).upper_medians()
    for entry in judgements.entries(Judgement.SLOW, Judgement.ONCE, Judgement.BESIDE, Judgement.POPULATION):
        if judgements.beside[entry] in (ON_A_SWITCH, DECLARED):
            continue
        kind = (judgements.kind == judgements.kind[entry]) & levels.is_path & (levels.pairs >= FEWEST_PEERS)
        if middle[entry] - middle[kind].min() <= judgements.tolerance[entry]:
            judgements.of[entry] = Judgement.FINE


def subtract_paths(pairs: Pairs, paths: Paths | None, placement: Placement) -> Pairs:
    """Subtract the effects of paths from the pairs, in place, and return them.

    Between few switches, half of a class of pairs may cross a slow path: the class and the effects of hosts are those
    of the other pairs. Where links are compared with each other, only unknown lengths of paths are subtracted.
    """
    if paths is None or (paths.compared and not paths.any_length):
        return pairs
    table = paths.taken_out(len(placement.switches))
    if table.any():
        for rows in pairs.blocks():
            ends = placement.switch[np.arange(pairs.ranks)[rows]][:, None], placement.switch[pairs.partners(rows)]
            pairs.value[rows] -= table[ends].astype(np.float32)
    levels = paths.levels
    for mode in paths.modes if not paths.compared else ():
        pairs.value[levels.cells[0][mode.cells], levels.cells[1][mode.cells]] = np.nan
    return pairs


def _links_compared(message_paths: MessagePaths) -> bool:
    """Return whether there are enough links to compare them with each other."""
    return message_paths.known_links >= 2 * FEWEST_PEERS and message_paths.routes is not None


def _apart(placement: Placement, routes: Routes | None) -> Codes | None:
    """Return the (S, S) number of cables of a shortest path between the run's switches."""
    if routes is None or not len(routes.ends):
        return None
    return routes.distances(routes.codes(placement.switches)).astype(np.int64)


def _at_declared_speed(flows: Flows, placement: Placement, routes: Routes | None) -> Floats | None:
    """Return the (S, S) log time of a message at the declared speed of the slowest cable between two switches."""
    if routes is None or not len(routes.ends):
        return None
    return np.asarray(np.log(flows.observations.size) - np.log(routes.slowest_cables(routes.codes(placement.switches))))


# ------------------------------------------------------------------------------------------------ bounds


class PathKey(NamedTuple):
    """A path between two switches of the run, by their codes."""

    src: int
    dst: int
    directed: bool

    @property
    def directions(self) -> set[tuple[int, int]]:
        """Its ordered pairs of switches."""
        return {(self.src, self.dst)} if self.directed else {(self.src, self.dst), (self.dst, self.src)}

    def component(self, placement: Placement) -> ComponentRef:
        """The path as findings name it."""
        ends = (placement.switches[code] for code in (self.src, self.dst))
        return ComponentRef.of("route", *ends, directed=self.directed)


@dataclass(frozen=True)
class PathBounds:
    """Upper bounds of the losses of paths relative to their reference. Arrays (p,) are by path."""

    paths: tuple[PathKey, ...]
    upper: Floats  # upper 95 % bound of the log-loss, for all paths together; NaN where unknown
    host_pairs: Codes  # number of pairs of hosts measured across each path
    compared_with: tuple[Reference, ...]
    fine: Mask  # as fast as its kind: otherwise a finding or note describes the path
    # (p,) slower among concurrent messages, over known links: no finding until measured alone
    beside: Mask


def path_bounds(paths: Paths | None) -> PathBounds:
    """Return an upper bound of the loss of each path of one view that messages crossed; none without paths."""
    if paths is None:
        none = np.empty(0, np.int64)
        return PathBounds((), np.empty(0), none, (), np.empty(0, bool), np.empty(0, bool))
    best = paths.best
    entries = np.array(list(best.values()), dtype=np.int64)
    levels, judged = paths.levels, paths.judgements
    z = -float(ndtri((1 - CONFIDENCE) / max(1, entries.size)))
    loss = levels.level - judged.reference
    # A path that seems faster than its kind may by chance have been measured so: the error is what it can hide.
    upper = np.fmax(levels.upper - judged.reference, np.maximum(loss, 0.0) + z * levels.error)
    upper[[judgement is Judgement.FEW for judgement in judged.of]] = np.nan
    return PathBounds(
        tuple(PathKey(*path, directed=not levels.bidirectional) for path in best),
        _of_ties(upper)[entries],
        levels.pairs[entries],
        tuple(judged.beside[entry] for entry in entries),
        np.array([judged.of[entry] is Judgement.FINE for entry in entries], dtype=bool),
        np.array([paths.followed and judged.of[entry] is Judgement.BESIDE for entry in entries], dtype=bool),
    )


def _of_ties(upper: Floats) -> Floats:
    """Return the bounds, at least 0: a path that is faster than its kind may still be as slow as its kind."""
    return np.asarray(np.where(np.isnan(upper), np.nan, np.maximum(upper, 0.0)))
