"""Runs of several allocations of a simulated fabric, each with some of its hosts and a level of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fablint.model import Placement, Row, Run
from fablint.plan.schedule.split_hosts import SplitAllocation, split_hosts, with_ties
from fablint.plan.schedule.stratified import stratified_rounds
from fablint.simulate import Fault, Noise, SimulatedFabric, SimulatedRow
from fablint.simulate.simulated_fabric import Fabric
from fablint.store import join_runs
from fablint.topology.routed_placement import RoutedPlacement

ROWS = (SimulatedRow("latency", (8,)), SimulatedRow("bandwidth", (1 << 20,)))


@dataclass(frozen=True)
class SplitFabric:
    """A fabric that `count` allocations measure in parts."""

    fabric: Fabric
    count: int
    overlap: int = 2
    faults: tuple[Fault, ...] = ()
    levels: tuple[float, ...] = ()  # relative change of all times of an allocation
    noise: Noise = field(default_factory=Noise)
    seed: int = 1
    ties: bool = True
    contention: bool = False

    @property
    def allocations(self) -> list[SplitAllocation]:
        """The allocations."""
        return split_hosts(self.fabric.hosts, self.fabric.topology, self.count, self.overlap, self.seed)

    def run_of(self, number: int, allocation: SplitAllocation) -> Run:
        """Return what an allocation measures."""
        placement = RoutedPlacement.on_routes(allocation.hosts, self.fabric.topology)
        rounds = stratified_rounds(placement, self.seed)
        if self.ties:
            rounds = with_ties(rounds, placement, allocation.ties)
        position = {host: code for code, host in enumerate(self.fabric.hosts)}
        codes = np.array([position[host] for host in allocation.hosts], dtype=np.int32)
        simulated = SimulatedFabric(
            self.fabric, self.faults, self.noise, self.seed * 1000 + number, contention=self.contention
        )
        run = simulated.measure([codes[pairs] for pairs in rounds], ROWS)
        level = self.levels[number] if number < len(self.levels) else 0.0
        return of_hosts(run, codes, level, number)

    def runs(self, missing: Sequence[int] = ()) -> list[Run]:
        """Return the runs of the allocations."""
        allocations = enumerate(self.allocations)
        return [self.run_of(number, allocation) for number, allocation in allocations if number not in missing]

    def joined(self, missing: Sequence[int] = ()) -> Run:
        """Return the runs as one."""
        return join_runs(self.runs(missing))


def of_hosts(run: Run, codes: np.ndarray, level: float = 0.0, number: int = 0) -> Run:
    """Return the run of some of its hosts, one rank on each, with times that are longer by a share `level`."""
    place = np.full(run.ranks + 1, -1, dtype=np.int32)
    place[codes] = np.arange(codes.size)
    rows = []
    for row in run.rows:
        arrays = {}
        for name, array in row.arrays.items():
            values = np.asarray(array[:])
            if values.ndim > 1 and values.shape[0] == run.ranks:
                values = values[codes]
            if name == "dst":
                values = np.where(values < 0, -1, place[values]).astype(np.int32)
            if name.startswith("time_"):
                values = (values * (1 + level)).astype(values.dtype)
            arrays[name] = values
        schedule = replace(row.facts.schedule, cells_per_round=(arrays["dst"] >= 0).sum(axis=0).tolist())
        rows.append(Row(row.name, replace(row.facts, schedule=schedule), arrays))
    hosts = [run.hosts[code] for code in codes.tolist()]
    launch = replace(run.facts.launch, started_epoch_s=1.8e9 + 3600.0 * number)
    facts = replace(
        run.facts,
        ranks=codes.size,
        hosts=hosts,
        rank_host=list(range(codes.size)),
        rank_nic=[run.facts.rank_nic[code] for code in codes.tolist()] if run.facts.rank_nic else (),
        launch=launch,
    )
    return Run(None, facts, tuple(rows))


def scopes(run: Run, fabric: Fabric) -> Placement:
    """Return the placement of a run on a fabric."""
    return Placement.of(run, fabric.topology)
