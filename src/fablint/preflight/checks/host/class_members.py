"""Check of host classes: hosts without a class, and classes that may be another class with a failed card."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from fablint.model.names import plural
from fablint.model.preflight_results import Result
from fablint.preflight.check import Check, Judge
from fablint.preflight.class_values import is_clear
from fablint.preflight.fleet import Fleet
from fablint.preflight.host_classes import CLASS, HostClass, coarse_counts
from fablint.snapshot.cards import Card
from fablint.text.sanitise import shortened

PAIR = 2  # the only two hosts of a machine and CPU are compared
_MAX_LABEL = 160  # characters of the description of a class


def _host_classes(check: Check, fleet: Fleet) -> Iterator[Result]:
    short = {one.less.key: one for one in lacking(fleet.classes)}
    for item in fleet.classes:
        label = shortened(item.label, _MAX_LABEL)
        for host in item.hosts:
            if not label:
                yield check.skip(host, "", "machine, CPU and cards are unknown")
            elif item.key in short:
                lack = short[item.key]
                few = plural(len(item.hosts), "host")
                message = f"{lack.words} on {few}, {_having(len(lack.than.hosts))} all of them"
                yield check.failure(host, "", message, label, shortened(lack.than.label, _MAX_LABEL))
            elif len(item.hosts) > 1:
                yield check.ok(host, value=label)
            else:
                yield check.skip(host, "", "no other host has the same build: not compared")


HOST_CLASSES = Check(
    id=CLASS,
    what="the class of every host, which are the hosts it is compared with",
    source="DMI vendor and product, CPU model, PCI ids and board ids of NICs and GPUs",
    rule=(
        "other hosts have the same build; no group of hosts has fewer cards than a much larger group of its machine, "
        "and none of the only two hosts of a machine has fewer cards of a kind than the other"
    ),
    component="host",
    remedy="check whether cards failed on all of these hosts; a host without a class is not compared",
    judge=Judge(_host_classes),
)


def _having(hosts: int) -> str:
    return f"{plural(hosts, 'other')} {'has' if hosts == 1 else 'have'}"


class Lack(NamedTuple):
    """Class with fewer cards of a kind than a much larger class of the same machine and CPU."""

    less: HostClass
    than: HostClass
    words: str  # `7 instead of 8 GPUs`


def lacking(classes: Sequence[HostClass]) -> list[Lack]:
    """Find classes in which the same card may have failed on all hosts."""
    result = []
    for less in classes:
        for than in classes:
            if less.built.build != than.built.build:
                continue
            like = [one for one in classes if one.built.build == less.built.build]
            is_pair = sum(len(one.hosts) for one in like) == PAIR
            if not is_pair and not is_clear(len(than.hosts), len(than.hosts) + len(less.hosts)):
                continue
            words = _fewer(less.built.cards, than.built.cards)
            if words:
                result.append(Lack(less, than, words))
                break
    return result


def _fewer(cards: Iterable[Card], usual: Iterable[Card]) -> str:
    """Return `7 instead of 8 GPUs` if some, but not all, cards of a kind are missing; else ''."""
    counts, others = coarse_counts(cards), coarse_counts(usual)
    missing = others - counts
    if not missing or counts - others or any(counts[part] == 0 for part in missing):
        return ""
    return ", ".join(f"{counts[part]} instead of {others[part]} {part[0]}s" for part in missing)
