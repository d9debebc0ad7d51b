"""Accuracy of the diagnosis on simulated fabrics: faulty and healthy fabrics, and runs with missing measurements.

    python benchmarks/diagnosis.py [--only faulty,healthy,deleted] [--seeds 5] [--healthy-seeds 20] [--processes 2]

Each fabric is measured in the rounds that `fablint check` would measure; while components are undecided, the rounds
of follow-up measurements are added, up to `--rounds` in all. `exact` and `class` are shares of the faulty components
that a finding names, or names an equivalent of (same cable, same host's NIC); `wrong` counts components at FAULT that
are not faulty, and is also printed as a share of the faulty components; `direction` is the share of right directions
where the direction is visible.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from fablint.analyse import diagnose
from fablint.model import Diagnosis, Run
from fablint.plan.check.follow_up import follow_up_rounds, measured_pairs
from fablint.plan.schedule.stratified import stratified_rounds
from fablint.simulate import (
    Fabric,
    Noise,
    Score,
    SimulatedFabric,
    SimulatedRow,
    dragonfly,
    fat_tree,
    random_faults,
    score,
)
from fablint.topology.routed_placement import RoutedPlacement

FABRICS: dict[str, Callable[[], Fabric]] = {
    "fat tree 16": lambda: fat_tree(4, 2),
    "fat tree 64": lambda: fat_tree(4, 3),
    "fat tree 256": lambda: fat_tree(16, 2),
    "fat tree 512": lambda: fat_tree(8, 3),
    "fat tree 4,096": lambda: fat_tree(16, 3),
    "dragonfly 72": lambda: dragonfly(9, 4, 2),
    "dragonfly 288": lambda: dragonfly(9, 8, 4),
    "dragonfly 4,224": lambda: dragonfly(33, 16, 8),
}
NOISES = ("normal", "student3", "lognormal", "replay")
SIZE = 1 << 20


@dataclass(frozen=True)
class Settings:
    """How every case is measured."""

    rounds: int = 30  # at most
    contention: bool = False
    least: float = 0.10  # of the bandwidth that a fault takes


@dataclass(frozen=True)
class Outcome:
    """What one run came to."""

    score: Score
    rounds: int
    open: int  # undecided follow-up measurements
    seconds: float  # of judging


@dataclass(frozen=True)
class Case:
    """One line: what is done with a seed, and how many seeds."""

    fabric: str
    name: str
    noise: str
    seeds: int
    task: Callable[[int], Outcome]


@lru_cache(maxsize=2)
def place(name: str) -> tuple[Fabric, RoutedPlacement, list[np.ndarray]]:
    """The fabric, where its ranks sit and the rounds that are measured first."""
    fabric = FABRICS[name]()
    hosts = list(fabric.hosts)
    placement = RoutedPlacement.on_routes(hosts, fabric.topology)
    return fabric, placement, stratified_rounds(placement)


def row_of(fabric: Fabric) -> SimulatedRow:
    """Streams; where routes are adaptive, with the histograms that tell a message from another."""
    adaptive = fabric.topology.routing.kind == "adaptive"
    return SimulatedRow("bandwidth", (SIZE,), histogram=adaptive)


def judged(simulated: SimulatedFabric, name: str, settings: Settings) -> tuple[Run, Diagnosis, int, float]:
    """Measure, judge, and go on measuring what is open. The seconds are those of judging."""
    fabric, placement, rounds = place(name)
    run = simulated.measure(rounds, [row_of(fabric)])
    used, seconds = len(rounds), 0.0
    while True:
        started = time.perf_counter()
        diagnosis = diagnose(run, fabric.topology)
        seconds += time.perf_counter() - started
        room = settings.rounds - used
        requested = [measurement for measurement in diagnosis.follow_ups if measurement.open]
        if room < 1 or not requested:
            return run, diagnosis, used, seconds
        more = follow_up_rounds(requested, placement, measured_pairs(run, run.ranks), most_rounds=min(room, 3))
        if not more:
            return run, diagnosis, used, seconds
        run = simulated.extended(run, more[:room])
        used += len(more[:room])


def faulty(name: str, k: int, settings: Settings, noise: str, seed: int) -> Outcome:
    """`k` mixed faults."""
    fabric, _, rounds = place(name)
    faults = random_faults(fabric, k, np.random.default_rng(seed), settings.least, rounds=rounds)
    simulated = SimulatedFabric(
        fabric,
        tuple(faults),
        Noise(noise),
        seed=seed,
        contention=settings.contention,  # type: ignore[arg-type]
    )
    run, diagnosis, used, seconds = judged(simulated, name, settings)
    result = score(diagnosis.verdict.findings, simulated.truth(run))
    return Outcome(result, used, sum(measurement.open for measurement in diagnosis.follow_ups), seconds)


def healthy(name: str, settings: Settings, noise: str, seed: int) -> Outcome:
    """No fault at all."""
    return faulty(name, 0, settings, noise, seed)


def deleted(name: str, k: int, share: float, settings: Settings, noise: str, seed: int) -> Outcome:
    """`k` mixed faults in a run of which only a share is left."""
    fabric, _, rounds = place(name)
    faults = random_faults(fabric, k, np.random.default_rng(seed), settings.least, rounds=rounds)
    simulated = SimulatedFabric(fabric, tuple(faults), Noise(noise), seed=seed)  # type: ignore[arg-type]
    run = without(simulated.measure(rounds, [row_of(fabric)]), share, seed)
    started = time.perf_counter()
    diagnosis = diagnose(run, fabric.topology)
    seconds = time.perf_counter() - started
    return Outcome(score(diagnosis.verdict.findings, simulated.truth(run)), len(rounds), 0, seconds)


def without(run: Run, share: float, seed: int) -> Run:
    """The run with a share of its cells missing, drawn by chance."""
    random = np.random.default_rng(seed)
    rows = []
    for row in run.rows:
        gone = random.random(row.arrays["started"].shape) < share
        arrays = dict(row.arrays)
        for name, array in row.arrays.items():
            if name.startswith("time_") or name in ("count", "histogram", "started"):
                arrays[name] = array.copy()
                arrays[name][gone] = np.nan if array.dtype.kind == "f" else 0
        rows.append(replace(row, arrays=arrays))
    return replace(run, rows=tuple(rows))


HEAD = f"{'fabric':<16} {'case':<22} {'noise':<10} {'seeds':>5} {'parts':>6} {'exact':>7} {'class':>7} {'missed':>7} "
HEAD += f"{'wrong':>13} {'direction':>9} {'rounds':>6} {'open':>5} {'s/run':>6}"


def line(case: Case, outcomes: Sequence[Outcome]) -> str:
    """One line of the table."""
    total = sum((outcome.score for outcome in outcomes), Score())
    parts = total.exact + total.in_class + total.missed
    return (
        f"{case.fabric:<16} {case.name:<22} {case.noise:<10} {len(outcomes):>5} {parts:>6} "
        f"{percent(total.exact, parts):>7} {percent(total.in_class, parts):>7} {percent(total.missed, parts):>7} "
        f"{total.wrong:>4} ({percent(total.wrong, parts):>6}) "
        f"{percent(total.direction_right, total.direction_decidable):>9} "
        f"{max(outcome.rounds for outcome in outcomes):>6} {sum(outcome.open for outcome in outcomes):>5} "
        f"{sum(outcome.seconds for outcome in outcomes) / len(outcomes):>6.2f}"
    )


def percent(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def cases(chosen: argparse.Namespace, settings: Settings) -> Iterator[Case]:
    """The lines requested for."""
    fabrics, faults = chosen.fabrics.split(";"), [int(k) for k in chosen.faults.split(",")]
    kinds: dict[str, list[tuple[str, str, int, Callable[..., Outcome]]]] = {
        "faulty": [(name, f"{k} faults", chosen.seeds, partial(faulty, name, k)) for name in fabrics for k in faults],
        "healthy": [
            (name, "healthy", chosen.healthy_seeds, partial(healthy, name))
            for name in chosen.healthy_fabrics.split(";")
        ],
        "deleted": [
            (name, f"{k} faults, 70 % gone", chosen.seeds, partial(deleted, name, k, 0.7))
            for name in fabrics
            for k in (0, max(faults))
        ],
    }
    for kind in chosen.only.split(","):
        for name, words, seeds, task in kinds[kind]:
            for noise in chosen.noises.split(","):
                yield Case(name, words, noise, seeds, partial(task, settings, noise))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="faulty,healthy,deleted", help="of faulty, healthy, deleted")
    options.add_argument("--fabrics", default="fat tree 4,096;dragonfly 4,224", help=f"of {'; '.join(FABRICS)}")
    options.add_argument("--healthy-fabrics", default="fat tree 256;fat tree 4,096")
    options.add_argument("--faults", default="1,5,10,20,40", help="how many at once")
    options.add_argument("--noises", default="normal,student3,lognormal", help=f"of {', '.join(NOISES)}")
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--healthy-seeds", type=int, default=20)
    options.add_argument("--rounds", type=int, default=30, help="measured at most, follow-up rounds included")
    options.add_argument("--least", type=float, default=0.10, help="smallest loss of bandwidth")
    options.add_argument("--contention", action="store_true", help="pairs of a round share the links they cross")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--show", action="store_true", help="name the parts that were wrong or missed")
    chosen = options.parse_args(arguments)
    settings = Settings(chosen.rounds, chosen.contention, chosen.least)
    print(HEAD)
    with ProcessPoolExecutor(chosen.processes) as pool:
        for case in cases(chosen, settings):
            outcomes = list(pool.map(case.task, range(1, case.seeds + 1)))
            print(line(case, outcomes), flush=True)
            for seed, outcome in enumerate(outcomes, 1):
                if chosen.show and (outcome.score.wrong or outcome.score.missed):
                    wrong, missed = (
                        ", ".join(names) or "nothing"
                        for names in (outcome.score.wrong_names, outcome.score.missed_names)
                    )
                    print(f"    seed {seed}: wrong {wrong}; missed {missed}", flush=True)


if __name__ == "__main__":
    main()
