"""Expectations of a site file: host classes with their values, severities of checks, suppressions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import NamedTuple

from fablint.model.preflight_results import Severity
from fablint.preflight.check import Value
from fablint.preflight.host import Host
from fablint.snapshot.cards import Built, Card, completed

ALL = "*"  # all hosts
ANY_GROUP = "* "  # head of a setting that each group has: `* rx-checksumming`
Cards = Counter[str]  # `NIC 15b3:1021 MT_0000000838` -> how many


@dataclass(frozen=True)
class Expected:
    """Expected values of a check: one for every target, and values for single targets."""

    every: Value = None
    targets: Mapping[str, Value] = field(default_factory=dict)

    def of(self, target: str, alias: str) -> Value:
        """Return the expected value of a target: its own, that of its alias, or that of all; None if there is none.

        `alias` is another name of the target, such as the device of an interface.
        """
        for name in (target, alias):
            if name in self.targets:
                return self.targets[name]
        return self.every


@dataclass(frozen=True)
class SiteClass:
    """Hosts with the same build, and the values that checks expect of them.

    A host belongs to the class if `hosts` contains it, or if it has this build.
    """

    name: str
    machine: str = ""
    cpu: str = ""
    cards: Cards = field(default_factory=Counter)
    hosts: frozenset[str] = frozenset()  # with `ALL`: every host without another class
    expect: Mapping[str, Expected] = field(default_factory=dict)  # by the id of the check

    @property
    def is_built(self) -> bool:
        """True if the class has a machine, a CPU or cards."""
        return bool(self.machine or self.cpu or self.cards)


class Suppression(NamedTuple):
    """Findings that are suppressed until a date."""

    check: str
    hosts: frozenset[str]
    targets: frozenset[str]  # empty: every target
    until: date  # the last day
    reason: str
    where: str  # `site.toml: suppress 2 (host.cstates)`

    def covers(self, check: str, host: str, target: str) -> bool:
        """Tell whether a result of this check, host and target is suppressed."""
        return (
            check == self.check
            and (host in self.hosts or ALL in self.hosts)
            and (not self.targets or target in self.targets)
        )


@dataclass(frozen=True)
class Site:
    """Expectations of a site file."""

    label: str  # name without the folder, for messages
    classes: Sequence[SiteClass] = ()
    severities: Mapping[str, Severity] = field(default_factory=dict)  # by the id of the check
    suppressions: Sequence[Suppression] = ()  # valid today
    expired: Sequence[Suppression] = ()

    @cached_property
    def _named(self) -> Mapping[str, SiteClass]:
        return {host: one for one in self.classes for host in one.hosts}

    def class_of(self, host: Host) -> SiteClass | None:
        """Return the class with the host's name, else the class with its build, else the class of all other hosts."""
        if host.name in self._named:
            return self._named[host.name]
        same_machine = [kind for kind in self.classes if kind.is_built and (kind.machine, kind.cpu) == host.built.build]
        cards = cards_of(host) if same_machine else Counter()
        near = [kind for kind in same_machine if is_near(cards, kind.cards)]
        if near:
            return min(near, key=lambda kind: distance(cards, kind.cards))
        return self._named.get(ALL)


def cards_of(host: Host) -> Cards:
    """Count the cards of a host in the format of a site file."""
    return counted(completed(card, host.boards) for card in host.cards.values())


def counted(cards: Iterable[Card]) -> Cards:
    """Count cards by kind and part number."""
    return Counter(f"{card.kind} {card.number}" for card in cards)


def has_part(host: Host, target: str, cards: Cards) -> bool:
    """Tell whether a component is one of these cards, or no card. A card of another model has other values."""
    number = host.like(target)[1]
    return not number or not cards or any(name.partition(" ")[2] == number for name in cards)


def alias_of(target: str, groups: Collection[str]) -> str:
    """Return the name of a setting in any group, `* rx-checksumming` for `hsn0 rx-checksumming`, else the target."""
    heads = (f"{group} " for group in groups)
    return next((ANY_GROUP + target.removeprefix(head) for head in heads if target.startswith(head)), target)


def is_near(cards: Cards, usual: Cards) -> bool:
    """Tell whether cards differ from those of a class only as on a faulty host (preflight/host_classes.py)."""
    counts, others = _coarse(cards), _coarse(usual)
    missing, extra = others - counts, counts - others
    if missing and extra:
        return False
    return len({kind.partition(" ")[0] for kind in missing}) <= 1 or 2 * missing.total() <= others.total()


def distance(cards: Cards, usual: Cards) -> tuple[int, int]:
    """Count missing and additional cards."""
    return (usual - cards).total(), (cards - usual).total()


def _coarse(cards: Cards) -> Cards:
    """Count cards by kind and vendor: `NIC 15b3`."""
    counts: Cards = Counter()
    for name, count in cards.items():
        counts[name.partition(":")[0]] += count
    return counts


def difference(cards: Cards, usual: Cards) -> str:
    """Return `7 instead of 8 GPU 10de:2330`; '' without a difference."""
    names = sorted(name for name in cards.keys() | usual.keys() if cards[name] != usual[name])
    return ", ".join(f"{cards[name]} instead of {usual[name]} {name}" for name in names)


def built_of(item: Built) -> tuple[str, str, Cards]:
    """Return machine, CPU and cards of a class of hosts."""
    return *item.build, counted(item.cards)
