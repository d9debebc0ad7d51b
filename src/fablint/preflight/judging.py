"""All checks over all hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from fablint.fitness import Fitness, Result
from fablint.preflight.causes import with_causes
from fablint.preflight.check import Check
from fablint.preflight.host import Fleet
from fablint.preflight.table import CHECKS
from fablint.system import no_collection

Rows = list[tuple[Any, ...]]  # results without their class: processes exchange them several times as fast
Each = Callable[[Callable[[type[Check]], Rows], Sequence[type[Check]]], Iterable[Rows]]


def judge(fleet: Fleet, checks: Sequence[type[Check]] = CHECKS, each: Each = map) -> Fitness:
    """What the checks say of a fleet. `each` is `map`, or does the same in several processes.

    What a host was not able to say in its time is unknown: it takes no part in comparisons, where it would seem to
    lack what the others have. What it did say of itself alone is judged.
    """
    results: list[Result] = []
    late = {host.name: host.snapshot.incomplete for host in fleet.hosts if host.snapshot.incomplete}
    whole = replace(fleet, hosts=[host for host in fleet.hosts if host.name not in late]) if late else fleet
    with no_collection():
        for rows in each(partial(_rows, fleet, whole, late), checks):
            results += map(Result._make, rows)
    results = with_causes(results, fleet, checks)
    hosts = [*(host.name for host in fleet.hosts), *fleet.silent]
    return Fitness(hosts, results, {check.id: check.described() for check in checks}, fleet.silent)


def _rows(fleet: Fleet, whole: Fleet, late: Mapping[str, str], check: type[Check]) -> Rows:
    return [tuple(one) for one in _judged(fleet, whole, late, check())]


def _judged(fleet: Fleet, whole: Fleet, late: Mapping[str, str], check: Check) -> Iterator[Result]:
    """The results of a check; hosts that are `late` are not compared with the `whole` others."""
    if not check.compares:
        yield from check.judge(fleet)
        return
    yield from check.judge(whole)
    for host in late:
        yield check.skipped(host, "", "not all of the host was read in time")
