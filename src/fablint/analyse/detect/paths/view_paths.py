"""The paths between switches of one view: how slow each is, what that means, and the bound of what is healthy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from fablint.analyse.data.message_paths import MessagePaths
from fablint.analyse.data.pair_matrix import Codes, Pairs
from fablint.analyse.data.robust_stats import Floats
from fablint.analyse.data.samples import Flows
from fablint.analyse.detect.components import FEWEST_PEERS
from fablint.analyse.detect.paths.path_modes import Mode, declared_routes_explain, find_modes
from fablint.analyse.detect.paths.slow_paths import (
    FEWEST_PAIRS,
    WITHOUT_OTHERS,
    Judgement,
    Measure,
    PathJudgements,
    judge_paths,
)
from fablint.analyse.fit.path_levels import PathLevels, fit_path_levels
from fablint.analyse.settings import Settings
from fablint.model import Placement
from fablint.topology.routing import Routes

UNFOLLOWED = frozenset({"ecmp", "adaptive"})  # routings in which nobody knows the cables that a message crosses
HALF = 0.5  # of the pairs of a path: more slow ones are not those of one of several cables
Entries = dict[tuple[int, int], int]  # entry of each ordered pair of switches; of round trips unordered


@dataclass(frozen=True)
class Paths:
    """What one view says of the paths between switches."""

    judgements: PathJudgements
    modes: tuple[Mode, ...]  # paths of which some pairs are slow
    declared: bool | None  # do declared routes explain which? None: not declared, or not testable
    followed: bool  # does the topology say which links each path crosses?
    compared: bool  # are there enough declared links to compare them with each other?
    hosts: tuple[Codes, Codes]  # (c,) hosts of the cells of the levels
    ranks: tuple[Codes, Codes]  # (c,) their ranks: sender and receiver

    @property
    def levels(self) -> PathLevels:
        return self.judgements.levels

    @cached_property
    def best(self) -> Entries:
        """The entry that says most of each path: of messages alone, where there were enough of them."""
        found: Entries = {}
        levels, of = self.levels, self.judgements.of
        order = sorted(
            np.flatnonzero(levels.is_path).tolist(),
            key=lambda entry: (of[entry] is not Judgement.FEW, not levels.shared[entry]),
        )
        for entry in order:
            found[int(levels.src[entry]), int(levels.dst[entry])] = entry
        return found

    def taken_out(self, switches: int) -> Floats:
        """(S + 1, S + 1) what is subtracted from the log times between two switches; the last are unknown ones.

        What a longer cable adds to a small message, and NaN of paths that are slow for a reason of their own:
        neither says anything of the hosts at the ends.
        """
        found = np.zeros((switches + 1, switches + 1))
        levels, judged = self.levels, self.judgements
        for entry in np.flatnonzero(levels.is_path):
            judgement, ends = judged.of[entry], (levels.src[entry], levels.dst[entry])
            if judgement is Judgement.GEOMETRY:
                found[ends] += judged.loss[entry]
            elif judgement in (Judgement.SLOW, Judgement.ONCE):
                found[ends] = np.nan
        return np.asarray(np.where(found == 0, found.T, found)) if levels.bidirectional else found


def paths_of(
    flows: Flows,
    pairs: Pairs,
    placement: Placement,
    message_paths: MessagePaths,
    routes: Routes | None,
    settings: Settings,
    *,
    views: int,
) -> Paths | None:
    """The paths of a view; None where no message crossed one. `pairs` hold log times."""
    levels = fit_path_levels(flows, pairs, placement, settings.tolerance)
    if levels is None:
        return None
    size = len(placement.switches)
    group = np.zeros(size, dtype=np.int64)
    known = placement.switch >= 0
    group[placement.switch[known]] = placement.group[known]
    latency = flows.row.quantity == "latency"
    chance = settings.alpha_of("paths") / max(1, views)
    measure = Measure(latency, settings.tolerance, settings.spread_factor, chance, settings.loss_in_scope)
    started = None if flows.started is None else np.asarray(flows.started[levels.cells], dtype=np.float64)
    compared = _links_compared(message_paths)
    able = None if latency or compared else _at_declared_speed(flows, placement, routes)
    judgements = judge_paths(levels, group, _apart(placement, routes), measure, started, able)
    _exonerate_fastest(judgements, pairs)
    to = pairs.destination(levels.cells)
    hosts = (placement.host[levels.cells[0]].astype(np.int64), placement.host[to].astype(np.int64))
    followed = routes is not None and len(routes.ends) > 0 and routes.routing.kind not in UNFOLLOWED
    modes = find_modes(levels, *hosts, measure)
    modes = [mode for mode in modes if judgements.of[mode.entry] not in (Judgement.SLOW, Judgement.FEW)]
    if compared:  # the search explains most slow pairs: what is left must be gross, and not be most of a path
        modes = [mode for mode in modes if mode.share <= HALF and mode.loss > settings.log_loss_in_scope]
    declared = declared_routes_explain(modes, levels, pairs, message_paths) if followed else None
    strangers = not known.all() and (flows.rounds is not None or bool(flows.concurrent.any()))
    if (declared and compared) or strangers:
        modes = []  # links are judged by the declared routes; what hosts without a switch share nobody knows
    return Paths(judgements, tuple(modes), declared, followed, compared, hosts, (levels.cells[0], to))


def _exonerate_fastest(judgements: PathJudgements, pairs: Pairs) -> None:
    """A path whose messages are as fast as any of its kind is not slow, whatever its ends were found to add.

    Where most hosts of a switch are slow, what they add is not distinguishable from what the paths to the switch add.
    """
    levels = judgements.levels
    value = pairs.value[levels.cells]
    order = np.lexsort((value, levels.entry))
    count = np.bincount(levels.entry, minlength=levels.level.size)
    first = np.cumsum(count) - count
    middle = value[order][np.minimum(first + count // 2, max(0, value.size - 1))]
    for entry in judgements.entries(Judgement.SLOW, Judgement.ONCE, Judgement.BESIDE, Judgement.POPULATION):
        if judgements.beside[entry] in WITHOUT_OTHERS:
            continue
        kind = (judgements.kind == judgements.kind[entry]) & levels.is_path & (levels.pairs >= FEWEST_PAIRS)
        if middle[entry] - middle[kind].min() <= judgements.tolerance[entry]:
            judgements.of[entry] = Judgement.FINE


def without_paths(pairs: Pairs, paths: Paths | None, placement: Placement) -> Pairs:
    """The pairs without what paths explain; changed in place.

    Between few switches, half of a class of pairs may cross a slow path: what is usual there, and what is a host's own,
    is seen from the others. Where links are compared with each other, they explain slow pairs themselves.
    """
    if paths is None or paths.compared:
        return pairs
    table = paths.taken_out(len(placement.switches))
    if table.any():
        for rows in pairs.blocks():
            ends = placement.switch[np.arange(pairs.ranks)[rows]][:, None], placement.switch[pairs.partners(rows)]
            pairs.value[rows] -= table[ends].astype(np.float32)
    levels = paths.levels
    for mode in paths.modes:
        pairs.value[levels.cells[0][mode.cells], levels.cells[1][mode.cells]] = np.nan
    return pairs


def _links_compared(message_paths: MessagePaths) -> bool:
    """Are there enough links to compare them with each other?"""
    return message_paths.known_links >= 2 * FEWEST_PEERS and message_paths.routes is not None


def _apart(placement: Placement, routes: Routes | None) -> Codes | None:
    """(S, S) cables of a shortest way between the run's switches."""
    if routes is None or not len(routes.ends):
        return None
    return routes.distances(routes.codes(placement.switches)).astype(np.int64)


