"""How often hosts and links were measured, and the largest losses that they can hide."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fablint.analyse.explain.evidence import Evidence
from fablint.analyse.null_model.effects import Effects
from fablint.analyse.null_model.loads import STEPS
from fablint.analyse.null_model.median_polish import median_error
from fablint.analyse.observations.message_paths import MessagePaths
from fablint.analyse.observations.pair_matrix import Pairs
from fablint.analyse.settings import Settings
from fablint.model import Placement
from fablint.model.arrays import Codes, Floats
from fablint.model.figures.grouped_values import GroupedValues

UNCOUNTED = np.iinfo(np.int64).max  # number of partners of what has no rank in the run


def link_bounds(effects: Effects, message_paths: MessagePaths, late: Floats | None) -> Floats:
    """Return the (links,) upper bound of the log-effect of each known link, NaN where unknown."""
    bound = effects.segment_upper[: message_paths.known_links].astype(np.float64)
    return bound if late is None else np.where(np.isnan(bound), late, bound)


def count_crossing_pairs(evidence: Evidence | None, message_paths: MessagePaths) -> Codes:
    """Return the (links,) number of measured pairs that cross each link."""
    if evidence is None:
        return np.zeros(message_paths.known_links, dtype=np.int64)
    return evidence.live.segment[: message_paths.known_links].copy()


def count_nic_partners(pairs: Pairs, placement: Placement, settings: Settings, *, scarcer: bool) -> Codes:
    """Return the number of other hosts that each NIC was measured with, by `Placement.nic_or_host`.

    It is that of the `scarcer` direction, or of both together. Exact only where it may be below the required number.
    """
    nics = len(placement.nics) + len(placement.hosts)
    present = np.unique(placement.nic_or_host)
    if not scarcer:
        counts = np.full(nics, UNCOUNTED)
        for nic in present.tolist():
            counts[nic] = _distinct_partners(pairs, placement, nic, sides=(True, False))
        return counts
    if pairs.partner is not None:  # a list may hold a pair many times
        return _partners_in_list(pairs, placement, present)
    most_ranks = int(np.bincount(placement.host).max())
    counts = np.full(nics, UNCOUNTED)
    for sent in (True, False):
        count = np.full(nics, UNCOUNTED)
        count[present] = 0
        for rows in pairs.blocks():
            measured = ~np.isnan(pairs.sent(rows) if sent else pairs.received(rows))
            np.maximum.at(count, placement.nic_or_host[rows], -(-measured.sum(axis=1) // most_ranks))
        for nic in np.nonzero(count <= max(settings.min_partners, 1))[0].tolist():  # its own host may be one of these
            count[nic] = _distinct_partners(pairs, placement, nic, sides=(sent,))
        counts = np.minimum(counts, count)
    return counts


def host_partners(nic_partners: Codes, placement: Placement) -> Codes:
    """Return the (hosts,) number of other hosts that the NIC of each host with the fewest was measured with."""
    counts = np.full(len(placement.hosts), UNCOUNTED)
    np.minimum.at(counts, placement.host, nic_partners[placement.nic_or_host])
    return counts


def _partners_in_list(pairs: Pairs, placement: Placement, present: Codes) -> Codes:
    """Return the number of other hosts that each NIC sent to or received from, whichever is smaller."""
    row, column = np.nonzero(~np.isnan(pairs.value))
    ends = row, pairs.destination((row, column))
    between = placement.host[ends[0]] != placement.host[ends[1]]
    nics, hosts = len(placement.nics) + len(placement.hosts), len(placement.hosts)
    counts = np.full(nics, UNCOUNTED)
    for end, other in (ends, ends[::-1]):
        nic, host = placement.nic_or_host[end[between]].astype(np.int64), placement.host[other[between]]
        key = np.sort(nic * hosts + host)  # np.unique takes 100 times as long for so many values
        count = np.bincount(key[np.diff(key, prepend=-1) > 0] // hosts, minlength=nics)
        counts[present] = np.minimum(counts[present], count[present])
    return counts


def _distinct_partners(pairs: Pairs, placement: Placement, nic: int, *, sides: Sequence[bool]) -> int:
    """Return the number of other hosts that a NIC sent to (side True) or received from (False)."""
    ranks = np.nonzero(placement.nic_or_host == nic)[0]
    hosts: set[int] = set()
    for sent in sides:
        cells = pairs.cells_from(ranks) if sent else pairs.cells_to(ranks)
        measured = ~np.isnan(pairs.value[cells])
        partners = (pairs.destination(cells) if sent else cells[0])[measured]
        hosts.update(placement.host[partners].tolist())
    return len(hosts - {int(placement.host[ranks[0]])})


def _hidden_by_load(effects: Effects) -> Floats:
    """Return the (2, n) median log-effect of shared links on what shows each rank as sender, and as receiver.

    Pairs that were measured at once over unknown links are compared with each other: what that costs hides nothing. A
    NIC that ranks share is that of their host.
    """
    pairs, classes = effects.residual, effects.classes
    nothing = np.zeros((2, pairs.ranks))
    if classes.load is None:
        return nothing
    cells = pairs.sample_cells()
    load, cost = classes.load[cells], classes.cost_of_load(pairs, cells, effects.class_log_time)
    of_nics = 0 if classes.nic_load is None else classes.nic_load.step[cells]
    cost = np.where((cost > effects.host_tolerance) & (load > of_nics) & (load < len(STEPS)), cost, 0.0)
    shown = effects.informative.counts(cells, "both")
    if not cost[shown].any():
        return nothing
    ends = (cells[0][shown], pairs.destination(cells)[shown])
    return np.stack([np.nan_to_num(GroupedValues.of(cost[shown], end, pairs.ranks).medians()) for end in ends])


def host_bounds(effects: Effects, placement: Placement) -> Floats:
    """Return the (hosts,) largest loss that a host can hide: of its worst rank, in its worse direction.

    Where too few messages had their links for themselves, all count: a host may be as slow as its share of them.
    """
    pairs = effects.residual
    measured = np.zeros((2, pairs.ranks), dtype=np.int64)
    for rows in pairs.blocks():
        is_measured = ~np.isnan(pairs.value[rows])
        if effects.informative.both is not None:
            is_measured &= effects.informative.both[rows]
        measured[0, rows] = np.count_nonzero(is_measured, axis=1)
        partners = np.broadcast_to(pairs.partners(rows), is_measured.shape)[is_measured]
        measured[1] += np.bincount(partners, minlength=pairs.ranks)
    sides = zip((effects.sent_bounds, effects.received_bounds), measured, strict=True)
    of_sides = [np.fmin(side[2], side[1] + median_error(count, effects.noise)) for side, count in sides]
    upper = np.fmax(*(bound + hidden for bound, hidden in zip(of_sides, _hidden_by_load(effects), strict=True)))
    bound = np.full(len(placement.hosts), np.nan)
    np.fmax.at(bound, placement.host, upper)
    return bound
