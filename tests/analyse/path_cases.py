"""Small fabrics whose cables are not declared, with noise that has structure: written without `fablint.simulate`.

The time of a message is that of its slowest component (streams) or the sum of all (small messages).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from fablint.model import Cable, Routing, Row, Run, Switch, Topology
from fact_cases import row_facts, run_facts

RATE = 12.0e9  # bytes/s of a host
SIZE, SMALL = 1 << 20, 8
EDGE_S, HOP_S = 1.2e-6, 0.3e-6
Capacity = Callable[[int, int, int, int], float]  # share of RATE of a path: switches, hosts of both ends
Seconds = Callable[[int, int], float]  # latency that a path adds beside messages on a switch: switches


def full(*_: int) -> float:
    return 1.0


def hop(a: int, b: int) -> float:
    return HOP_S


@dataclass(frozen=True)
class Small:
    """A fabric of `switches` with `each` hosts, in groups of `per_group` switches.

    Attributes:
        path: capacity of the path of a pair, as a share of that of a host.
        added: s that it adds to the latency.
        pair_noise: standard deviation of what a pair keeps through all its measurements (log scale).
        noise: of one measurement.
        hosts: of the hosts, sending and receiving.
        load: standard deviation of slowly varying load on the first switch (AR(1) over the rounds).
        busy: switches between which a neighbour's traffic takes a fifth in a third of the rounds.
        slow_hosts: factors of the time of what these send.
    """

    switches: int = 3
    each: int = 3
    per_group: int = 1
    path: Capacity = full
    added: Seconds = hop
    noise: float = 0.01
    pair_noise: float = 0.0
    hosts: float = 0.0
    load: float = 0.0
    busy: tuple[int, int] | None = None
    slow_hosts: dict[int, float] = field(default_factory=dict)
    cables: tuple[Cable, ...] = ()
    routing: Routing = field(default_factory=Routing)

    @property
    def n(self) -> int:
        return self.switches * self.each

    def switch(self, host: int) -> int:
        return host // self.each

    @property
    def topology(self) -> Topology:
        names = [f"s{number}" for number in range(self.switches)]
        more = sorted({end for cable in self.cables for end in (cable.a, cable.b)} - set(names))
        return Topology(
            switches={
                **{name: Switch(name, f"g{number // self.per_group}") for number, name in enumerate(names)},
                **{name: Switch(name, "core") for name in more},
            },
            host_switch={name: names[self.switch(host)] for host, name in enumerate(self.names)},
            cables=self.cables,
            routing=self.routing,
        )

    @property
    def names(self) -> list[str]:
        return [f"h{number:02}" for number in range(self.n)]

    def run(
        self,
        seed: int,
        layout: Literal["matrix", "list"] = "matrix",
        kernels: Sequence[str] = ("bandwidth",),
        order: str = "serial",
    ) -> Run:
        """Every ordered pair once (matrix), or in the rounds of a tournament, two repeats of it (list)."""
        rng = np.random.default_rng([seed, self.switches, self.each])
        kept = self.pair_noise * _symmetric(rng, self.n)
        ends = self.hosts * rng.standard_normal((2, self.n))
        rounds = [one for _ in range(1 if layout == "matrix" else 2) for one in tournament(self.n, rng)]
        loads = _ar1(rng, len(rounds), self.load)
        begin = rng.integers(0, max(1, 2 * len(rounds) // 3))
        rows = []
        for kernel in kernels:
            cells = []
            for number, pairs in enumerate(rounds):
                for i, j in pairs:
                    for a, b in ((i, j), (j, i)):
                        log = kept[a, b] + self.noise * rng.standard_normal() + ends[0, a] + ends[1, b]
                        s, t = self.switch(a), self.switch(b)
                        log += abs(loads[number]) if s != t and 0 in (s, t) else 0.0
                        in_third = begin <= number < begin + len(rounds) // 3
                        log += 0.2 if self.busy == (s, t) and in_third else 0.0
                        cells.append((number, a, b, self._seconds(kernel, a, b) * float(np.exp(log))))
            rows.append(_row(kernel, self.n, len(rounds), cells, layout, order))
        attributes = {
            "format": 1,
            "state": "complete",
            "rows": [row.name for row in rows],
            "ranks": self.n,
            "hosts": self.names,
            "rank_host": list(range(self.n)),
        }
        return Run(None, run_facts(attributes), tuple(rows))

    def _seconds(self, kernel: str, a: int, b: int) -> float:
        s, t = self.switch(a), self.switch(b)
        slow = self.slow_hosts.get(a, 1.0)
        if kernel == "bandwidth":
            share = 1.0 if s == t else self.path(s, t, a, b)
            return SIZE / RATE / share * slow
        far = 0.0 if s == t else (self.added(s, t) + self.added(t, s)) / 2
        return EDGE_S * slow + far


def _symmetric(rng: np.random.Generator, n: int) -> np.ndarray:
    values = rng.standard_normal((n, n))
    return np.asarray(np.triu(values, 1) + np.triu(values, 1).T)


def _ar1(rng: np.random.Generator, steps: int, spread: float) -> np.ndarray:
    values, level = np.empty(steps), spread * rng.standard_normal()
    for at in range(steps):
        level = 0.95 * level + spread * np.sqrt(1 - 0.95**2) * rng.standard_normal()
        values[at] = level
    return values


def tournament(n: int, rng: np.random.Generator) -> list[list[tuple[int, int]]]:
    """Rounds in which every pair meets once, in random order."""
    even = n + n % 2
    ring = rng.permutation(even).tolist()
    found = []
    for _ in range(even - 1):
        pairs = [(ring[k], ring[even - 1 - k]) for k in range(even // 2)]
        found.append([(a, b) for a, b in pairs if a < n and b < n])
        ring = [ring[0], ring[-1], *ring[1:-1]]
    return [found[at] for at in rng.permutation(len(found))]


def _row(kernel: str, n: int, rounds: int, cells: Sequence[tuple], layout: str, order: str) -> Row:
    size = SIZE if kernel == "bandwidth" else SMALL
    shape = (n, n) if layout == "matrix" else (n, rounds)
    times = np.full((*shape, 1), np.nan, np.float32)
    started = np.full(shape, np.nan)
    number_of = np.full(shape, -1, np.int32)
    dst = np.full((n, rounds), -1, np.int32)
    for number, a, b, seconds in cells:
        at = (a, b) if layout == "matrix" else (a, number)
        times[(*at, 0)], started[at], number_of[at], dst[a, number] = seconds, 0.1 * number, number, b
    arrays = {"size": np.array([size])}
    if layout == "matrix":
        arrays |= {"time_median": times[None], "started": started[None], "round": number_of[None]}
    else:
        arrays |= {"time_median": times, "started": started, "dst": dst}
    arrays["count"] = np.where(np.isnan(arrays["time_median"]), 0, 100).astype(np.uint32)
    stream = kernel == "bandwidth"
    attributes = {
        "kernel": kernel,
        "transport": "mpi",
        "memory": "host",
        "options": f"{kernel} --name {kernel}",
        "state": "complete",
        "seed": 1,
        "windows": [8],
        "payload": "src" if stream else "both",
        "quantity": "bandwidth" if stream else "latency",
        "directions": "both",
        "pattern": "all-pairs" if layout == "matrix" else "rounds",
        "layout": layout,
        "order": order,
        "rounds": rounds,
        "cells_per_round": n - n % 2,  # of an odd number one is idle
        "repeats": 1,
    }
    return Row(kernel, row_facts(attributes), arrays)
