"""Time and memory of planning large fabrics, of judging large runs of one size, and of their HTML report.

    python benchmarks/analyse_scale.py [--case list,matrix] [--no-report]
    python benchmarks/analyse_scale.py --case plan [--shape 61x3 --rounds 30]
    python benchmarks/analyse_scale.py --case directory [--shape 61x3 --rounds 30]
    python benchmarks/analyse_scale.py --case ranks --shape 225000x8     # hosts and ranks of each
    python benchmarks/analyse_scale.py --case matrix --kind mesh --shape 313x32
    python benchmarks/analyse_scale.py --pages FOLDER       # keep the reports: pages/page_opening.py opens them

`matrix` is every pair of 16,384 hosts of a full mesh, `list` 24 rounds of 97,336 hosts of a fat tree with 584,016
directed links. `plan` makes the rounds of such a fat tree and their text; `directory` writes a run directory of both
rows of a check, and reads, judges and reports it; `ranks` writes and reads two rows of one round that have all facts of
ranks and NICs. Runs are simulated with some faulty components by another process and
read from files, so that the peak of memory is that of the judgement (and then of the report), with the times themselves
included.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from fablint.analyse import diagnose
from fablint.model import ComponentRef, Row, Run, Scope, State
from fablint.model.arrays import RankPairs
from fablint.model.facts.row_attributes import ResultFacts, RowFacts, ScheduleFacts
from fablint.model.facts.run_attributes import HostNic, LaunchFacts, Mpi, PortCounters, RunFacts
from fablint.plan.check.stages import rounds_text
from fablint.plan.schedule.stratified import COUNTS, stratified_rounds
from fablint.report import write_html
from fablint.simulate import (
    Fabric,
    Fault,
    SimulatedFabric,
    SimulatedRow,
    TrueFault,
    random_faults,
    read_truth,
    score,
    write_truth,
)
from fablint.simulate.fabrics.kinds import build
from fablint.store import read_run, write_run
from fablint.topology.routed_placement import RoutedPlacement

GIB = 1 << 30
SIZE = 1 << 20
ARRAYS = {"matrix": ("time_median", "count"), "list": ("time_median", "count", "dst")}


@dataclass(frozen=True)
class Case:
    """What is judged."""

    layout: str
    kind: str
    shape: str
    rounds: int = 24

    def fabric(self) -> Fabric:
        return build(self.kind, shape=self.shape)


CASES = {
    "matrix": Case("matrix", "mesh", "512x32"),
    "list": Case("list", "fat-tree", "46x3"),
    "plan": Case("plan", "fat-tree", "46x3"),
    "directory": Case("directory", "fat-tree", "46x3"),
    "ranks": Case("ranks", "", "225000x8"),
}
ROWS = (SimulatedRow("latency", (8,)), SimulatedRow("bandwidth", (SIZE,)))


def planned_rounds(case: Case, fabric: Fabric) -> list[RankPairs]:
    """Rounds of all hosts of a fabric, in the proportions of a check."""
    counts = {scope: round(count * case.rounds / sum(COUNTS.values())) for scope, count in COUNTS.items()}
    counts[Scope.GLOBAL] += case.rounds - sum(counts.values())
    return stratified_rounds(RoutedPlacement.on_routes(fabric.hosts, fabric.topology), counts=counts)


def simulated(case: Case) -> tuple[Run, tuple[TrueFault, ...]]:
    """One bandwidth row on a fabric with some faults."""
    fabric = case.fabric()
    rows = (SimulatedRow("bandwidth", (SIZE,)),)
    if case.layout == "matrix":
        cable = fabric.topology.cables[5]
        host = fabric.hosts[len(fabric.hosts) // 2]
        faults = [
            Fault(ComponentRef.of("host", host), "tx", bandwidth_factor=0.8),
            Fault(ComponentRef.of("link", cable.a, cable.b), bandwidth_factor=0.7),
        ]
        rounds = None
    else:
        rounds = planned_rounds(case, fabric)
        faults = random_faults(fabric, 8, np.random.default_rng(1), rounds=rounds)
    faulty_fabric = SimulatedFabric(fabric, tuple(faults))
    run = faulty_fabric.measure(rounds, rows)
    return run, faulty_fabric.truth(run)


def save(folder: Path, case: Case, connection: object) -> None:
    """Simulate, write the arrays, send the facts back."""
    with timed("simulate"):
        run, truth = simulated(case)
    for name in ARRAYS[case.layout]:
        np.save(folder / f"{name}.npy", run.rows[0].arrays[name])
    connection.send((run.facts, run.rows[0].facts, truth))  # type: ignore[attr-defined]


def load(folder: Path, case: Case) -> tuple[Run, tuple[TrueFault, ...]]:
    """The run with its times mapped from the file."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=save, args=(folder, case, there))
    process.start()
    there.close()
    root, row, truth = here.recv()
    process.join()
    arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in ARRAYS[case.layout]}
    return Run(None, root, (Row("bandwidth", row, {**arrays, "size": np.array([SIZE])}),)), truth


