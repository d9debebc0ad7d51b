"""Run all checks on all hosts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from fablint.model.preflight_results import Fitness, Result
from fablint.preflight.batch import Batch
from fablint.preflight.causes import with_causes
from fablint.preflight.check import Check
from fablint.preflight.check_registry import CHECKS
from fablint.preflight.fleet import Fleet
from fablint.preflight.site.comparing import Membership, compared, membership, notes, with_severity, with_suppressions
from fablint.preflight.site.expectations import Site
from fablint.system import no_collection

Group = Sequence[Check]  # checks that read the same, which a process understands once
Each = Callable[[Callable[[Group], list[Batch]], Sequence[Group]], Iterable[list[Batch]]]


def judge(fleet: Fleet, checks: Sequence[Check] = CHECKS, site: Site | None = None, each: Each = map) -> Fitness:
    """Judge a fleet with the checks.

    A host with an incomplete snapshot is excluded from comparisons, because missing facts would look like differences.
    Checks that judge each host on its own include it.

    Parameters
    ----------
    fleet
        Hosts with their snapshots.
    checks
        Those to be judged.
    site
        Expected values, which replace the comparison with other hosts.
    each
        `map`, or an equivalent that uses several processes.
    """
    results: list[Result] = []
    late = {host.name: host.snapshot.incomplete for host in fleet.hosts if host.snapshot.incomplete}
    whole = replace(fleet, hosts=[host for host in fleet.hosts if host.name not in late]) if late else fleet
    site = site or Site("")
    checks = [with_severity(check, site) for check in checks]
    with no_collection():
        comparison = _Comparison(fleet, whole, late, site, membership(whole, site))
        groups = _groups(checks)
        batches = dict(zip(itertools.chain(*groups), itertools.chain(*each(comparison.results, groups)), strict=True))
        for check in checks:
            results += batches[check].results
        results = with_suppressions(with_causes(results, fleet, checks), site.suppressions)
    hosts = [*(host.name for host in fleet.hosts), *fleet.silent]
    rules = {check.id: check for check in checks}
    return Fitness(hosts, results, rules, fleet.silent, notes(site))


def _groups(checks: Sequence[Check]) -> list[Group]:
    """Checks by what they read, those of most checks first: they take longest."""
    groups: dict[str, list[Check]] = {}
    for check in checks:
        groups.setdefault(check.judge.reads or check.id, []).append(check)
    return sorted(groups.values(), key=len, reverse=True)


@dataclass(frozen=True)
class _Comparison:
    """What each check judges. Hosts that are `late` are not compared with the `whole` others."""

    fleet: Fleet
    whole: Fleet
    late: Mapping[str, str]
    site: Site
    classes: Membership

    def results(self, group: Group) -> list[Batch]:
        """The results of each check of a group."""
        return [Batch(self._judged(check)) for check in group]

    def _judged(self, check: Check) -> list[Result]:
        judged = list(check.results(self.whole if check.judge.compares else self.fleet))
        judged = compared(check, self.whole, judged, self.site, self.classes)
        late = self.late if check.judge.compares else ()
        return judged + [check.skip(host, "", "not all of the host was read in time") for host in late]
