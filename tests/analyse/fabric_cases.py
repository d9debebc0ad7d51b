"""Fabrics with switches between switches, measured in a few planned rounds, and what can happen to such runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from fablint.analyse.candidates.components import ComponentType, list_component_types
from fablint.analyse.explain.evidence import Evidence, gather_evidence
from fablint.analyse.null_model.comparison_groups import Classes
from fablint.analyse.null_model.effects import Effects
from fablint.analyse.null_model.median_polish import fit
from fablint.analyse.observations.message_paths import MessagePaths, find_message_paths
from fablint.analyse.observations.pair_matrix import Pairs
from fablint.analyse.observations.samples import UsableRow
from fablint.analyse.settings import Settings
from fablint.model import Finding, Placement, Run, State, Topology
from fablint.plan.schedule.stratified import stratified_rounds
from fablint.simulate import (
    Fabric,
    Fault,
    Noise,
    SimulatedFabric,
    SimulatedRow,
    dragonfly,
    fat_tree,
    multi_rail,
)
from fablint.topology.routed_placement import RoutedPlacement
from fablint.topology.routing import routes_of
from fact_cases import with_facts

STREAM = SimulatedRow("bandwidth", (1 << 20,))
ROUND_TRIP = SimulatedRow("latency", (8,))
NOISES = ("normal", "student3", "lognormal")
QUIET = Noise(scale=0.005, spike_share=0.0, host_spread=0.001, link_spread=0.0)

TREE, DEEP, BIG = fat_tree(6, 2), fat_tree(3, 3), fat_tree(8, 3)
FLY, RAILS = dragonfly(5, 4, 3), multi_rail(fat_tree(4, 2), 2)
MESH_FLY = dragonfly(5, 4, 3, minimal_share=None)
HASHED = Fabric(replace(TREE.topology, routing=replace(TREE.topology.routing, kind="ecmp")))
FABRICS = {"tree": TREE, "deep": DEEP, "hashed": HASHED, "adaptive": FLY, "shortest": MESH_FLY, "rails": RAILS}


_planned: dict[tuple[object, ...], Sequence[np.ndarray]] = {}


def rounds_of(fabric: Fabric, seed: int = 1) -> Sequence[np.ndarray]:
    """The rounds that a check of the fabric plans; the same each time."""
    routing = fabric.topology.routing
    key = (fabric.topology.source, fabric.hosts, routing.kind, routing.minimal_share, seed)
    if key not in _planned:
        _planned[key] = _plan(fabric, seed)
    return _planned[key]


def _plan(fabric: Fabric, seed: int) -> Sequence[np.ndarray]:
    hosts = np.repeat(fabric.hosts, fabric.rails).tolist()
    nics = [fabric.nics[rank % fabric.rails] for rank in range(len(hosts))] if fabric.rails > 1 else []
    return stratified_rounds(RoutedPlacement.on_routes(hosts, fabric.topology, nics), seed)


def faulty(fabric: Fabric, *faults: Fault, noise: Noise | None = None, seed: int = 1) -> SimulatedFabric:
    """Pairs that are measured at once share what they cross."""
    return SimulatedFabric(fabric, faults, noise or Noise(), seed=seed, ranks_per_host=fabric.rails, contention=True)


def checked(fabric: SimulatedFabric, *rows: SimulatedRow) -> Run:
    """Its run of planned rounds: of streams, where no row is given."""
    return fabric.measure(rounds_of(fabric.fabric), rows or (STREAM,))


def measured(fabric: Fabric, layout: str, *faults: Fault, row: SimulatedRow = STREAM, seed: int = 1) -> Run:
    """One row as `list` (planned rounds) or `matrix` (all pairs)."""
    return faulty(fabric, *faults, seed=seed).measure(rounds_of(fabric) if layout == "list" else None, (row,))


def thinned(run: Run, share: float, seed: int) -> Run:
    """A random share of the cells was never measured, whatever the layout."""
    rng = np.random.default_rng(seed)
    return _changed(run, lambda times: np.where(rng.random(times.shape) < share, np.nan, times))


def _changed(run: Run, change: Callable[[np.ndarray], np.ndarray]) -> Run:
    rows = []
    for row in run.rows:
        times = change(np.array(row.arrays["time_median"])).astype(np.float32)
        count = np.where(np.isnan(times), 0, row.arrays["count"]).astype(np.uint32)
        rows.append(replace(row, arrays={**row.arrays, "time_median": times, "count": count}))
    return replace(run, rows=tuple(rows))


def as_list(run: Run) -> Run:
    """A run of all pairs, its matrices as lists of rounds."""
    rows = []
    for row in run.rows:
        rounds = np.asarray(row.arrays["round"][0])
        src, dst = np.nonzero(rounds >= 0)
        partner = np.full((run.ranks, int(rounds.max()) + 1), -1, dtype=np.int32)
        partner[src, rounds[src, dst]] = dst
        times = np.full((*partner.shape, len(row.sizes)), np.nan, dtype=np.float32)
        times[src, rounds[src, dst]] = np.asarray(row.arrays["time_median"])[0, src, dst]
        arrays = {"time_median": times, "dst": partner, "size": row.arrays["size"]}
        rows.append(replace(with_facts(row, layout="list", pattern="rounds"), arrays=arrays))
    return replace(run, rows=tuple(rows))


def findings(verdict_findings: Sequence[Finding], *states: State) -> list[Finding]:
    return [finding for finding in verdict_findings if finding.state in states]


# ------------------------------------------------------------------------------------------------ inside a view


class View:
    """Intermediate results of `fablint.analyse.explain.view.judge_view` for one row, before the search."""

    def __init__(
        self, run: Run, topology: Topology | None, *, bidirectional: bool, loads: np.ndarray | None = None
    ) -> None:
        self.run, self.topology, self.bidirectional = run, topology, bidirectional
        self.placement: Placement = Placement.of(run, topology)
        self.routes = routes_of(topology) if topology and topology.cables else None
        self.pairs = Pairs.log_times(UsableRow(run.rows[0]).flows(run.rows[0].sizes[0], self.placement).observations)
        self.message_paths: MessagePaths = find_message_paths(self.pairs, self.placement, self.routes)
        self.classes = Classes(self.placement, loads)

    def fitted(self) -> Effects:
        return fit(self.pairs, self.classes, self.message_paths, Settings(), bidirectional=self.bidirectional)

    def list_component_types(self) -> list[ComponentType]:
        return list_component_types(self.pairs, self.placement, self.message_paths, bidirectional=self.bidirectional)

    def evidence(self, effects: Effects) -> Evidence:
        tests = 3 * sum(len(component_type) for component_type in self.list_component_types())
        found = gather_evidence(effects, Settings(), tests=tests)
        assert found is not None
        return found


def view_of(fabric: Fabric, layout: str, *faults: Fault, kernel: str = "bandwidth", seed: int = 1) -> View:
    """One row of a fabric, looked at."""
    row = STREAM if kernel == "bandwidth" else ROUND_TRIP
    run = measured(fabric, layout, *faults, row=row, seed=seed)
    return View(run, fabric.topology, bidirectional=kernel != "bandwidth")
