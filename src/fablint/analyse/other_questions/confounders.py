"""What makes pairs slow without a faulty component: the first host, ranks that share CPUs, other processes, the time.

None of this is evidence for or against a component. A finding is CONFOUNDED, of the configuration, where what was
seen has such a reason as well; the rest are notes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from scipy.special import ndtr

from fablint.analyse.findings.detection_text import relative
from fablint.analyse.null_model.timing import Period, TimedCells, drift_of, slow_periods
from fablint.analyse.observations.robust_stats import average_ranks
from fablint.analyse.settings import BEYOND_DOUBT, CHANCE, FEWEST_INDEPENDENT, FEWEST_VALUES, QUARTER, Settings
from fablint.model import ComponentRef, Finding, Note, Placement, Run, State
from fablint.model.arrays import Codes, Floats, Mask
from fablint.model.component import cause
from fablint.model.figures.cpu_wait import NOTABLE, host_shares
from fablint.model.placement import unfold_cores
from fablint.text import actions as advise, evidence as seen, notes as noted

# First hosts differ from others in healthy runs as all hosts do, and one allocation has one first host. Where each pair
# was a launch of its own, the first host also started all of them, and one chance in a hundred is reason enough to say
# that the two are indistinguishable. Where all pairs were one launch, several allocations must agree, beyond doubt.


def confounded(
    run: Run, placement: Placement, views: Sequence[TimedCells], settings: Settings
) -> tuple[list[Finding], list[Note]]:
    """Findings and notes on everything that this module knows of."""
    findings = [*first_hosts(run, placement, views), *shared_cores(run, placement)]
    when = [
        (finding, _harmless_times(view, placement, settings))
        for view in views
        for finding in slow_times(view, placement, settings)
    ]
    findings += [finding for finding, harmless in when if not harmless][:1]
    notes = [note for _, harmless in when for note in harmless]
    notes += _cpu_wait_notes(run)
    if _launched_by_pair(run):
        notes.append(noted.launch_per_pair())
    return findings, notes


def _launched_by_pair(run: Run) -> bool:
    return run.facts.imported is not None and run.facts.imported.launch == "pair"


# ------------------------------------------------------------------------------------------------ the first pairs


def first_hosts(run: Run, placement: Placement, views: Sequence[TimedCells]) -> list[Finding]:
    """Return findings on first hosts of allocations whose pairs are slower than the others of that allocation."""
    by_pair = _launched_by_pair(run)
    allocations = _allocations(run, placement)
    if not views or not (by_pair or len(allocations) >= FEWEST_INDEPENDENT):
        return []
    tests = [(_first_against_others(view, placement, allocations), view) for view in views]
    judged = [(chance, shift, view) for (chance, shift), view in tests if np.isfinite(chance)]
    if not judged:
        return []
    chances = np.sort([chance for chance, _, _ in judged])
    together = float((chances * chances.size / np.arange(1, chances.size + 1)).min())  # Simes 1986: sizes are related
    if together > (CHANCE if by_pair else BEYOND_DOUBT):
        return []
    chance, shift, view = min(judged, key=lambda test: test[0])
    slow = sum(1 for _, shift, _ in judged if shift > 0)
    first = [placement.hosts[hosts[0]] for hosts in allocations]
    return [
        Finding(
            state=State.CONFOUNDED,
            components=(ComponentRef(kind="config", title="first host of the allocation"),),
            quantity=view.quantity,
            effect=relative(shift, view.quantity),
            log10_e=-float(np.log10(max(together, 1e-300))),
            evidence=(
                seen.first_host(
                    hosts=tuple(first),
                    shift=math.expm1(shift),
                    chance=chance,
                    slow=slow,
                    sizes=len(judged),
                    together=together,
                ).measured_in(view.row, view.size),
            ),
            ambiguity_group=(
                ComponentRef.of("host", first),
                cause("the batch host that starts all the others"),
                cause("the host that is measured first"),
            ),
            next_step=advise.measure_other_host_first(ComponentRef.of("host", first)),
        )
    ]


def _allocations(run: Run, placement: Placement) -> list[list[int]]:
    """Host codes of each allocation in order; one of all hosts, rank 0's first, where the run does not say."""
    code = {name: index for index, name in enumerate(placement.hosts)}
    said = run.facts.launch.allocations or [[placement.hosts[host] for host in dict.fromkeys(placement.host.tolist())]]
    codes = [[code[host] for host in hosts if host in code] for hosts in said]
    return [hosts for hosts in codes if len(hosts) > 1]


def _first_against_others(view: TimedCells, placement: Placement, allocations: list[list[int]]) -> tuple[float, float]:
    """Chance of a rank sum as high by accident, and the shift; by the rank sums of Mann and Whitney per allocation."""
    a, b = placement.host[view.src], placement.host[view.dst]
    surplus = variance = 0.0
    shifts = []
    for hosts in allocations:
        inside = np.isin(a, hosts) & np.isin(b, hosts) & (a != b) & np.isfinite(view.excess)
        value, first = _per_pair(a[inside], b[inside], view.excess[inside], hosts[0])
        with_it, others = int(first.sum()), int((~first).sum())
        if min(with_it, others) < FEWEST_VALUES:
            continue
        rank = average_ranks(value)
        ties = np.unique(rank, return_counts=True)[1].astype(np.float64)
        n = with_it + others
        surplus += rank[first].sum() - with_it * (n + 1) / 2
        variance += with_it * others / 12 * (n + 1 - float((ties**3 - ties).sum()) / (n * (n - 1)))
        shifts.append(float(np.median(value[first]) - np.median(value[~first])))
    if variance <= 0:
        return np.nan, 0.0
    return float(ndtr(-surplus / np.sqrt(variance))), float(np.median(shifts))


