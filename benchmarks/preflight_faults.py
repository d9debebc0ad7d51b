"""Fleets with one fault each, judged by the program: what is found, what is missed, who is accused wrongly.

    python benchmarks/preflight_faults.py [--sizes 3,10,100] [--machines infiniband,roce] [--only mtu,clock]

Fleets are generated without the helpers that the checks were developed with (benchmarks/fleets): homogeneous but for
what healthy hosts of one kind differ in, and one host with one fault. They are saved and read by `fablint preflight
--snapshot FILE --json`. A fault is found where the host that has it is named by a failure or a warning, of whatever
check; any other host that is named by a failure, a warning or an error is a false alarm. Sizes up to 10,000 take half
a minute and 3 GB of disk each.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from fleets.documents import Fleet
from fleets.faults import FAULTS, Fault
from fleets.machines import MACHINES
from fleets.program import Run, preflight

HEALTHY = "none"


def run_of(folder: Path, fleet: Fleet, fault: Fault | None, index: int) -> Run:
    """The program's result for a fleet whose host `index` has the fault."""
    snapshots, topology = folder / "fleet.json", folder / "topology.yaml"
    changes = {index: partial(fault.apply, fleet, index)} if fault else None
    with snapshots.open("w", encoding="utf-8") as stream:
        stream.writelines(f"{line}\n" for line in fleet.documents(changes))
    topology.write_text(fleet.topology(), encoding="utf-8")
    return preflight(folder, snapshots, topology if fault and fault.topology else None)


def row(fleet: Fleet, fault: Fault | None, folder: Path) -> str:
    """A row of the table."""
    index = 2 * fleet.hosts // 3
    run = run_of(folder, fleet, fault, index)
    host = fleet.name(index) if fault else ""
    by = Counter(f"{outcome} {check}" for name, _, outcome, check in run.wrong if name == host)
    others = {name for name, *_ in run.wrong if name != host}
    result = "-" if fault is None else "found" if by else "MISSED"
    checks = ", ".join(dict.fromkeys(by)) or "-"
    wrong = ", ".join(sorted({check for name, *_, check in run.wrong if name != host}))
    alarms = f"{len(others)} ({wrong})" if others else "0"
    name = fault.name if fault else HEALTHY
    return f"| {fleet.machine.name} | {fleet.hosts:,} | {name} | {result} | {checks} | {alarms} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="3,10,100")
    parser.add_argument("--machines", default=",".join(MACHINES))
    parser.add_argument("--only", default=",".join([HEALTHY, *FAULTS]), help="faults")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print("| machine | hosts | fault | result | by | other hosts named |\n| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as name:
        for machine in given.machines.split(","):
            for size in map(int, given.sizes.split(",")):
                for word in given.only.split(","):
                    fault = FAULTS[word] if word != HEALTHY else None
                    if fault is None or fault.needs(MACHINES[machine]):
                        print(row(Fleet(MACHINES[machine], size, given.seed), fault, Path(name)), flush=True)


if __name__ == "__main__":
    main()
