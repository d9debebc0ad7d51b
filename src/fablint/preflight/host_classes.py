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

from fablint.preflight.cards import Card
from fablint.preflight.class_values import is_clear

OWN_CLASS = 4  # hosts with the same cards: so many always form a class
_SHARE = 0.5  # of a larger class: a larger group does not join it

Build = tuple[str, str]  # machine and CPU model
Boards = Mapping[tuple[str, str, str], str]  # board ids by kind, vendor and device of the card


class Built(NamedTuple):
    """Machine, CPU model and cards of a host."""

    build: Build
    cards: tuple[Card, ...]  # sorted


class HostClass(NamedTuple):
    """Hosts that are compared with each other."""

    key: str  # unique
    built: Built  # of most of its hosts
    hosts: Sequence[str]

    @property
    def label(self) -> str:
        """`Super Server, EPYC 9654, 8 GPUs 10de:2330, 2 NICs 15b3:1021 MT_0000000838`."""
        return ", ".join(filter(None, [*self.built.build, *map(_counted, Counter(self.built.cards).items())]))


class Lack(NamedTuple):
    """Class with fewer cards of a kind than a much larger class of the same machine and CPU."""

    less: HostClass
    than: HostClass
    words: str  # `7 instead of 8 GPUs`


def classes_of(hosts: Mapping[str, Built]) -> list[HostClass]:
    """Return the classes of hosts, the largest first. Each host is in exactly one class."""
    groups: dict[Built, list[str]] = defaultdict(list)
    boards = usual_boards(hosts.values())
    for host, built in hosts.items():
        groups[_completed(built, boards)].append(host)
    ordered = sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    found: list[HostClass] = []
    members: dict[str, list[str]] = {}
    for built, names in ordered:
        near = [one for one in found if _joins(built, len(names), one, len(one.hosts))]
        if near:
            members[min(near, key=lambda one: _distance(built.cards, one.built.cards)).key] += names
        else:
            found.append(HostClass(repr(built), built, names))
            members[repr(built)] = list(names)
    return [one._replace(hosts=members[one.key]) for one in found]


def lacking(classes: Sequence[HostClass]) -> list[Lack]:
    """Find classes in which the same card may have failed on all hosts."""
    found = []
    for less in classes:
        for than in classes:
            if less.built.build != than.built.build:
                continue
            if not is_clear(len(than.hosts), len(than.hosts) + len(less.hosts)):
                continue
            words = _fewer(less.built.cards, than.built.cards)
            if words:
                found.append(Lack(less, than, words))
                break
    return found


def _joins(built: Built, count: int, other: HostClass, of: int) -> bool:
    """Tell whether a small group of hosts differs from a class only as faulty hosts do."""
    if built.build != other.built.build or count >= OWN_CLASS or count > _SHARE * of:
        return False
    own, usual = _coarse(built.cards), _coarse(other.built.cards)
    missing, extra = usual - own, own - usual
    if (missing and extra) or any(part not in usual for part in extra):
        return False  # additional cards are not the result of a failure
    one_kind = len({kind for kind, _ in missing}) <= 1
    return one_kind or 2 * missing.total() <= usual.total()


def _distance(cards: Iterable[Card], others: Iterable[Card]) -> tuple[int, int]:
    """Count additional cards, then missing cards; additional ones weigh more, since a failure adds no card."""
    own, usual = _coarse(cards), _coarse(others)
    return (own - usual).total(), (usual - own).total()


def _coarse(cards: Iterable[Card]) -> Counter[tuple[str, str]]:
    """Count cards by kind and vendor; a spare part of another model and a NIC in recovery mode make no difference."""
    return Counter((card.kind, card.vendor) for card in cards)


def usual_boards(hosts: Iterable[Built]) -> Boards:
    """Return the most frequent board id of each kind, vendor and device; cards without a board id do not count."""
    found: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for built in hosts:
        for card in built.cards:
            if card.board:
                found[card[:3]][card.board] += 1
    return {ids: counts.most_common(1)[0][0] for ids, counts in found.items()}


def completed(card: Card, boards: Boards) -> Card:
    """Give a card without a board id the most frequent board id of its PCI id."""
    return card if card.board else card._replace(board=boards.get(card[:3], ""))


def _completed(built: Built, boards: Boards) -> Built:
    return built._replace(cards=tuple(sorted(completed(card, boards) for card in built.cards)))


def _counted(pair: tuple[Card, int]) -> str:
    card, count = pair
    return f"{count} {card.kind}{'s' if count > 1 else ''} {card.number}"


def _fewer(cards: Iterable[Card], usual: Iterable[Card]) -> str:
    """Return `7 instead of 8 GPUs` if some, but not all, cards of a kind are missing; else ''."""
    own, others = _coarse(cards), _coarse(usual)
    missing = others - own
    if not missing or own - others or any(own[part] == 0 for part in missing):
        return ""
    return ", ".join(f"{own[part]} instead of {others[part]} {part[0]}s" for part in missing)
