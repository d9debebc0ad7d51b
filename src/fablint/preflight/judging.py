"""All checks over all hosts."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from fablint.fitness import Fitness, Result
from fablint.preflight.causes import with_causes
from fablint.preflight.check import Check
from fablint.preflight.host import Fleet
from fablint.preflight.site.comparing import compared, membership, notes, with_severity, with_suppressions
from fablint.preflight.site.expectations import Site
from fablint.preflight.table import CHECKS


def judge(fleet: Fleet, checks: Sequence[type[Check]] = CHECKS, site: Site | None = None) -> Fitness:
    """What the checks say of a fleet. With `site` hosts are compared with the values of a site file, where it has any.

    What a host was not able to say in its time is unknown: it takes no part in comparisons, where it would seem to
    lack what the others have. What it did say of itself alone is judged.
    """
    results: list[Result] = []
    late = {host.name: host.snapshot.incomplete for host in fleet.hosts if host.snapshot.incomplete}
    whole = replace(fleet, hosts=[host for host in fleet.hosts if host.name not in late]) if late else fleet
    site = site or Site("")
    checks = [with_severity(check, site) for check in checks]
    with _no_collection():
        classes = membership(whole, site)
        for check in checks:
            one = check()
            judged = list(one.judge(whole if check.compares else fleet))
            results += compared(one, whole, judged, site, classes)
            results += (
                one.skipped(host, "", "not all of the host was read in time") for host in late if check.compares
            )
    results = with_suppressions(with_causes(results, fleet, checks), site.suppressions)
    hosts = [*(host.name for host in fleet.hosts), *fleet.silent]
    rules = {check.id: check.described() for check in checks}
    return Fitness(hosts, results, rules, fleet.silent, notes(site))


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
