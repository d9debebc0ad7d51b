"""How often two slow hosts are both found while bursts of load slow other messages: one line per case.

    python benchmarks/noise/two_slow_hosts.py [--seeds 40] [--processes 2] [--only 'same switch']

Two hosts lose 10, 20 or 30 % in all rows, both on one switch or on two. Bursts are those of bursts_of_load.py. Columns
count slow hosts (two per seed) by the gravest finding that names them: FAULT, SUSPECT, `open` (CONFOUNDED or NOT
JUDGED), `none`. `false` and `suspect` count the seeds in which a healthy component is a FAULT or SUSPECT.
"""

from __future__ import annotations

import argparse
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from bursts_of_load import disturbed_run

from fablint.analyse import diagnose
from fablint.model import Finding, Run
from fablint.simulate import Fabric, full_mesh

FABRICS = {"16 hosts": (4, 4), "64 hosts": (8, 8)}
PLACES = ("same switch", "two switches")
LOSSES = (0.1, 0.2, 0.3)  # of the bandwidth
BURSTS = (("-", "none"), ("machine", "long"), ("host", "long"), ("machine", "short"))
COLUMNS = ("FAULT", "SUSPECT", "open", "none", "false", "suspect")


def measured_run(
    fabric: Fabric, order: str, kind: str, burst: str, slow: tuple[int, ...], loss: float, seed: int
) -> Run:
    """Return a run of all pairs in rounds, in which messages of some hosts take 1 / (1 - loss) of their time."""
    run = disturbed_run(fabric, order, kind, burst, seed)
    for row in run.rows:
        partner = row.arrays["dst"]
        is_slow = np.isin(np.arange(partner.shape[0]), slow)[:, None] | np.isin(partner, slow)
        row.arrays["time_median"][is_slow & (partner >= 0)] /= 1 - loss
    return run


def trial(fabric: str, place: str, order: str, kind: str, burst: str, loss: float, seed: int) -> Counter[str]:
    """Return what one run shows."""
    switches, hosts = FABRICS[fabric]
    made = full_mesh(switches, hosts)
    ranks = (1, 2) if place == "same switch" else (1, hosts + 2)
    findings = diagnose(measured_run(made, order, kind, burst, ranks, loss, seed), made.topology).verdict.findings
    slow = {made.hosts[rank] for rank in ranks}
    shown: Counter[str] = Counter(_found(findings, host, slow) for host in slow)
    for state, column in (("FAULT", "false"), ("SUSPECT", "suspect")):
        shown[column] = any(one.state == state and not _names(one, slow) for one in findings)
    return shown


def _names(finding: Finding, slow: set[str]) -> bool:
    """Return whether a finding is about slow hosts only, or about a pair of which one is slow."""
    if finding.component == "route":
        return all(slow & set(ends) for ends in finding.directions)
    return finding.component in ("host", "nic") and len(finding.hosts) > 0 and set(finding.hosts) <= slow


def _found(findings: tuple[Finding, ...], host: str, slow: set[str]) -> str:
    """Return the best state of the findings about a slow host."""
    about = (one for one in findings if one.component != "route" and host in one.hosts and _names(one, slow))
    states = {str(one.state) for one in about}
    for state in ("FAULT", "SUSPECT"):
        if state in states:
            return state
    return "open" if states else "none"


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, default=40)
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--only", default="", help="cases whose name contains this")
    chosen = options.parse_args()
    cases = {
        f"{fabric}, {order}, {place}, -{loss:.0%}, {kind} {burst}": (fabric, place, order, kind, burst, loss)
        for fabric in FABRICS
        for order in ("serial", "parallel")
        for place in PLACES
        for loss in LOSSES
        for kind, burst in BURSTS
    }
    print(f"{'case':<58}", *COLUMNS)
    with ProcessPoolExecutor(chosen.processes) as pool:
        for name, case in cases.items():
            if chosen.only in name:
                count = sum(pool.map(partial(trial, *case), range(1, chosen.seeds + 1)), Counter[str]())
                print(f"{name:<58}", *(f"{count[column]:>{len(column)}}" for column in COLUMNS), flush=True)


if __name__ == "__main__":
    main()
