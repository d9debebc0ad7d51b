"""All checks over all hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fablint.fitness import Fitness, Result
from fablint.preflight.causes import with_causes
from fablint.preflight.check import Check
from fablint.preflight.host import Fleet
from fablint.preflight.table import CHECKS
from fablint.system import no_collection


def judge(fleet: Fleet, checks: Sequence[type[Check]] = CHECKS) -> Fitness:
    """What the checks say of a fleet.

    What a host was not able to say in its time is unknown: it takes no part in comparisons, where it would seem to
    lack what the others have. What it did say of itself alone is judged.
    """
    results: list[Result] = []
    late = {host.name: host.snapshot.incomplete for host in fleet.hosts if host.snapshot.incomplete}
    whole = replace(fleet, hosts=[host for host in fleet.hosts if host.name not in late]) if late else fleet
    with no_collection():
        for check in checks:
            one = check()
            results += one.judge(whole if check.compares else fleet)
            results += (
                one.skipped(host, "", "not all of the host was read in time") for host in late if check.compares
            )
    results = with_causes(results, fleet, checks)
    hosts = [*(host.name for host in fleet.hosts), *fleet.silent]
    return Fitness(hosts, results, {check.id: check.described() for check in checks}, fleet.silent)
