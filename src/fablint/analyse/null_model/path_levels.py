"""Time of messages between every two switches, without the effects of the hosts at both ends.

    log time(i -> j) = level(switch of i, switch of j) + end(i) + end(j) + load + noise

by alternating medians. The ends of each switch have a median of 0, so that a level contains what all pairs between two
switches share: the path between them. No levels are assumed to be equal, so that two switches are enough, and a path
that is slow in one direction changes neither the effects of its hosts nor the other direction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fablint.analyse.observations.pair_matrix import Pairs
from fablint.analyse.observations.robust_stats import GAUSSIAN_MAD, MEDIAN_ERROR, interval_ranks, robust_sd
from fablint.analyse.observations.samples import Flows
from fablint.analyse.settings import FEWEST_PEERS, FEWEST_VALUES, FINEST_NOISE, NOISIER, SMALLEST_SHARED
from fablint.model import Placement
from fablint.model.arrays import Cells, Codes, Floats, Ints, Mask
from fablint.model.figures.distinct_codes import distinct_codes
from fablint.model.figures.grouped_values import GroupedValues, Groups
from fablint.model.run import median_of_repeats

PASSES = 8
MOST_CELLS = 1 << 20  # cells of the sample of a large run
CELLS_EACH = 1 << 8  # cells of the sample for each path and each rank, if there are as many
MOST_SWITCHES = 1 << 10
GAUSSIAN_DIFFERENCE = 0.954  # median absolute difference of two normal values, in standard deviations


@dataclass(frozen=True)
class PathLevels:
    """Levels of the ordered pairs of switches between which messages were measured (of round trips: unordered).

    Entries are paths and, with equal switches, the messages that stay on a switch. Messages that others may have
    delayed have entries of their own.
    """

    src: Codes  # (k,) codes of switches
    dst: Codes
    shared: Mask  # (k,) whether measured at once with others, where that costs time
    level: Floats  # (k,) log time: median over pairs of hosts
    lower: Floats  # (k,) 95 % interval of that median by order statistics; NaN of fewer than 6 pairs
    upper: Floats
    error: Floats  # (k,) standard error from the noise of pairs, their unsteadiness and the spread of hosts
    unsteadiness: Floats  # (k,) standard error from scatter beyond the noise of all pairs: 0 of most entries
    pairs: Codes  # (k,) pairs of hosts
    fewest_hosts: Codes  # (k,) hosts at the end with fewer hosts
    cells: Cells  # (c,) cells of the sample
    entry: Codes  # (c,) entry of each cell
    left: Floats  # (c,) log time without the effects of ends and load
    bidirectional: bool
    noise: float
    freedom: int  # degrees of freedom of the spread of hosts

    @property
    def is_path(self) -> Mask:
        """(k,) entries between two switches."""
        return np.asarray(self.src != self.dst)


@dataclass(frozen=True)
class _HostCells:
    """Cells between hosts whose switches are known."""

    at: Cells
    value: Floats
    first: Codes  # (c,) switches; of round trips the lower first
    second: Codes
    ends: Codes  # (c, 2) sender and receiver, as numbers of ends
    pair: Codes  # (c,) pair of hosts
    hosts: Codes  # (c, 2)
    shared: Mask
    load: Codes  # (c,) step of load, or flows that may have shared a cable with it; 0 without effect
    receivers: int  # ends from this number on receive; of round trips there are none
    is_counted: bool  # whether the load was counted on known links; else it is estimated


def fit_path_levels(
    flows: Flows, pairs: Pairs, placement: Placement, tolerance: float, step: Ints | None = None, *, is_counted: bool
) -> PathLevels | None:
    """Return the levels of one size of a row; None if no message crossed a path between two known switches.

    Parameters
    ----------
    flows
        The row.
    pairs
        Log times.
    placement
        Switches of the ranks.
    tolerance
        Log-effect of concurrent messages from which these have levels of their own.
    step
        (n, m) step of load of each cell; None: unknown.
    is_counted
        Whether the links of all messages are known, so that the load is no estimate.
    """
    size = len(placement.switches)
    if flows.is_star or size < 2 or size > MOST_SWITCHES:
        return None
    cells = _cells_of(flows, pairs, placement, step, is_counted=is_counted)
    if not (cells.first != cells.second).any():
        return None
    ends = int(cells.ends.max()) + 1
    fitted = _fit(cells, size, ends)
    if cells.shared.any() and _is_load_free(fitted, tolerance):
        cells = replace(cells, shared=np.zeros_like(cells.shared), load=np.zeros_like(cells.load))
        fitted = _fit(cells, size, ends)
    return _levels(cells, fitted, size, placement, bidirectional=not flows.one_way)


# ------------------------------------------------------------------------------------------------ cells


def _cells_of(flows: Flows, pairs: Pairs, placement: Placement, step: Ints | None, *, is_counted: bool) -> _HostCells:
    """Return the cells of a sample between hosts whose switches are known."""
    enough = CELLS_EACH * max(len(placement.switches) ** 2, pairs.ranks)
    row, column = pairs.sample_cells(min(enough, MOST_CELLS))
    to = pairs.destination((row, column))
    a, b = (placement.switch[end].astype(np.int64) for end in (row, to))
    between_hosts = (a >= 0) & (b >= 0) & (placement.host[row] != placement.host[to])
    row, column, to, a, b = (values[between_hosts] for values in (row, column, to, a, b))
    ranks, hosts = pairs.ranks, len(placement.hosts)
    host = np.stack([placement.host[row], placement.host[to]], axis=1).astype(np.int64)
    ends = np.stack([row, to], axis=1).astype(np.int64)
    if flows.one_way:
        ends[:, 1] += ranks
    else:  # a round trip does not show which direction was slow
        turned = (a > b) | ((a == b) & (host[:, 0] > host[:, 1]))
        ends[turned], host[turned] = ends[turned][:, ::-1], host[turned][:, ::-1]
        a, b = np.minimum(a, b), np.maximum(a, b)
    far = a != b
    shared = far & _concurrent(flows, (row, column))
    flows_of_cells = _loads(flows, placement, row, column, to) if step is None else step[row, column] + 1
    load = np.where(shared, flows_of_cells, 0)
    value = pairs.value[row, column].astype(np.float64)
    receivers = ranks if flows.one_way else 2 * ranks
    pair = host[:, 0] * hosts + host[:, 1]
    return _HostCells((row, column), value, a, b, ends, pair, host, shared, load, receivers, is_counted)


def _concurrent(flows: Flows, cells: Cells) -> Mask:
    """Return a (c,) mask of cells of messages large enough to fill a cable that were measured at once with others."""
    if flows.observations.size < SMALLEST_SHARED:
        return np.zeros(cells[0].size, dtype=bool)
    if flows.observations.partner is not None:
        return np.asarray(flows.concurrent[cells[1]]) if flows.concurrent.size else np.zeros(cells[0].size, bool)
    return np.full(cells[0].size, flows.row.facts.schedule.order == "parallel")


def _loads(flows: Flows, placement: Placement, row: Codes, column: Codes, to: Codes) -> Codes:
    """Return the (c,) number of messages of the same turn that may have shared a cable with each cell.

    The cables of these messages are unknown: the number is the largest of those that left the switch or group of the
    sender or entered that of the receiver. 0 where the rounds are unknown.
    """
    if flows.observations.partner is None and flows.rounds is None:
        return np.zeros(row.size, dtype=np.int64)
    of_repeats = column[None] if flows.rounds is None else flows.rounds[:, row, column]
    most = [_loads_of_turns(flows, placement, row, to, number) for number in of_repeats.astype(np.int64)]
    return np.asarray(np.nan_to_num(median_of_repeats(np.where(of_repeats >= 0, most, np.nan))), dtype=np.int64)


def _loads_of_turns(flows: Flows, placement: Placement, row: Codes, to: Codes, number: Codes) -> Codes:
    """Return the (c,) number of messages as of `_loads`, by the number of the round of each cell; -1: none."""
    turn = 2 * number + (row < to) if flows.one_way and flows.takes_turns else number
    most = np.zeros(row.size, dtype=np.int64)
    for place in (placement.switch, placement.group):
        a, b = place[row].astype(np.int64), place[to].astype(np.int64)
        away = (a != b) & (number >= 0)
        for end in (a, b):
            flows_of_end = distinct_codes(turn[away] * (int(place.max()) + 1) + end[away])
            most[away] = np.maximum(most[away], flows_of_end.occurrences[flows_of_end.number])
    return most


# ------------------------------------------------------------------------------------------------ fit


@dataclass(frozen=True)
class _LevelFit:
    """Result of the alternating medians."""

    left: Floats  # (c,) values without ends and load
    end: Floats  # (e,) effects
    end_switch: Codes  # (e,) -1: no cells
    entry: Codes  # (c,)
    keys: Codes  # (k,) of the entries
    load: dict[int, tuple[float, int]]  # effect and number of cells of each load


def _fit(cells: _HostCells, size: int, ends: int) -> _LevelFit:
    """Alternate medians of entries, ends and loads until they are stable."""
    keys, entry, _ = distinct_codes((cells.first * size + cells.second) * 2 + cells.shared)
    end_switch = np.full(ends, -1, dtype=np.int64)
    end_switch[cells.ends[:, 0]], end_switch[cells.ends[:, 1]] = cells.first, cells.second
    effect = np.zeros(ends)
    by_entry, by_end = Groups.of(entry, keys.size), Groups.of(cells.ends.T.ravel(), ends)
    load_effect, loads = np.zeros(cells.value.size), dict[int, tuple[float, int]]()
    if cells.is_counted:  # most cells of an entry may have the same load: its effect is not one of the entry
        load_effect, loads = _load_effects(cells, cells.value)
    level = by_entry.sorted(cells.value - load_effect).medians()
    for _ in range(PASSES):
        before = effect
        effect = _end_effects(cells, by_end, cells.value - level[entry] - load_effect, effect, end_switch, size)
        left = cells.value - effect[cells.ends].sum(axis=1)
        load_effect, loads = _load_effects(cells, left - level[entry])
        level = by_entry.sorted(left - load_effect).medians()
        if not np.any(np.abs(effect - before) > FINEST_NOISE / 10):
            break
    return _LevelFit(left - load_effect, effect, end_switch, entry, keys, loads)


def _end_effects(cells: _HostCells, by_end: Groups, value: Floats, before: Floats, switch: Codes, size: int) -> Floats:
    """Return the (e,) median of each end over its cells.

    The ends of a switch with the same role have a (lower) median of 0: a path slows all ends of its switches. If half
    of them are fast, the others are slow themselves.
    """
    others = np.concatenate([value - before[cells.ends[:, 1]], value - before[cells.ends[:, 0]]])
    effect = by_end.sorted(others).medians(FEWEST_PEERS)
    effect[np.isnan(effect)] = 0.0
    role = switch + size * (np.arange(before.size) >= cells.receivers)
    used = switch >= 0
    centre = GroupedValues.of(effect[used], role[used], 2 * size).lower_medians()
    effect[used] -= centre[role[used]]
    return effect


def _load_effects(cells: _HostCells, value: Floats) -> tuple[Floats, dict[int, tuple[float, int]]]:
    """Return the (c,) log-effect of the number of concurrent messages, and effect and number of cells by that number.

    The smallest load that occurs has an effect of 0.
    """
    effects: dict[int, tuple[float, int]] = {}
    effect_of_cell = np.zeros(value.size)
    for load in np.unique(cells.load[cells.load > 0]).tolist():
        at = cells.load == load
        if at.sum() >= FEWEST_VALUES:
            effects[load] = float(np.median(value[at])), int(at.sum())
    least = effects[min(effects)][0] if effects else 0.0
    most = 0.0  # the effect does not fall with the load
    for load in sorted(effects):
        most = max(most, effects[load][0] - least)
        effects[load] = most, effects[load][1]
        effect_of_cell[cells.load == load] = most
    return effect_of_cell, effects


def _is_load_free(fitted: _LevelFit, tolerance: float) -> bool:
    """Return whether messages among many others are as fast as among few. False if loads did not differ."""
    effects = [effect for effect, _ in fitted.load.values()]
    return len(effects) > 1 and max(effects) - min(effects) <= tolerance


# ------------------------------------------------------------------------------------------------ levels


def _levels(
    cells: _HostCells, fitted: _LevelFit, size: int, placement: Placement, *, bidirectional: bool
) -> PathLevels:
    """Return the levels with their errors and bounds."""
    count = fitted.keys.size
    width = len(placement.hosts) ** 2
    both, of_pair, _ = distinct_codes(fitted.entry * width + cells.pair)
    value, entry = GroupedValues.of(fitted.left, of_pair, both.size).medians(), both // width
    grouped = GroupedValues.of(value, entry, count)
    level, pairs = grouped.medians(), grouped.count
    lower, upper = (np.where(pairs < FEWEST_VALUES, np.nan, grouped.at(rank)) for rank in interval_ranks(pairs))
    residual = value - level[entry]
    ends = int(np.count_nonzero(fitted.end))
    noise = max(
        robust_sd(residual) * float(np.sqrt(residual.size / max(residual.size - count - ends, 1))), FINEST_NOISE
    )
    hosts = np.stack([_distinct(fitted.entry, cells.hosts[:, side], count) for side in (0, 1)])
    spread = _host_spread(fitted, cells)
    scatter = GAUSSIAN_MAD * GroupedValues.of(np.abs(residual), entry, count).medians()
    beyond = np.where(scatter > NOISIER * noise, scatter**2 - noise**2, 0.0)
    unsteady = MEDIAN_ERROR**2 * beyond / pairs
    variance = (MEDIAN_ERROR * noise) ** 2 / pairs + unsteady
    variance = variance + (MEDIAN_ERROR * spread) ** 2 * (1 / hosts[0] + 1 / hosts[1]) / 2
    switches = fitted.keys // 2
    return PathLevels(
        src=switches // size,
        dst=switches % size,
        shared=fitted.keys % 2 == 1,
        level=level,
        lower=lower,
        upper=upper,
        error=np.sqrt(variance),
        unsteadiness=np.sqrt(unsteady),
        pairs=pairs,
        fewest_hosts=hosts.min(axis=0),
        cells=cells.at,
        entry=fitted.entry,
        left=fitted.left,
        bidirectional=bidirectional,
        noise=noise,
        freedom=max(1, _ends_left(fitted, cells)),
    )


def _ends_left(fitted: _LevelFit, cells: _HostCells) -> int:
    """Return the number of ends beyond one per switch and role, which the medians use up."""
    used = np.flatnonzero(fitted.end_switch >= 0)
    return int(used.size - np.unique(_roles(fitted, cells)).size)


def _roles(fitted: _LevelFit, cells: _HostCells) -> Codes:
    """Return the (u,) switch and role (sending or receiving) of the ends that have cells."""
    used = np.flatnonzero(fitted.end_switch >= 0)
    return np.asarray(fitted.end_switch[used] + (fitted.end_switch.max() + 1) * (used >= cells.receivers))


def _host_spread(fitted: _LevelFit, cells: _HostCells) -> float:
    """Return the robust standard deviation of the ends of a switch, from differences between neighbours in the list."""
    role = _roles(fitted, cells)
    order = np.argsort(role, kind="stable")
    effect, role = fitted.end[fitted.end_switch >= 0][order], role[order]
    differences = [np.abs(effect[k:] - effect[:-k])[role[k:] == role[:-k]] for k in (1, 2)]
    distances = np.concatenate(differences)
    return float(np.median(distances)) / GAUSSIAN_DIFFERENCE if distances.size else 0.0


def _distinct(group: Codes, member: Codes, groups: int) -> Codes:
    """Return the (groups,) number of different members of each group."""
    width = int(member.max(initial=0)) + 1
    return np.bincount(np.unique(group * width + member) // width, minlength=groups)
