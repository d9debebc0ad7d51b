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


def compared(check: Check, fleet: Fleet, results: list[Result], site: Site, of: Membership) -> list[Result]:
    """Return the results of a check of `fleet`; values in the site file replace the comparison with other hosts."""
    if check.id == CLASS:
        found = list(_of_classes(check, fleet, results, site, of))
    elif check.judge.site is not None:
        found = _of_values(check, check.judge.site, fleet, results, site, of)
    else:
        found = results
    severity = site.severities.get(check.id)
    return found if severity is None else [_at_most(one, severity) for one in found]


def _at_most(one: Result, severity: Severity) -> Result:
    """Reduce a result to the severity of its check."""
    if severity is Severity.INFO and one.outcome in _WRONG:
        return one._replace(outcome=Outcome.PASS)
    if severity is Severity.WARN and one.outcome is Outcome.FAIL:
        return one._replace(outcome=Outcome.WARN)
    return one


def _of_values(
    check: Check, values: SiteValues, fleet: Fleet, results: list[Result], site: Site, of: Membership
) -> list[Result]:
    judged: dict[tuple[str, str], Result] = {}
    for host in fleet.hosts if site.classes else ():
        known = of.get(host.name)
        if known is not None and check.id in known.expect:
            found = values.values(fleet, host)
            judged |= {(host.name, one.target): one for one in _of_host(check, values, host, found, known, site.label)}
    if not judged:
        return results
    replaced = [judged.pop((result.host, result.target), result) for result in results]
    return [*replaced, *(one for one in judged.values() if one.outcome is not Outcome.PASS)]


def _of_host(
    check: Check, values: SiteValues, host: Host, found: Mapping[str, Value], known: SiteClass, label: str
) -> Iterator[Result]:
    """Yield a result for each value of a host that its class of the site file expects."""
    expected, met = known.expect[check.id], set()
    groups = values.groups(host) if values.groups is not None else ()
    for target, value in found.items():
        alias = alias_of(target, groups)
        met |= {target, alias}
        wanted = expected.of(target, alias)
        if value is not None and wanted is not None and has_part(host, target, known.cards):
            yield _against(check, values, _Place(host, target, groups), value, wanted, label)
    missing = values.missing(host)
    lacking = (expected.targets if values.groups is None else _lacking(found, groups, expected)) if missing else ()
    for target in lacking:
        wanted = expected.of(target, alias_of(target, groups))
        if target not in met and wanted is not None:
            yield _against(check, values, _Place(host, target, groups), missing, wanted, label)


def _lacking(found: Collection[str], groups: Collection[str], expected: Expected) -> Iterator[str]:
    """Yield the settings of each group that are expected, of the group or of any group, and not found."""
    for group in groups:
        heads = (f"{group} ", ANY_GROUP)
        names = {key.removeprefix(head) for key in expected.targets for head in heads if key.startswith(head)}
        yield from (target for name in sorted(names) if (target := f"{group} {name}") not in found)


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
        own, text = values.worded(at.target, value), f"{expected:g}" if isinstance(expected, float) else expected
    else:
        name = alias_of(at.target, at.groups).removeprefix(ANY_GROUP)
        own, text = values.worded(name, None if value == ABSENT else value), values.worded(name, str(expected))
    say = check.failure if values.is_severe(at.host, value, expected) else check.warning
    return say(at.host.name, at.target, f"{own}, {text} in {site}", value, expected)


def _of_classes(check: Check, fleet: Fleet, results: Sequence[Result], site: Site, of: Membership) -> Iterator[Result]:
    """Yield whether each host has the build of its class."""
    hosts = {host.name: host for host in fleet.hosts}
    for result in results:
        host, known = hosts[result.host], of.get(result.host)
        if not site.classes:
            yield result
        elif known is None:
            message = f"not the build of any class of {site.label}: compared with other hosts only"
            yield check.warning(host.name, "", message, result.value)
        elif not known.is_built:
            yield result
        else:
            yield _of_class(check, host, known, site.label)


def _of_class(check: Check, host: Host, known: SiteClass, label: str) -> Result:
    differences = [
        f"{shortened(own, _LETTERS) or 'unknown'} instead of {wanted}"
        for own, wanted in zip(host.built.build, (known.machine, known.cpu), strict=True)
        if own != wanted
    ]
    differences += [cards] if (cards := difference(cards_of(host), known.cards)) else []
    if differences:
        return check.failure(
            host.name, "", f"{'; '.join(differences)}, class {known.name} of {label}", None, known.name
        )
    return check.ok(host.name, value=known.name)


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


def _suppressed(one: Result, rules: Sequence[Suppression]) -> Result:
    rule = next((rule for rule in rules if rule.covers(one.check, one.host, one.target)), None)
    if rule is None:
        return one
    what = Suppressed(one.outcome, rule.until.isoformat(), rule.reason)
    return one._replace(outcome=Outcome.SUPPRESSED, suppressed=what)


def notes(site: Site) -> list[Note]:
    """Return a note for each expired suppression."""
    return [noted.expired_entry(one.where, one.until.isoformat()) for one in site.expired]
