"""Verdicts on fabrics whose measurements meet bursts of load, healthy and with one slow route: one line per case.

    python benchmarks/noise/bursts_of_load.py [--seeds 40] [--processes 2] [--only machine]

A burst slows every message of the whole fabric (`machine`) or of one host (`host`) for a while: each measurement that
begins in it takes a random multiple of its time. Bursts are placed in time, not on pairs, which no noise of the
simulator does. FAULT, SUSPECT, CONFOUNDED and NOT JUDGED count the seeds with such findings, columns with `route` pairs
of hosts that are healthy, columns with `true` the seeds in which the slow route is found.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np

from fablint.analyse import diagnose
from fablint.model import Row, Run
from fablint.simulate import Fabric, Noise, fat_tree, full_mesh
from fablint.simulate.rounds import all_rounds
from fablint.simulate.simulated_rows import SimulatedRow
from fablint.simulate.simulation import SimulatedFabric

FABRICS: dict[str, Callable[[], Fabric]] = {
    "16 hosts": lambda: full_mesh(4, 4),
    "36 hosts": lambda: fat_tree(6, 2),
    "64 hosts": lambda: full_mesh(8, 8),
}
SLOWER = {"latency": 1.2, "bandwidth": 0.4}  # mean of log(time) that a burst adds
LOSS = {"latency": 0.7, "bandwidth": 0.5}  # of log(time), of the slow route
# Mean number of bursts in a row, and their mean length as a share of it.
BURSTS = {"none": (0.0, 0.0), "short": (8.0, 0.004), "long": (1.5, 0.1)}
PERIODS, PERIODIC_SHARE = 5, 0.15  # of a row, at equal distances, and the share of each that is a burst: "periodic"
CASES = (
    ("-", "none"),
    *((kind, burst) for kind in ("machine", "host") for burst in ("short", "long")),
    ("machine", "periodic"),
)
ROUTE = (1, 14)  # ranks
STATES = ("SUSPECT", "CONFOUNDED", "NOT JUDGED")


def burst_times(burst: str, rng: np.random.Generator) -> Iterator[tuple[float, float]]:
    """Yield begin and end of each burst of a row, as shares of its time."""
    if burst == "periodic":
        begins = (np.arange(-1, PERIODS) + rng.random()) / PERIODS
        yield from ((begin, begin + PERIODIC_SHARE / PERIODS) for begin in begins.tolist())
        return
    number, length = BURSTS[burst]
    for _ in range(rng.poisson(number)):
        begin = rng.random()
        yield begin, begin + rng.exponential(length)


def disturb(row: Row, host: np.ndarray, kind: str, burst: str, rng: np.random.Generator) -> None:
    """Slow the measurements of a row that begin in a burst."""
    started, times, partner = row.arrays["started"], row.arrays["time_median"], row.arrays["dst"]
    measured = partner >= 0
    begin, wall = float(started[measured].min()), row.facts.result.wall_s
    for since, until in burst_times(burst, rng):
        hit = measured & (started >= begin + wall * since) & (started < begin + wall * until)
        if kind == "host":
            victim = rng.integers(int(host.max()) + 1)
            hit &= (host[:, None] == victim) | (host[np.maximum(partner, 0)] == victim)
        times[hit] *= np.exp(rng.exponential(SLOWER[row.quantity], (np.count_nonzero(hit), 1)))


def disturbed_run(fabric: Fabric, order: str, kind: str, burst: str, seed: int) -> Run:
    """Return a run of all pairs in rounds beside bursts of load; its arrays may be changed."""
    rows = (SimulatedRow("latency", (8,), order), SimulatedRow("bandwidth", (1 << 20,), order))  # type: ignore[arg-type]
    rounds = all_rounds(len(fabric.hosts))
    run = SimulatedFabric(fabric, noise=Noise("lognormal", spike_share=0.0), seed=seed).measure(rounds, rows)
    rng = np.random.default_rng([seed, 7])
    host = np.arange(len(fabric.hosts))
    disturbed = []
    for row in run.rows:
        row = replace(row, arrays={name: np.array(values) for name, values in row.arrays.items()})
        disturb(row, host, kind, burst, rng)
        disturbed.append(row)
    return replace(run, rows=tuple(disturbed))


def measured_run(fabric: Fabric, order: str, kind: str, burst: str, *, faulty: bool, seed: int) -> Run:
    """Return a run beside bursts of load, with a slow route if it is `faulty`."""
    run = disturbed_run(fabric, order, kind, burst, seed)
    for row in run.rows:
        for a, b in (ROUTE, ROUTE[::-1]) if faulty else ():
            row.arrays["time_median"][a, row.arrays["dst"][a] == b] *= np.exp(LOSS[row.quantity])
    return run


def trial(fabric: str, order: str, kind: str, burst: str, faulty: bool, seed: int) -> Counter[str]:
    """Return what one run shows."""
    made = FABRICS[fabric]()
    run = measured_run(made, order, kind, burst, faulty=faulty, seed=seed)
    findings = diagnose(run, made.topology).verdict.findings
    truth = {frozenset(made.hosts[rank] for rank in ROUTE)} if faulty else set()
    shown: Counter[str] = Counter({finding.state.value for finding in findings})
    for finding in findings:
        pairs = {frozenset(ends) for ends in finding.directions} if finding.component == "route" else set()
        shown[f"{finding.state} true"] += len(pairs & truth)
        shown[f"{finding.state} route"] += len(pairs - truth)
    return shown


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, default=40)
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--only", default="", help="cases whose name contains this")
    chosen = options.parse_args()
    columns = ("FAULT", *(f"{state}{of}" for of in ("", " route", " true") for state in STATES))
    print(f"{'case':<46}", *columns)
    with ProcessPoolExecutor(chosen.processes) as pool:
        for faulty in (False, True):
            for fabric in FABRICS:
                for order in ("serial", "parallel"):
                    for kind, burst in CASES:
                        name = f"{'slow route' if faulty else 'healthy'}, {fabric}, {order}, {kind} {burst}"
                        if chosen.only not in name:
                            continue
                        result = pool.map(
                            partial(trial, fabric, order, kind, burst, faulty), range(1, chosen.seeds + 1)
                        )
                        count = sum(result, Counter[str]())
                        print(f"{name:<46}", *(f"{count[name]:>{len(name)}}" for name in columns), flush=True)


if __name__ == "__main__":
    main()
