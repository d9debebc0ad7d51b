"""What a reader should know of runs that several allocations measured in parts: their levels, and hosts in none."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from fablint.analyse.explain.view import ViewResult
from fablint.analyse.findings.detection_text import relative, seen_in
from fablint.analyse.settings import MARGIN
from fablint.model import ComponentRef, Finding, Note, Run, State, Topology
from fablint.model.component import cause
from fablint.text import actions as advise, evidence as seen, notes as noted


def joined_run_findings(run: Run, views: Sequence[ViewResult], tolerance: float) -> list[Finding]:
    """Return a finding for each allocation that is slower or faster as a whole than healthy components may be.

    A launch or all of its hosts may be the reason. Where hosts that are in another allocation as well show the same
    level, it is the launch, and there is no finding.
    """
    findings = []
    for number in range(len(run.facts.launch.allocations)):
        shifts = [(view, shift) for view, shift in _unconfirmed(views, number) if abs(shift) > tolerance]
        if not shifts:
            continue
        view, shift = max(shifts, key=lambda item: abs(item[1]))
        name = allocation_name(run, number)
        findings.append(
            Finding(
                state=State.CONFOUNDED,
                components=(ComponentRef(kind="config", title=f"level of {name}"),),
                quantity=view.quantity,
                effect=relative(shift, view.quantity),
                evidence=tuple(seen_in(one, seen.allocation_level(name, math.expm1(of_one))) for one, of_one in shifts),
                ambiguity_group=(cause("the launch of this allocation"), cause("all of its hosts")),
                next_step=advise.measure_with_overlap(),
            )
        )
    return findings


def _unconfirmed(views: Sequence[ViewResult], number: int) -> Iterator[tuple[ViewResult, float]]:
    """Yield the log-effect of an allocation in each view where no host of another allocation confirms it."""
    for view in views:
        if view.levels is not None and number < view.levels.level.size and not view.levels.confirmed[number]:
            yield view, float(np.nan_to_num(view.levels.level[number]))


def joined_run_notes(run: Run, views: Sequence[ViewResult], topology: Topology | None) -> list[Note]:
    """Return a note on the allocations, and one for each view in which their levels differ."""
    allocations = run.facts.launch.allocations
    notes: list[Note] = []
    if run.joined:
        counts = Counter(host for hosts in allocations for host in hosts)
        absent = len(set(topology.host_switch) - set(run.hosts)) if topology is not None else 0
        shared = sum(count > 1 for count in counts.values())
        names = tuple(allocation_name(run, number) for number in range(len(allocations)))
        notes.append(noted.joined_runs(runs=names, hosts=len(counts), shared=shared, absent=absent))
    for view in views:
        levels = None if view.levels is None else view.levels.level[~np.isnan(view.levels.level)]
        if levels is not None and np.ptp(levels) > MARGIN:
            low, high = math.expm1(float(levels.min())), math.expm1(float(levels.max()))
            notes.append(seen_in(view, noted.allocation_levels(low, high)))
    return notes


def allocation_name(run: Run, number: int) -> str:
    """Return the name of the run of an allocation; its number where it has no directory."""
    return run.joined[number].name if number < len(run.joined) else f"allocation {number + 1}"
