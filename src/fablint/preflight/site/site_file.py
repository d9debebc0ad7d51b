"""The part of a site file that is about hosts, docs/reference/site-file.md, from its text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from fablint.errors import UsageError
from fablint.model.names import expanded
from fablint.model.preflight_results import NETWORK, Severity
from fablint.preflight.check import Check, SiteValues, Value
from fablint.preflight.site.expectations import ALL, Cards, Expected, Site, SiteClass, Suppression
from fablint.text.site_suppressions import COMPONENT, last_day, reason_of
from fablint.text.site_tables import (
    choice,
    entries,
    one_line,
    read_document,
    refuse_missing,
    refuse_unknown,
    short,
    shown,
)
from fablint.text.suggestions import did_you_mean

CLASS_KEYS = ("name", "machine", "cpu", "hosts", "cards", "expect")
SUPPRESS_KEYS = ("check", "hosts", "target", "until", "reason")
SUPPRESS_NEEDED = ("check", "hosts", "until", "reason")
NEVER = (NETWORK, "host.snapshot")  # they say what was not looked at, which no file can make good
_PAGE = "see man fablint-checks"

_ById = Mapping[str, Check]


def is_folded(word: str) -> bool:
    """Tell whether the first word of a target stands for several names."""
    return "[" in word or "," in word


def parse_site(text: str, source: str, today: date, checks: Iterable[Check]) -> Site:
    """Return what a site file says about hosts.

    Parameters
    ----------
    text
        The file, TOML.
    source
        Its name, for messages: `site.toml: suppress 2: unknown check 'host.cstate': did you mean host.cstates`.
    today
        Suppressions that ended before are returned as expired.
    checks
        All checks.

    Raises
    ------
    UsageError
        No TOML, an unknown key, check or severity, a value of a wrong type, a bad date, a host in two
        classes.
    """
    document, by_id = read_document(text, source), {check.id: check for check in checks}
    classes = [
        _class(entry, f"{source}: class {number}", by_id) for number, entry in _numbered(document, "class", source)
    ]
    _refuse_twice(classes, source)
    suppressions = [
        _suppression(entry, f"{source}: suppress {number}", by_id)
        for number, entry in _numbered(document, "suppress", source)
        if COMPONENT not in entry
    ]
    return Site(
        Path(source).name,
        classes,
        _severities(document.get("severity", {}), f"{source}: severity", by_id),
        [one for one in suppressions if one.until >= today],
        [one for one in suppressions if one.until < today],
    )


def _numbered(document: Mapping[str, Any], key: str, source: str) -> Collection[tuple[int, Mapping[str, Any]]]:
    return list(enumerate(entries(document, key, source), 1))


# ------------------------------------------------------------------------------------------------ classes


def _class(entry: Mapping[str, Any], where: str, by_id: _ById) -> SiteClass:
    refuse_unknown(entry, CLASS_KEYS, where)
    refuse_missing(entry, ("name",), where)
    name, machine, cpu = (one_line(entry.get(key, ""), f"{where}: {key}") for key in ("name", "machine", "cpu"))
    if not name:
        raise UsageError(f"{where}: name is empty", "give the class a name")
    where = f"{where} ({short(name)})"
    hosts = _hosts(entry["hosts"], f"{where}: hosts") if "hosts" in entry else frozenset()
    site_class = SiteClass(
        name, machine, cpu, _cards(entry.get("cards", {}), where), hosts, _expect(entry, where, by_id)
    )
    if not site_class.hosts and not site_class.is_built:
        raise UsageError(f"{where}: which hosts are it?", 'give hosts = "n[1-8]", or machine, cpu and cards')
    return site_class


def _refuse_twice(classes: Collection[SiteClass], source: str) -> None:
    """Two classes of one name, or with one host, would leave it open which values hold."""
    names: set[str] = set()
    hosts: dict[str, str] = {}
    for item in classes:
        if item.name in names:
            raise UsageError(f"{source}: two classes are called {shown(item.name)}", "rename one of them")
        names.add(item.name)
        for host in sorted(item.hosts):
            other = hosts.setdefault(host, item.name)
            if other != item.name:
                raise UsageError(f"{source}: {host} is in class {shown(other)} and {shown(item.name)}", "leave one out")


def _cards(table: Any, where: str) -> Cards:
    if not isinstance(table, dict):
        raise UsageError(f"{where}: cards is not a table", 'write [class.cards] and "NIC 15b3:1021" = 1 below')
    for name, count in table.items():
        if type(count) is not int or not 0 < count < 1000:
            raise UsageError(
                f"{where}: cards: {shown(name)}: {shown(count)} is not a number of cards", "give 1 or more"
            )
        if name.partition(" ")[0] not in ("NIC", "GPU"):
            raise UsageError(f"{where}: cards: {shown(name)} is not a card", 'write it as "NIC 15b3:1021"')
    return Counter(table)


def _expect(entry: Mapping[str, Any], where: str, by_id: _ById) -> Mapping[str, Expected]:
    table = entry.get("expect", {})
    if not isinstance(table, dict):
        raise UsageError(f"{where}: expect is not a table", 'write [class.expect] and "net.link.mtu" = 9000 below')
    return {
        _check(id, f"{where}: expect", by_id): _expected(by_id[id], value, f"{where}: {id}")
        for id, value in table.items()
    }


def _expected(check: Check, value: Any, where: str) -> Expected:
    site = check.judge.site
    if site is None:
        raise UsageError(f"{where}: this check has no value to expect", "see [severity] and [[suppress]]")
    if not isinstance(value, dict):
        if site.named:
            raise UsageError(f"{where}: {shown(value)} is not a table", "give each setting its value")
        return Expected(_value(site, value, where))
    targets: dict[str, Value] = {}
    for key, item in value.items():
        for target in _targets(key, where):
            if target in targets:
                raise UsageError(f"{where}: {shown(target)} has two values", "leave one of them out")
            targets[target] = _value(site, item, f"{where}: {short(key)}")
    return Expected(targets=targets)


def _value(site: SiteValues, value: Any, where: str) -> Value:
    """A figure of a check of figures, else a text."""
    if site.numeric and type(value) in (int, float) and abs(value) < 1e18:  # not NaN either
        return value  # type: ignore[no-any-return]
    if not site.numeric and isinstance(value, str):
        return value
    hint = "give a figure without quotes, such as 9000" if site.numeric else 'give a text in quotes, such as "on"'
    raise UsageError(f"{where}: {shown(value)} is not a {'figure' if site.numeric else 'text'}", hint)


def _targets(key: str, where: str) -> tuple[str, ...]:
    """`ib[0-1]` as two names, `ib[0-1] rx-checksumming` as two settings; others mean themselves."""
    names, blank, setting = key.partition(" ")
    if not is_folded(names):
        return (key,)
    return tuple(f"{name}{blank}{setting}" for name in _names(names, where))


# ------------------------------------------------------------------------------------------------ severities


def _severities(table: Any, where: str, by_id: _ById) -> Mapping[str, Severity]:
    if not isinstance(table, dict):
        raise UsageError(f"{where} is not a table", 'write [severity] and "host.cstates" = "info" below')
    levels = [str(one) for one in Severity]
    severities = {_check(id, where, by_id): Severity(choice(table, id, where, levels)) for id in table}
    for id in NEVER:
        if id in severities:
            raise UsageError(f"{where}: {id} says what was not looked at", "its severity cannot be changed")
    return severities


# ------------------------------------------------------------------------------------------------ suppressions


def _suppression(entry: Mapping[str, Any], where: str, by_id: _ById) -> Suppression:
    refuse_unknown(entry, SUPPRESS_KEYS, where)
    refuse_missing(entry, SUPPRESS_NEEDED, where)
    check = _check(entry["check"], where, by_id)
    if check in NEVER:
        raise UsageError(f"{where}: {check} says what was not looked at", "it cannot be suppressed")
    hosts = _hosts(entry["hosts"], f"{where}: hosts")
    targets = (
        frozenset(_targets(one_line(entry["target"], f"{where}: target"), where)) if "target" in entry else frozenset()
    )
    label = f"{where} ({check}, {short(str(entry['hosts']))})"
    return Suppression(check, hosts, targets, last_day(entry, where), reason_of(entry, where), label)


# ------------------------------------------------------------------------------------------------ values


def _check(id: Any, where: str, by_id: _ById) -> str:
    if not isinstance(id, str) or id not in by_id:
        raise UsageError(f"{where}: unknown check {shown(id)}", did_you_mean(str(id), by_id, _PAGE))
    return id


def _hosts(value: Any, where: str) -> frozenset[str]:
    """`n[1-8]`, or `*` for all hosts."""
    text = one_line(value, where)
    if not text:
        raise UsageError(f"{where}: no host", 'write it as "n[1-8]", or "*" for all')
    return frozenset([ALL]) if text == ALL else frozenset(_names(text, where))


def _names(text: str, where: str) -> tuple[str, ...]:
    try:
        return expanded(text)
    except ValueError as error:
        raise UsageError(f"{where}: {short(str(error), 120)}", 'write it as "n[1-8]"') from None
