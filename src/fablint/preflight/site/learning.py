"""Learning of a site file from the present hosts: a table for each class, a row for each check that compares."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import tomlkit
from tomlkit.items import Table

from fablint.model.names import fold
from fablint.model.preflight_results import Outcome, Result
from fablint.preflight.check import Check, SiteValues, Value
from fablint.preflight.class_values import is_clear
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.preflight.host_classes import HostClass
from fablint.preflight.site.expectations import alias_of, built_of, counted, has_part
from fablint.preflight.site.site_file import is_folded
from fablint.text.sanitise import shortened
from fablint.text.site_tables import FORMAT

_MOST_TEXT = 100  # letters of a remark
_WRONG = (Outcome.FAIL, Outcome.WARN)
_HEAD = """Classes of hosts and what they have, for fablint preflight --site and fablint check --site.
Edit it: a changed value is what hosts are compared with, a row that is removed is not expected any more.
What checks warned of while it was learned has a remark: correct the value, or the hosts.
Further tables: [severity], [[suppress]], [[threshold]], see man fablint-site."""


class Learned(NamedTuple):
    """Text of a site file and the number of its entries."""

    text: str
    classes: int
    values: int
    doubtful: int  # values with a warning
    divided: int  # checks of classes without agreement


@dataclass(frozen=True)
class _ClassValues:
    """Values of a check on the hosts of a class."""

    check: str
    values: Mapping[str, Value]  # of targets with a clear agreement
    is_same: bool  # all targets have one value
    remark: str = ""  # message of the check about these values
    divided: str = ""  # targets without an agreement


def learn(fleet: Fleet, remark: str, checks: Sequence[Check]) -> Learned:
    """Write the values of the classes of a fleet as a site file.

    A value is learned if all hosts of the class have it, or a clear majority (`Agreement.is_clear`).

    Parameters
    ----------
    fleet
        Hosts with their snapshots.
    remark
        First line of the file.
    checks
        Those whose values are written.
    """
    hosts = {host.name: host for host in fleet.hosts if not host.snapshot.incomplete}
    classes = [one for one in fleet.classes if one.hosts]
    rows: dict[str, list[_ClassValues]] = {one.key: [] for one in classes}
    whole = Fleet(list(hosts.values()), fleet.silent, fleet.topology, fleet.fabric)
    for check in checks:
        if check.judge.site is not None:
            results = list(check.results(whole))
            for item in classes:
                values = _values_of(check.judge.site, whole, item, [hosts[name] for name in item.hosts])
                rows[item.key] += filter(None, [_row(check.id, check.judge.site, values, len(item.hosts), results)])
    text = _text(classes, rows, remark)
    written_rows = [row for rows_of_class in rows.values() for row in rows_of_class]
    counts = sum(len(row.values) for row in written_rows), sum(bool(row.remark) for row in written_rows)
    return Learned(text, len(classes), *counts, sum(bool(row.divided) for row in written_rows))


class _Found(NamedTuple):
    """Values of a check on the hosts of a class."""

    of_targets: Mapping[str, Mapping[str, Value]]  # by target and host
    aliases: Mapping[str, str]  # by target


def _values_of(site: SiteValues, fleet: Fleet, host_class: HostClass, hosts: Iterable[Host]) -> _Found:
    values: dict[str, dict[str, Value]] = defaultdict(dict)
    aliases: dict[str, str] = {}
    cards = counted(host_class.built.cards)
    for host in hosts:
        groups = site.groups(host) if site.groups is not None else ()
        for target, value in site.values(fleet, host).items():
            is_of_check = value is not None and isinstance(value, int | float if site.numeric else str)
            if is_of_check and has_part(host, target, cards):
                values[target][host.name] = value
                aliases[target] = alias_of(target, groups)
    return _Found(values, aliases)


def _row(check: str, site: SiteValues, row: _Found, hosts: int, results: Sequence[Result]) -> _ClassValues | None:
    """Return the values of a check on the hosts of a class; None if there are none."""
    learned: dict[str, Value] = {}
    divided = []
    for target, value_of_host in row.of_targets.items():
        if is_folded(target.partition(" ")[0]):
            continue  # a site file cannot name it
        value = site.typical(list(value_of_host.values())) if _is_usual(len(value_of_host), hosts) else None
        if value is not None:
            learned[target] = value
        elif len(set(value_of_host.values())) > 1:
            divided.append(target)
    if not learned and not divided:
        return None
    doubts = _doubts(site, learned, row.of_targets, results)
    is_same = len(learned) == len(row.of_targets) and len(set(learned.values())) == 1 and not site.named
    return _ClassValues(check, _shortest(learned, row), is_same, doubts, fold(divided) if divided else "")


def _shortest(learned: Mapping[str, Value], result: _Found) -> Mapping[str, Value]:
    """Return the values; a setting with one value in all groups appears once."""
    kinds: dict[str, set[Value]] = defaultdict(set)
    for target, alias in result.aliases.items():
        kinds[alias].add(learned.get(target))
    return {
        alias if len(kinds[alias := result.aliases[target]]) == 1 else target: value
        for target, value in learned.items()
    }


def _is_usual(count: int, total: int) -> bool:
    return count == total or is_clear(count, total)


def _doubts(
    site: SiteValues, learned: Mapping[str, Value], values: Mapping[str, Mapping[str, Value]], results: Sequence[Result]
) -> str:
    """Return the first warning of the check about a learned value."""
    said = [
        f"{result.target}: {result.message}".removeprefix(": ")
        for result in results
        if result.outcome in _WRONG
        and result.target in learned
        and result.host in values[result.target]
        and site.is_met(values[result.target][result.host], learned[result.target])
    ]
    return shortened(said[0], _MOST_TEXT) if said else ""


def _is_plain(name: str) -> bool:
    """Tell whether a name stands for itself in a folded list."""
    return name.isascii() and all(letter.isalnum() or letter in "._:/-" for letter in name)


def _plain(value: Value) -> Value:
    """Convert integral floats to integers."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


