"""Whose fault it is that some pings fail: one host's, a part's of the fabric, or a single route's.

The victims of a dead host are all others, each once. So a host is named where it reaches nobody, or few, while those
whom it does not reach do reach each other; hosts that reach each other but none of the rest are named together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from fablint.preflight.pings.mesh import End

_LEAST = 2  # partners that fail, for one host to be named
_LEAST_AMONG = 3  # the same where it reaches some
_MOST_BESIDES = 0.25  # of what else its partners try fails


class Try(NamedTuple):
    """One end tried to reach another."""

    source: End
    target: End
    holds: bool


class Count(NamedTuple):
    """Partners that an end does not reach, of all that were tried."""

    failed: int
    all: int

    def __str__(self) -> str:
        return f"{self.failed} of {self.all} other{'s' if self.all != 1 else ''}"


@dataclass
class Blame:
    """What is to be said; every failure is told once."""

    nobody: bool = False  # nothing at all comes through, between three or more
    alone: dict[End, Count] = field(default_factory=dict)  # reach nobody, or hardly anybody
    islands: list[tuple[End, ...]] = field(default_factory=list)  # reach each other, but none of most others
    halves: list[tuple[End, ...]] = field(default_factory=list)  # the same, where no part is most of them
    deaf: dict[End, Count] = field(default_factory=dict)  # all that others send fails, nothing that it sends
    mute: dict[End, Count] = field(default_factory=dict)  # the other way round
    routes: list[tuple[End, End]] = field(default_factory=list)  # single ones, as they were tried


def blame(tries: Sequence[Try]) -> Blame:
    """Who is at fault, of the ends of one rail."""
    found = Blame()
    if all(one.holds for one in tries):
        return found
    ends = sorted({end for one in tries for end in (one.source, one.target)})
    if not any(one.holds for one in tries):
        if len(ends) == 2:
            found.routes = _once(tries)
        else:
            found.nobody = True
        return found
    shares = _shares(tries)
    parts = _parts(ends, tries)
    main = _main(parts)
    home = {end: number for number, part in enumerate(parts) for end in part}
    cut_off = {home[end] for one in tries if home[one.source] != home[one.target] for end in one[:2]}
    for number, part in enumerate(parts):
        if part is main or number not in cut_off:
            continue
        if len(part) == 1:
            found.alone[part[0]] = shares[part[0]]
        elif main is not None and 2 * len(main) > len(ends):
            found.islands.append(part)
        else:
            found.halves.append(part)
    rest = [one for one in tries if home[one.source] == home[one.target]]
    _one_way(rest, found)
    rest = [one for one in rest if one.target not in found.deaf and one.source not in found.mute]
    found.routes = _once(_most(rest, found))
    return found


def _parts(ends: Sequence[End], tries: Iterable[Try]) -> list[tuple[End, ...]]:
    """Ends that hang together by what came through, one way or the other."""
    leader = {end: end for end in ends}

    def lead(end: End) -> End:
        while leader[end] != end:
            leader[end] = leader[leader[end]]
            end = leader[end]
        return end

    for one in tries:
        if one.holds:
            leader[lead(one.source)] = lead(one.target)
    parts: dict[End, list[End]] = defaultdict(list)
    for end in ends:
        parts[lead(end)].append(end)
    return sorted((tuple(part) for part in parts.values()), key=lambda part: (-len(part), part))


def _main(parts: Sequence[tuple[End, ...]]) -> tuple[End, ...] | None:
    """The largest part, if it is the only one of its size and more than one end."""
    largest = parts[0]
    single = len(parts) == 1 or len(parts[1]) < len(largest)
    return largest if single and len(largest) > 1 else None


def _one_way(tries: Sequence[Try], found: Blame) -> None:
    """Ends of which one way is in order, and the other is not at all."""
    sent: dict[End, list[bool]] = defaultdict(list)
    received: dict[End, list[bool]] = defaultdict(list)
    for one in tries:
        sent[one.source].append(one.holds)
        received[one.target].append(one.holds)
    for end in sorted(sent.keys() & received.keys()):
        if len(received[end]) >= _LEAST and not any(received[end]) and all(sent[end]):
            found.deaf[end] = Count(len(received[end]), len(received[end]))
        elif len(sent[end]) >= _LEAST and not any(sent[end]) and all(received[end]):
            found.mute[end] = Count(len(sent[end]), len(sent[end]))


def _most(tries: Sequence[Try], found: Blame) -> list[Try]:
    """Name ends that fail with most others, the worst first, as long as there is one; what is left over."""
    rest = list(tries)
    while True:
        shares, failed = _shares(rest), [one for one in rest if not one.holds]
        victims: dict[End, set[End]] = defaultdict(set)
        for one in failed:
            victims[one.source].add(one.target)
            victims[one.target].add(one.source)
        named = [end for end, others in victims.items() if _stands_out(shares, end, others)]
        if not named:
            return failed
        worst = max(named, key=lambda end: (shares[end].failed / shares[end].all, shares[end].failed))
        found.alone[worst] = shares[worst]
        rest = [one for one in rest if worst not in (one.source, one.target)]


def _stands_out(shares: Mapping[End, Count], end: End, victims: Iterable[End]) -> bool:
    """Does it fail with most others, while these hardly fail but with it?"""
    failed, count = shares[end]
    if failed < _LEAST_AMONG or 2 * failed <= count:
        return False
    besides = [(shares[one].failed - 1) / (shares[one].all - 1) for one in victims if shares[one].all > 1]
    return bool(besides) and median(besides) <= _MOST_BESIDES


def _shares(tries: Iterable[Try]) -> Mapping[End, Count]:
    """Of every end, its partners; one fails if either way does."""
    partners: dict[End, dict[End, bool]] = defaultdict(dict)
    for one in tries:
        for end in (one.source, one.target):
            other = _other(one, end)
            partners[end][other] = partners[end].get(other, True) and one.holds
    return {end: Count(sum(not holds for holds in every.values()), len(every)) for end, every in partners.items()}


def _other(one: Try, end: End) -> End:
    return one.target if one.source == end else one.source


def _once(tries: Iterable[Try]) -> list[tuple[End, End]]:
    """Pairs, each once."""
    found: dict[frozenset[End], tuple[End, End]] = {}
    for one in tries:
        found.setdefault(frozenset((one.source, one.target)), (one.source, one.target))
    return sorted(found.values())
