"""What preflight of 1,000 and of 10,000 hosts takes: time of every stage, and memory.

    python benchmarks/preflight_scale.py [--hosts 1000,10000] [--machine slingshot] [--lines 850] [--profile]

Snapshots of healthy hosts are generated (benchmarks/generated_fleets): 190 KB each, half of it the log of the kernel.
Stages run one after the other in a process of their own; memory is the most that was resident in it until its end.
`whole` is `fablint preflight --snapshot FILE --json` with its start and end, and the memory of all its processes (PSS).
CPU times of a stage are those of all its processes. On a busy machine they mean something, wall times do not.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent))

from generated_fleets.documents import LINES, Fleet
from generated_fleets.machines import MACHINES
from generated_fleets.program import preflight

GIB = 1 << 30
SLOWEST = 30  # checks that are listed
ROW = "{:<28} {:>8} {:>8} {:>10}"


def print_row(stage: str, wall_s: float, cpu_s: float, peak_bytes: int) -> None:
    print(ROW.format(stage, f"{wall_s:.1f}", f"{cpu_s:.1f}", f"{peak_bytes / GIB:.2f}"), flush=True)


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Measure what is done within it."""
    wall, cpu = time.perf_counter(), cpu_s()
    yield
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    print_row(name, time.perf_counter() - wall, cpu_s() - cpu, peak)


def cpu_s() -> float:
    """CPU time of this process and of the processes that it has started and that have ended."""
    return sum(os.times()[:4])


def timed(spent: dict[str, float], function: Callable[[Any], Any], groups: Iterable[Any]) -> Iterator[Any]:
    """What a function makes of each check; its CPU time is put into `spent`. The first check reads for others too."""
    for group in groups:
        made = []
        for check in group:
            begun = time.process_time()
            made += function([check])
            spent[check.id] = time.process_time() - begun
        yield made


def stages(path: Path, *, profile: bool) -> None:
    """Everything that preflight does with saved snapshots, stage by stage."""
    from fablint.preflight import Fleet as Judged, Host, judge
    from fablint.report import fitness_json, fitness_table
    from fablint.snapshot import load_snapshots, save_snapshots, snapshot_of
    from fablint.system import System

    with stage("read"):
        documents = load_snapshots(path)
    with stage("understand"):
        hosts = [Host(snapshot_of(document)) for document in documents]
    profiled, spent = cProfile.Profile(), dict[str, float]()
    with stage("judge, one process"):
        if profile:
            profiled.enable()
        fitness = judge(Judged(hosts), each=partial(timed, spent))
        profiled.disable()
    with stage("judge, a process per CPU"):
        fitness = judge(Judged([Host(host.snapshot) for host in hosts]), each=System().forked_map)
    with stage("summary"):
        fitness_table(fitness)
    with stage("JSON"):
        letters = sum(map(len, fitness_json("quick", fitness)))
    with stage("save, packed"):
        save_snapshots(documents, path.with_suffix(".json.gz"))
    print(f"{len(fitness.results):,} results, {len(fitness.unfit)} hosts unfit, {letters / 1e6:.0f} MB of JSON")
    slowest = sorted(spent.items(), key=lambda pair: -pair[1])
    print("slowest checks, CPU s: " + ", ".join(f"{name} {seconds:.2f}" for name, seconds in slowest[:SLOWEST]))
    if profile:
        pstats.Stats(profiled).sort_stats("tottime").print_stats(25)


def measure(fleet: Fleet, folder: Path, more: list[str]) -> None:
    """Print all figures of a fleet."""
    path = folder / "fleet.json"
    print(f"{fleet.hosts:,} hosts, {fleet.machine.name}")
    print(ROW.format("stage", "wall s", "CPU s", "peak GiB"))
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(f"{line}\n" for line in fleet.documents())
    size = path.stat().st_size
    subprocess.run([sys.executable, __file__, "--stages", str(path), *more], check=True)
    packed = path.with_suffix(".json.gz")
    for item in (path, packed):
        run = preflight(folder, item)
        name = f"whole, {item.stat().st_size / 1e6:.0f} MB{', packed' * (item == packed)}"
        print_row(name, run.wall_s, run.cpu_s, run.peak_bytes)
    print(f"{size / fleet.hosts / 1000:.0f} KB of each host\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", default="1000,10000")
    parser.add_argument("--machine", choices=MACHINES, default="slingshot")
    parser.add_argument("--lines", type=int, default=LINES, help="of each kernel log")
    parser.add_argument("--profile", action="store_true", help="also tell where the time of judging goes")
    parser.add_argument("--stages", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.stages:
        stages(given.stages, profile=given.profile)
        return
    with tempfile.TemporaryDirectory() as name:
        for hosts in map(int, given.hosts.split(",")):
            fleet = Fleet(MACHINES[given.machine], hosts, lines=given.lines)
            measure(fleet, Path(name), ["--profile"] * given.profile)


if __name__ == "__main__":
    main()
