"""When a component is slow: in all measurements, in a share of the time, or for a share of its messages."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from held_out.schedule import Schedule

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
# (P,) share of the messages of each measurement that meet the component in its slow state, from the schedule and
# (P,) which measurements cross it.
Incidence = Callable[[Schedule, Bools, np.random.Generator], Floats]


def of_rounds(share: float) -> Incidence:
    """Slow in this share of the rounds in which it is measured: their number does not vary from seed to seed."""

    def incidence(schedule: Schedule, crossed: Bools, rng: np.random.Generator) -> Floats:
        slow = np.zeros(schedule.rounds)
        rounds = np.unique(schedule.round[crossed])
        slow[rng.permutation(rounds)[: max(1, round(share * rounds.size))]] = 1.0
        return np.asarray(slow[schedule.round])

    return incidence


def of_stretches(share: float, count: int) -> Incidence:
    """Slow in `count` stretches of equal length that together last this share of the run, one in each part of it."""

    def incidence(schedule: Schedule, crossed: Bools, rng: np.random.Generator) -> Floats:
        slow = np.zeros(schedule.rounds)
        bounds = np.linspace(0, schedule.rounds, count + 1).astype(int)
        for first, last in pairwise(bounds.tolist()):
            length = max(1, round(share * (last - first)))
            begin = int(rng.integers(first, last - length + 1))
            slow[begin : begin + length] = 1.0
        return np.asarray(slow[schedule.round])

    return incidence


def of_messages(share: float) -> Incidence:
    """Slow for this share of the messages of every measurement."""
    return lambda schedule, crossed, rng: np.full(len(schedule), share)
