"""What ranks of `fablint-engine --serve` cost while they wait, and how soon a request reaches the last of them.

    python benchmarks/waiting_ranks [--ranks 32] [--requests 8] [--mpicxx mpicxx.mpich]

CPU time is that of all threads of a rank from 1 s after a request until the next one, as the scheduler accounts it, in
percent of one CPU. A wake-up is the time from rank 0's receipt of a request until the last rank has it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from fablint.measure import NoProgress, build_engine, find_launchers
from fablint.model import Plan
from fablint.system import System
from fablint.system.process import Process

SETTLE_S, WATCH_S = 1.0, 3.0
ROW = "latency --sizes 8 --samples 3"


def cpu_s(process: Process) -> Mapping[int, float]:
    """Return the CPU seconds of each rank so far, by process id."""
    seconds = {}
    for pid in process.process_tree():
        folder = Path(f"/proc/{pid}")
        if (folder / "comm").read_text().strip() == "fablint-engine":
            spent = (int((task / "schedstat").read_text().split()[0]) for task in (folder / "task").iterdir())
            seconds[pid] = sum(spent) / 1e9
    return seconds


def wake_s(process: Process, run: Path) -> float:
    """Return the wake-up of a request, once it is done."""
    process.feed(f"--output {run}\n{ROW}\n\n")
    wake = 0.0
    while True:
        line = process.read_line(60.0) or ""
        event = json.loads(line) if line.startswith("{") else {}
        if event.get("fablint-engine") == "begin":
            wake = event["wake_s"]
        if event.get("fablint-engine") == "end":
            return wake


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=32)
    parser.add_argument("--requests", type=int, default=8)
    parser.add_argument("--mpicxx", type=Path, default=None)
    chosen = parser.parse_args()
    system, plan = System(), Plan(chosen.ranks, ())
    engine = build_engine(system, NoProgress(), mpicxx=chosen.mpicxx)
    launcher = find_launchers(system, engine.mpicxx, engine.libraries).launchers[0]
    environ = launcher.kind.environ(oversubscribed=True, unbound=False)
    with tempfile.TemporaryDirectory() as folder:
        command = [str(engine.path), "--serve"]
        process = launcher.start(system, plan, command, environ, 60.0, f"--output {folder}/first.run\n{ROW}\n\n")
        shares, wakes = [], []
        try:
            while '"end"' not in (process.read_line(60.0) or ""):
                pass
            for number in range(chosen.requests):
                time.sleep(SETTLE_S)
                before, begun = cpu_s(process), time.monotonic()
                time.sleep(WATCH_S)
                after, took_s = cpu_s(process), time.monotonic() - begun
                shares += [100 * (after[pid] - before[pid]) / took_s for pid in before]
                wakes.append(1e3 * wake_s(process, Path(folder) / f"{number}.run"))
        finally:
            process.kill()
    print(
        f"{chosen.ranks} ranks that wait: median {statistics.median(shares):.2f} % of a CPU, most {max(shares):.2f} %"
    )
    print(f"wake-up: median {statistics.median(wakes):.1f} ms, most {max(wakes):.1f} ms of {len(wakes)}")


if __name__ == "__main__":
    main()
