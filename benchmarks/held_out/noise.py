"""Noise and other properties of healthy fabrics. Each is prepared once per run and then requested for every size.

An effect is `effect(conditions) -> factor(quantity, size) -> (P,) factors of the time`. What a launch, a host or a
stretch of time has drawn is drawn in the first call, so that all sizes, directions and repeats share it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from held_out.network import Network
from held_out.schedule import Schedule

Floats = npt.NDArray[np.float64]
Factor = Callable[[str, int], Floats]


@dataclass(frozen=True)
class Conditions:
    """What an effect may depend on."""

    network: Network
    schedule: Schedule
    rng: np.random.Generator

    @property
    def progress(self) -> Floats:
        """(P,) share of the run that is over."""
        return np.asarray(self.schedule.round / max(1, self.schedule.rounds))

    @property
    def pairs(self) -> int:
        return len(self.schedule)


Effect = Callable[[Conditions], Factor]


def independent(draw: Callable[[np.random.Generator, int], Floats]) -> Effect:
    """A factor for each cell by itself."""

    def effect(conditions: Conditions) -> Factor:
        return lambda quantity, size: draw(conditions.rng, conditions.pairs)

    return effect


def lognormal(sigma: float) -> Effect:
    """Log-normal."""
    return independent(lambda rng, count: np.exp(sigma * rng.standard_normal(count)))


def pareto(scale: float = 0.004, shape: float = 1.6) -> Effect:
    """Never faster than the network, now and then very much slower."""
    return independent(lambda rng, count: 1 + scale * rng.pareto(shape, count))


def cauchy(scale: float = 0.004) -> Effect:
    """No mean and no variance; clipped where a time would leave the possible."""
    return independent(lambda rng, count: np.exp(np.clip(scale * rng.standard_cauchy(count), -0.3, 1.5)))


def two_humped(share: float = 0.35, gap: float = 0.03, sigma: float = 0.004) -> Effect:
    """A cell is in one of two states."""
    return independent(
        lambda rng, count: np.exp(gap * (rng.random(count) < share) + sigma * rng.standard_normal(count))
    )


def drift(total: float = 0.12) -> Effect:
    """The whole run becomes slower from its beginning to its end."""
    return lambda conditions: lambda quantity, size: 1 + total * conditions.progress


def bursts(share: float = 0.04, size: float = 0.35) -> Effect:
    """Some rounds in which all are slower."""

    def effect(conditions: Conditions) -> Factor:
        slow = conditions.rng.random(conditions.schedule.rounds) < share
        return lambda quantity, _: 1 + size * slow[conditions.schedule.round]

    return effect


def varying_load(switch: int, spread: float = 0.05, memory: float = 0.97) -> Effect:
    """Load of others on a leaf: an AR(1) series over the rounds that slows what enters or leaves the leaf."""

    def effect(conditions: Conditions) -> Factor:
        steps = conditions.rng.standard_normal(conditions.schedule.rounds) * spread * np.sqrt(1 - memory**2)
        load = np.empty(steps.size)
        level = conditions.rng.standard_normal() * spread
        for at, step in enumerate(steps):
            level = memory * level + step
            load[at] = level
        fabric, schedule = conditions.network.fabric, conditions.schedule
        crosses = (fabric.host_switch[schedule.src] == switch) != (fabric.host_switch[schedule.dst] == switch)
        return lambda quantity, size: np.where(crosses, 1 + np.maximum(0.0, load + spread)[schedule.round], 1.0)

    return effect


def neighbour(links: Callable[[Network], list[int]], size: float = 0.3, third: int | None = None) -> Effect:
    """A neighbour's traffic on some links in a contiguous third of the rounds."""

    def effect(conditions: Conditions) -> Factor:
        network, schedule = conditions.network, conditions.schedule
        components = network.links(*links(network))
        crosses = np.isin(network.crossed(schedule.src, schedule.dst), components).any(axis=(1, 2))
        start = conditions.rng.uniform(0.05, 0.6) if third is None else third / 3
        busy = (conditions.progress >= start) & (conditions.progress < start + 1 / 3)
        return lambda quantity, _: np.where(crosses & busy, 1 + size, 1.0)

    return effect


def noisy_host(host: int, sigma: float = 0.25) -> Effect:
    """One host whose times scatter; in the median it is as fast as the others."""

    def effect(conditions: Conditions) -> Factor:
        schedule = conditions.schedule
        of_host = (schedule.src == host) | (schedule.dst == host)
        return lambda quantity, size: np.where(
            of_host, np.exp(sigma * conditions.rng.standard_normal(conditions.pairs)), 1.0
        )

    return effect


def launch_effects(sigma: float = 0.03, humps: bool = False) -> Effect:
    """A value drawn per pair at the start of the program and shared by its sizes, directions and repeats."""

    def effect(conditions: Conditions) -> Factor:
        n, schedule = conditions.network.fabric.n, conditions.schedule
        values = conditions.rng.standard_normal((n, n))
        if humps:
            values = 2.0 * (conditions.rng.random((n, n)) < 0.2)
        low, high = np.minimum(schedule.src, schedule.dst), np.maximum(schedule.src, schedule.dst)
        shared = np.exp(sigma * values[low, high])
        return lambda quantity, size: shared

    return effect


def host_spread(sigma: float, heavy: bool = False) -> Effect:
    """Hosts that differ: in log time, normal or with the tails of Student's t with 3 degrees of freedom."""

    def effect(conditions: Conditions) -> Factor:
        n, rng, schedule = conditions.network.fabric.n, conditions.rng, conditions.schedule
        tx, rx = (sigma * (rng.standard_t(3, n) if heavy else rng.standard_normal(n)) for _ in range(2))
        shared = np.exp(np.clip(tx[schedule.src] + rx[schedule.dst], -0.5, 0.5))
        return lambda quantity, size: shared

    return effect
