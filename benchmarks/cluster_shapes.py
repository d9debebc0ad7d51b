"""`fablint check` of virtual clusters of three shapes, healthy and with each kind of fault: is the verdict right?

3 groups of 1 switch with 6 hosts, 2 of 3 switches with 3 hosts, 1 switch with 8 hosts; reached over ssh; with the
cables declared in a topology file, and with paths presumed (one switch: with no topology at all).

Needs the vcluster test bed beside the checkout and root; says so and ends where they are missing.

    python benchmarks/cluster_shapes.py [--shape 3x1x6] [--case "slow host"] [--known declared] [--repeats N]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from checked_cluster import Outcome
from cluster_shapes import SHAPES, Case, Knowledge, Shape, check_case, cluster_of
from vcluster import Cluster, why_not


def row(shape: Shape, knowledge: Knowledge, case: Case, outcome: Outcome) -> str:
    """A line of the table."""
    wrong = outcome.wrong(case.faulty)
    judged = "right" if not wrong else "WRONG"
    what = (
        f"{shape.name}  {knowledge:<8}  {case.name:<23}  {judged}  exit {outcome.exit_code}  {outcome.seconds:4.0f} s"
    )
    return f"{what}  {outcome.summary()}" + "".join(f"\n{'':>8}{text}" for text in wrong)


def check_shape(shape: Shape, requested: argparse.Namespace) -> list[bool]:
    """Check one cluster with all faults that are requested for; says of each check whether its verdict is right."""
    cases = [case for case in shape.cases() if not requested.case or case.name in requested.case]
    knowledge = [one for one in shape.knowledge if not requested.known or one in requested.known]
    right = []
    with cluster_of(shape) as bed:
        for case in cases:
            for value in knowledge * requested.repeats:
                outcome = measured(bed, shape, case, value, requested)
                print(row(shape, value, case, outcome), flush=True)
                right.append(not outcome.wrong(case.faulty))
    return right


def measured(bed: Cluster, shape: Shape, case: Case, knowledge: Knowledge, requested: argparse.Namespace) -> Outcome:
    """One check, in a folder that is kept where that is requested for."""
    options = ("--budget", requested.budget) if requested.budget else ()
    if requested.keep is None:
        with tempfile.TemporaryDirectory() as folder:
            return check_case(bed, shape, case, knowledge, Path(folder), *options)
    requested.keep.mkdir(parents=True, exist_ok=True)
    name = f"{shape.name}-{knowledge}-{case.name}-".replace(" ", "-").replace(",", "")
    return check_case(bed, shape, case, knowledge, Path(tempfile.mkdtemp(prefix=name, dir=requested.keep)), *options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", action="append", choices=[shape.name for shape in SHAPES], help="may be repeated")
    parser.add_argument("--case", action="append", help="name of a case; may be repeated")
    parser.add_argument("--known", action="append", choices=["declared", "presumed", "none"], help="may be repeated")
    parser.add_argument("--repeats", type=int, default=1, help="checks of each case")
    parser.add_argument("--budget", help="of each check, such as 40s")
    parser.add_argument("--keep", type=Path, help="folder in which the runs are kept")
    requested = parser.parse_args()
    if reason := why_not():
        print(f"left out: {reason}")
        return
    right = [
        item
        for shape in SHAPES
        if not requested.shape or shape.name in requested.shape
        for item in check_shape(shape, requested)
    ]
    print(f"{sum(right)} of {len(right)} verdicts are right")


if __name__ == "__main__":
    main()
