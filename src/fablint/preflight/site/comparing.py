"""Comparison of hosts with a site file: expected values instead of values of other hosts, and suppressions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from fablint.model import Note
from fablint.model.preflight_results import Outcome, Result, Severity, Suppressed
from fablint.preflight.check import ABSENT, Check, SiteValues, Value
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.preflight.host_classes import CLASS
from fablint.preflight.site.expectations import (
    ANY_GROUP,
    Expected,
    Site,
    SiteClass,
    Suppression,
    alias_of,
    cards_of,
    difference,
    has_part,
)
from fablint.text import notes as noted
from fablint.text.sanitise import shortened

_WRONG = (Outcome.FAIL, Outcome.WARN)
_LETTERS = 160
Membership = Mapping[str, SiteClass | None]  # by host


def membership(fleet: Fleet, site: Site) -> Membership:
    """Return the class of the site file for each host."""
    return {host.name: site.class_of(host) for host in fleet.hosts}


def with_severity(check: Check, site: Site) -> Check:
    """Return the check with the severity of the site file, if there is one."""
    severity = site.severities.get(check.id)
    return check if severity is None else replace(check, severity=severity)


def compared(check: Check, fleet: Fleet, results: list[Result], site: Site, membership: Membership) -> list[Result]:
    """Return the results of a check of `fleet`; values in the site file replace the comparison with other hosts."""
    if check.id == CLASS:
        result = list(_of_classes(check, fleet, results, site, membership))
    elif check.judge.site is not None:
        result = _of_values(check, check.judge.site, fleet, results, site, membership)
    else:
        result = results
    severity = site.severities.get(check.id)
    return result if severity is None else [_at_most(one, severity) for one in result]


def _at_most(result: Result, severity: Severity) -> Result:
    """Reduce a result to the severity of its check."""
    if severity is Severity.INFO and result.outcome in _WRONG:
        return result._replace(outcome=Outcome.PASS)
    if severity is Severity.WARN and result.outcome is Outcome.FAIL:
        return result._replace(outcome=Outcome.WARN)
    return result


def _of_values(
    check: Check, values: SiteValues, fleet: Fleet, results: list[Result], site: Site, membership: Membership
) -> list[Result]:
    judged: dict[tuple[str, str], Result] = {}
    for host in fleet.hosts if site.classes else ():
        site_class = membership.get(host.name)
        if site_class is not None and check.id in site_class.expect:
            measured = values.values(fleet, host)
            judged |= {
                (host.name, item.target): item
                for item in _of_host(check, values, host, measured, site_class, site.label)
            }
    if not judged:
        return results
    replaced = [judged.pop((result.host, result.target), result) for result in results]
    return [*replaced, *(one for one in judged.values() if one.outcome is not Outcome.PASS)]


def _of_host(
    check: Check, values: SiteValues, host: Host, result: Mapping[str, Value], site_class: SiteClass, label: str
) -> Iterator[Result]:
    """Yield a result for each value of a host that its class of the site file expects."""
    expected, met = site_class.expect[check.id], set()
    groups = values.groups(host) if values.groups is not None else ()
    for target, value in result.items():
        alias = alias_of(target, groups)
        met |= {target, alias}
        wanted = expected.of(target, alias)
        if value is not None and wanted is not None and has_part(host, target, site_class.cards):
            yield _against(check, values, _Place(host, target, groups), value, wanted, label)
    missing = values.missing(host)
    lacking = (expected.targets if values.groups is None else _lacking(result, groups, expected)) if missing else ()
    for target in lacking:
        wanted = expected.of(target, alias_of(target, groups))
        if target not in met and wanted is not None:
            yield _against(check, values, _Place(host, target, groups), missing, wanted, label)


def _lacking(result: Collection[str], groups: Collection[str], expected: Expected) -> Iterator[str]:
    """Yield the settings of each group that are expected, of the group or of any group, and not found."""
    for group in groups:
        heads = (f"{group} ", ANY_GROUP)
        names = {key.removeprefix(head) for key in expected.targets for head in heads if key.startswith(head)}
        yield from (target for name in sorted(names) if (target := f"{group} {name}") not in result)


class _Place(NamedTuple):
    """Host, target, and the groups of the host's settings."""

    host: Host
    target: str
    groups: Collection[str]


def _against(check: Check, values: SiteValues, at: _Place, value: Value, expected: Value, site: str) -> Result:
    """Return the result of comparing a value with the site file instead of with other hosts."""
    if values.is_met(value, expected):
        return check.ok(at.host.name, at.target, value=value)
    if values.groups is None:
        measured, text = (
            values.worded(at.target, value),
            f"{expected:g}" if isinstance(expected, float) else expected,
        )
    else:
        name = alias_of(at.target, at.groups).removeprefix(ANY_GROUP)
        measured, text = values.worded(name, None if value == ABSENT else value), values.worded(name, str(expected))
    say = check.failure if values.is_severe(at.host, value, expected) else check.warning
    return say(at.host.name, at.target, f"{measured}, {text} in {site}", value, expected)


def _of_classes(
    check: Check, fleet: Fleet, results: Sequence[Result], site: Site, membership: Membership
) -> Iterator[Result]:
    """Yield whether each host has the build of its class."""
    hosts = {host.name: host for host in fleet.hosts}
    for result in results:
        host, site_class = hosts[result.host], membership.get(result.host)
        if not site.classes:
            yield result
        elif site_class is None:
            message = f"not the build of any class of {site.label}: compared with other hosts only"
            yield check.warning(host.name, "", message, result.value)
        elif not site_class.is_built:
            yield result
        else:
            yield _of_class(check, host, site_class, site.label)


def _of_class(check: Check, host: Host, site_class: SiteClass, label: str) -> Result:
    differences = [
        f"{shortened(built, _LETTERS) or 'unknown'} instead of {wanted}"
        for built, wanted in zip(host.built.build, (site_class.machine, site_class.cpu), strict=True)
        if built != wanted
    ]
    differences += [cards] if (cards := difference(cards_of(host), site_class.cards)) else []
    if differences:
        return check.failure(
            host.name,
            "",
            f"{'; '.join(differences)}, class {site_class.name} of {label}",
            None,
            site_class.name,
        )
    return check.ok(host.name, value=site_class.name)


def with_suppressions(results: Sequence[Result], suppressions: Sequence[Suppression]) -> list[Result]:
    """Return the results with suppressed warnings and failures marked."""
    if not suppressions:
        return list(results)
    by_check: dict[str, list[Suppression]] = {}
    for rule in suppressions:
        by_check.setdefault(rule.check, []).append(rule)
    return [
        _suppressed(result, by_check.get(result.check, ())) if result.outcome in _WRONG else result
        for result in results
    ]


def _suppressed(result: Result, rules: Sequence[Suppression]) -> Result:
    rule = next((rule for rule in rules if rule.covers(result.check, result.host, result.target)), None)
    if rule is None:
        return result
    what = Suppressed(result.outcome, rule.until.isoformat(), rule.reason)
    return result._replace(outcome=Outcome.SUPPRESSED, suppressed=what)


def notes(site: Site) -> list[Note]:
    """Return a note for each expired suppression."""
    return [noted.expired_entry(one.where, one.until.isoformat()) for one in site.expired]
