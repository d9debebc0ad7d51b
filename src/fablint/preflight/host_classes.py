"""Classes of hosts: only hosts with the same build are compared with each other.

A class is a machine (vendor and product), a CPU model and the cards of the host: NICs and GPUs with their PCI ids and
board ids. A card that failed is missing from the bus, so the cards of a faulty host differ as well. A small group of
hosts therefore joins a larger class of the same machine and CPU from which it differs as a faulty host does: cards of
one kind are missing, or at most half of all, or some are of another model of the same vendor.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from fablint.snapshot.cards import Boards, Built, Card, completed

CLASS = "host.class"  # id of the check of classes
OWN_CLASS = 4  # hosts with the same cards: so many always form a class
_SHARE = 0.5  # of a larger class: a larger group does not join it


class HostClass(NamedTuple):
    """Hosts that are compared with each other."""

    key: str  # unique
    built: Built  # of most of its hosts
    hosts: Sequence[str]

    @property
    def label(self) -> str:
        """`Super Server, EPYC 9654, 8 GPUs 10de:2330, 2 NICs 15b3:1021 MT_0000000838`."""
        return ", ".join(filter(None, [*self.built.build, *map(_counted, Counter(self.built.cards).items())]))


def classes_of(hosts: Mapping[str, Built]) -> list[HostClass]:
    """Return the classes of hosts, the largest first. Each host is in exactly one class."""
    groups: dict[Built, list[str]] = defaultdict(list)
    boards = usual_boards(hosts.values())
    for host, built in hosts.items():
        groups[_completed(built, boards)].append(host)
    ordered = sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    host_class: list[HostClass] = []
    members: dict[str, list[str]] = {}
    for built, names in ordered:
        near = [one for one in host_class if _joins(built, len(names), one, len(one.hosts))]
        if near:
            members[min(near, key=lambda one: _distance(built.cards, one.built.cards)).key] += names
        else:
            host_class.append(HostClass(repr(built), built, names))
            members[repr(built)] = list(names)
    return [one._replace(hosts=members[one.key]) for one in host_class]


def _joins(built: Built, count: int, other: HostClass, hosts: int) -> bool:
    """Tell whether a small group of hosts differs from a class only as faulty hosts do."""
    if built.build != other.built.build or count >= OWN_CLASS or count > _SHARE * hosts:
        return False
    counts, usual = coarse_counts(built.cards), coarse_counts(other.built.cards)
    missing, extra = usual - counts, counts - usual
    if (missing and extra) or any(part not in usual for part in extra):
        return False  # additional cards are not the result of a failure
    one_kind = len({kind for kind, _ in missing}) <= 1
    return one_kind or 2 * missing.total() <= usual.total()


def _distance(cards: Iterable[Card], others: Iterable[Card]) -> tuple[int, int]:
    """Count additional cards, then missing cards; additional ones weigh more, since a failure adds no card."""
    counts, usual = coarse_counts(cards), coarse_counts(others)
    return (counts - usual).total(), (usual - counts).total()


def coarse_counts(cards: Iterable[Card]) -> Counter[tuple[str, str]]:
    """Count cards by kind and vendor; a spare part of another model and a NIC in recovery mode make no difference."""
    return Counter((card.kind, card.vendor) for card in cards)


def usual_boards(hosts: Iterable[Built]) -> Boards:
    """Return the most frequent board id of each kind, vendor and device; cards without a board id do not count."""
    result: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for built in hosts:
        for card in built.cards:
            if card.board:
                result[card[:3]][card.board] += 1
    return {ids: counts.most_common(1)[0][0] for ids, counts in result.items()}


def _completed(built: Built, boards: Boards) -> Built:
    return built._replace(cards=tuple(sorted(completed(card, boards) for card in built.cards)))


def _counted(pair: tuple[Card, int]) -> str:
    card, count = pair
    return f"{count} {card.kind}{'s' if count > 1 else ''} {card.number}"