def judge(case: Case, page: Path | None, *, report: bool) -> None:
    """Print the figures of a case; its report is written to `page`, or only measured."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run, truth = load(folder, case)
        topology = case.fabric().topology
        rounds = run.rows[0].facts.schedule.rounds
        print(f"{run.ranks:,} hosts, {len(topology.cables):,} cables between switches, {rounds:,} rounds")
        with timed("judge"):
            diagnosis = diagnose(run, topology)
        for finding in diagnosis.verdict.findings:
            if finding.state is not State.OK:
                print(f"         {finding.state} {finding.component} {finding.name} {finding.direction or ''}")
        print(f"score    {score(diagnosis.verdict.findings, truth)}")
        if report:
            page = page or folder / "index.html"
            with timed("report"):
                write_html(run, diagnosis, page)
            print(f"page     {page.stat().st_size / 1e6:6.1f} MB")


def plan(case: Case) -> None:
    """Print the figures of planning."""
    fabric = case.fabric()
    print(f"{len(fabric.hosts):,} hosts, {len(fabric.topology.cables):,} cables between switches, {case.rounds} rounds")
    with timed("plan"):
        rounds = planned_rounds(case, fabric)
        text = rounds_text(rounds)
    print(f"rounds   {len(rounds)} of up to {max(map(len, rounds)):,} pairs, a file of {len(text) / 1e6:.0f} MB")


def save_directory(path: Path, case: Case) -> None:
    """Simulate both rows of a check with some faults, and write the run directory."""
    fabric = case.fabric()
    rounds = planned_rounds(case, fabric)
    faults = random_faults(fabric, 8, np.random.default_rng(1), rounds=rounds)
    simulated_fabric = SimulatedFabric(fabric, tuple(faults))
    run = simulated_fabric.measure(rounds, ROWS)
    with timed("write"):
        write_run(path, run)
        write_truth(path, simulated_fabric.truth(run))


def judge_directory(case: Case, page: Path | None, *, report: bool) -> None:
    """Print the figures of a run directory: what it takes on disk, and to read, judge and report it."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "x.run"
        process = multiprocessing.get_context("spawn").Process(target=save_directory, args=(path, case))
        process.start()
        process.join()
        print_disk(path)
        topology = case.fabric().topology
        with timed("read"):
            run = read_run(path)
        with timed("judge"):
            diagnosis = diagnose(run, topology)
        print(f"score    {score(diagnosis.verdict.findings, read_truth(path))}")
        if report:
            with timed("report"):
                write_html(run, diagnosis, page or Path(name) / "index.html")


