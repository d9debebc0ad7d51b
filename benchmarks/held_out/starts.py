"""Two starts of one healthy fabric with structured noise: what stays from start to start, and what every start draws.

A seed draws the size of the fabric, its rails, and how large each part of the noise is. What stays: times per scope,
hosts, NICs, rails and pairs that differ. What a start draws anew: offsets of the fabric, of each scope, rail, host and
pair of ranks. What a round draws: drift, load of others on a switch, bursts. What a cell draws: noise, with heavy tails
in part of the seeds. Ranks are measured through the NIC of their rail; several ranks of a host are measured at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fablint.model import Row, Run
from fablint.model.facts.json_objects import facts_of
from fablint.model.facts.row_attributes import RowFacts
from fablint.model.facts.run_attributes import RunFacts
from held_out.fabrics import Fabric, dragonfly_like, leaf_spine, mesh, one_switch, three_level
from held_out.schedule import Schedule, full_matrix

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

RATE, LATENCY = 12.2e9, (1.1e-6, 1.4e-6, 1.7e-6)  # bytes/s; s on one switch, in one group, between groups
MOST_RANKS = 128
SAMPLES = 100  # messages of a cell
SIZES = {"latency": 8, "bandwidth": 1 << 20}
FABRICS = (
    lambda: one_switch(24),
    lambda: mesh([12, 12, 12], own_groups=True),
    lambda: leaf_spine(4, 2, 8),
    lambda: leaf_spine(8, 4, 8, "adaptive"),
    lambda: leaf_spine(6, 3, 16, own_groups=False),
    lambda: three_level(3, 3, 2, 2, 6),
    lambda: dragonfly_like(6, 3, 4),
)


@dataclass(frozen=True)
class Change:
    """What happened between the two starts: a host sends less, or all pairs between hosts are slower."""

    what: Literal["host", "all"]
    loss: float  # of the bandwidth


@dataclass(frozen=True)
class Sizes:
    """Standard deviations of the parts of the noise, as logarithms of the time."""

    hosts: float  # that stay
    rails: float
    pairs: float
    fabric_anew: float  # that a start draws
    scopes_anew: float
    rails_anew: float
    hosts_anew: float
    pairs_anew: float
    drift: float  # that a round draws
    load: float
    burst: float
    cell: float  # that a cell draws
    tail: float  # degrees of freedom of Student's t of hosts and cells; infinite: normal
    step: float  # between figures, of the median; 0: not rounded

    @classmethod
    def drawn(cls, rng: np.random.Generator, anew: float) -> Sizes:
        """Each part small in some fabrics and large in others.

        `anew` is the standard deviation of the whole fabric from one start to the next.
        """

        def between(low: float, high: float) -> float:
            return float(np.exp(rng.uniform(np.log(low), np.log(high))))

        return cls(
            hosts=between(0.001, 0.03),
            rails=between(0.0005, 0.02),
            pairs=between(0.0005, 0.01),
            fabric_anew=anew * float(rng.uniform(0.5, 1.0)),
            scopes_anew=anew * float(rng.uniform(0.2, 0.7)),
            rails_anew=between(0.0003, 0.003),
            hosts_anew=between(0.0003, 0.008),
            pairs_anew=between(0.001, 0.03),
            drift=between(0.0005, 0.03),
            load=between(0.0005, 0.03),
            burst=between(0.02, 0.5),
            cell=between(0.001, 0.04),
            tail=float(rng.choice([2.5, 4.0, np.inf])),
            step=float(rng.choice([0.0, 0.0, 0.002, 0.02])),
        )


@dataclass(frozen=True)
class HealthyFabric:
    """A fabric, what stays of its noise, and the schedule of both starts."""

    seed: int
    fabric: Fabric
    rails: int
    sizes: Sizes
    schedule: Schedule  # of ranks
    steady: dict[str, Floats]  # (P,) logarithms of the time by quantity

    @classmethod
    def drawn(cls, seed: int, anew: float) -> HealthyFabric:
        """Draw the fabric of a seed."""
        rng = np.random.default_rng([seed, 715])
        fabric = FABRICS[int(rng.integers(len(FABRICS)))]()
        rails = int(rng.choice([count for count in (1, 1, 2, 4) if fabric.n * count <= MOST_RANKS]))
        sizes = Sizes.drawn(rng, anew)
        schedule = full_matrix(fabric.n * rails, rng)
        apart = schedule.src // rails != schedule.dst // rails
        schedule = schedule.chosen(apart)
        made = cls(seed, fabric, rails, sizes, schedule, {})
        lasting = {quantity: made._lasting(rng, quantity) for quantity in SIZES}
        return cls(seed, fabric, rails, sizes, schedule, lasting)

    def _ends(self, tx: Floats, rx: Floats, quantity: str) -> Floats:
        """(P,) effects of the two ends; of a round trip both ends send and receive."""
        src, dst = self.schedule.src, self.schedule.dst
        item = tx[src] + rx[dst]
        return item if quantity == "bandwidth" else (item + tx[dst] + rx[src]) / 2

    @property
    def scope(self) -> Ints:
        """(P,) 0 on one switch, 1 in one group, 2 between groups."""
        at = self.fabric.host_switch[np.arange(self.fabric.n * self.rails) // self.rails]
        group = np.unique(np.array(self.fabric.groups), return_inverse=True)[1][at]
        src, dst = self.schedule.src, self.schedule.dst
        return np.where(at[src] == at[dst], 0, np.where(group[src] == group[dst], 1, 2))

    def _draw(self, rng: np.random.Generator, count: int) -> Floats:
        tail = self.sizes.tail
        return np.clip(rng.standard_normal(count) if np.isinf(tail) else rng.standard_t(tail, count), -12, 12)

    def _components(self, rng: np.random.Generator, quantity: str, hosts: float, rails: float, pairs: float) -> Floats:
        """(P,) effects of hosts, of the rails of all hosts, and of pairs of ranks."""
        count, src, dst = self.fabric.n * self.rails, self.schedule.src, self.schedule.dst
        rail = np.arange(count) % self.rails
        tx, rx = (hosts * np.repeat(self._draw(rng, self.fabric.n), self.rails) for _ in range(2))
        nic = 0.3 * hosts * self._draw(rng, count) + rails * rng.standard_normal(self.rails)[rail]
        of_pair = pairs * rng.standard_normal((count, count))
        return self._ends(tx + nic, rx + nic, quantity) + of_pair[np.minimum(src, dst), np.maximum(src, dst)]

    def _lasting(self, rng: np.random.Generator, quantity: str) -> Floats:
        seconds = np.array(LATENCY) if quantity == "latency" else SIZES[quantity] / RATE + np.array(LATENCY)
        own_sizes = self.sizes
        return np.asarray(
            np.log(seconds)[self.scope]
            + self._components(rng, quantity, own_sizes.hosts, own_sizes.rails, own_sizes.pairs)
        )

    def start(self, number: int, change: Change | None = None) -> Run:
        """Measure the fabric; another `number` is another start, with the change if there is one."""
        rng = np.random.default_rng([self.seed, 716, number])
        names = list(SIZES)
        rows = tuple(self._row(rng, quantity, at * self._seconds, change) for at, quantity in enumerate(names))
        nics = [{"name": f"hsn{rail}", "kind": "ethernet", "state": "up"} for rail in range(self.rails)]
        count = self.fabric.n * self.rails
        root = {
            "format": 1,
            "state": "complete",
            "rows": names,
            "ranks": count,
            "hosts": list(self.fabric.hosts),
            "rank_host": (np.arange(count) // self.rails).tolist(),
            "rank_nic": [f"hsn{rank % self.rails}" for rank in range(count)],
            "nics": dict.fromkeys(self.fabric.hosts, nics),
        }
        return Run(None, facts_of(RunFacts, root), rows)

    @property
    def _seconds(self) -> float:
        return float(self.schedule.started.max()) + 1.0

    def _row(self, rng: np.random.Generator, quantity: str, begin: float, change: Change | None) -> Row:
        own_sizes, src = self.sizes, self.schedule.src
        log_time = self.steady[quantity] + own_sizes.fabric_anew * rng.standard_normal()
        log_time = log_time + (own_sizes.scopes_anew * rng.standard_normal(3))[self.scope]
        log_time += self._components(rng, quantity, own_sizes.hosts_anew, own_sizes.rails_anew, own_sizes.pairs_anew)
        log_time += self._of_rounds(rng)
        log_time += own_sizes.cell * self._draw(rng, src.size)
        if change is not None and quantity == "bandwidth":
            slow = np.ones(src.size, bool) if change.what == "all" else src // self.rails == self.slow_host
            log_time = log_time - np.where(slow, np.log1p(-change.loss), 0.0)
        return self._stored(quantity, np.exp(log_time), begin)

    @property
    def slow_host(self) -> int:
        """The host that sends less, where one does."""
        return self.seed % self.fabric.n

    def _of_rounds(self, rng: np.random.Generator) -> Floats:
        """(P,) effects of the rounds: drift of all, load on one switch, bursts, each over several rounds."""
        own_sizes, schedule = self.sizes, self.schedule
        everywhere = own_sizes.drift * _walk(rng, schedule.rounds)
        starts = np.flatnonzero(rng.random(schedule.rounds) < 0.01)
        for first in starts.tolist():
            everywhere[first : first + int(rng.integers(1, 6))] += own_sizes.burst * rng.random()
        at = self.fabric.host_switch[np.arange(self.fabric.n * self.rails) // self.rails]
        busy = int(rng.integers(1 + at.max()))
        load = own_sizes.load * np.maximum(0.0, _walk(rng, schedule.rounds))
        crosses = (at[schedule.src] == busy) | (at[schedule.dst] == busy)
        return np.asarray(everywhere[schedule.round] + np.where(crosses, load[schedule.round], 0.0))

    def _stored(self, quantity: str, seconds: Floats, begin: float) -> Row:
        count, schedule = self.fabric.n * self.rails, self.schedule
        if self.sizes.step:
            step = self.sizes.step * float(np.median(seconds))
            seconds = np.maximum(step, np.round(seconds / step) * step)
        at = (0, schedule.src, schedule.dst)
        arrays: dict[str, Any] = {
            "time_median": np.full((1, count, count, 1), np.nan, np.float32),
            "count": np.zeros((1, count, count, 1), np.uint32),
            "started": np.full((1, count, count), np.nan),
            "round": np.full((1, count, count), -1, np.int32),
            "size": np.array([SIZES[quantity]], np.int64),
        }
        arrays["time_median"][(*at, 0)] = seconds
        arrays["count"][(*at, 0)] = SAMPLES
        arrays["started"][at] = begin + schedule.started
        arrays["round"][at] = schedule.round
        attributes = {
            "kernel": quantity,
            "pattern": "all-pairs",
            "transport": "mpi",
            "memory": "host",
            "order": "parallel",
            "layout": "matrix",
            "state": "complete",
            "rounds": schedule.rounds,
            "cells_per_round": np.bincount(schedule.round, minlength=schedule.rounds).tolist(),
            "repeats": 1,
            "seed": self.seed,
            "quantity": quantity,
            "payload": "src" if quantity == "bandwidth" else "both",
            "directions": "both",
            "windows": [1],
        }
        return Row(quantity, facts_of(RowFacts, attributes), arrays)


def _walk(rng: np.random.Generator, rounds: int, memory: float = 0.96) -> Floats:
    """(R,) a series of variance 1 whose neighbours are correlated (AR(1))."""
    steps = rng.standard_normal(rounds)
    values = np.empty(rounds)
    level = steps[0]
    for at, step in enumerate(steps):
        level = memory * level + np.sqrt(1 - memory**2) * step
        values[at] = level
    return values
