"""A scenario of a cluster: what is true of it, how its ranks are measured, and the run directory of a seed."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from held_out.files import write
from held_out.network import Model, Network
from held_out.noise import Conditions, Effect, lognormal
from held_out.rank_runs.cell_samples import histogram, samples, statistics, with_faults
from held_out.rank_runs.cluster import Cluster, topology_text
from held_out.rank_runs.component_faults import Carriers, ComponentFault, names_of_fault
from held_out.rank_runs.rank_schedules import all_ranks, by_rail, of_endpoints, repeat_of, without_shared_links
from held_out.rank_runs.run_directory import MeasuredRow, write_rows
from held_out.scenario import SMALL, STREAM, Case, Expected, Truth
from held_out.schedule import Schedule, one_at_a_time

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
SIZES = {"latency": SMALL, "bandwidth": STREAM}
Faults = Callable[[Cluster, np.random.Generator], Sequence[ComponentFault]]
# (P,) which measurements of NICs have no figure, although they were planned.
Missing = Callable[[Cluster, Schedule, np.random.Generator], Bools]
FollowUp = Callable[[Cluster, Sequence[ComponentFault], np.random.Generator], Schedule]


@dataclass(frozen=True)
class RankScenario:
    """What is drawn with a seed.

    Attributes:
        cluster: makes the cluster.
        faults: the faulty components.
        effects: noise that all samples of a measurement share.
        design: what is particular about the healthy network.
        expected: as of a `Scenario`.
        passes: should a healthy run be a PASS? None: the load of others is in the data, and no PASS may be right.
        quantities: rows of the run.
        pattern: `matrix`: all pairs of ranks on different hosts, `rails`: each rail with itself.
        shared: do streams of a round share links between switches? Else rounds are divided until they do not; streams
            of adaptive or hashed paths share links in any case.
        rounds: of `rails`, matchings drawn by chance; None for all pairs of hosts.
        missing: planned measurements without a figure.
        follow_up: a row of isolated measurements after the others, free of `effects` but the first.
        histograms: does the run store them?
    """

    name: str
    cluster: Callable[[], Cluster]
    faults: Faults = lambda cluster, rng: ()
    effects: Callable[[Cluster], Sequence[Effect]] = lambda cluster: (lognormal(0.006),)
    design: Callable[[Cluster, Network, np.random.Generator], None] = lambda cluster, network, rng: None
    expected: Expected = "healthy"
    passes: bool | None = None
    model: Model = "bottleneck"
    uplink: float = 1.0
    quantities: Sequence[Literal["latency", "bandwidth"]] = ("latency", "bandwidth")
    pattern: Literal["matrix", "rails"] = "matrix"
    rounds: int | None = None
    repeats: int = 1
    serial: bool = False
    shared: bool = False
    missing: Missing | None = None
    follow_up: FollowUp | None = None
    histograms: bool = False
    topology: Literal["cables", "hosts"] = "cables"

    def case(self, seed: int, folder: Path) -> Case:
        """Draw the run of a seed and write its files into `folder`."""
        rng = np.random.default_rng([zlib.crc32(self.name.encode()), seed])
        cluster = self.cluster()
        network = Network(cluster.fabric, self.model, self.uplink)
        self.design(cluster, network, rng)
        faults = tuple(self.faults(cluster, rng))
        schedule = self._schedule(cluster, network, rng)
        rows = self._rows(cluster, network, faults, schedule, rng)
        run = write_rows(folder / "measured.run", cluster, rows)
        [topology] = write(folder, {"topology.yaml": topology_text(cluster, self.topology == "cables")})
        truths = () if self.expected != "faulty" else self._truths(cluster, network, faults, schedule)
        return Case((run,), topology, truths)

    def _schedule(self, cluster: Cluster, network: Network, rng: np.random.Generator) -> Schedule:
        """Planned pairs of ranks."""
        if self.pattern == "matrix":
            schedule = all_ranks(cluster, rng, self.repeats)
        else:
            schedule = by_rail(cluster, rng, self.repeats, self.rounds)
        if self.serial:
            return one_at_a_time(schedule)
        if self.shared or cluster.fabric.routing != "static":
            return schedule
        return without_shared_links(cluster, network, schedule)

    def _rows(
        self,
        cluster: Cluster,
        network: Network,
        faults: Sequence[ComponentFault],
        schedule: Schedule,
        rng: np.random.Generator,
    ) -> list[MeasuredRow]:
        """The rows one after the other; a missing measurement is missing in all of them."""
        nics = of_endpoints(cluster, schedule)
        lacking = np.zeros(len(schedule), bool)
        if self.missing is not None:
            lacking |= self.missing(cluster, nics, rng)
        for fault in faults:
            if fault.dead:  # the answer is missing as well, wherever the message itself arrives
                lacking |= fault.crossed_by(cluster, network, nics.src, nics.dst)
                lacking |= fault.crossed_by(cluster, network, nics.dst, nics.src)
        factors = [effect(Conditions(network, nics, rng)) for effect in self.effects(cluster)]
        rows, begin = [], 0.0
        slowing = [fault for fault in faults if not fault.dead]
        for quantity in self.quantities:
            size = SIZES[quantity]
            seconds = samples(cluster, network, slowing, nics, quantity, size, rng)
            for factor in factors:
                seconds = seconds * factor(quantity, size)[:, None]
            is_matrix = self.pattern == "matrix" and cluster.per_host == 1  # else pairs on one host are not planned
            row = MeasuredRow(
                quantity, quantity, size, schedule, ~lacking, statistics(seconds), begin=begin, matrix=is_matrix,
                serial=self.serial, repeats=self.repeats if is_matrix else 1, repeat=repeat_of(schedule),
            )  # fmt: skip
            rows.append(replace(row, histogram=histogram(seconds)) if self.histograms else row)
            begin += float(schedule.started.max()) + 1.0
        if self.follow_up is not None:
            rows.append(self._follow_up_row(cluster, network, slowing, begin, rng))
        return rows

    def _follow_up_row(
        self, cluster: Cluster, network: Network, faults: Sequence[ComponentFault], begin: float,
        rng: np.random.Generator,
    ) -> MeasuredRow:  # fmt: skip
        """Isolated measurements of streams, beside the first kind of noise only."""
        assert self.follow_up is not None
        schedule = self.follow_up(cluster, faults, rng)
        nics = of_endpoints(cluster, schedule)
        seconds = samples(cluster, network, faults, nics, "bandwidth", STREAM, rng)
        seconds = seconds * self.effects(cluster)[0](Conditions(network, nics, rng))("bandwidth", STREAM)[:, None]
        return MeasuredRow(
            "bandwidth-follow-up-1", "bandwidth", STREAM, schedule, np.ones(len(schedule), bool), statistics(seconds),
            begin=begin, matrix=False, serial=True, purpose="follow_up",
        )  # fmt: skip

    def _truths(
        self, cluster: Cluster, network: Network, faults: Sequence[ComponentFault], schedule: Schedule
    ) -> tuple[Truth, ...]:
        """Names and losses of the faults. Round trips alone, and dead components, show no direction."""
        nics = of_endpoints(cluster, schedule)
        carriers = Carriers(cluster, network, nics.src, nics.dst)
        truths = []
        for fault in faults:
            slow = fault.crossed_by(cluster, network, nics.src, nics.dst)
            names = names_of_fault(fault, carriers)
            if fault.dead or "bandwidth" not in self.quantities:
                turned = replace(fault, direction="both")
                back = names_of_fault(turned, carriers)
                names = replace(names, series=(names.series | back.series) - names.exact)
            loss = self._loss(cluster, network, fault, nics.chosen(slow))
            truths.append(Truth(fault.plain, names, loss, fault.dead))
        return tuple(truths)

    def _loss(self, cluster: Cluster, network: Network, fault: ComponentFault, nics: Schedule) -> dict[str, float]:
        """What the slow state costs the pairs that cross the component, the median of them."""
        if fault.dead or not len(nics):
            return {}
        slow, losses = with_faults(cluster, network, [fault]), {}
        for quantity in self.quantities:
            before, after = (state.seconds(nics.src, nics.dst, quantity, SIZES[quantity]) for state in (network, slow))
            change = 1 - before / after if quantity == "bandwidth" else after / before - 1
            losses[quantity] = float(np.median(change))
        return losses
