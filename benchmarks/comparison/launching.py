"""Programs of two or more ranks, all started by the launcher line that fablint uses."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from comparison.failed_starts import output_of
from fablint.measure import Mpiexec, build_engine, find_mpiexec
from fablint.measure.engine import find_mpicxx
from fablint.measure.progress import NoProgress
from fablint.store import read_run
from fablint.system import System


@dataclass(frozen=True)
class Bench:
    """An MPI, its launcher, and the engine built with it. `prefix` precedes every program: `chrt -f 10`, say."""

    system: System
    mpicxx: Path
    mpiexec: Mpiexec
    engine: Path
    prefix: tuple[str, ...] = ()

    def run(self, ranks: int, argv: Sequence[str], *, both: bool = False) -> str:
        """What the program prints on stdout, or on stdout and stderr. Raises FailedStart when it fails."""
        kind = self.mpiexec.kind
        environ = {**os.environ, **kind.environ(oversubscribed=ranks > len(self.system.affinity()), unbound=False)}
        launcher = [str(self.mpiexec.path), *kind.arguments(ranks, root=self.system.is_root())]
        return output_of([*launcher, *self.prefix, *argv], environ, both=both)

    def engine_means(self, folder: Path, rows: Sequence[Sequence[str]], ranks: int = 2) -> list[np.ndarray]:
        """Mean seconds per message of the senders of each row of pattern pair or pairs: an array over the sizes."""
        path, plan = folder / "measured.run", folder / "plan"
        shutil.rmtree(path, ignore_errors=True)
        plan.write_text("".join(f"{' '.join(words)}\n" for words in rows))
        self.run(ranks, [str(self.engine), "-q", "--plan", str(plan), "-o", str(path)])
        senders = slice(max(1, ranks // 2))
        times = [row.arrays["time_mean"] for row in read_run(path).rows]  # each (rank, round, size)
        return [array[senders].mean(axis=(0, 1)) for array in times]

    def engine_seconds(self, folder: Path, row: Sequence[str], ranks: int = 2, earlier: Sequence[str] = ()) -> float:
        """Mean seconds per message of the senders of a row at its only size.

        `earlier`: a row that the same processes measure before it.
        """
        return float(self.engine_means(folder, [words for words in (earlier, row) if words], ranks)[-1][0])


def begin(description: str) -> tuple[argparse.Namespace, Bench]:
    """The options of a benchmark and what it runs with, after a line that says which MPI and how many starts."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--mpicxx", type=Path, help="compiler wrapper of the MPI to use")
    parser.add_argument("--repetitions", type=int, default=41, help="starts of every program [41]")
    parser.add_argument("--prefix", default="", help="words before every program, such as 'chrt -f 10'")
    parser.add_argument("--only", default="", help="figures whose name contains this")
    arguments = parser.parse_args()
    system = System()
    mpicxx, _ = find_mpicxx(system, arguments.mpicxx)
    engine = build_engine(system, NoProgress(), mpicxx=mpicxx).path
    bench = Bench(system, mpicxx, find_mpiexec(system, mpicxx), engine, tuple(shlex.split(arguments.prefix)))
    print(f"{bench.mpiexec.version}, {len(system.affinity())} CPUs, {arguments.repetitions} starts of each")
    return arguments, bench
