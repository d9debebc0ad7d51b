"""A whole check, stage by stage, with the real engine on a simulated fabric with known faults."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from simgrid_bed import NEEDS_SIMGRID, make_fabric, run_engine, topology_of

from fablint.analyse import diagnose
from fablint.model import Run, Slots
from fablint.plan.check.check_loop import CheckLoop, first_step
from fablint.plan.check.plan_input import PlanInput
from fablint.plan.check.resume import grown_plan
from fablint.plan.check.stages import Stage
from fablint.store import missing_rounds, read_run

pytestmark = NEEDS_SIMGRID

FABRIC = ["--topology", "fattree", "--hosts", "64", "--routing", "dmodk", "--spread", "0.02", "--noise", "50ns"]

# A budget would be simulated message by message: a few samples instead.
FEWER = ((r"--budget \S+", "--samples 3"), ("--sizes 1M --warmup 2", "--sizes 1M --window 2 --warmup 1"))


class Bed:
    """Launches stages on the fabric, as `fablint check` launches them on a cluster."""

    def __init__(self, folder: Path, engine: Path, faults: list[str]) -> None:
        self.folder, self.engine, self.launches = folder, engine, 0
        make_fabric(folder, [*FABRIC, *(word for fault in faults for word in ("--fault", fault))])
        self.topology = topology_of(folder)

    def measure(self, stage: Stage, run: Run | None) -> tuple[Run, bool]:
        self.launches += 1
        path = self.folder / "a.run"
        for name, text in stage.texts().items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_text(text)
        lines = (stage.plan if run is None else grown_plan(run, stage.plan)).text
        for pattern, instead in FEWER:
            lines = re.sub(pattern, instead, lines)
        (self.folder / "a.plan").write_text(lines)
        more = [] if run is None else ["--resume", "--epoch", repr(run.facts.launch.started_epoch_s)]
        run_engine(self.folder, self.engine, ["--plan", "a.plan", "-q", "-o", "a.run", *more])
        return read_run(path), True


@pytest.mark.parametrize("faults", [[], ["bw:h0012.tx:0.5"]])
def test_a_check_names_what_is_slow_and_measures_it_alone(smpi_engine: Path, tmp_path: Path, faults: list[str]) -> None:
    bed = Bed(tmp_path, smpi_engine, faults)
    asked = PlanInput(64, tuple(Slots(host, 1) for host in bed.topology.host_switch), bed.topology)
    steps = [first_step(asked, bed.measure)]
    loop = CheckLoop(steps, lambda _: asked, bed.measure, lambda run: diagnose(run, bed.topology), lambda: 0.0)
    done = loop.run()
    assert [row.name for row in done.run.rows][:2] == ["latency", "bandwidth"]
    assert len(done.run.rows) == 2 * bed.launches
    assert [missing_rounds(row) for row in done.run.rows] == [[]] * len(done.run.rows)
    findings = done.diagnosis.verdict.findings
    found = [(one.component, one.name, one.direction) for one in findings if one.state == "FAULT"]
    assert found == ([("host", "h0012", "tx")] if faults else [])
    if faults:
        alone = done.run.row("bandwidth-follow-up-1")
        assert alone.facts.schedule.order == "serial"
        assert (alone.arrays["dst"][:][12] >= 0).sum() >= 3
