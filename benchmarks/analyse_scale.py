"""Time and memory of judging a large all-pairs run of one statistic and one size, and of its HTML report.

    python benchmarks/analyse_scale.py [--switches 313] [--hosts-per-switch 32] [--no-report]

The run is simulated with a slow host and a slow link by another process and read from a file, so that the peak of
memory is that of the judgement (and then of the report), with the times themselves included.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from fablint.analyse import diagnose
from fablint.model import Row, Run, State
from fablint.report import write_html
from fablint.simulate import Fabric, Fault, SimulatedRow, full_mesh, simulate

GIB = 1 << 30
SIZE = 1 << 20
ARRAYS = ("time_median", "count")


def simulated(fabric: Fabric) -> Run:
    """One bandwidth row on a fabric with two faults."""
    cable = fabric.topology.cables[5]
    faults = [
        Fault("host", fabric.hosts[len(fabric.hosts) // 2], "tx", bandwidth_factor=0.8),
        Fault("link", f"{cable.a}>{cable.b}", bandwidth_factor=0.7),
    ]
    return simulate(fabric, rows=(SimulatedRow("bandwidth", (SIZE,)),), faults=faults)


def save(folder: Path, switches: int, hosts_per_switch: int, connection: object) -> None:
    """Simulate, write the arrays, send the attributes back."""
    run = simulated(full_mesh(switches, hosts_per_switch))
    for name in ARRAYS:
        np.save(folder / f"{name}.npy", run.rows[0].arrays[name])
    connection.send((run.attributes, run.rows[0].attributes))  # type: ignore[attr-defined]


def load(folder: Path, switches: int, hosts_per_switch: int) -> Run:
    """The run with its times mapped from the file."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=save, args=(folder, switches, hosts_per_switch, there))
    process.start()
    there.close()
    root, row = here.recv()
    process.join()
    arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in ARRAYS}
    return Run(None, root, (Row("bandwidth", row, {**arrays, "size": np.array([SIZE])}),))


def main() -> None:
    """Print the figures."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--switches", type=int, default=313)
    options.add_argument("--hosts-per-switch", type=int, default=32)
    options.add_argument("--no-report", action="store_true")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = load(folder, chosen.switches, chosen.hosts_per_switch)
        topology = full_mesh(chosen.switches, chosen.hosts_per_switch).topology
        print(f"{run.ranks:,} hosts, {len(topology.switches)} switches, {len(topology.cables):,} cables")
        with timed("judge"):
            diagnosis = diagnose(run, topology)
        for finding in diagnosis.verdict.findings:
            if finding.state is not State.OK:
                print(f"        {finding.state} {finding.component} {finding.name} {finding.direction or ''}")
        if not chosen.no_report:
            page = folder / "index.html"
            with timed("report"):
                write_html(run, diagnosis, page)
            print(f"page    {page.stat().st_size / 1e6:6.1f} MB")


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Print the seconds that the block took, and the largest resident set of this process so far."""
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIB
    print(f"{what:<7} {wall:6.1f} s ({cpu:.1f} s of CPU), peak {peak:.2f} GiB", flush=True)


if __name__ == "__main__":
    main()