# ------------------------------------------------------------------------------------------------ text


def _text(classes: Sequence[HostClass], rows: Mapping[str, Sequence[_ClassValues]], remark: str) -> str:
    document = tomlkit.document()
    for line in [remark, *_HEAD.splitlines()]:
        document.add(tomlkit.comment(shortened(line, 160)))
    document.add(tomlkit.nl())
    document.add("format", tomlkit.item(FORMAT))
    tables = tomlkit.aot()
    for number, item in enumerate(classes, 1):
        tables.append(_class_table(number, item, rows[item.key]))
    document.add("class", tables)
    return tomlkit.dumps(document)


def _class_table(number: int, host_class: HostClass, rows: Sequence[_ClassValues]) -> Table:
    machine, cpu, cards = built_of(host_class.built)
    table = tomlkit.table()
    table.add("name", f"class{number}")
    table.add("machine", machine)
    table.add("cpu", cpu)
    table.add("hosts", fold(host_class.hosts))
    table.add("cards", dict(sorted(cards.items())))
    expect = tomlkit.table()
    for row in rows:
        if row.divided:
            expect.add(tomlkit.comment(f"{row.check}: hosts differ in {row.divided or 'it'}: not learned"))
        if row.is_same:
            value = tomlkit.item(_plain(next(iter(row.values.values()))))
            expect.add(row.check, value.comment(row.remark) if row.remark else value)
    for row in rows:
        if row.values and not row.is_same:
            expect.add(row.check, _targets_table(row))
    table.add("expect", expect)
    return table


def _targets_table(row: _ClassValues) -> Table:
    """Return the table of values by target; targets with one value are folded."""
    table = tomlkit.table()
    if row.remark:
        table.comment(row.remark)
    by_value: dict[tuple[str, Value], list[str]] = defaultdict(list)
    for target, value in row.values.items():
        name, blank, setting = target.partition(" ")
        by_value[blank + setting, value].append(name)
    for (setting, value), names in by_value.items():
        folded = fold(names)
        keys = [folded] if len(names) == 1 or is_folded(folded) else names
        for key in keys if all(map(_is_plain, names)) else names:
            table.add(f"{key}{setting}", tomlkit.item(_plain(value)))
    return table
