"""The smallest loss of a component that is a FAULT in 9 of 10 runs, beside the loss that the run states.

    python benchmarks/noise/smallest_named.py [--seeds 40] [--first 1] [--processes 2] [--only '16 hosts, host,']

One component of a mesh of switches loses a share of its bandwidth; all pairs are measured in rounds, and the run is
judged before any follow-up measurement. `tolerated` counts FAULTs of a component that loses 4.5 %, which healthy
hosts may lose. The other columns have the share of the runs with a FAULT of the component for each loss; `9 in 10` is
the smallest loss from which that share is 90 %, `stated` the median of the losses that the runs state as named in 9 of
10 cases. Noise: `normal` with 1.3 % and `heavy` (Student's t with 3 degrees of freedom)
with 4 % standard deviation of a measurement; hosts differ by 0.5 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from interval_coverage import (
    FABRICS,
    QUIET,
    STREAM,
    chosen_cases,
    drawn_fault,
    in_rounds,
    is_about,
    read_options,
)

from fablint.analyse import diagnose
from fablint.simulate import Noise, full_mesh

COMPONENTS = {"host": "host:{host}:both", "host tx": "host:{host}:tx", "cable": "cable:s1=s2", "switch": "switch:s1"}
NOISES = {"normal": Noise("normal", 0.013, **QUIET), "heavy": Noise("student3", 0.04 / math.sqrt(3), **QUIET)}
LOSSES = tuple(round(0.055 + 0.005 * step, 3) for step in range(20))
TOLERATED = 0.045  # loss of a healthy component


@dataclass(frozen=True)
class Verdict:
    """What a run says of the component."""

    is_named: bool
    stated: float | None  # loss that it states as named in 9 of 10 cases


def judged(fabric_name: str, component: str, noise: str, loss: float, seed: int) -> Verdict:
    """Return the verdict on one run."""
    fabric = full_mesh(*FABRICS[fabric_name])
    fault = drawn_fault(f"{COMPONENTS[component]}:-{100 * loss:g}%", fabric, seed)
    verdict = diagnose(in_rounds(fabric, fault, STREAM, NOISES[noise], seed), fabric.topology).verdict
    is_named = any(finding.state == "FAULT" and is_about(finding, fault) for finding in verdict.findings)
    stated = [limit.loss for limit in verdict.limits.named if limit.component == component.split()[0]]
    return Verdict(is_named, stated[0] if stated else None)


def rates(case: tuple[str, str, str], seeds: Sequence[int], pool: ProcessPoolExecutor) -> str:
    """Return one line of the table: losses from the smallest on, up to the first two that are always named."""
    tolerated = sum(verdict.is_named for verdict in pool.map(partial(judged, *case, TOLERATED), seeds, chunksize=4))
    words, stated, smallest, certain = [], [], None, 0
    for loss in LOSSES:
        verdicts = list(pool.map(partial(judged, *case, loss), seeds, chunksize=4))
        share = sum(verdict.is_named for verdict in verdicts) / len(seeds)
        stated += [verdict.stated for verdict in verdicts if verdict.stated is not None]
        smallest = smallest or (loss if share >= 0.9 else None)
        certain += share >= 0.99
        words.append(f"{loss:.1%}: {share:.0%}")
        if smallest and certain > 1:
            break
    at = "more" if smallest is None else f"{smallest:.1%}"
    limit = f"{float(np.median(stated)):.1%}" if stated else "-"
    return f"{', '.join(case):<30} {tolerated:>9} {at:>8} {limit:>7}  {', '.join(words)}"


def main() -> None:
    """Print the table."""
    chosen = read_options(__doc__, 40)
    print(f"{'case':<30} tolerated  9 in 10  stated  named")
    seeds = range(chosen.first, chosen.first + chosen.seeds)
    with ProcessPoolExecutor(chosen.processes) as pool:
        for case in chosen_cases(chosen, COMPONENTS, NOISES):
            print(rates(case, seeds, pool), flush=True)


if __name__ == "__main__":
    main()
