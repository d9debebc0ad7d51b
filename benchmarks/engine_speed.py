"""What the engine costs: its kernels against bare MPI programs, and the schedule's overhead of all-pairs rows.

Every figure is a ratio within one run. The engine and a separate bare program of the same protocol (bare/bare_loops.c:
plain MPI_Init and the loop) are started by turns with the same launcher line. A loop inside the engine's own process
would see its locks, communicators and windows as well. `bandwidth` of 8 B in windows of 64 is the message rate. The
overhead of a schedule is the row's wall time against the sum of its rounds' own measuring time.

Before the loop both programs exchange a number of messages that differs from start to start: within a host the time of
a window of small messages depends on how many went before it (see bare_loops.c), and that number is an accident of
either program.

    python benchmarks/engine_speed.py [--mpicxx mpicxx.mpich] [--prefix 'chrt -f 10'] [--repetitions 41]
"""

from __future__ import annotations

import random
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from comparison.alternating import alternate, ratio_of_medians, ratio_of_quantiles
from comparison.launching import Bench, begin

from fablint.store import read_run

SOURCE = Path(__file__).with_name("bare") / "bare_loops.c"


@dataclass(frozen=True)
class Case:
    """A kernel at a size, repeated often enough to take about 20 ms."""

    kernel: str
    bytes: int
    repetitions: int
    window: int = 1

    @property
    def warmup(self) -> int:
        return max(2, self.repetitions // 100)

    def engine_row(self) -> list[str]:
        counts = ["--iterations", str(self.repetitions), "--warmup", str(self.warmup)]
        window = ["--window", str(self.window)] if self.window > 1 else []
        single = ["--buffers", "single"] if self.kernel in ("bandwidth", "bibandwidth") else []
        both = self.kernel == "bibandwidth"
        directions = [] if both else ["--directions", "single"]
        return [self.kernel, *directions, "--sizes", str(self.bytes), *counts, *window, *single]

    def bare_words(self, earlier: int) -> list[str]:
        return [self.kernel, *map(str, (self.bytes, self.repetitions, self.warmup, self.window, earlier))]


class Starts:
    """One start of either program for a case, each with its own number of earlier round trips."""

    MOST_EARLIER = 64  # the cells of MPICH's ring

    def __init__(self, bench: Bench, folder: Path, bare: Path, case: Case) -> None:
        self.bench, self.folder, self.bare, self.case = bench, folder, bare, case
        self._draw = random.Random(1)

    def engine(self) -> float:
        counts = ["--iterations", str(self._earlier()), "--warmup", "0", "--batch", "1"]
        earlier = ["latency", "--directions", "single", "--sizes", "8", *counts]
        return self.bench.engine_seconds(self.folder, self.case.engine_row(), earlier=earlier)

    def loop(self) -> float:
        return float(self.bench.run(2, [str(self.bare), *self.case.bare_words(self._earlier())]))

    def _earlier(self) -> int:
        return self._draw.randint(1, self.MOST_EARLIER)


CASES = (
    Case("latency", 8, 40_000),
    Case("latency", 1 << 10, 30_000),
    Case("latency", 64 << 10, 2_000),
    Case("latency", 1 << 20, 200),
    Case("bandwidth", 8, 3_000, 64),
    Case("bandwidth", 1 << 10, 2_000, 64),
    Case("bandwidth", 1 << 20, 30, 64),
    Case("bibandwidth", 8, 1_500, 64),
    Case("bibandwidth", 1 << 20, 15, 64),
    Case("put_latency", 8, 200_000),
    Case("put_latency", 1 << 20, 200),
    Case("get_latency", 8, 200_000),
    Case("get_latency", 1 << 20, 200),
    Case("put_bandwidth", 8, 5_000, 64),
    Case("get_bandwidth", 8, 5_000, 64),
)


def build_bare(bench: Bench, folder: Path) -> Path:
    """bare_loops.c with the C compiler of the same MPI."""
    mpicc = bench.mpicxx.with_name(bench.mpicxx.name.replace("mpicxx", "mpicc"))
    program = folder / "bare_loops"
    flags = ["-O2", "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-w"]
    subprocess.run([str(mpicc), *flags, "-o", str(program), str(SOURCE)], check=True)
    return program


def kernels(bench: Bench, folder: Path, repetitions: int, only: str) -> None:
    """Print the ratio of medians for every case: of times for latencies, of rates for the others."""
    bare = build_bare(bench, folder)
    print(
        "Medians in us per message; ratios of medians, and of the quartiles of the shorter times, with 95 % intervals."
    )
    print(
        f"{'kernel':<14} {'bytes':>8} {'window':>6} {'engine us':>10} {'bare us':>10}   {'of medians':<22} of quartiles"
    )
    for case in CASES:
        if only not in case.kernel:
            continue
        starts = Starts(bench, folder, bare, case)
        figures = alternate({"engine": starts.engine, "bare": starts.loop}, repetitions)
        engine, loop = figures["engine"], figures["bare"]
        # A ratio of bandwidths, and of message rates, is the inverse of that of times.
        above, below = (loop, engine) if case.window > 1 else (engine, loop)
        ratios = f"{ratio_of_medians(above, below)}   {ratio_of_quantiles(above, below, 0.25)}"
        micro = [f"{median(column) * 1e6:>10.4f}" for column in (engine, loop)]
        print(f"{case.kernel:<14} {case.bytes:>8} {case.window:>6} {' '.join(micro)}   {ratios}", flush=True)


def schedule_overhead(bench: Bench, folder: Path) -> None:
    """Print how much of an all-pairs row is not measuring.

    Without the prefix: more ranks than CPUs under a real-time scheduler never yield to each other, and stall the host.
    """
    bench = replace(bench, prefix=())
    print(f"\n{'ranks':>5} {'order':<9} {'rounds':>6} {'wall s':>8} {'measuring s':>12} {'overhead':>9}")
    for ranks in (16, 32):
        for order in ("parallel", "serial"):
            path = folder / f"{ranks}-{order}.run"
            line = ["latency", "--pattern", "all-pairs", "--order", order, "--sizes", "8,1K", "--budget", "0.05"]
            bench.run(ranks, [str(bench.engine), *line, "-q", "-o", str(path)])
            facts = read_run(path).rows[0].facts
            rounds, wall, measuring = facts.schedule.rounds, facts.result.wall_s or 0.0, facts.result.measuring_s or 1.0
            print(f"{ranks:>5} {order:<9} {rounds:>6} {wall:>8.2f} {measuring:>12.2f} {wall / measuring - 1:>9.1%}")


def main() -> None:
    arguments, bench = begin(__doc__.splitlines()[0])
    with tempfile.TemporaryDirectory() as folder:
        kernels(bench, Path(folder), arguments.repetitions, arguments.only)
        if not arguments.only:
            schedule_overhead(bench, Path(folder))


if __name__ == "__main__":
    main()
