"""All checks over all hosts."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from fablint.fitness import Fitness, Result
from fablint.preflight.check import Check
from fablint.preflight.host import Fleet
from fablint.preflight.table import CHECKS


def judge(fleet: Fleet, checks: Sequence[type[Check]] = CHECKS) -> Fitness:
    """What the checks say of a fleet."""
    results: list[Result] = []
    with _no_collection():
        for check in checks:
            results += check().judge(fleet)
    hosts = [*(host.name for host in fleet.hosts), *fleet.silent]
    return Fitness(hosts, results, {check.id: check.described() for check in checks}, fleet.silent)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without the search for cycles: a thousand snapshots are millions of objects, and none of them is freed."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()  # all of them are old now: the next search need not go through them
        if was:
            gc.enable()
