"""Figures of several programs that are started by turns, and the ratio of two of them with its interval."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

BOOTSTRAPS = 2000
Figure = TypeVar("Figure")  # what a start measures: a number, or several


@dataclass(frozen=True)
class Ratio:
    """Ratio of the same quantile of two samples with its 95 % interval (percentile bootstrap of both)."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def turns(programs: Iterable[str], repetitions: int, seed: int = 1) -> Iterator[str]:
    """The programs in the order of their starts, `repetitions` of each: all once, in random order, and again.

    A random order and not a fixed one: what one program leaves behind in caches meets all others equally often.
    """
    order, draw = list(programs), random.Random(seed)
    for _ in range(repetitions):
        draw.shuffle(order)
        yield from order


def alternate(programs: Mapping[str, Callable[[], Figure]], repetitions: int) -> dict[str, list[Figure]]:
    """The figures of every program, `repetitions` each, in the order of turns()."""
    figures: dict[str, list[Figure]] = {name: [] for name in programs}
    for name in turns(programs, repetitions):
        figures[name].append(programs[name]())
    return figures


def ratio_of_medians(above: Sequence[float], below: Sequence[float], seed: int = 1) -> Ratio:
    """Median of `above` over median of `below`."""
    return ratio_of_quantiles(above, below, 0.5, seed)


def ratio_of_quantiles(above: Sequence[float], below: Sequence[float], quantile: float, seed: int = 1) -> Ratio:
    """A quantile of `above` over that of `below`.

    Starts on a virtual machine are fast or slow, depending on the CPUs that it has at the time. Where about half are
    fast, the median may be one of either kind, and the quartile on the fast side is the stable figure.
    """
    draw = np.random.default_rng(seed)

    def drawn(figures: Sequence[float]) -> np.ndarray:
        return np.quantile(draw.choice(np.asarray(figures), size=(BOOTSTRAPS, len(figures))), quantile, axis=1)

    low, high = np.quantile(drawn(above) / drawn(below), [0.025, 0.975])
    value = float(np.quantile(above, quantile) / np.quantile(below, quantile))
    return Ratio(value, float(low), float(high))
