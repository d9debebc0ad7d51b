"""Hosts and NICs that changed between two runs, relative to all other ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from fablint.analyse.changes.fitted_rows import FitPair, FittedRow
from fablint.analyse.changes.margin_limits import MarginLimits
from fablint.analyse.null_model.host_spread import FittedTails, MeasuredEffects
from fablint.analyse.observations.robust_stats import robust_sd, row_means, standard_errors
from fablint.analyse.settings import FEWEST_OF_SPREAD, FEWEST_PEERS, HALF, STRETCHES, Settings
from fablint.model import SCOPES, ComponentRef, Endpoint, Placement
from fablint.model.arrays import Codes, Floats
from fablint.model.figures.grouped_values import GroupedValues
from fablint.model.host_name import NicRef
from fablint.model.limits.detection_limits import ALPHA
from fablint.model.run_changes import MeasuredChange

FALSE_CHANGES = HALF * ALPHA  # chance of one false change of a host in a comparison of two healthy runs
ROUNDED_MEDIANS = 3  # in the effect of a host: of its times, of those of its partners, of all hosts; half a step each

FlowDirection = Literal["tx", "rx"]


def list_units(placement: Placement) -> dict[NicRef, list[int]]:
    """Return the ranks of each host, or of each NIC of a host whose ranks use several."""
    hosts = placement.host.tolist()
    codes = placement.nic.tolist() if placement.nic.size else [-1] * placement.ranks
    nics: dict[int, set[int]] = {}
    for host, nic in zip(hosts, codes, strict=True):
        nics.setdefault(host, set()).add(nic)
    units: dict[NicRef, list[int]] = {}
    for rank, (host, nic) in enumerate(zip(hosts, codes, strict=True)):
        device = placement.nics[nic].device if nic >= 0 and len(nics[host]) > 1 else ""
        units.setdefault(NicRef.of(placement.hosts[host], device), []).append(rank)
    return units


def component_of(unit: NicRef) -> ComponentRef:
    """Return the NIC, or the host as a whole."""
    nic = Endpoint(nodes=(unit.host,), part=unit.device)
    return ComponentRef.of("nic", nic) if unit.device else ComponentRef.of("host", unit.host)


def host_changes(
    fits: FitPair,
    ranks: tuple[Mapping[NicRef, list[int]], Mapping[NicRef, list[int]]],
    common: Sequence[NicRef],
    margin: float,
    views: int,
) -> Iterator[MeasuredChange]:
    """Yield the change of every host relative to the other hosts, in each direction that the row shows.

    A change must be beyond the margin, beyond what the other hosts differ from one run to the next, beyond the host's
    own drift between the blocks of both runs, beyond the resolution of the times, and twice as large as the change of
    the other hosts on its switch, whose load they share.

    Parameters
    ----------
    fits
        The row of both runs.
    ranks
        Ranks of each host or NIC in the old and in the new run.
    common
        Hosts and NICs of both runs.
    margin
        Relative loss that is accepted.
    views
        Number of rows and sizes that are compared, which share the chance of a false change.
    """
    limits = MarginLimits(fits.quantity, margin)
    directions: tuple[FlowDirection, ...] = ("tx", "rx") if fits.new.is_directed else ("tx",)
    old, new = (
        _HostEffects.of(side, [rank[unit] for unit in common])
        for side, rank in zip((fits.old, fits.new), ranks, strict=True)
    )
    for direction in directions:
        spread = _HostSpread.of(new.effect[direction] - old.effect[direction], tests=len(directions) * views)
        compared, change = spread.known, spread.change
        if compared.size < FEWEST_PEERS:
            continue
        drift = np.hypot(old.drift[direction], new.drift[direction])[compared]
        reach = np.maximum(spread.reach, Settings().spread_factor * drift)
        reach = np.maximum(reach, ROUNDED_MEDIANS / 2 * (fits.old.step + fits.new.step))
        switch = fits.new.placement.switch_or_host.astype(np.int64)[
            [ranks[1][common[unit]][0] for unit in compared.tolist()]
        ]
        reach = np.maximum(reach + 2 * np.abs(_of_neighbours(change, switch)), spread.tails).tolist()
        error = (1.96 * np.maximum(spread.scale, drift)).tolist()
        for at, unit in enumerate(compared.tolist()):
            value = float(change[at])
            yield MeasuredChange(
                state=limits.state_of_host(value, reach[at]),
                row=fits.new.row.name,
                size=fits.new.fit.size,
                quantity=fits.quantity,
                change=limits.interval(value, 0.0)[0],
                interval=limits.interval(value, error[at]),
                smallest=limits.smallest(reach[at]),
                component=component_of(common[unit]),
                direction=direction if fits.new.is_directed else None,
            )


@dataclass(frozen=True)
class _HostEffects:
    """Log-effects of hosts or NICs in one run, and their standard errors; all arrays are (hosts,)."""

    effect: Mapping[FlowDirection, Floats]  # NaN where unknown
    drift: Mapping[FlowDirection, Floats]  # from the medians of the blocks; 0 for a host that one block measured

    @classmethod
    def of(cls, side: FittedRow, ranks: Sequence[Sequence[int]]) -> _HostEffects:
        """Take the effects of the fit: of a host, the median of its `ranks`."""
        unit = np.full(side.fit.tx.size, -1)
        for code, members in enumerate(ranks):
            unit[list(members)] = code
        cells = side.cells
        rest = cells.log_time - side.fit.tx[cells.sender] - side.fit.rx[cells.receiver]
        rest = rest - GroupedValues.of(rest, cells.scope, len(SCOPES)).medians()[cells.scope]
        ends: tuple[tuple[FlowDirection, Codes, Floats], ...] = (
            ("tx", cells.sender, side.fit.tx),
            ("rx", cells.receiver, side.fit.rx),
        )
        effect, drift = {}, {}
        compared_ranks = np.flatnonzero(unit >= 0)
        for direction, rank, values in ends:
            effect[direction] = GroupedValues.of(values[compared_ranks], unit[compared_ranks], len(ranks)).medians()
            kept = unit[rank] >= 0
            group = unit[rank][kept] * STRETCHES + cells.block[kept]
            medians = GroupedValues.of(rest[kept], group, len(ranks) * STRETCHES).medians()
            drift[direction] = _bounded_errors(medians.reshape(-1, STRETCHES))
        return cls(effect, drift)


def _of_neighbours(change: Floats, switch: Codes) -> Floats:
    """Return the median change of the other hosts on the switch of each host; 0 for a host without neighbours."""
    neighbours = np.zeros(change.size)
    for code in np.unique(switch).tolist():
        members = np.flatnonzero(switch == code)
        if members.size > 1:
            neighbours[members] = [np.median(np.delete(change[members], at)) for at in range(members.size)]
    return neighbours


def _bounded_errors(blocks: Floats) -> Floats:
    """Return the (hosts,) standard errors of the means of (hosts, STRETCHES) values, of which some are NaN.

    The blocks of a slow drift are not independent: half the difference between the halves of the run bounds the error
    from below.
    """
    halves = row_means(blocks[:, : STRETCHES // 2]) - row_means(blocks[:, STRETCHES // 2 :])
    return np.asarray(np.fmax(standard_errors(blocks), np.abs(halves) / 2))


@dataclass(frozen=True)
class _HostSpread:
    """What hosts differ from one run to the next: it holds the noise of both runs, and restarts of healthy hosts."""

    known: Codes  # (k,) hosts or NICs that both runs measured
    change: Floats  # (k,) log-changes relative to their median
    scale: Floats  # (k,) standard deviation; a host whose change is an outlier has no part in its own
    reach: Floats  # (k,) change that the standard deviation explains
    tails: float  # change that the tails of the other changes explain

    @classmethod
    def of(cls, difference: Floats, tests: int) -> _HostSpread:
        """Take the scale of the bulk of the changes; of few hosts, for each host that of the other hosts.

        Parameters
        ----------
        difference
            (hosts,) log-effects in the new run minus those in the old run; NaN where unknown.
        tests
            Number of such spreads that share the chance of a false change.
        """
        compared = np.flatnonzero(~np.isnan(difference))
        if compared.size < FEWEST_PEERS:
            return cls(
                compared,
                np.zeros(compared.size),
                np.zeros(compared.size),
                np.zeros(compared.size),
                0.0,
            )
        change = difference[compared] - np.median(difference[compared])
        of_bulk = compared.size >= FEWEST_OF_SPREAD
        scale = np.array(
            [robust_sd(change)] * compared.size
            if of_bulk
            else [np.std(np.delete(change, at), ddof=1) for at in range(compared.size)]
        )
        chance = FALSE_CHANGES / (2 * tests * compared.size)
        degrees = compared.size - (1 if of_bulk else 2)
        reach = max(Settings().spread_factor, -float(stdtrit(degrees, chance))) * scale
        tails = _reach_of_tails(np.abs(change), float(reach.min()), FALSE_CHANGES / tests)
        return cls(compared, change, scale, reach, tails)


def _reach_of_tails(sizes: Floats, least: float, alpha: float) -> float:
    """Return the smallest change, from `least` on, that the tails of all smaller changes do not explain.

    Changes that are not smaller are no part of the tails: those hosts have changed as well.

    Parameters
    ----------
    sizes
        (k,) absolute log-changes.
    least
        Smallest size of interest.
    alpha
        Expected number of healthy hosts beyond the size that is returned.
    """
    begin = least
    for end in (*np.unique(sizes[sizes > least]).tolist(), math.inf):
        smaller = sizes[sizes < end]
        explained = (
            FittedTails.of(MeasuredEffects.exact(smaller)).loss_of_count(alpha / 2)
            if smaller.size >= FEWEST_OF_SPREAD
            else 0.0
        )
        if explained <= end:
            return max(begin, explained)
        begin = end
    return begin
