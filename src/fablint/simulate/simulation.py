"""Measurement of a simulated fabric: a complete run in memory, with the ground truth in its facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from fablint.errors import UsageError
from fablint.model import Row, Run
from fablint.model.arrays import Codes, RankPairs, Values
from fablint.model.facts.run_attributes import RunFacts
from fablint.simulate.faults import Condition, Fault, condition_of
from fablint.simulate.full_matrices import matrix_arrays, tabulable
from fablint.simulate.ground_truth import TrueFault, truth_of
from fablint.simulate.messages.costs import ActualRouting, CellLinks, Measurements, cells_of, costs, ports_of_ranks
from fablint.simulate.messages.link_sharing import contended_time, path_flows
from fablint.simulate.messages.times import AT_ONCE, KERNELS, STATISTICS, Events, events_of, meet, shortest_hops, times
from fablint.simulate.noise import Noise
from fablint.simulate.rounds import all_rounds, partners_of
from fablint.simulate.row_arrays import Store
from fablint.simulate.simulated_fabric import LINK_LATENCY_S, Fabric
from fablint.simulate.simulated_rows import (
    CHECK_ROWS,
    SimulatedRow,
    row_facts,
    run_facts,
    seconds_of,
    started,
)

BLOCK = 1 << 19  # cells simulated at a time; affects the random numbers of a seed
SAMPLED = 1 << 15  # pairs whose messages are generated at a time; affects the random numbers too


def simulate(
    fabric: Fabric,
    *,
    rows: Sequence[SimulatedRow] = CHECK_ROWS,
    faults: Sequence[Fault] = (),
    noise: Noise | None = None,
    seed: int = 1,
    ranks_per_host: int | None = None,
) -> Run:
    """Return a run of all pairs of a fabric.

    Every cell is measured, and transfers do not disturb each other.

    Parameters
    ----------
    fabric
        Hosts, switches and routes.
    rows
        What is measured.
    faults
        What is wrong with components.
    noise
        Scatter of the times; None: that of a healthy fabric.
    seed
        Of the random numbers: equal arguments give equal times.
    ranks_per_host
        None: one for each NIC.

    Raises
    ------
    UsageError
        A fault is in a component that the fabric does not have, or there are less than two ranks.
    """
    return SimulatedFabric(
        fabric, tuple(faults), noise or Noise(), seed=seed, ranks_per_host=ranks_per_host or fabric.rails
    ).measure(None, rows)


@dataclass(frozen=True)
class SimulatedFabric:
    """A fabric for repeated measurements with the same faults and the same variation of its components.

    With `contention` the pairs of a parallel round that share a directed link share its bandwidth: a stream is limited
    by the link with the longest time per byte, including the flows on it. Raises UsageError for less than two ranks.
    """

    fabric: Fabric
    faults: tuple[Fault, ...] = ()
    noise: Noise = field(default_factory=Noise)
    seed: int = 1
    ranks_per_host: int = 1
    contention: bool = False

    def __post_init__(self) -> None:
        if self.ranks < 2:
            raise UsageError(f"simulate: {self.ranks} rank", "a pair needs two")
        for fault in self.faults:
            fault.links(self.fabric)

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.fabric.hosts) * self.ranks_per_host

    def measure(self, rounds: Sequence[RankPairs] | None, rows: Sequence[SimulatedRow] = CHECK_ROWS) -> Run:
        """Run of these rounds, each pair in both directions; None: of all pairs, as a matrix.

        Raises UsageError for rounds whose pairs are not disjoint, and for rows that the simulator does not support.
        """
        measured = self._rows(rounds, rows, serial=0, begin=0.0)
        return Run(None, self._root(measured), measured)

    def extended(self, run: Run, rounds: Sequence[RankPairs], rows: Sequence[SimulatedRow] | None = None) -> Run:
        """`run` with additional measurements of the same fabric in separate rows: `bandwidth-2` after `bandwidth`.

        Without `rows` those of the run are used.
        """
        rows = _rows_of(run) if rows is None else rows
        begin = sum(row.facts.result.wall_s or 0.0 for row in run.rows)
        measured = (*run.rows, *self._rows(rounds, rows, serial=len(run.rows), begin=begin))
        measured = _named(measured)
        return replace(run, facts=self._root(measured), rows=measured)

    def truth(self, run: Run) -> tuple[TrueFault, ...]:
        """Faulty components, and their visibility in a run of this fabric."""
        return truth_of(self.fabric, self.actual_routing, self.faults, run)

    # ------------------------------------------------------------------------------------------------ rows

    def _root(self, rows: Sequence[Row]) -> RunFacts:
        truth = {
            "topology": self.fabric.topology.source,
            "faults": [fault.facts() for fault in self.faults],
            "noise": self.noise.facts(),
            "seed": self.seed,
            "contention": self.contention,
        }
        return run_facts(self.fabric, [row.name for row in rows], self.ranks_per_host, truth)

    def _rows(
        self, rounds: Sequence[RankPairs] | None, rows: Sequence[SimulatedRow], *, serial: int, begin: float
    ) -> tuple[Row, ...]:
        for row in rows:
            _check(row)
        full = rounds is None
        if full and self._tabulable(rows):
            jobs = [self._job(row, serial + index, self.ranks - 1 + self.ranks % 2) for index, row in enumerate(rows)]
            measured = [self._matrix(job) for job in jobs]
        else:
            partner = partners_of(all_rounds(self.ranks) if rounds is None else rounds, self.ranks)
            jobs = [self._job(row, serial + index, partner.shape[1]) for index, row in enumerate(rows)]
            measured = self._measured(jobs, partner, full=full)
        made = []
        for job, (arrays, pairs) in zip(jobs, measured, strict=True):
            facts = row_facts(job.row, "matrix" if full else "list", pairs, self.seed)
            arrays["started"] += begin
            begin += seconds_of(job.row, pairs)
            made.append(Row(job.row.kernel, facts, arrays))
        return _named(made)

    def _tabulable(self, rows: Sequence[SimulatedRow]) -> bool:
        retries = any(fault.retry_share for fault in self.faults)
        return (
            all(row.simple and row.order == "parallel" for row in rows)
            and not retries
            and not self.contention
            and tabulable(self.actual_routing)
        )

    def _job(self, row: SimulatedRow, serial: int, rounds: int) -> _Job:
        fabric, kernel = self.fabric, KERNELS.index(row.kernel)
        # The variation of a component is the same in all rows of a kernel.
        sender, receiver = (
            self.noise.hosts(self._rng(0, kernel, side), fabric.ports)[self._port_of_rank] for side in (0, 1)
        )
        if row.kernel != "bandwidth":  # both ends send and receive
            sender = receiver = (sender + receiver) * np.float32(0.5)
        spread = self.noise.links(self._rng(1), fabric.links)
        return _Job(
            row, serial, sender, receiver, condition_of(fabric, self.faults, spread, rounds, self._rng(2, serial))
        )

    def _rng(self, *key: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))

    @cached_property
    def _port_of_rank(self) -> Codes:
        return ports_of_ranks(self.fabric, self.ranks_per_host)

    @cached_property
    def actual_routing(self) -> ActualRouting:
        """Paths that messages take: those of the topology, with hosts at the switch that a fault moved them to."""
        port_switch = self.fabric.port_switch.copy()
        for fault in self.faults:
            if fault.moved_to:
                ports = (np.array(fault.links(self.fabric)) - self.fabric.switch_links) % self.fabric.ports
                port_switch[ports] = self.fabric.switch_codes[fault.moved_to]
        return ActualRouting(self.fabric, self._port_of_rank, port_switch, self.seed)

    # ------------------------------------------------------------------------------------------------ cells

    def _matrix(self, job: _Job) -> tuple[dict[str, Any], Codes]:
        """Full matrix of medians, by the fast method."""
        rng, n = self._rng(3, job.serial), self.ranks
        scatter = partial(self._scatter, job, rng)
        pairs = np.full(n - 1 + n % 2, n // 2, dtype=np.int32)
        return matrix_arrays(self.actual_routing, job.condition, job.row, n, scatter), pairs

    def _measured(self, jobs: Sequence[_Job], partner: Codes, *, full: bool) -> list[tuple[dict[str, Any], Codes]]:
        """Arrays of the rows, cell by cell, and the pairs of each round."""
        pairs = (partner >= 0).sum(axis=0).astype(np.int32) // 2
        before = np.cumsum(pairs) - pairs
        stores = [Store(job.row, partner, full=full, slowest=32.0 if self.contention else 3.0) for job in jobs]
        for number, cells in enumerate(cells_of(partner, BLOCK)):
            paths = self.actual_routing.paths(cells)
            half = cells.src.size // 2
            in_round = np.arange(half) - np.searchsorted(cells.round[:half], cells.round[:half])
            turn = np.tile(before[cells.round[:half]] + in_round, 2)
            for job, store in zip(jobs, stores, strict=True):
                when = started(job.row, cells.src, cells.dst, cells.round, turn)
                store.put("started", cells, when)
                self._measure_block(job, store, cells, paths, self._rng(3, job.serial, number))
        return [(store.finished(), pairs) for store in stores]

    def _measure_block(
        self, job: _Job, store: Store, cells: Measurements, paths: CellLinks, rng: np.random.Generator
    ) -> None:
        row, actual = job.row, self.actual_routing
        at_once = row.kernel in AT_ONCE
        if self.contention and row.order == "parallel" and row.kernel != "latency":
            paths = replace(paths, loads=path_flows(paths.links, cells, self.fabric.links, at_once=at_once))
        delay, per_byte = costs(paths, job.condition, cells, both_directions=at_once)
        if actual.adaptive:
            delay = delay + shortest_hops(actual, cells) * LINK_LATENCY_S
            if paths.loads is not None:
                per_byte = np.maximum(per_byte, contended_time(actual, job.condition, cells, at_once=at_once))
        events = events_of(actual, job.condition, cells, paths, row.kernel)
        scatter = self._scatter(job, rng, cells.src, cells.dst)
        if at_once:  # both ends measure the same time
            scatter[scatter.size // 2 :] = scatter[: scatter.size // 2]
        if row.simple:
            for index, size in enumerate(row.sizes):
                clean = times(row.kernel, size, delay, per_byte, cells.reverse)
                store.put("time_median", cells, clean * np.exp(scatter), index)
        for pairs, place in _sampled(row, events, cells.src.size // 2):
            chosen = cells.only(pairs)
            positions = np.concatenate([pairs, pairs + cells.src.size // 2])
            met = meet(rng, events.only(place), delay[positions], per_byte[positions])
            for index, size in enumerate(row.sizes):
                messages = times(row.kernel, size, *met, chosen.reverse).astype(np.float32)
                deviations = rng.standard_normal(messages.shape, dtype=np.float32)
                deviations *= np.float32(self.noise.message_scale)
                deviations += scatter[positions, None]
                messages *= np.exp(deviations, out=deviations)
                store.put_messages(chosen, messages, index)

    def _scatter(self, job: _Job, rng: np.random.Generator, src: Codes, dst: Codes) -> Values:
        """Log-factors of the cells (src, dst), which are broadcast against each other."""
        shape = np.broadcast_shapes(src.shape, dst.shape)
        scatter = self.noise.pairs(rng, shape)
        if (job.condition.scatter != 1).any():
            host = self._port_of_rank // self.fabric.rails
            wide = np.maximum(job.condition.scatter[host[src]], job.condition.scatter[host[dst]]) - 1
            scatter += wide * np.float32(self.noise.scale) * rng.standard_normal(shape, dtype=np.float32)
        scatter += job.sender[src] + job.receiver[dst]
        return scatter


@dataclass(frozen=True)
class _Job:
    """A row to measure, with the state of the fabric at that time."""

    row: SimulatedRow
    serial: int  # earlier rows of the run
    sender: Values  # (ranks,) log-effects
    receiver: Values
    condition: Condition


def _sampled(row: SimulatedRow, events: Events, pairs: int) -> Iterator[tuple[Codes, Codes]]:
    """Yield pairs whose single messages have to be generated, in blocks, and the place of each cell in the block."""
    chosen = np.unique(events.cell % max(1, pairs)).astype(np.int64) if row.simple else np.arange(pairs)
    for first in range(0, chosen.size, SAMPLED):
        block = chosen[first : first + SAMPLED]
        place = np.full(2 * pairs, -1, dtype=np.int32)
        place[block] = np.arange(block.size)
        place[block + pairs] = np.arange(block.size, 2 * block.size)
        yield block, place


def _check(row: SimulatedRow) -> None:
    if row.kernel not in KERNELS:
        raise UsageError(f"simulate: kernel '{row.kernel}'", f"choose from {', '.join(KERNELS)}")
    if not row.sizes or min(row.sizes) < 0:
        raise UsageError(f"simulate: sizes {row.sizes}", "give sizes in bytes, 0 or more")
    for name in row.statistics:
        if name not in STATISTICS:
            raise UsageError(f"simulate: statistic '{name}'", f"choose from {', '.join(STATISTICS)}")


def _named(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Rows with distinct names: the kernel's, with a number from the second on."""
    counts: dict[str, int] = {}
    named = []
    for row in rows:
        counts[row.kernel] = count = counts.get(row.kernel, 0) + 1
        named.append(replace(row, name=row.kernel if count == 1 else f"{row.kernel}-{count}"))
    return tuple(named)


def _rows_of(run: Run) -> list[SimulatedRow]:
    """One row for each kernel and list of sizes of the run."""
    by_kernel: Mapping[Any, SimulatedRow] = {
        (row.kernel, row.sizes): SimulatedRow(
            row.kernel,  # type: ignore[arg-type]
            row.sizes,
            "serial" if row.facts.schedule.order == "serial" else "parallel",
            "histogram" in row.arrays,
            row.statistics,
        )
        for row in reversed(run.rows)
    }
    return list(by_kernel.values())[::-1]
