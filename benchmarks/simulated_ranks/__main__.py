"""The stratified rounds of a check with thousands of ranks of the real engine, on a fabric simulated by SimGrid.

    python benchmarks/simulated_ranks [--leaves 128 --hosts-per-leaf 32 --spines 16] [--bytes 65536]

One up-link of a leaf has half of its bandwidth. Printed are the memory of all ranks together (they are threads of one
process, each with its own copy of the engine's data), the CPU time of the simulation, missing measurements, and the
verdict before any follow-up. 4,096 ranks take 10 minutes of CPU and 8 GiB. Needs the simfabric test bed beside the
checkout, and SimGrid; says so and ends where they are missing.
"""

from __future__ import annotations

import argparse
import re
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "engine"))
from simgrid_bed import BED, build_smpi_engine, make_fabric, run_engine, topology_of

from fablint.analyse import diagnose
from fablint.model import Run, Slots, State, Topology
from fablint.plan.check.check_loop import first_step
from fablint.plan.check.plan_input import PlanInput
from fablint.plan.check.stages import Stage
from fablint.store import missing_rounds, read_run

GIB = 1 << 20  # of the kilobytes of ru_maxrss
MOST_S = 7200.0  # wall time of a simulation


def measured(folder: Path, engine: Path, topology: Topology, size: int) -> Run:
    """Measure the first step of a check: a few messages of each pair, instead of as many as its budget allows."""

    def measure(stage: Stage, _: Run | None) -> tuple[Run, bool]:
        for name, text in stage.texts().items():
            (folder / "a.run" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "a.run" / name).write_text(text)
        text = re.sub(r"--budget \S+", "--samples 3", stage.plan.text)
        text = text.replace("--sizes 1M --warmup 2", f"--sizes {size} --window 2 --warmup 1")
        (folder / "a.plan").write_text(text)
        run_engine(folder, engine, ["--plan", "a.plan", "-q", "-o", "a.run"], limit_s=MOST_S)
        return read_run(folder / "a.run"), True

    asked = PlanInput(len(topology.host_switch), tuple(Slots(host, 1) for host in topology.host_switch), topology)
    run, _ = first_step(asked, measure)(None)
    assert run is not None
    return run


def main(arguments: Sequence[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--leaves", type=int, default=128)
    options.add_argument("--hosts-per-leaf", type=int, default=32)
    options.add_argument("--spines", type=int, default=16)
    options.add_argument("--bytes", type=int, default=1 << 16, help="of a message of the bandwidth row")
    chosen = options.parse_args(arguments)
    if not (BED / "simfabric").exists() or shutil.which("smpicxx") is None:
        print("left out: the simfabric test bed is not beside the checkout, or SimGrid is not installed")
        return
    hosts = chosen.leaves * chosen.hosts_per_leaf
    shape = ["--param", f"leaf={chosen.hosts_per_leaf}", "--param", f"spines={chosen.spines}", "--routing", "dmodk"]
    noise = ["--spread", "0.02", "--noise", "50ns", "--fault", "bw:any-up.out:0.5"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        engine = build_smpi_engine(folder)
        built = resource.getrusage(resource.RUSAGE_CHILDREN)
        truth = make_fabric(folder, ["--topology", "twolevel", "--hosts", str(hosts), *shape, *noise])
        topology = topology_of(folder)
        print(f"{hosts:,} ranks, {len(topology.cables):,} cables, slow: {truth['faults'][0]['target']}", flush=True)
        run = measured(folder, engine, topology, chosen.bytes)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = used.ru_utime + used.ru_stime - built.ru_utime - built.ru_stime
        print(f"measure  {cpu:6.1f} s of CPU, {used.ru_maxrss / GIB:.1f} GiB of all ranks")
        for row in run.rows:
            print(f"row      {row.name}: {row.facts.schedule.rounds} rounds, {len(missing_rounds(row))} missing")
        begun = time.process_time()
        findings = diagnose(run, topology).verdict.findings
        print(f"judge    {time.process_time() - begun:6.1f} s of CPU")
        for finding in findings:
            if finding.state is not State.OK:
                print(f"         {finding.state} {finding.component} {finding.name} {finding.direction or ''}")


if __name__ == "__main__":
    main()
