"""Single measurements of a view, each slow or not by the noise of its class, and the pairs that they belong to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fablint.analyse.candidates.candidate import Candidate
from fablint.analyse.candidates.crossed_components import MeasuredHostPairs
from fablint.analyse.explain.evidence import Evidence
from fablint.analyse.null_model.effects import Effects, effects_of_cells
from fablint.analyse.null_model.loads import UNCERTAIN, never_shared
from fablint.analyse.observations.measurements import SingleTimes
from fablint.analyse.observations.pair_matrix import unordered
from fablint.analyse.observations.robust_stats import robust_sd
from fablint.analyse.observations.samples import Flows
from fablint.analyse.observations.time_correlation import TimedMeasurements
from fablint.analyse.settings import FAR, FEWEST_POOL, OWN_POOL, Settings
from fablint.model import Placement
from fablint.model.arrays import Cells, Codes, Floats, Mask, Values
from fablint.model.figures.distinct_codes import distinct_codes


@dataclass(frozen=True)
class SlowMeasurements:
    """Measurements of a view that no detection explains, between hosts.

    Attributes
    ----------
    cells
        (k,) cell of each measurement; repeats of a cell have the same one.
    ends
        (k, 2) ranks: sender and receiver.
    left
        (k,) residual, log-effect.
    tolerated
        (3, k) log-effects of sender, receiver and path that the residuals are without.
    started
        (k,) s, NaN where unknown.
    limit
        (k,) log-effect from which each is slow: noise of its class.
    slow
        (k,) whether each is slow.
    placement
        Hosts, NICs and switches of the ranks.
    one_way
        Whether the messages cross the network in one direction only.
    most_of_pair
        Largest weight of all measurements from one host to another.
    together
        Whether other messages may have delayed them: then only those count as slow whose pair of hosts was slow in half
        of its measurements or more.
    """

    cells: Cells
    ends: Codes
    left: Floats
    tolerated: Values
    started: Floats
    limit: Floats
    slow: Mask
    placement: Placement
    one_way: bool
    most_of_pair: float
    together: bool = False

    def of(self, chosen: Mask) -> SlowMeasurements:
        """Return some of the measurements."""
        arrays = {name: getattr(self, name)[chosen] for name in ("ends", "left", "started", "limit", "slow")}
        cells, tolerated = (self.cells[0][chosen], self.cells[1][chosen]), self.tolerated[:, chosen]
        return replace(self, cells=cells, tolerated=tolerated, **arrays)

    def losses_of(self, candidate: Candidate) -> Floats:
        """Return the (k,) residuals with the tolerated effect of the component, all of whose measurements these are.

        A component that is slow most of the time has an effect, by which its residuals are too small.
        """
        code = {"host": self.placement.host, "nic": self.placement.nic, "switch": self.placement.switch}
        ends, path = self.tolerated[:2], self.tolerated[2]
        if candidate.kind not in code:
            return np.asarray(self.left + path)
        is_own = (code[candidate.kind][self.ends] == candidate.number).T
        of_path = path if candidate.kind == "switch" else 0.0
        return np.asarray(self.left + np.where(is_own, ends, 0.0).sum(axis=0) + of_path)

    @cached_property
    def host_pair(self) -> Codes:
        """(k,) number of the unordered pair of hosts."""
        hosts = self.placement.host[self.ends]
        return unordered(hosts[:, 0], hosts[:, 1], len(self.placement.hosts))

    @cached_property
    def pairs(self) -> MeasuredHostPairs:
        """The pairs of ranks, of round trips unordered, with the number of their measurements as weights.

        A round trip there and one back are measured in one moment and weigh as one.
        """
        ends = self.ends if self.one_way else np.sort(self.ends, axis=1)
        ranks = self.placement.host.size
        key, pair_of_cell, count = distinct_codes(ends[:, 0] * ranks + ends[:, 1])
        pair = np.stack(np.divmod(key, ranks), axis=1)
        directions = (
            1.0 if self.one_way else distinct_codes(self.ends[:, 0] * ranks + self.ends[:, 1]).keys.size / key.size
        )
        hosts = self.placement.host[pair].astype(np.int64)
        of_hosts = distinct_codes(hosts[:, 0] * len(self.placement.hosts) + hosts[:, 1]).number
        measured = np.bincount(of_hosts, weights=count)[of_hosts]
        weight = count * np.minimum(1.0, self.most_of_pair / measured) / directions
        return MeasuredHostPairs(hosts, pair, self.placement.switch[pair].astype(np.int64), weight, pair_of_cell)

    @cached_property
    def timed(self) -> TimedMeasurements:
        """The measurements with their times."""
        hosts, switches = (codes[self.ends].astype(np.int64) for codes in (self.placement.host, self.placement.switch))
        path = unordered(switches[:, 0], switches[:, 1], len(self.placement.switches) + 1)
        return TimedMeasurements(self.started, self.slow, hosts.T, path)


def slow_measurements(
    evidence: Evidence,
    effects: Effects,
    flows: Flows,
    settings: Settings,
    *,
    isolated: Mask | None,
    together: bool,
) -> SlowMeasurements | None:
    """Return the measurements of a view that no detection explains; None if too few to know their noise.

    Parameters
    ----------
    evidence
        Evidence after the search; explained cells are excluded.
    effects
        Fitted model of the view.
    flows
        The view, with all times that were taken.
    settings
        Tolerance, and the distance from which a measurement is slow.
    isolated
        (n, m) cells that no other message delayed; None: all.
    together
        Whether to return all measurements and not only these.
    """
    cells = effects.residual.sample_cells()
    to = effects.residual.destination(cells)
    placement = effects.classes.placement
    live = (evidence.gain[cells] != 0) & (placement.host[cells[0]] != placement.host[to])
    if isolated is not None and not together:
        live &= isolated[cells]
    cells = (cells[0][live], cells[1][live])
    if cells[0].size < FEWEST_POOL:
        return None
    code = effects.classes.of_cells(effects.residual, cells).astype(np.int64)
    tolerated = effects_of_cells(effects, cells, cap=True)
    left, taken = _residuals(effects.residual.value[cells] - tolerated.sum(axis=0), flows, cells)
    tolerated = tolerated[:, taken.cell]
    limit = _limits(left, code[taken.cell], effects, settings)
    cells = (cells[0][taken.cell], cells[1][taken.cell])
    ends = np.stack([cells[0], effects.residual.destination(cells)], axis=1).astype(np.int64)
    is_slow, most = left > limit, settings.shares.most_of_pair
    result = SlowMeasurements(
        cells, ends, left, tolerated, taken.started, limit, is_slow, placement, flows.one_way, most, together
    )
    return replace(result, slow=result.slow & in_slow_pairs(result.host_pair, result.slow)) if together else result


def isolated_cells(flows: Flows, effects: Effects) -> Mask | None:
    """Return the (n, m) cells that no other message delayed; None: all.

    Messages of different pairs that are measured at once may share links. They did not delay each other if they are
    small, or if all links are known and a message shared none, or was as fast as the others. Ranks may share a NIC, and
    a message between two planes takes another NIC of its host.
    """
    placement, routes = effects.classes.placement, effects.message_paths.routes
    if not flows.share_links:
        return None
    has_paths = routes is not None and routes.routing.kind not in UNCERTAIN and bool((placement.switch >= 0).all())
    is_known = has_paths and (placement.ranks == len(placement.hosts) or _are_nics_known(effects))
    if is_known and effects.classes.unshared(effects.class_log_time, effects.link_tolerance) is None:
        return None
    if is_known:
        return never_shared(effects.residual, effects.message_paths, flows.concurrent, flows.rounds)
    alone = ~flows.concurrent[None, :] if flows.concurrent.size else np.zeros((1, 1), dtype=bool)
    return np.broadcast_to(alone, flows.observations.sent.shape)


def _are_nics_known(effects: Effects) -> bool:
    """Return whether each rank has a NIC for itself, and a path leads to the NICs of all its partners."""
    placement, paths = effects.classes.placement, effects.message_paths
    cells = effects.residual.sample_cells()
    has_path = paths.segments[paths.of_cells(effects.residual, cells)] < paths.known_links
    return np.unique(placement.nic_or_host).size == placement.ranks and bool(has_path.all())


def in_slow_pairs(host_pair: Codes, slow: Mask) -> Mask:
    """Return a (k,) mask of the measurements whose pair of hosts was slow in half of its measurements or more."""
    pair = np.unique(host_pair, return_inverse=True)[1].ravel()
    return np.asarray(2 * np.bincount(pair, weights=slow) >= np.bincount(pair))[pair]


def _residuals(left_of_cells: Values, flows: Flows, cells: Cells) -> tuple[Floats, SingleTimes]:
    """Return the residual of each measurement of the cells, and the measurements.

    The effect of a component counts up to the tolerance: one that is slow half of the time has a median that is slow.
    """
    left = left_of_cells.astype(np.float64)
    if flows.taken is None:
        started = np.full(left.size, np.nan) if flows.started is None else flows.started[cells].astype(np.float64)
        seconds = np.asarray(flows.observations.sent)[cells].astype(np.float64)
        return left, SingleTimes(np.arange(left.size), seconds, started)
    taken = flows.taken.of(cells)
    ratio = np.log(taken.seconds) - np.log(np.asarray(flows.observations.sent)[cells].astype(np.float64))[taken.cell]
    return left[taken.cell] + ratio, taken


def _limits(left: Floats, code: Codes, effects: Effects, settings: Settings) -> Floats:
    """Return the (k,) log-effect from which each measurement is slow: by the noise of its class, or of all."""
    least = max(settings.tolerance, effects.host_tolerance)
    limit = np.full(effects.classes.count, max(least, FAR * robust_sd(left)))
    for number in np.flatnonzero(np.bincount(code, minlength=limit.size) >= OWN_POOL).tolist():
        limit[number] = max(least, FAR * robust_sd(left[code == number]))
    return np.asarray(limit[code])
