"""Memory of a rank of the engine while it waits, as a function of the ranks, and of the rounds in its plan.

    python benchmarks/rank_memory [--ranks 2,8,32,64] [--cells 500000] [--mpicxx mpicxx.mpich]

The largest resident set (VmHWM) of the ranks, and what of it is not shared with other processes (RssAnon), once a
request of one row is done. The last line is what a rank holds of the rounds file: bytes for each of its rounds.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fablint.measure import NoProgress, build_engine, find_launchers
from fablint.model import Plan
from fablint.system import System
from fablint.system.process import Process

SMALL_ROW = "latency --sizes 8 --samples 3"
MIB = 1024  # KiB


def status_kib(process: Process) -> list[tuple[int, int]]:
    """Return VmHWM and RssAnon of each rank."""
    figures = []
    for pid in process.process_tree():
        folder = Path(f"/proc/{pid}")
        if (folder / "comm").read_text().strip() == "fablint-engine":
            lines = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines() if ":" in line)
            high, anonymous = (int(lines[name].split()[0]) for name in ("VmHWM", "RssAnon"))
            figures.append((high, anonymous))
    return figures


def measured_kib(ranks: int, row: str, mpicxx: Path | None) -> tuple[int, int]:
    """Return the largest VmHWM and RssAnon of the ranks after a request of one row."""
    system, plan = System(), Plan(ranks, ())
    engine = build_engine(system, NoProgress(), mpicxx=mpicxx)
    launcher = find_launchers(system, engine.mpicxx, engine.libraries).launchers[0]
    environ = launcher.kind.environ(oversubscribed=True, unbound=False)
    with tempfile.TemporaryDirectory() as folder:
        request = f"--output {folder}/x.run\n{row}\n\n"
        process = launcher.start(system, plan, [str(engine.path), "--serve"], environ, 300.0, is_served=True)
        process.feed(request)
        try:
            while '"end"' not in (process.read_line(300.0) or ""):
                pass
            figures = np.array(status_kib(process))
        finally:
            process.kill()
    return int(figures[:, 0].max()), int(figures[:, 1].max())


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each number of ranks, and the memory of the rounds."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--ranks", default="2,8,32,64")
    options.add_argument("--cells", type=int, default=500_000, help="ranks times rounds of the large rounds file")
    options.add_argument("--mpicxx", type=Path, default=None)
    chosen = options.parse_args(arguments)
    for ranks in map(int, chosen.ranks.split(",")):
        high, anonymous = measured_kib(ranks, SMALL_ROW, chosen.mpicxx)
        print(f"{ranks:>5} ranks: {high / MIB:6.1f} MiB, of which {anonymous / MIB:6.1f} MiB own", flush=True)
    ranks = 8
    sizes = [measured_kib(ranks, rounds_row(ranks, cells), chosen.mpicxx)[1] for cells in (ranks, chosen.cells)]
    print(f"rounds: {(sizes[1] - sizes[0]) * 1024 * ranks / chosen.cells:.1f} bytes of a rank for each round")


def rounds_row(ranks: int, cells: int) -> str:
    """Return a row of a rounds file with so many cells, of which one round is measured."""
    path = Path(tempfile.mkdtemp()) / "rounds.txt"
    line = " ".join(f"{rank}-{rank + 1}" for rank in range(0, ranks, 2))
    path.write_text(f"{line}\n" * max(1, cells // ranks))
    return f"latency --sizes 8 --samples 3 --pattern rounds --rounds-file {path} --only-rounds 0"


if __name__ == "__main__":
    main()