def run_of_ranks(hosts: int, per_host: int) -> Run:
    """Return a run of two rows of one round, with what the engine records of a host with one NIC and of its ranks."""
    ranks, names = hosts * per_host, [f"nid{host:06}" for host in range(hosts)]
    nics = [HostNic("hsn0", "cxi", "up", 200000, 9000, 0, True, "", ["hsn0"])]
    of_nic = {f"hni_counter_{number:02}": 10**6 + number for number in range(60)}
    counters = {name: {"hsn0": of_nic} for name in names}
    facts = RunFacts(
        rows=["latency", "bandwidth"],
        ranks=ranks,
        hosts=names,
        rank_host=np.repeat(np.arange(hosts), per_host).tolist(),
        rank_cores=[f"{8 * (rank % per_host)}-{8 * (rank % per_host) + 7}" for rank in range(ranks)],
        rank_numa=[rank % per_host // 2 for rank in range(ranks)],
        rank_nic=["hsn0"] * ranks,
        rank_pid=[4000 + rank % 30000 for rank in range(ranks)],
        nics={name: nics for name in names},
        counters=PortCounters(counters, counters),
        launch=LaunchFacts(mpi=Mpi("none", "0.0", init_s=[1.5] * ranks)),
    )
    arrays = {
        "time_median": np.ones((ranks, 1, 1), np.float32),
        "count": np.ones((ranks, 1, 1), np.uint32),
        "dst": (np.arange(ranks, dtype=np.int32) ^ 1)[:, None],
        "size": np.array([8]),
    }
    schedule = ScheduleFacts(pattern="rounds", layout="list", rounds=1, cells_per_round=ranks)
    row = RowFacts("latency", "latency", schedule=schedule, result=ResultFacts(cpu_wait_s=[0.25] * ranks))
    return Run(None, facts, tuple(Row(name, row, arrays) for name in facts.rows))


def write_and_read(case: Case) -> None:
    """Print the figures of a run directory of many ranks: what it takes on disk, and to write and to open."""
    hosts, per_host = map(int, case.shape.split("x"))
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "x.run"
        process = multiprocessing.get_context("spawn").Process(target=write_ranks, args=(path, hosts, per_host))
        process.start()
        process.join()
        print_disk(path)
        with timed("open"):
            run = read_run(path)
        with timed("counters"):
            assert run.facts.counters.after is not None
            print(len(run.facts.counters.after[run.hosts[-1]]["hsn0"]), "counters of a NIC")


def write_ranks(path: Path, hosts: int, per_host: int) -> None:
    """Write a run of many ranks."""
    run = run_of_ranks(hosts, per_host)
    with timed("write"):
        write_run(path, run)


def print_disk(path: Path) -> None:
    """Print the files of a run directory, their bytes, and those of metadata."""
    files = [file for file in path.rglob("*") if file.is_file()]
    sizes = {file: file.stat().st_size for file in files}
    metadata = sum(size for file, size in sizes.items() if file.name == "zarr.json") / 1e6
    tables = sum(size for file, size in sizes.items() if "tables" in file.parts) / 1e6
    total = sum(sizes.values()) / 1e6
    print(f"disk     {len(files):,} files, {total:.0f} MB, of which {metadata:.2f} MB metadata, {tables:.1f} MB tables")


def main(arguments: Sequence[str] | None = None) -> None:
    """Each case in a process of its own: the peak of memory is that of one."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--case", default="list,matrix", help="of list, matrix, plan, directory, ranks")
    options.add_argument("--rounds", type=int, default=24, help="of a list")
    options.add_argument("--kind", help="of fabric, instead of the case's own")
    options.add_argument("--shape", help="of fabric, instead of the case's own")
    options.add_argument("--no-report", action="store_true")
    options.add_argument("--pages", type=Path, help="folder in which the report CASE.html is kept")
    chosen = options.parse_args(arguments)
    if chosen.pages:
        chosen.pages.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    for name in chosen.case.split(","):
        own_case = CASES[name]
        case = Case(own_case.layout, chosen.kind or own_case.kind, chosen.shape or own_case.shape, chosen.rounds)
        page = chosen.pages and chosen.pages / f"{name}.html"
        works = {"plan": partial(plan, case), "ranks": partial(write_and_read, case)}
        works["directory"] = partial(judge_directory, case, page)
        work = works.get(name, partial(judge, case, page))
        process = context.Process(
            target=work, kwargs={} if name in ("plan", "ranks") else {"report": not chosen.no_report}
        )
        process.start()
        process.join()


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Print the seconds that the block took, and the largest resident set of this process so far."""
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIB
    print(f"{what:<8} {wall:6.1f} s ({cpu:.1f} s of CPU), peak {peak:.2f} GiB", flush=True)


if __name__ == "__main__":
    main()
