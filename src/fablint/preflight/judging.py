"""All checks over all hosts."""

from __future__ import annotations

from collections.abc import Sequence

from fablint.fitness import Fitness, Result
from fablint.preflight.check import Check
from fablint.preflight.host import Fleet
from fablint.preflight.table import CHECKS


def judge(fleet: Fleet, checks: Sequence[type[Check]] = CHECKS) -> Fitness:
    """What the checks say of a fleet."""
    results: list[Result] = []
    for check in checks:
        results += check().judge(fleet)
    hosts = [*(host.name for host in fleet.hosts), *fleet.silent]
    return Fitness(hosts, results, {check.id: check.described() for check in checks}, fleet.silent)
