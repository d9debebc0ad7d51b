"""Fleets with one fault each, judged as the program judges them: found, missed and wrongly named faults.

    python benchmarks/preflight_faults.py [--sizes 3,8,20,200] [--machines infiniband,roce] [--only mtu,clock]
        [--mixes [--fleets 11:9,three] [--plant no-gpu] [--level quick]]

Fleets are generated without the helpers that the checks were developed with (benchmarks/generated_fleets): homogeneous
but for what healthy hosts of one kind differ in, and one host with one fault. Snapshots of level full are saved, read
and judged as `fablint preflight --snapshot FILE` does. A fault is found where the host that has it is named by a
failure or a warning, of whatever check; any other host that is named by a failure, a warning or an error is a
false alarm. With --mixes healthy fleets of several machines and settings are judged instead: no host may be unfit.
With --plant each of them has one host with this fault, where its machine can have it: only that host may be unfit.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

from generated_fleets.documents import Fleet
from generated_fleets.faults import FAULTS, Fault
from generated_fleets.machines import MACHINES
from generated_fleets.mixes import MIXES, fleet_of

from fablint.model.preflight_results import Fitness, Outcome, Result
from fablint.system import System
from fablint.workflows import run_files
from fablint.workflows.host_preflight import SiteDeclaration, preflight_saved

HEALTHY = "none"
LINES = 60  # of a kernel log
_WRONG = (Outcome.FAIL, Outcome.WARN, Outcome.ERROR)


def fleet_for(machine: str, hosts: int, fault: Fault | None, seed: int = 1) -> Fleet:
    """The fleet that a fault is put into."""
    return Fleet(MACHINES[machine], hosts, seed, LINES, "full", root=bool(fault and fault.root))


def judged(folder: Path, fleet: Fleet, fault: Fault | None = None, index: int = 0) -> Fitness:
    """What the program says of a fleet whose host `index` has the fault."""
    snapshots, topology = folder / "fleet.json", folder / "topology.yaml"
    changes = {index: partial(fault.apply, fleet, index)} if fault else None
    with snapshots.open("w", encoding="utf-8") as stream:
        stream.writelines(f"{line}\n" for line in fleet.documents(changes))
    if fault and fault.topology:
        topology.write_text(fleet.topology(), encoding="utf-8")
        return preflight_saved(System(), [snapshots], SiteDeclaration(run_files.load_topology(topology))).fitness
    return preflight_saved(System(), [snapshots]).fitness


def wrong(fitness: Fitness) -> Sequence[Result]:
    """What does not hold."""
    return [one for one in fitness.results if one.outcome in _WRONG]


def row(fleet: Fleet, fault: Fault | None, folder: Path) -> tuple[str, bool, int]:
    """A row of the table, whether the fault is found, and how many other hosts are named."""
    index = 2 * fleet.hosts // 3
    result_entry = wrong(judged(folder, fleet, fault, index))
    host = fleet.name(index) if fault else ""
    by = Counter(f"{one.outcome} {one.check}" for one in result_entry if one.host == host)
    both = {host, fleet.name(0)} if fault and fault.shared else {host}
    others = {one.host for one in result_entry} - both
    result = "-" if fault is None else "found" if by else "MISSED"
    checks = ", ".join(dict.fromkeys(by)) or "-"
    alarms = ", ".join(sorted({one.check for one in result_entry if one.host in others}))
    name = fault.name if fault else HEALTHY
    text = f"| {fleet.machine.name} | {fleet.hosts:,} | {name} | {result} | {checks} | {len(others)} {alarms} |"
    return text, bool(by) or fault is None, len(others)


def show_faults(machines: Sequence[str], sizes: Sequence[int], names: Sequence[str], seed: int, folder: Path) -> None:
    """Print a row for each fleet, and at the end how many faults of each size are found."""
    print("| machine | hosts | fault | result | by | other hosts named |\n| --- | --- | --- | --- | --- | --- |")
    counts = {size: Counter[str]() for size in sizes}
    for machine in machines:
        for name in names:
            fault = FAULTS[name] if name != HEALTHY else None
            if fault is not None and not fault.needs(MACHINES[machine]):
                continue
            for size in sizes:
                text, is_found, others = row(fleet_for(machine, size, fault, seed), fault, folder)
                print(text, flush=True)
                counts[size].update({"faults": fault is not None, "found": is_found and fault is not None})
                counts[size].update({"fleets": 1, "alarms": others > 0})
    for size, count in counts.items():
        print(
            f"{size} hosts: {count['found']} of {count['faults']} faults found; "
            f"other hosts named in {count['alarms']} of {count['fleets']} fleets"
        )


def show_mixes(mixes: Sequence[str], sizes: Sequence[int], fault: Fault | None, fleet: Fleet, folder: Path) -> None:
    """Print which hosts of fleets that are healthy but for a planted fault are unfit, and what is warned of.

    Seed and level are those of `fleet`.
    """
    print("| fleet | hosts | planted | healthy hosts unfit | warnings |\n| --- | --- | --- | --- | --- |")
    for mix in mixes:
        for size in sizes:
            made = replace(fleet_of(mix, size, seed=fleet.seed, level=fleet.level), lines=LINES)
            index = size // 3  # of the first machine, which most hosts are
            planted = fault if fault and fault.needs(made.machine) else None
            fitness = judged(folder, made, planted, index)
            result = wrong(fitness)
            of_host = [one for one in result if planted and one.host == made.name(index)]
            state = "-" if not planted else "unfit" if made.name(index) in fitness.unfit else "warned of"
            healthy = fitness.unfit.keys() - {one.host for one in of_host}
            warned = ", ".join(sorted({one.check for one in result}))
            state = state if of_host or not planted else "MISSED"
            print(f"| {mix} | {size:,} | {state} | {len(healthy)} | {warned or '-'} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="3,8,20,200")
    parser.add_argument("--machines", default=",".join(MACHINES))
    parser.add_argument("--only", default=",".join([HEALTHY, *FAULTS]), help="faults")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mixes", action="store_true", help="healthy fleets of several machines and settings")
    parser.add_argument("--fleets", default="", help="of --mixes: those whose names hold one of these words")
    parser.add_argument("--plant", choices=FAULTS, help="of --mixes: a fault of one host of each fleet")
    parser.add_argument("--level", choices=("quick", "full"), default="full", help="of --mixes")
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    with tempfile.TemporaryDirectory() as name:
        if given.mixes:
            mixes = [mix for mix in MIXES if any(word in mix for word in given.fleets.split(","))]
            fault = FAULTS[given.plant] if given.plant else None
            like = Fleet(MACHINES["infiniband"], 1, given.seed, LINES, given.level)
            show_mixes(mixes, sizes, fault, like, Path(name))
        else:
            show_faults(given.machines.split(","), sizes, given.only.split(","), given.seed, Path(name))


if __name__ == "__main__":
    main()
