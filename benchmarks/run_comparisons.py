"""False changes between two healthy runs of the same fabric, and the share of changed hosts that are reported.

    python benchmarks/run_comparisons.py [--comparisons 1000] [--processes 2] [--only TEXT]

The fabrics and their noise are those of held_out_fabrics.py: fluctuating loads, drift, bursts, hosts and launches that
differ from one start to the next. Each comparison draws a healthy scenario twice, with the same structure and other
noise. A difference is a scope or a host that is WORSE or BETTER, or a FAULT that only the new run has.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from held_out.faults import Fault
from held_out.healthy import HEALTHY
from held_out.scenario import Scenario, build

from fablint.analyse.changes import MARGIN
from fablint.model.run_changes import ChangeState, RunChanges
from fablint.workflows.analysis import compare_runs
from fablint.workflows.run_formats import read

LOSSES = (0.05, 0.1, 0.2)  # bandwidth that a host lost between the runs
MOST_HOSTS = 128  # of a fabric
QUIET = "8 leaves: quiet"


def compared(scenario: Scenario, seed: int, fault: Fault | None = None) -> RunChanges:
    """Two runs of one fabric compared; the second one with the fault, if any."""
    with tempfile.TemporaryDirectory() as folder:
        cases = []
        for repetition, faults in enumerate(((), (fault,) if fault else ()), start=1):
            drawn = replace(scenario, faults=lambda fabric, rng, faults=faults: faults)
            own = Path(folder, str(repetition))
            own.mkdir()
            cases.append(build(drawn, seed, own, repetition))
        runs = [read(*case.files) for case in cases]
        return compare_runs(runs[0], runs[1], cases[0].topology, MARGIN)


def difference(changes: RunChanges) -> str:
    """The first difference that the comparison reports; empty for none."""
    for change in (*changes.scopes, *changes.hosts):
        if change.state in (ChangeState.WORSE, ChangeState.BETTER):
            name = change.component.text if change.component else change.scope
            return f"{change.state} {name} {change.quantity} {change.change:+.3f}"
    if changes.verdict == "fault":
        return "new " + next(one.finding.name for one in changes.findings if one.kind == "new")
    return ""


def healthy_pair(given: tuple[int, int]) -> tuple[str, str]:
    """Verdict and difference of one comparison of a healthy fabric with itself."""
    scenario, seed = given
    changes = compared(SMALL[scenario], seed)
    return changes.verdict, difference(changes)


def faulty_pair(given: tuple[float, int]) -> bool:
    """Whether the comparison names the host that became slow, and no other."""
    loss, seed = given
    scenario = next(one for one in SMALL if one.name == QUIET)
    host = scenario.fabric().hosts[seed % 64]
    changes = compared(scenario, seed, Fault("host", host, "tx", loss=loss))
    return {(one.component.label, one.direction) for one in changes.hosts if one.component} == {(host, "tx")}


SMALL = tuple(one for one in HEALTHY if len(one.fabric().hosts) <= MOST_HOSTS and one.kept is None)


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--comparisons", type=int, default=1000)
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--only", default="", help="scenarios whose name contains this")
    chosen = options.parse_args()
    numbers = [number for number, scenario in enumerate(SMALL) if chosen.only in scenario.name]
    trials = [(numbers[trial % len(numbers)], trial // len(numbers)) for trial in range(chosen.comparisons)]
    with ProcessPoolExecutor(chosen.processes) as pool:
        verdicts, differences = Counter[str](), 0
        for (number, seed), (verdict, words) in zip(trials, pool.map(healthy_pair, trials, chunksize=4), strict=True):
            verdicts[verdict] += 1
            if words:
                differences += 1
                print(f"{SMALL[number].name}, seed {seed}: {words}", flush=True)
        counts = f"{len(trials)} comparisons of {len(numbers)} scenarios, {differences} differences"
        print(f"healthy: {counts}; verdicts {dict(verdicts)}")
        for loss in LOSSES:
            seeds = range(20)
            found = sum(pool.map(faulty_pair, [(loss, seed) for seed in seeds]))
            print(f"a host of 64 sends {loss:.0%} less in the second run: named in {found} of {len(seeds)}", flush=True)


if __name__ == "__main__":
    main()
