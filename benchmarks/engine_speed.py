"""What the engine costs: its kernels against bare MPI loops, and the schedule's overhead of all-pairs rows.

Every figure is a ratio within one run. The kernels alternate with the bare loops inside one pair of processes; the
overhead of a schedule is the row's wall time against the sum of its rounds' own measuring time. `bandwidth` of 8 B in
windows of 64 is the message rate. Puts and gets within one host can be as fast as 30 ns, of which the engine's own two
virtual calls are 2.

    python benchmarks/engine_speed.py [--mpicxx mpicxx.mpich]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path
from statistics import median

import numpy as np

from fablint.measure import Mpiexec, build_engine, find_mpiexec
from fablint.measure.engine import find_mpicxx, find_sources
from fablint.measure.progress import Silent
from fablint.store import read_run
from fablint.system import System


def run(system: System, mpiexec: Mpiexec, ranks: int, argv: list[str]) -> str:
    environ = {**os.environ, **mpiexec.kind.environ(oversubscribed=ranks > len(system.affinity()), unbound=False)}
    command = [str(mpiexec.path), *mpiexec.kind.arguments(ranks, root=system.is_root()), *argv]
    return subprocess.run(command, env=environ, check=True, capture_output=True, text=True).stdout


def side_by_side(system: System, mpicxx: Path, mpiexec: Mpiexec, folder: Path) -> None:
    """Print the ratio of medians for every kernel, size and window, with the quartiles of the single ratios."""
    make = ["make", "-s", "-C", str(find_sources()), "-j2", f"CXX={mpicxx}", f"BUILD={folder}", "benchmark"]
    subprocess.run(make, check=True)
    figures: dict[tuple[str, int, int], list[tuple[float, float]]] = {}
    for line in run(system, mpiexec, 2, [str(folder / "side_by_side"), "41"]).splitlines():
        name, *numbers = line.split()
        size, window, engine_s, bare_s = map(float, numbers)
        figures.setdefault((name, int(size), int(window)), []).append((engine_s, bare_s))
    print(
        f"{'kernel':<12} {'bytes':>8} {'window':>6} {'engine us':>11} {'bare us':>11} {'ratio':>7}"
        "   quartiles of 41 ratios; us per message"
    )
    for (kernel, bytes_, in_flight), pairs in figures.items():
        engine, bare = (median(column) for column in zip(*pairs, strict=True))
        # A ratio of bandwidths, and of message rates, is the inverse of that of times.
        ratios = [b / e if kernel == "bandwidth" else e / b for e, b in pairs]
        ratio = bare / engine if kernel == "bandwidth" else engine / bare
        low, high = np.quantile(ratios, [0.25, 0.75])
        print(
            f"{kernel:<12} {bytes_:>8} {in_flight:>6} {engine * 1e6:>11.4f} {bare * 1e6:>11.4f} {ratio:>7.3f}"
            f"   {low:.3f} .. {high:.3f}"
        )


def schedule_overhead(system: System, engine: Path, mpiexec: Mpiexec, folder: Path) -> None:
    """Print how much of an all-pairs row is not measuring."""
    print(f"\n{'ranks':>5} {'order':<9} {'rounds':>6} {'wall s':>8} {'measuring s':>12} {'overhead':>9}")
    for ranks in (16, 32):
        for order in ("parallel", "serial"):
            path = folder / f"{ranks}-{order}.run"
            line = ["latency", "--pattern", "all-pairs", "--order", order, "--sizes", "8,1K", "--budget", "0.05"]
            run(system, mpiexec, ranks, [str(engine), *line, "-q", "-o", str(path)])
            row = read_run(path).rows[0].attributes
            wall, measuring = row["wall_s"], row["measuring_s"]
            print(
                f"{ranks:>5} {order:<9} {row['rounds']:>6} {wall:>8.2f} {measuring:>12.2f} {wall / measuring - 1:>9.1%}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mpicxx", type=Path)
    system = System()
    mpicxx, _ = find_mpicxx(system, parser.parse_args().mpicxx)
    mpiexec = find_mpiexec(system, mpicxx)
    print(f"{mpiexec.version}, {len(system.affinity())} CPUs")
    with tempfile.TemporaryDirectory() as folder:
        side_by_side(system, mpicxx, mpiexec, Path(folder))
        schedule_overhead(system, build_engine(system, Silent(), mpicxx=mpicxx).path, mpiexec, Path(folder))


if __name__ == "__main__":
    main()
