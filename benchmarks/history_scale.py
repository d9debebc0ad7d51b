"""Time of fablint history with many runs: adding a run, trends, list, baseline, repeated findings, size of the file.

    python benchmarks/history_scale.py [--runs 10000] [--hosts 1000] [--keep FILE]

Records of healthy runs are generated and inserted with the code of `fablint history add`, most of them in transactions
of 100 runs; the last 50 as `add` does, one transaction for each. Each run has latency and bandwidth of three scopes and
of all hosts. A scope becomes slower after two thirds of the runs, and one host has a finding in each tenth run. Times
of verbs are those of whole processes, the shortest of three, beside that of `fablint --version`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from fablint.history.database import Database, add, insert
from fablint.history.queries import repeated_findings, trends
from fablint.history.records import Figure, KeptFinding, Metric, RunRecord

DAY_S = 86400.0
METRICS: tuple[Metric, ...] = (("mpi", "latency", 8, "latency"), ("mpi", "bandwidth", 1 << 20, "bandwidth"))
LEVELS = (1.5e-6, 24e9)  # seconds, bytes/s
SPREAD = np.array([-0.04, -0.03, 0.0, 0.03, 0.04, 0.06])  # of the pairs: the six quantiles of a figure
NOISE = 0.01  # of the median of a run
SLOWER = 0.97  # bandwidth between groups after two thirds of the runs
TIMED = 50  # runs that are added one by one, the last ones
BLOCK = 100  # other runs in one transaction
REPEATS = 3


def records(runs: int, hosts: int) -> Iterator[RunRecord]:
    """Records of consecutive days."""
    rng = np.random.default_rng(1)
    components = [("scope", name) for name in ("edge", "local", "global")] + [
        ("host", f"n{number:05d}") for number in range(hosts)
    ]
    for run in range(runs):
        figures = []
        for metric, level in zip(METRICS, LEVELS, strict=True):
            medians = level * (1 + rng.normal(0, NOISE, len(components)))
            if metric[1] == "bandwidth" and run > 2 * runs / 3:
                medians[2] *= SLOWER
            quantiles = medians[:, None] * (1 + SPREAD)
            figures += [
                Figure(kind, name, metric, 2 * hosts, tuple(own_quantile))  # type: ignore[arg-type]
                for (kind, name), own_quantile in zip(components, quantiles.tolist(), strict=True)
            ]
        findings = (KeptFinding("FAULT", "host", "n00003", -0.2),) if run % 10 == 0 else ()
        verdict = "fault" if findings else "pass"
        yield RunRecord(f"{run}", f"{run}.run", 1e9 + DAY_S * run, verdict, hosts, {}, tuple(figures), findings)


def filled(path: Path, runs: int, hosts: int) -> None:
    """Add all runs, and print what that takes."""
    database, spent, begun = Database(path, create=True), [], time.perf_counter()
    all_records = records(runs, hosts)
    for first in range(0, runs - TIMED, BLOCK):
        with database.transaction() as connection:
            for record in islice(all_records, min(BLOCK, runs - TIMED - first)):
                insert(connection, record)
    print(f"{runs - TIMED:,} runs of {hosts:,} hosts: {time.perf_counter() - begun:.0f} s", flush=True)
    for record in all_records:
        begun = time.perf_counter()
        add(database, record)
        spent.append(time.perf_counter() - begun)
    print(f"add: median {np.median(spent) * 1e3:.0f} ms, most {max(spent) * 1e3:.0f} ms of {len(spent)} runs")
    print(f"file: {path.stat().st_size / 1e6:,.0f} MB", flush=True)


def timed_queries(path: Path) -> None:
    """Print the time of each query in this process, with an open file."""
    database = Database(path)
    for label, query in (
        ("trends of one host", lambda: trends(database, "n00003", None, None)),
        ("trends of all scopes", lambda: trends(database, None, None, None)),
        ("repeated findings", lambda: repeated_findings(database)),
    ):
        begun, cpu = time.perf_counter(), time.process_time()
        count = len(query())
        wall, cpu = time.perf_counter() - begun, time.process_time() - cpu
        print(f"query: {label}: {wall * 1e3:.0f} ms, CPU {cpu * 1e3:.0f} ms ({count} results)")


def timed_verbs(path: Path) -> None:
    """Print the time of each verb as a process."""
    verbs = (
        ["--version"],
        ["history", "trend", "n00003", "--kernel", "bandwidth"],
        ["history", "trend"],
        ["history", "list", "--last", "20"],
        ["history", "baseline", "spring", "--last", "20"],
        ["history", "baseline", "all"],
    )
    with tempfile.TemporaryDirectory() as home:
        for words in verbs:
            own_words = [*words, "--db", str(path)] if "history" in words else words
            command = [sys.executable, "-m", "fablint.cli", *own_words]
            spent = []
            for _ in range(REPEATS):
                begun, cpu = time.perf_counter(), sum(os.times()[2:4])
                subprocess.run(command, check=True, capture_output=True, env={**os.environ, "FABLINT_HOME": home})
                spent.append((time.perf_counter() - begun, sum(os.times()[2:4]) - cpu))
            wall, cpu = (min(own) for own in zip(*spent, strict=True))
            print(f"fablint {' '.join(words)}: {wall:.2f} s, CPU {cpu:.2f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10000)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--keep", type=Path, metavar="FILE", help="keep the history in FILE; reuse it if it exists")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.keep or Path(folder, "history.sqlite")
        if not path.exists():
            filled(path, options.runs, options.hosts)
        timed_queries(path)
        timed_verbs(path)


if __name__ == "__main__":
    main()
