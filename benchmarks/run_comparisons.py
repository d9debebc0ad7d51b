"""False changes between two healthy runs of the same fabric, and the share of changes of known size that are reported.

    python benchmarks/run_comparisons.py [--comparisons 1000] [--processes 2] [--noise structured]

Each comparison measures a healthy fabric twice. A difference is a scope or a host that is WORSE or BETTER, or a FAULT
that only the new run has. Two generators draw the fabrics:

* `structured` (held_out/starts.py): hosts, NICs, rails, pairs and scopes that differ and change from start to start,
  drift, bursts, load on a switch, heavy tails. `--anew` is the standard deviation of the whole fabric between starts.
* `held-out`: the scenarios of held_out_fabrics.py, measured twice with other noise.

Then changes of known size between the runs of the structured generator: a host sends less, or all pairs are slower.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from held_out.healthy import HEALTHY
from held_out.scenario import Scenario, build
from held_out.starts import Change, HealthyFabric
from held_out.topology_text import topology_yaml

from fablint.analyse.changes import MARGIN
from fablint.model.run_changes import ChangeState, RunChanges
from fablint.workflows.analysis import compare_runs
from fablint.workflows.run_formats import read

LOSSES = (0.01, 0.03, 0.05, 0.1)  # of the bandwidth, between the runs
MARGINS = (MARGIN, 0.01)
MOST_HOSTS = 128  # of a fabric
ANEW = 0.005  # of the logarithm: the whole fabric from one start to the next
HELD_OUT = tuple(one for one in HEALTHY if len(one.fabric().hosts) <= MOST_HOSTS and one.kept is None)


@dataclass(frozen=True)
class Outcome:
    """What one comparison of a healthy fabric with itself ended with; no words: no difference."""

    verdict: str
    words: str


def of_scenario(scenario: Scenario, seed: int) -> RunChanges:
    """Two runs of a scenario compared."""
    with tempfile.TemporaryDirectory() as folder:
        cases = []
        for repetition in (1, 2):
            own_path = Path(folder, str(repetition))
            own_path.mkdir()
            cases.append(build(replace(scenario, faults=lambda fabric, rng: ()), seed, own_path, repetition))
        runs = [read(*case.files) for case in cases]
        return compare_runs(runs[0], runs[1], cases[0].topology, MARGIN)


def of_starts(seed: int, anew: float, change: Change | None = None, margin: float = MARGIN) -> RunChanges:
    """Two starts of a fabric compared; the second one with the change, if any."""
    fabric = HealthyFabric.drawn(seed, anew)
    with tempfile.TemporaryDirectory() as folder:
        topology = Path(folder, "topology.yaml")
        topology.write_text(topology_yaml(fabric.fabric))
        return compare_runs(fabric.start(1), fabric.start(2, change), topology, margin)


def difference(changes: RunChanges) -> str:
    """The first difference that the comparison reports; empty for none."""
    for change in (*changes.scopes, *changes.hosts):
        if change.state in (ChangeState.WORSE, ChangeState.BETTER):
            name = change.component.text if change.component else change.scope
            return f"{change.state} {name} {change.quantity} {change.change:+.3f}"
    if changes.verdict == "fault":
        return "new " + next(one.finding.name for one in changes.findings if one.kind == "new")
    return ""


def structured_pair(anew: float, seed: int) -> Outcome:
    """One comparison of the structured generator."""
    changes = of_starts(seed, anew)
    return Outcome(changes.verdict, difference(changes))


def held_out_pair(number: int) -> Outcome:
    """One comparison of the held-out scenarios, which take turns."""
    changes = of_scenario(HELD_OUT[number % len(HELD_OUT)], number // len(HELD_OUT))
    return Outcome(changes.verdict, difference(changes))


def found_host(loss: float, margin: float, anew: float, seed: int) -> tuple[bool, bool]:
    """Whether the comparison names the host that became slow, and whether it names another one as well."""
    fabric = HealthyFabric.drawn(seed, anew)
    changes = of_starts(seed, anew, Change("host", loss), margin)
    worse = {one.component.hosts[0] for one in changes.hosts if one.component and one.state is ChangeState.WORSE}
    own_host = fabric.fabric.hosts[fabric.slow_host]
    return own_host in worse, bool(worse - {own_host})


def found_scopes(loss: float, margin: float, anew: float, seed: int) -> tuple[bool, bool]:
    """Whether a scope's bandwidth is WORSE, and whether its latency is."""
    changes = of_starts(seed, anew, Change("all", loss), margin)
    worse = {one.quantity for one in changes.scopes if one.state is ChangeState.WORSE}
    return "bandwidth" in worse, "latency" in worse


def main() -> None:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--comparisons", type=int, default=1000)
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--noise", choices=("structured", "held-out"), default="structured")
    options.add_argument("--anew", type=float, default=ANEW, help="whole fabric between starts [0.005]")
    options.add_argument("--first", type=int, default=0, help="the first seed")
    options.add_argument("--power", type=int, default=50, help="comparisons for each known change")
    chosen = options.parse_args()
    item = partial(structured_pair, chosen.anew) if chosen.noise == "structured" else held_out_pair
    seeds = range(chosen.first, chosen.first + chosen.comparisons)
    with ProcessPoolExecutor(chosen.processes) as pool:
        _print_healthy(pool, item, seeds)
        _print_power(pool, chosen.anew, range(chosen.first, chosen.first + chosen.power))


def _print_healthy(pool: ProcessPoolExecutor, item: Callable[[int], Outcome], seeds: range) -> None:
    verdicts, differences = Counter[str](), 0
    for seed, outcome in zip(seeds, pool.map(item, seeds, chunksize=4), strict=True):
        verdicts[outcome.verdict] += 1
        if outcome.words:
            differences += 1
            print(f"seed {seed}: {outcome.words}", flush=True)
    if seeds:
        print(f"healthy: {len(seeds)} comparisons, {differences} differences; verdicts {dict(verdicts)}", flush=True)


def _print_power(pool: ProcessPoolExecutor, anew: float, seeds: range) -> None:
    for margin in MARGINS if seeds else ():
        for loss in LOSSES:
            hosts = list(pool.map(partial(found_host, loss, margin, anew), seeds, chunksize=4))
            scopes = list(pool.map(partial(found_scopes, loss, margin, anew), seeds, chunksize=4))
            named, others = (sum(one[at] for one in hosts) for at in (0, 1))
            worse, innocent = (sum(one[at] for one in scopes) for at in (0, 1))
            print(
                f"margin {margin:.1%}, {loss:.0%} less bandwidth: the host named in {named} of {len(seeds)}, another in"
                f" {others}; all pairs WORSE in {worse}, their latency in {innocent}",
                flush=True,
            )


if __name__ == "__main__":
    main()