def _at_declared_speed(flows: Flows, placement: Placement, routes: Routes | None) -> Floats | None:
    """(S, S) log time of a message at the declared speed of the slowest cable between two of the run's switches."""
    if routes is None or not len(routes.ends):
        return None
    return np.asarray(np.log(flows.observations.size) - np.log(routes.slowest_cables(routes.codes(placement.switches))))


# ------------------------------------------------------------------------------------------------ bounds


@dataclass(frozen=True)
class PathBounds:
    """How much a path may be slower than what it is compared with. Arrays (p,) are by path."""

    names: tuple[str, ...]  # s0>s1; of round trips s0=s1
    src: Codes  # codes of switches
    dst: Codes
    upper: npt.NDArray[np.float64]  # upper 95 % bound of the log-loss, of all paths together; NaN where unknown
    host_pairs: Codes  # that were measured across it
    compared_with: tuple[str, ...]
    fine: npt.NDArray[np.bool_]  # as fast as its kind: else a finding or note says what is known of it
    beside: npt.NDArray[np.bool_]  # (p,) slower beside others, over known links: no finding until measured alone


def path_bounds(paths: Paths | None, placement: Placement) -> PathBounds:
    """Bounds of all paths that messages crossed, of one view."""
    if paths is None:
        none = np.empty(0, np.int64)
        return PathBounds((), none, none, np.empty(0), none, (), np.empty(0, bool), np.empty(0, bool))
    best = paths.best
    entries = np.array(list(best.values()), dtype=np.int64)
    levels, judged = paths.levels, paths.judgements
    sign = "=" if levels.bidirectional else ">"
    z = -float(ndtri(0.05 / max(1, entries.size)))
    loss = levels.level - judged.reference
    upper = np.fmax(levels.upper - judged.reference, loss + z * levels.error)
    upper[[judgement is Judgement.FEW for judgement in judged.of]] = np.nan
    return PathBounds(
        tuple(sign.join(placement.switches[code] for code in path) for path in best),
        levels.src[entries],
        levels.dst[entries],
        _of_ties(upper)[entries],
        levels.pairs[entries],
        tuple(judged.beside[entry] for entry in entries),
        np.array([judged.of[entry] is Judgement.FINE for entry in entries], dtype=bool),
        np.array([paths.followed and judged.of[entry] is Judgement.BESIDE for entry in entries], dtype=bool),
    )


def _of_ties(upper: Floats) -> Floats:
    """Never below 0: what is faster than its kind may still be as slow as that."""
    return np.asarray(np.where(np.isnan(upper), np.nan, np.maximum(upper, 0.0)))
