"""A check of a simulated fabric: the same loop as a real one, with the simulator in the place of the engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from fablint.analyse import diagnose
from fablint.model import Row, RowSpec, Run, Slots
from fablint.plan.check.check_loop import CheckLoop, Diagnose, LoopResult, Measure, first_step
from fablint.plan.check.plan_input import PlanInput
from fablint.plan.check.retest import Retest
from fablint.plan.check.stages import Stage
from fablint.simulate import Fault, Noise, SimulatedFabric, SimulatedRow
from fablint.simulate.simulated_fabric import Fabric
from fact_cases import attributes_of, run_facts


def check_loop(request: PlanInput, measure: Measure, diagnose: Diagnose, clock: Callable[[], float]) -> LoopResult:
    """The loop of a check with the first stage as its only step, as on one machine."""
    begun = clock()
    steps = [first_step(request, measure)]
    return CheckLoop(steps, lambda _: request, measure, diagnose, lambda: clock() - begun).run()


@dataclass
class SimulatedCheck:
    """Measures stages on a fabric, one rank on each host, and keeps them."""

    fabric: Fabric
    faults: tuple[Fault, ...] = ()
    noise: Noise = field(default_factory=Noise)
    seed: int = 1
    stages: list[Stage] = field(default_factory=list)
    seconds: float = 0.0

    def fabric_measured(self) -> SimulatedFabric:
        return SimulatedFabric(self.fabric, self.faults, self.noise, seed=self.seed, contention=True)

    def asked(self, **more: object) -> PlanInput:
        slots = tuple(Slots(host, 1) for host in self.fabric.hosts)
        return PlanInput(len(slots), slots, self.fabric.topology, **more)  # type: ignore[arg-type]

    def measure(self, stage: Stage, run: Run | None) -> tuple[Run, bool]:
        self.stages.append(stage)
        self.seconds += stage.plan.predicted_s
        rows = tuple(simulated_row(row.spec) for row in stage.plan.rows)
        rounds = next(iter(stage.rounds.values()), None)
        if run is None:
            return self.fabric_measured().measure(rounds, rows), True
        assert rounds is not None
        return self.fabric_measured().extended(run, rounds, rows), True

    def run(self, **more: object) -> LoopResult:
        asked = self.asked(**more)
        return check_loop(asked, self.measure, lambda run: diagnose(run, asked.topology), lambda: self.seconds)

    def rounds(self) -> list[int]:
        return [stage.plan.rows[0].rounds for stage in self.stages]


def simulated_row(row: RowSpec) -> SimulatedRow:
    return SimulatedRow(row.kernel, row.sizes, row.order, row.histogram)  # type: ignore[arg-type]


def retested(check: SimulatedCheck, retest: Retest) -> Run:
    """The new run of a retest: the hosts that take part, counted anew."""
    hosts = [slot.host for slot in retest.stage.plan.slots for _ in range(slot.ranks)]
    part = np.array([check.fabric.hosts.index(host) for host in hosts])
    (rounds,) = retest.stage.rounds.values()
    rows = tuple(simulated_row(row.spec) for row in retest.stage.plan.rows)
    run = check.fabric_measured().measure([part[pairs] for pairs in rounds], rows)
    anew = np.full(len(check.fabric.hosts) + 1, -1, dtype=np.int32)
    anew[part] = np.arange(part.size)
    attributes = {**attributes_of(run), "ranks": part.size, "hosts": hosts, "rank_host": list(range(part.size))}
    attributes |= {
        name: [attributes_of(run)[name][rank] for rank in part] for name in ("rank_nic", "rank_cores", "rank_numa")
    }
    return Run(None, run_facts(attributes), tuple(replace(row, arrays=_of_part(row, part, anew)) for row in run.rows))


def _of_part(row: Row, part: np.ndarray, anew: np.ndarray) -> dict[str, np.ndarray]:
    arrays = {name: np.asarray(array)[part] for name, array in row.arrays.items() if name not in ("size", "bucket")}
    return {**row.arrays, **arrays, "dst": anew[arrays["dst"]]}
