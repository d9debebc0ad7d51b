"""Populations of hosts: what all members of one have in common is not the fault of a member.

A second generation of hosts, NICs of half the speed or another image make many hosts slower than the others by the
same amount. Each host is compared with its own population; the difference between populations is one finding, and not
one per host. The majority decides nothing: of two populations, either may be the healthy one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fablint.analyse.data.pair_matrix import Pairs
from fablint.analyse.data.rank_places import Codes, Places
from fablint.analyse.data.robust_stats import MEDIAN_ERROR, Floats, lower_medians, robust_sd
from fablint.analyse.fit.comparison_groups import Classes
from fablint.analyse.fit.modes import FEWEST_MEMBERS, Modes, modes_of

FEWEST_CELLS = 12  # of two populations in a class, from which their pairs have an offset of their own
BEST = 0.2  # quantile of a host's pairs: what a host does with the best of its partners
MOST_WHOLE_SWITCHES = 1  # whose hosts are a mode of their own: the switch is the candidate
FEWEST_NEAR = 6  # pairs on a switch of a mode's hosts, which tell whether it is the hosts that are slow
SHOWN = 0.5  # of what a mode loses in all must be seen on a switch as well


@dataclass(frozen=True)
class Populations:
    """Populations of hosts, as senders or as receivers. Number 0 is the fastest."""

    label: Codes  # (hosts,) -1: unknown
    effect: Floats  # (populations,) log-effect beyond the fastest

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.effect.size)

    def members(self, number: int) -> Codes:
        """Codes of the hosts of one population."""
        return np.flatnonzero(self.label == number)


def populations_of(
    pairs: Pairs, effect: Floats, best: Floats, error: float, places: Places, least: float, *, sent: bool
) -> Populations | None:
    """The populations that the hosts fall into as senders (`sent`) or receivers; None where there is one.

    Parameters
    ----------
    pairs
        Residuals from the classes.
    effect
        (n,) log-effect of each rank, by the median of its pairs.
    best
        (n,) quantile `BEST` of the pairs of each rank, the effects of its partners included. Where the slower end
        alone decides on the time of a pair and most hosts are slow, the median of a fast host's pairs is slow as well.
    error
        Standard error of an effect.
    least
        Smallest difference that matters, log.
    """
    for values in (effect, best):
        hosts = lower_medians(values, places.host, len(places.hosts))
        modes = _without_switches(modes_of(hosts, error, least), places)
        if modes is not None and _is_of_hosts(pairs, modes, places, sent=sent):
            return Populations(modes.label, modes.centre - modes.centre[0])
    return None


def _is_of_hosts(pairs: Pairs, modes: Modes, places: Places, *, sent: bool) -> bool:
    """Are the hosts of each slower mode slow on their own switches as well, where that was measured?

    A slow spine under destination-based routing makes every fourth host slow, and only for messages that cross it.
    """
    if not places.switches:
        return True
    row, column = pairs.sample_cells()
    to = pairs.destination((row, column))
    near = (places.switch[row] == places.switch[to]) & (places.switch[row] >= 0)
    near &= places.host[row] != places.host[to]
    value, own = pairs.value[row, column][near], (row if sent else to)[near]
    label = modes.label[places.host[own]]
    reference = value[label == 0]
    for number in range(1, modes.count):
        shown = value[label == number]
        if min(shown.size, reference.size) >= FEWEST_NEAR:
            lost = float(np.quantile(shown, BEST) - np.quantile(reference, BEST))
            if lost < SHOWN * (modes.centre[number] - modes.centre[0]):
                return False
    return True


def _without_switches(modes: Modes, places: Places) -> Modes | None:
    """The modes without the hosts of one whole switch, which is a candidate by itself; None if one mode is left."""
    label = modes.label.copy()
    switch = np.full(len(places.hosts), -1, dtype=np.int64)
    switch[places.host] = places.switch
    for number in range(1, modes.count):
        whole = [
            code
            for code in np.unique(switch[(label == number) & (switch >= 0)])
            if (label[(switch == code) & (label >= 0)] == number).all()
        ]
        if len(whole) <= MOST_WHOLE_SWITCHES:
            label[np.isin(switch, whole)] = 0
        if np.count_nonzero(label == number) < FEWEST_MEMBERS:
            label[label == number] = 0
    kept = np.unique(label[label >= 0])
    if kept.size < 2:
        return None
    return Modes(np.where(label < 0, -1, np.searchsorted(kept, label)), modes.centre[kept])


def is_anchored(found: Populations, log_time: float, size: int, line_rate: Floats | None, share: float) -> bool:
    """Does the negotiated speed of the NICs decide which population is healthy? Then the others are at fault.

    It does where the streams of the fastest population reach `share` of that speed, and all NICs negotiated the same.

    Parameters
    ----------
    log_time
        Log of the seconds that a message of `size` bytes takes in the fastest class, in the largest population.
    line_rate
        (hosts,) bytes/s, None where it is not known of all hosts.
    """
    if line_rate is None or np.ptp(line_rate) > 0:
        return False
    largest = int(np.argmax([found.members(number).size for number in range(found.count)]))
    rate = size / np.exp(log_time - found.effect[largest])
    return bool(rate >= share * line_rate[0])


def best_of_ranks(pairs: Pairs, *, sent: bool) -> Floats:
    """(n,) quantile `BEST` of what each rank sent or received, NaN where it has no pair."""
    found = np.full(pairs.ranks, np.nan)
    for rows in pairs.blocks():
        values = np.sort(pairs.sent(rows) if sent else pairs.received(rows), axis=1)
        count = values.shape[1] - np.count_nonzero(np.isnan(values), axis=1)
        at = np.floor(BEST * np.maximum(count - 1, 0)).astype(np.int64)
        found[rows] = values[np.arange(len(values)), at]
    return found


def subtract(
    pairs: Pairs, classes: Classes, places: Places, sent: Populations | None, received: Populations | None
) -> None:
    """Take out of the residuals what the populations of both ends differ by, in place.

    Each combination of populations has an offset of its own, in each class that has pairs enough: two slow ends may
    add up (latency), or the slower one alone may count (a stream).
    """
    every = [one.label if one is not None else np.zeros(len(places.hosts), np.int64) for one in (sent, received)]
    width = max(2, *(one.count if one is not None else 1 for one in (sent, received)))
    ends = [np.where(label < 0, 0, label)[places.host] for label in every]
    cells = pairs.sample_cells()
    value, combination = pairs.value[cells], ends[0][cells[0]] * width + ends[1][pairs.destination(cells)]
    codes = classes.of_cells(pairs, cells)
    offset = np.zeros((classes.count, width * width), dtype=np.float32)
    for both, values, _ in _groups(combination, value):
        offset[:, both] = np.median(values)
    for key, values, count in _groups(codes.astype(np.int64) * width**2 + combination, value):
        if count >= FEWEST_CELLS:
            offset[key // width**2, key % width**2] = np.median(values)
    for rows in pairs.blocks():
        combinations = ends[0][rows][:, None] * width + ends[1][pairs.partners(rows)]
        pairs.value[rows] -= offset[classes.of_rows(pairs, rows), combinations]


def _groups(key: Codes, value: npt.NDArray[np.float32]) -> Iterator[tuple[int, npt.NDArray[np.float32], int]]:
    """Each key, its values, and how many there are."""
    order = np.argsort(key, kind="stable")
    keys, first, count = np.unique(key[order], return_index=True, return_counts=True)
    for one, at, size in zip(keys.tolist(), first.tolist(), count.tolist(), strict=True):
        yield one, value[order[at : at + size]], size


def error_of(left: npt.NDArray[np.float32], measured_per_rank: float) -> float:
    """Standard error of a host's effect: that of a median of so many values."""
    return float(MEDIAN_ERROR * robust_sd(left) / np.sqrt(max(measured_per_rank, 1.0)))
