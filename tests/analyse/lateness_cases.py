"""Fabrics that lose messages, message by message: a generator of its own, which shares nothing with fablint.simulate.

Every message of a cell is drawn: its time, with noise, and whether it is lost on one of the components that its round
trip crosses and is sent again after a timeout. What is stored of a cell is what the engine stores: minimum, median and
mean of the times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np

from fablint.analyse import diagnose
from fablint.discover.assumed_cables import add_assumed_cables
from fablint.model import Cable, Finding, Routing, Row, Run, State, Switch, Topology
from fablint.model.arrays import Codes, Floats
from fact_cases import row_facts, run_facts
from finding_cases import group

Layout = Literal["matrix", "list"]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]
NEAR_S, FAR_S = 1.5e-6, 2.2e-6  # of a message on one switch, and between two
TIMEOUT_S = 1e-3  # until a lost message is sent again


def lognormal(random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Little noise."""
    return np.exp(0.05 * random.standard_normal(shape))


def pareto(random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Infinite variance: one message in a hundred takes twenty times as long."""
    return 1 + random.pareto(1.5, shape)


def cauchy(random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """No mean: means of cells are whatever their slowest message was."""
    return 1 + np.minimum(np.abs(random.standard_cauchy(shape)), 1e4)


@dataclass(frozen=True)
class LossyFabric:
    """Leaves with hosts; leaves are joined by spines, or each with each where there are none.

    Attributes:
        spines: a message to host h goes over spine h modulo their number.
        lossy: component, `h03`, `l0=p1`, `l0>p1` (one direction) or a switch, and the share of messages that it loses.
        slow: host and the factor of all its times.
        noisy: host and how many of its messages are interrupted for 20 us.
        groups: of how many leaves each.
        ranks: on each host.
        knows: what the topology says: tables of all paths, switches with presumed cables, or nothing.
    """

    leaves: int = 4
    hosts: int = 4  # of each leaf
    spines: int = 2
    lossy: Mapping[str, float] = field(default_factory=dict)
    slow: Mapping[str, float] = field(default_factory=dict)
    noisy: Mapping[str, float] = field(default_factory=dict)
    noise: Draw = lognormal
    groups: int | None = None
    ranks: int = 1
    knows: Literal["tables", "presumed", "nothing"] = "tables"
    messages: int = 60
    minimum: bool = True
    timed: bool = True

    @cached_property
    def names(self) -> list[str]:
        return [f"h{number:02}" for number in range(self.leaves * self.hosts)]

    def leaf(self, host: int) -> str:
        return f"l{host // self.hosts}"

    def path(self, src: int, dst: int) -> list[str]:
        """Switches of a message."""
        a, b = self.leaf(src), self.leaf(dst)
        if a == b:
            return [a]
        return [a, f"p{dst % self.spines}", b] if self.spines else [a, b]

    def crossed(self, src: int, dst: int) -> list[str]:
        """Components that a round trip crosses."""
        found = [self.names[src], self.names[dst]]
        for path in (self.path(src, dst), self.path(dst, src)):
            found += path
            for a, b in pairwise(path):
                found += [f"{a}>{b}", f"{a}={b}", f"{b}={a}"]
        return found

    @property
    def topology(self) -> Topology | None:
        """What is known of it."""
        if self.knows == "nothing":
            return None
        group = {f"l{leaf}": f"g{leaf // self.groups}" if self.groups else "g" for leaf in range(self.leaves)}
        hosts = {name: self.leaf(number) for number, name in enumerate(self.names)}
        if self.knows == "presumed":
            return add_assumed_cables(Topology({name: Switch(name, one) for name, one in group.items()}, hosts))
        spines = [f"p{number}" for number in range(self.spines)]
        cables = [Cable(leaf, spine) for leaf in group for spine in spines]
        cables += [] if spines else [Cable(a, b) for a in group for b in group if a < b]
        tables: dict[str, dict[str, str]] = {}
        for src in range(len(self.names)):
            for dst in range(len(self.names)):
                path = self.path(src, dst)
                for here, there in pairwise(path):
                    tables.setdefault(here, {})[self.names[dst]] = there
        switches = {name: Switch(name, one) for name, one in group.items()} | {spine: Switch(spine) for spine in spines}
        return Topology(switches, hosts, tuple(cables), routing=Routing("tables", tables=tables))

    # ------------------------------------------------------------------------------------------------ measurement

    def measured(self, layout: Layout, seed: int, rounds: int | None = None, repeats: int = 1) -> Run:
        """A run of latencies. `rounds`: of a list, so many matchings drawn by chance instead of all pairs."""
        random = np.random.default_rng([seed, 42])
        host = np.repeat(np.arange(len(self.names)), self.ranks)
        n = host.size
        pairs = _rounds(n, random, rounds) if layout == "list" else _rounds(n, random, None)
        pairs = np.concatenate([pairs] * repeats)
        flat = pairs.reshape(-1, 2)
        src, dst = np.concatenate([flat, flat[:, ::-1]]).T
        times = self._times(host[src], host[dst], random)
        column = np.tile(np.repeat(np.arange(len(pairs)), pairs.shape[1]), 2)
        shape: tuple[int, ...] = (n, len(pairs)) if layout == "list" else (repeats, n, n)
        at = (src, column) if layout == "list" else (column // (len(pairs) // repeats), src, dst)
        arrays: dict[str, np.ndarray] = {"size": np.array([8])}
        figures = {"min": times.min(axis=1), "median": np.median(times, axis=1), "mean": times.mean(axis=1)}
        for name, figure in figures.items():
            if name != "min" or self.minimum:
                arrays[f"time_{name}"] = _placed(shape, at, figure, np.float32)[..., None]
        arrays["count"] = (~np.isnan(arrays["time_mean"])).astype(np.uint32) * self.messages
        if self.timed:
            arrays["started"] = _placed(shape, at, 0.01 * column, np.float64)
        if layout == "list":
            arrays["dst"] = np.full(shape, -1, np.int32)
            arrays["dst"][at] = dst
        attributes = {
            "kernel": "latency", "transport": "mpi", "memory": "host", "options": "", "state": "complete", "seed": seed,
            "windows": [1], "payload": "both", "quantity": "latency", "directions": "both", "order": "serial",
            "pattern": "rounds" if layout == "list" else "all-pairs", "layout": layout, "repeats": repeats,
            "rounds": len(pairs), "cells_per_round": 2 * pairs.shape[1],
        }  # fmt: skip
        row = Row("latency", row_facts(attributes), arrays)
        about = {"format": 1, "state": "complete", "rows": ["latency"], "ranks": n, "hosts": self.names}
        return Run(None, run_facts({**about, "rank_host": host.tolist()}), (row,))

    def _times(self, src: Codes, dst: Codes, random: np.random.Generator) -> Floats:
        """(k, messages) s."""
        near = src // self.hosts == dst // self.hosts
        times = np.where(near, NEAR_S, FAR_S)[:, None] * self.noise(random, (src.size, self.messages))
        for name, factor in self.slow.items():
            times[(src == self.names.index(name)) | (dst == self.names.index(name))] *= factor
        for name, share in self.noisy.items():
            own = (src == self.names.index(name)) | (dst == self.names.index(name))
            times += np.where(own[:, None] & (random.random(times.shape) < share), 20e-6, 0.0)
        crossed = {pair: self.crossed(*pair) for pair in {*zip(src.tolist(), dst.tolist(), strict=True)}}
        for name, share in self.lossy.items():
            own = np.array([name in crossed[pair] for pair in zip(src.tolist(), dst.tolist(), strict=True)])
            lost = own[:, None] & (random.random(times.shape) < share)
            times += np.where(lost, TIMEOUT_S, 0.0)
        return times

    def findings(self, layout: Layout, seed: int, rounds: int | None = None) -> list[Finding]:
        """What is said of a run, without what is fine or was not judged."""
        verdict = diagnose(self.measured(layout, seed, rounds), self.topology).verdict
        return [
            finding for finding in verdict.findings if finding.state in (State.FAULT, State.SUSPECT, State.CONFOUNDED)
        ]


def faults(findings: list[Finding]) -> list[tuple[str, str]]:
    """Component and name of those at fault."""
    return sorted((finding.component, finding.name) for finding in findings if finding.state is State.FAULT)


def named(findings: list[Finding]) -> set[str]:
    """All names, of what is at fault or suspected and of what it may be instead."""
    return {name for finding in findings for name in (finding.name, *group(finding))}


def _placed(shape: tuple[int, ...], at: tuple[Codes, ...], values: Floats, kind: type) -> np.ndarray:
    array = np.full(shape, np.nan, kind)
    array[at] = values
    return array


def _rounds(n: int, random: np.random.Generator, some: int | None) -> Codes:
    """(rounds, n // 2, 2) matchings: of all pairs as a round robin, or some at random."""
    order = random.permutation(n)
    if some is not None:
        return np.array([random.permutation(n)[: n - n % 2].reshape(-1, 2) for _ in range(some)])
    ring = np.append(order, -1) if n % 2 else order
    found = []
    for turn in range(ring.size - 1):
        turned = np.concatenate([ring[:1], np.roll(ring[1:], turn)])
        pairs = np.stack([turned[: ring.size // 2], turned[ring.size // 2 :][::-1]], axis=1)
        found.append(pairs[(pairs >= 0).all(axis=1)])
    return np.array(found)[random.permutation(len(found))]