def _per_pair(a: Codes, b: Codes, excess: Floats, first: int) -> tuple[Floats, Mask]:
    """One value per two hosts, and whether one of them is the first."""
    low, high = np.minimum(a, b).astype(np.int64), np.maximum(a, b).astype(np.int64)
    key = low * (high.max(initial=0) + 1) + high
    inverse = np.unique(key, return_inverse=True)[1]
    value = np.bincount(inverse, weights=excess) / np.bincount(inverse)
    has_first = np.bincount(inverse, weights=(low == first) | (high == first)) > 0
    return value, has_first


# ------------------------------------------------------------------------------------------------ how it was bound


def shared_cores(run: Run, placement: Placement) -> list[Finding]:
    """Hosts on which ranks are bound to the same CPUs although others are free."""
    ranks: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for host, cores in zip(placement.host.tolist(), run.facts.rank_cores, strict=False):
        if cores and not placement.oversubscribed[host]:
            ranks[host][cores] += 1
    sharing = [host for host, sets in ranks.items() if _overfull(tuple(sorted(sets.items())))]
    if not sharing:
        return []
    return [
        Finding(
            state=State.CONFOUNDED,
            components=(ComponentRef(kind="config", title="ranks on the same CPU"),),
            evidence=(seen.shared_cores(tuple(placement.hosts[host] for host in sharing)),),
            next_step=advise.measure_bound(),
        )
    ]


def _cpu_wait_notes(run: Run) -> list[Note]:
    """A note on hosts whose ranks waited for CPUs that other processes used."""
    notable = {host: share for host, share in host_shares(run).items() if share >= NOTABLE}
    if not notable:
        return []
    longest = max(notable, key=lambda host: notable[host])
    return [noted.cpu_wait(tuple(notable), notable[longest], longest)]


@cache
def _overfull(ranks: tuple[tuple[str, int], ...]) -> bool:
    """Tell whether more ranks are bound to a set of CPUs than it has CPUs, once for all hosts with the same sets."""
    cores = {folded: unfold_cores(folded) for folded, _ in ranks}
    return any(sum(count for other, count in ranks if cores[other] <= cpus) > len(cpus) for cpus in cores.values())


# ------------------------------------------------------------------------------------------------ when


def slow_times(view: TimedCells, placement: Placement, settings: Settings) -> list[Finding]:
    """A period in which pairs of many hosts were slow, or a drift from the beginning to the end."""
    periods = slow_periods(view, placement, settings)
    first_to_last = drift_of(view, placement)
    if periods:
        evidence = [
            seen.slow_period(period.begin, period.end, period.hosts, math.expm1(period.excess)) for period in periods
        ]
        excess = max(period.excess for period in periods)
    elif abs(first_to_last) > settings.tolerance:
        evidence = [seen.drift(math.expm1(first_to_last))]
        excess = abs(first_to_last)
    else:
        return []
    return [
        Finding(
            state=State.CONFOUNDED,
            components=(ComponentRef(kind="config", title="time of measurement"),),
            quantity=view.quantity,
            effect=relative(excess, view.quantity),
            evidence=tuple(record.measured_in(view.row, view.size) for record in evidence),
            ambiguity_group=(
                cause("other jobs on the fabric"),
                cause("clock frequency or temperature of all hosts"),
            ),
            next_step=advise.measure_without_load(),
        )
    ]


def _harmless_times(view: TimedCells, placement: Placement, settings: Settings) -> list[Note]:
    """Return a note on slow times that do not matter to the judgement.

    Either the model takes out what all pairs have in common at each time, so that none is left, and pairs are compared
    with others of their time; or every rank sent and received three times as often at other times.
    """
    periods = slow_periods(view, placement, settings)
    left = view if view.unexplained is None else replace(view, excess=view.unexplained)
    is_explained = not slow_times(left, placement, settings)
    if not periods:  # a drift has no other times
        change = math.expm1(drift_of(view, placement))
        return [noted.drift_of_all(row=view.row, size=view.size, change=change)] if is_explained else []
    if not is_explained and not _are_outvoted(periods, view):
        return []
    return [
        noted.slow_periods(
            row=view.row,
            size=view.size,
            begins=tuple(period.begin for period in periods),
            ends=tuple(period.end for period in periods),
            hosts=tuple(period.hosts for period in periods),
            excesses=tuple(math.expm1(period.excess) for period in periods),
            explained=is_explained,
        )
    ]


def _are_outvoted(periods: Sequence[Period], view: TimedCells) -> bool:
    """Return whether every rank sent and received three times as often outside the periods."""
    inside = np.any([(view.started >= period.begin) & (view.started <= period.end) for period in periods], axis=0)
    within = [np.bincount(end, weights=inside) for end in (view.src, view.dst)]
    measured = [np.bincount(end) for end in (view.src, view.dst)]
    return all(bool((in_periods <= QUARTER * total).all()) for in_periods, total in zip(within, measured, strict=True))
