"""Populations of hosts: an effect that all members of a population share is not a fault of a member.

A second generation of hosts, NICs of half the speed or another image make many hosts slower than the others by the same
amount. Each host is compared with its own population; the difference between populations is one finding, not one per
host. The size of a population decides nothing: either of two may be the healthy one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fablint.analyse.null_model.comparison_groups import Classes
from fablint.analyse.null_model.modes import Modes, find_modes
from fablint.analyse.observations.pair_matrix import Pairs
from fablint.analyse.observations.robust_stats import MEDIAN_ERROR, robust_sd
from fablint.analyse.settings import (
    BEST_PARTNERS,
    CHANCE,
    FEWEST_OF_CLASS,
    FEWEST_PEERS,
    FEWEST_VALUES,
    HALF,
    MOST_WHOLE_SWITCHES,
)
from fablint.model import Placement
from fablint.model.arrays import Codes, Floats, Values
from fablint.model.figures.grouped_values import GroupedValues


@dataclass(frozen=True)
class Populations:
    """Populations of hosts, as senders or as receivers. Population 0 is the fastest."""

    label: Codes  # (hosts,) -1: unknown
    effect: Floats  # (populations,) log-effect beyond the fastest

    @property
    def count(self) -> int:
        """Number of populations."""
        return int(self.effect.size)

    def is_within(self, most: float) -> bool:
        """Return whether the populations differ by no more than a log-effect."""
        return bool(self.effect.max() <= most)

    def members(self, number: int) -> Codes:
        """Return the codes of the hosts of one population."""
        return np.flatnonzero(self.label == number)


def find_populations(
    pairs: Pairs, effect: Floats, best: Floats, error: float, placement: Placement, least: float, *, sent: bool
) -> Populations | None:
    """Return the populations of the hosts as senders (`sent`) or receivers; None if there is one.

    Parameters
    ----------
    pairs
        Residuals from the classes.
    effect
        (n,) log-effect of each rank, by the median of its pairs.
    best
        (n,) quantile `BEST_PARTNERS` of the pairs of each rank, with the effects of its partners; NaN: too few pairs,
        and the rank is in no population. If the slower end determines the time of a pair and most hosts are slow, the
        median of a fast host's pairs is slow as well.
    error
        Standard error of an effect.
    placement
        Hosts and switches of the ranks.
    least
        Smallest log-effect that matters.
    sent
        Whether hosts are compared as senders.
    """
    is_shown = best <= effect + least  # else its partners are as slow, and it may be as fast as is left without them
    for values in (np.where(is_shown, effect, np.nan), best):
        hosts = GroupedValues.of(values, placement.host, len(placement.hosts)).lower_medians()
        modes = _without_switches(find_modes(hosts, error, least), placement)
        if modes is not None and _is_slow_on_switches(pairs, modes, placement, sent=sent):
            return Populations(modes.label, modes.centre - modes.centre[0])
    return None


def _is_slow_on_switches(pairs: Pairs, modes: Modes, placement: Placement, *, sent: bool) -> bool:
    """Return whether the hosts of each slower mode are slow on their own switches as well, where that was measured.

    A slow spine under destination-based routing slows every fourth host, but only for messages that cross it.
    """
    if not placement.switches:
        return True
    row, column = pairs.sample_cells()
    to = pairs.destination((row, column))
    near = (placement.switch[row] == placement.switch[to]) & (placement.switch[row] >= 0)
    near &= placement.host[row] != placement.host[to]
    value, rank = pairs.value[row, column][near], (row if sent else to)[near]
    label = modes.label[placement.host[rank]]
    reference = value[label == 0]
    for number in range(1, modes.count):
        slower = value[label == number]
        if min(slower.size, reference.size) >= FEWEST_VALUES:
            loss = float(np.quantile(slower, BEST_PARTNERS) - np.quantile(reference, BEST_PARTNERS))
            if loss < HALF * (modes.centre[number] - modes.centre[0]):
                return False
    return True


def _without_switches(modes: Modes, placement: Placement) -> Modes | None:
    """Return the modes without the hosts of one whole switch, which is a candidate itself; None if one mode remains.

    Of a mode of many hosts anywhere, all hosts of some switch may be members by chance.
    """
    label = modes.label.copy()
    hosts_of = [np.unique(placement.host[placement.switch == code]) for code in range(len(placement.switches))]
    for number in range(1, modes.count):
        whole = [hosts for hosts in hosts_of if set(label[hosts].tolist()) - {-1} == {number}]
        of_chance = [_chance_of_whole(label, number, hosts_of, hosts.size) for hosts in whole]
        if len(whole) <= MOST_WHOLE_SWITCHES and max(of_chance, default=0.0) <= CHANCE:
            for hosts in whole:
                label[hosts[label[hosts] == number]] = 0
        if np.count_nonzero(label == number) < FEWEST_PEERS:
            label[label == number] = 0
    kept = np.unique(label[label >= 0])
    if kept.size < 2:
        return None
    return Modes(np.where(label < 0, -1, np.searchsorted(kept, label)), modes.centre[kept])


def _chance_of_whole(label: Codes, number: int, hosts_of: list[Codes], size: int) -> float:
    """Return the expected number of switches of `size` hosts or more that are all members of a mode, drawn by lot."""
    hosts, members = int(np.count_nonzero(label >= 0)), int(np.count_nonzero(label == number))
    drawn = [np.arange(of_switch.size) for of_switch in hosts_of if size <= of_switch.size <= members]
    return float(sum(np.prod((members - count) / (hosts - count)) for count in drawn))


def has_reached_line_rate(
    populations: Populations, log_time: float, size: int, line_rate: Floats | None, share: float
) -> bool:
    """Return whether the negotiated speed of the NICs shows which population is healthy; the others are then faulty.

    This is so if streams of the fastest population reach `share` of that speed, and all NICs negotiated the same speed.

    Parameters
    ----------
    populations
        Populations of the hosts.
    log_time
        Log of the seconds that a message of `size` bytes takes in the fastest class, in the largest population.
    size
        Bytes of a message.
    line_rate
        (hosts,) bytes/s; None if it is not known for all hosts.
    share
        Share of the negotiated speed.
    """
    if line_rate is None or np.ptp(line_rate) > 0:
        return False
    largest = int(np.argmax([populations.members(number).size for number in range(populations.count)]))
    rate = size / np.exp(log_time - populations.effect[largest])
    return bool(rate >= share * line_rate[0])


def best_of_ranks(pairs: Pairs, *, sent: bool) -> Floats:
    """Return the (n,) quantile `BEST_PARTNERS` of the values that each rank sent or received; NaN: it has few pairs."""
    best = np.full(pairs.ranks, np.nan)
    for rows in pairs.blocks():
        values = np.sort(pairs.sent(rows) if sent else pairs.received(rows), axis=1)
        count = values.shape[1] - np.count_nonzero(np.isnan(values), axis=1)
        at = np.floor(BEST_PARTNERS * np.maximum(count - 1, 0)).astype(np.int64)
        best[rows] = np.where(count >= FEWEST_PEERS, values[np.arange(len(values)), at], np.nan)
    return best


def subtract_populations(
    pairs: Pairs, classes: Classes, placement: Placement, sent: Populations | None, received: Populations | None
) -> None:
    """Subtract the differences between the populations of both ends from the residuals, in place.

    Each combination of populations has an offset of its own in each class with enough pairs: two slow ends may add up
    (latency), or the slower end alone may count (a stream).
    """
    labels = [
        populations.label if populations is not None else np.zeros(len(placement.hosts), np.int64)
        for populations in (sent, received)
    ]
    width = max(2, *(populations.count if populations is not None else 1 for populations in (sent, received)))
    ends = [np.where(label < 0, 0, label)[placement.host] for label in labels]
    cells = pairs.sample_cells()
    value, combination = pairs.value[cells], ends[0][cells[0]] * width + ends[1][pairs.destination(cells)]
    key = classes.of_cells(pairs, cells).astype(np.int64) * width**2 + combination
    of_class = GroupedValues.of(value, key, classes.count * width**2).medians(FEWEST_OF_CLASS)
    of_all = np.nan_to_num(GroupedValues.of(value, combination, width**2).medians())
    offset = of_class.reshape(classes.count, width**2)
    offset = np.where(np.isnan(offset), of_all, offset).astype(np.float32)
    for rows in pairs.blocks():
        combinations = ends[0][rows][:, None] * width + ends[1][pairs.partners(rows)]
        pairs.value[rows] -= offset[classes.of_rows(pairs, rows), combinations]


def effect_error(residuals: Values, measured_per_rank: float) -> float:
    """Return the standard error of a host's effect: that of a median of `measured_per_rank` values."""
    return float(MEDIAN_ERROR * robust_sd(residuals) / np.sqrt(max(measured_per_rank, 1.0)))
