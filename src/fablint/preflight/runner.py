"""All checks over all hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fablint.model.preflight_results import Fitness, Result
from fablint.preflight.base import Check
from fablint.preflight.causes import with_causes
from fablint.preflight.fleet import Fleet
from fablint.preflight.registry import CHECKS
from fablint.preflight.site.comparing import Membership, compared, membership, notes, with_severity, with_suppressions
from fablint.preflight.site.expectations import Site
from fablint.system import no_collection

Rows = list[tuple[Any, ...]]  # results without their class: processes exchange them several times as fast
Each = Callable[[Callable[[type[Check]], Rows], Sequence[type[Check]]], Iterable[Rows]]


def judge(fleet: Fleet, checks: Sequence[type[Check]] = CHECKS, site: Site | None = None, each: Each = map) -> Fitness:
    """What the checks say of a fleet. With `site` hosts are compared with the values of a site file, where it has any.

    `each` is `map`, or does the same in several processes.

    What a host was not able to say in its time is unknown: it takes no part in comparisons, where it would seem to
    lack what the others have. What it did say of itself alone is judged.
    """
    results: list[Result] = []
    late = {host.name: host.snapshot.incomplete for host in fleet.hosts if host.snapshot.incomplete}
    whole = replace(fleet, hosts=[host for host in fleet.hosts if host.name not in late]) if late else fleet
    site = site or Site("")
    checks = [with_severity(check, site) for check in checks]
    with no_collection():
        court = _Court(fleet, whole, late, site, membership(whole, site))
        for rows in each(court.rows, checks):
            results += map(Result._make, rows)
    results = with_suppressions(with_causes(results, fleet, checks), site.suppressions)
    hosts = [*(host.name for host in fleet.hosts), *fleet.silent]
    rules = {check.id: check.described() for check in checks}
    return Fitness(hosts, results, rules, fleet.silent, notes(site))


@dataclass(frozen=True)
class _Court:
    """What each check judges. Hosts that are `late` are not compared with the `whole` others."""

    fleet: Fleet
    whole: Fleet
    late: Mapping[str, str]
    site: Site
    classes: Membership

    def rows(self, check: type[Check]) -> Rows:
        """The results of a check."""
        return [tuple(one) for one in self._judged(check())]

    def _judged(self, check: Check) -> Iterator[Result]:
        judged = list(check.judge(self.whole if check.compares else self.fleet))
        yield from compared(check, self.whole, judged, self.site, self.classes)
        for host in self.late if check.compares else ():
            yield check.skipped(host, "", "not all of the host was read in time")
