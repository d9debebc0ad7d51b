"""The part of a site file that is about hosts: classes with their values, severities of checks, suppressions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import NamedTuple

from fablint.model.preflight_results import Severity
from fablint.preflight.base import Value
from fablint.preflight.cards import Card
from fablint.preflight.host import Host
from fablint.preflight.host_classes import Built, completed

ALL = "*"  # hosts: of any name
Cards = Counter[str]  # `NIC 15b3:1021 MT_0000000838` -> how many


@dataclass(frozen=True)
class Expected:
    """What a check should find: a value for every target, and values for single ones."""

    every: Value = None
    targets: Mapping[str, Value] = field(default_factory=dict)

    def of(self, target: str, alias: str) -> Value:
        """The value that is expected of a target; None where none is."""
        for name in (target, alias):
            if name in self.targets:
                return self.targets[name]
        return self.every


@dataclass(frozen=True)
class SiteClass:
    """Hosts that are built alike, and what checks should find on them.

    A host belongs to it if it is named in `hosts`, or if it is built like it.
    """

    name: str
    machine: str = ""
    cpu: str = ""
    cards: Cards = field(default_factory=Counter)
    hosts: frozenset[str] = frozenset()  # `ALL` among them: every host that no other class has
    expect: Mapping[str, Expected] = field(default_factory=dict)  # by the id of the check

    @property
    def is_built(self) -> bool:
        """Does the file say how its hosts are built?"""
        return bool(self.machine or self.cpu or self.cards)


class Suppression(NamedTuple):
    """Findings that do not count until a date."""

    check: str
    hosts: frozenset[str]
    targets: frozenset[str]  # empty: every target
    until: date  # the last day
    reason: str
    where: str  # `site.toml: suppress 2 (host.cstates)`

    def covers(self, check: str, host: str, target: str) -> bool:
        """Is a result of this check, host and target suppressed?"""
        return (
            check == self.check
            and (host in self.hosts or ALL in self.hosts)
            and (not self.targets or target in self.targets)
        )


@dataclass(frozen=True)
class Site:
    """What a site file says about hosts."""

    label: str  # its name without the folder, for messages of checks
    classes: Sequence[SiteClass] = ()
    severities: Mapping[str, Severity] = field(default_factory=dict)  # by the id of the check
    suppressions: Sequence[Suppression] = ()  # that hold today
    expired: Sequence[Suppression] = ()

    @cached_property
    def _named(self) -> Mapping[str, SiteClass]:
        return {host: one for one in self.classes for host in one.hosts}

    def class_of(self, host: Host) -> SiteClass | None:
        """The class that names the host, else the one that is built like it, else that of all other hosts."""
        if host.name in self._named:
            return self._named[host.name]
        cards = cards_of(host)
        alike = [one for one in self.classes if one.is_built and (one.machine, one.cpu) == host.built.build]
        alike = [one for one in alike if is_near(cards, one.cards)]
        if alike:
            return min(alike, key=lambda one: distance(cards, one.cards))
        return self._named.get(ALL)


def cards_of(host: Host) -> Cards:
    """The cards of a host as a site file counts them."""
    return counted(completed(card, host.boards) for card in host.cards.values())


def counted(cards: Iterable[Card]) -> Cards:
    """Cards by kind and part number."""
    return Counter(f"{card.kind} {card.number}" for card in cards)


def has_part(host: Host, target: str, cards: Cards) -> bool:
    """Is a part of a host one of these cards? A card of another model has other values; what is no card is one."""
    number = host.like(target)[1]
    return not number or not cards or any(name.partition(" ")[2] == number for name in cards)


def is_near(own: Cards, usual: Cards) -> bool:
    """Do cards differ from those of a class at most as a faulty host does (preflight/host_classes.py)?"""
    mine, others = _coarse(own), _coarse(usual)
    missing, extra = others - mine, mine - others
    if missing and extra:
        return False
    return len({kind.partition(" ")[0] for kind in missing}) <= 1 or 2 * missing.total() <= others.total()


def distance(own: Cards, usual: Cards) -> tuple[int, int]:
    """Cards that are missing, and those that are in excess."""
    return (usual - own).total(), (own - usual).total()


def _coarse(cards: Cards) -> Cards:
    """Cards by kind and vendor: `NIC 15b3`."""
    found: Cards = Counter()
    for name, count in cards.items():
        found[name.partition(":")[0]] += count
    return found


def difference(own: Cards, usual: Cards) -> str:
    """`7 instead of 8 GPU 10de:2330`; empty where there is none."""
    names = sorted(name for name in own.keys() | usual.keys() if own[name] != usual[name])
    return ", ".join(f"{own[name]} instead of {usual[name]} {name}" for name in names)


def built_of(one: Built) -> tuple[str, str, Cards]:
    """Machine, CPU and cards of a class of hosts."""
    return *one.build, counted(one.cards)
