"""All pairs of 16 and 32 ranks: the engine beside mpiGraph and LinkTest, with the same messages.

Each program is started by turns with few and with many iterations. The difference is the time of the further
iterations alone, without the start of MPI, connections, files and tables. `start` is the time of the run with few
iterations less what these take. A ratio below 1 is less time of fablint's.

The programs are found on the PATH, built for the MPI in use: `mpiGraph`, and `mpilinktest` of LinkTest 1. The run of
LinkTest writes no file (`-W 0`), and repeats no slow pair (`-Z 0`).

    python benchmarks/all_pairs [--mpicxx mpicxx.mpich] [--repetitions 9] [--only 'mpiGraph, 16']
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))
from comparison.alternating import ratio_of_medians, turns
from comparison.launching import Bench, begin
from comparison.peer_table import print_installed

RANKS = (16, 32)


@dataclass(frozen=True)
class Comparison:
    """A row of the engine and the program that sends the same messages; `{count}` in their words: iterations.

    Attributes
    ----------
    messages
        What is sent, for the table.
    few, many
        Iterations of the two kinds of start.
    """

    program: str
    messages: str
    row: str
    words: str
    ranks: int
    few: int
    many: int

    @property
    def name(self) -> str:
        return f"{self.program}, {self.ranks} ranks, {self.messages}"


def comparisons() -> Iterator[Comparison]:
    """Yield what is compared. Warm-up of the engine: one window, as long as an iteration of mpiGraph's."""
    for ranks in RANKS:
        for buffers in ("distinct", "single"):
            row = f"bibandwidth --sizes 1M --window 10 --warmup 1 --buffers {buffers} --iterations {{count}}"
            yield Comparison("mpiGraph", f"1 MiB, {buffers} buffers", row, "1048576 {count} 10", ranks, 5, 35)
        for size, few, many in ((8, 100, 1_100), (128 << 10, 10, 110)):
            row = f"latency --sizes {size} --warmup 1 --directions single --iterations {{count}}"
            words = f"-W 0 -Z 0 -s {size} -i {{count}}"
            yield Comparison("mpilinktest", f"{size} B, ping-pong", row, words, ranks, few, many)


def seconds_of(start: Callable[[], object]) -> float:
    """Return the wall time of a program."""
    begun = time.perf_counter()
    start()
    return time.perf_counter() - begun


def compare(bench: Bench, case: Comparison, program: Path, repetitions: int, folder: Path) -> Iterator[str]:
    """Yield the line of a comparison."""

    def engine(count: int) -> object:
        shutil.rmtree(folder / "measured.run", ignore_errors=True)
        row = [*case.row.format(count=count).split(), "--pattern", "all-pairs", "--budget", "600"]
        return bench.run(case.ranks, [str(bench.engine), *row, "-q", "-o", str(folder / "measured.run")])

    def original(count: int) -> object:
        return bench.run(case.ranks, [str(program), *case.words.format(count=count).split()], both=True)

    starts = {
        (side, count): partial(run, count)
        for side, run in (("ours", engine), ("theirs", original))
        for count in (case.few, case.many)
    }
    seconds: dict[tuple[str, int], list[float]] = {start: [] for start in starts}
    names = {f"{side} {count}": (side, count) for side, count in starts}
    for name in turns(names, repetitions):
        seconds[names[name]].append(seconds_of(starts[names[name]]))
    further = {side: _differences(seconds[side, case.many], seconds[side, case.few]) for side in ("ours", "theirs")}
    share = case.few / (case.many - case.few)
    begun = [median(seconds[side, case.few]) - share * median(further[side]) for side in ("ours", "theirs")]
    yield (
        f"{case.name:<46} {median(further['ours']):>8.2f} {median(further['theirs']):>8.2f} s"
        f"  {ratio_of_medians(further['ours'], further['theirs'])!s:<22} {begun[0]:>7.2f} {begun[1]:>7.2f} s"
    )


def _differences(many: Sequence[float], few: Sequence[float]) -> list[float]:
    """Return the seconds of the further iterations, of each turn."""
    return [long - short for long, short in zip(many, few, strict=True)]


def main() -> None:
    arguments, bench = begin(__doc__.splitlines()[0])
    print(f"{'original, messages':<46} {'fablint':>8} {'original':>8}    ratio [95 %]           start of both")
    with tempfile.TemporaryDirectory() as folder:

        def lines(case: Comparison) -> Iterator[str] | None:
            program = shutil.which(case.program)
            return program and compare(bench, case, Path(program), arguments.repetitions, Path(folder))

        print_installed(comparisons(), arguments.only, lines)


if __name__ == "__main__":
    main()
