"""Localise failed pings: a host, a part of the fabric, or a single route.

A dead host fails with every other host. A host is therefore named if it reaches no host, or few, while the hosts that
it does not reach do reach each other. Hosts that reach each other but no other host are named together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from fablint.preflight.pings.mesh import End

_LEAST = 2  # partners that fail, for one host to be named
_LEAST_AMONG = 3  # the same if it reaches some partners
_MAX_OTHER_FAILURES = 0.25  # share of the failed pings of its partners with other ends


class Attempt(NamedTuple):
    """Attempt of an end to reach another end."""

    source: End
    target: End
    holds: bool


class Count(NamedTuple):
    """Number of partners that an end does not reach, and of all partners."""

    failed: int
    all: int

    def __str__(self) -> str:
        return f"{self.failed} of {self.all} other{'s' if self.all != 1 else ''}"


@dataclass
class ReachFaults:
    """Localised failures; every failed attempt is in one field only."""

    all_failed: bool = False  # every attempt fails, between three or more ends
    isolated: dict[End, Count] = field(default_factory=dict)  # ends that reach no end, or few
    cut_off: list[tuple[End, ...]] = field(default_factory=list)  # groups that do not reach the majority
    halves: list[tuple[End, ...]] = field(default_factory=list)  # groups that do not reach each other, no majority
    rx_failed: dict[End, Count] = field(default_factory=dict)  # ends that receive nothing but send successfully
    tx_failed: dict[End, Count] = field(default_factory=dict)  # ends that send nothing but receive successfully
    routes: list[tuple[End, End]] = field(default_factory=list)  # single pairs, in the direction of the attempt


def localise_failures(attempts: Sequence[Attempt]) -> ReachFaults:
    """Localise the failed attempts among the ends of one rail."""
    reach_faults = ReachFaults()
    if all(one.holds for one in attempts):
        return reach_faults
    ends = sorted({end for one in attempts for end in (one.source, one.target)})
    if not any(one.holds for one in attempts):
        if len(ends) == 2:
            reach_faults.routes = _once(attempts)
        else:
            reach_faults.all_failed = True
        return reach_faults
    shares = _shares(attempts)
    parts = _parts(ends, attempts)
    main = _main(parts)
    home = {end: number for number, part in enumerate(parts) for end in part}
    cut_off = {home[end] for one in attempts if home[one.source] != home[one.target] for end in one[:2]}
    for number, part in enumerate(parts):
        if part is main or number not in cut_off:
            continue
        if len(part) == 1:
            reach_faults.isolated[part[0]] = shares[part[0]]
        elif main is not None and 2 * len(main) > len(ends):
            reach_faults.cut_off.append(part)
        else:
            reach_faults.halves.append(part)
    rest = [one for one in attempts if home[one.source] == home[one.target]]
    _find_failed_directions(rest, reach_faults)
    rest = [
        item for item in rest if item.target not in reach_faults.rx_failed and item.source not in reach_faults.tx_failed
    ]
    reach_faults.routes = _once(_name_isolated(rest, reach_faults))
    return reach_faults


def _parts(ends: Sequence[End], attempts: Iterable[Attempt]) -> list[tuple[End, ...]]:
    """Return the connected components of ends: two ends are connected by a successful attempt in either direction."""
    leader = {end: end for end in ends}

    def lead(end: End) -> End:
        while leader[end] != end:
            leader[end] = leader[leader[end]]
            end = leader[end]
        return end

    for attempt in attempts:
        if attempt.holds:
            leader[lead(attempt.source)] = lead(attempt.target)
    parts: dict[End, list[End]] = defaultdict(list)
    for end in ends:
        parts[lead(end)].append(end)
    return sorted((tuple(part) for part in parts.values()), key=lambda part: (-len(part), part))


def _main(parts: Sequence[tuple[End, ...]]) -> tuple[End, ...] | None:
    """Return the largest component if it is the only one of its size and has more than one end."""
    largest = parts[0]
    single = len(parts) == 1 or len(parts[1]) < len(largest)
    return largest if single and len(largest) > 1 else None


def _find_failed_directions(attempts: Sequence[Attempt], reach_faults: ReachFaults) -> None:
    """Find the ends with one direction without a failure and the other without a success."""
    sent: dict[End, list[bool]] = defaultdict(list)
    received: dict[End, list[bool]] = defaultdict(list)
    for attempt in attempts:
        sent[attempt.source].append(attempt.holds)
        received[attempt.target].append(attempt.holds)
    for end in sorted(sent.keys() & received.keys()):
        if len(received[end]) >= _LEAST and not any(received[end]) and all(sent[end]):
            reach_faults.rx_failed[end] = Count(len(received[end]), len(received[end]))
        elif len(sent[end]) >= _LEAST and not any(sent[end]) and all(received[end]):
            reach_faults.tx_failed[end] = Count(len(sent[end]), len(sent[end]))


def _name_isolated(attempts: Sequence[Attempt], reach_faults: ReachFaults) -> list[Attempt]:
    """Name ends that fail with most others, the worst first; return the failed attempts that remain."""
    rest = list(attempts)
    while True:
        shares, failed = _shares(rest), [one for one in rest if not one.holds]
        victims: dict[End, set[End]] = defaultdict(set)
        for item in failed:
            victims[item.source].add(item.target)
            victims[item.target].add(item.source)
        named = [end for end, others in victims.items() if _stands_out(shares, end, others)]
        if not named:
            return failed
        worst = max(named, key=lambda end: (shares[end].failed / shares[end].all, shares[end].failed))
        reach_faults.isolated[worst] = shares[worst]
        rest = [one for one in rest if worst not in (one.source, one.target)]


def _stands_out(shares: Mapping[End, Count], end: End, victims: Iterable[End]) -> bool:
    """Tell whether an end fails with most others, while these rarely fail with other ends."""
    failed, count = shares[end]
    if failed < _LEAST_AMONG or 2 * failed <= count:
        return False
    others = [(shares[one].failed - 1) / (shares[one].all - 1) for one in victims if shares[one].all > 1]
    return bool(others) and median(others) <= _MAX_OTHER_FAILURES


def _shares(attempts: Iterable[Attempt]) -> Mapping[End, Count]:
    """Count the failed partners of every end; a partner fails if either direction fails."""
    partners: dict[End, dict[End, bool]] = defaultdict(dict)
    for attempt in attempts:
        for end in (attempt.source, attempt.target):
            other = _other(attempt, end)
            partners[end][other] = partners[end].get(other, True) and attempt.holds
    return {end: Count(sum(not holds for holds in others.values()), len(others)) for end, others in partners.items()}


def _other(attempt: Attempt, end: End) -> End:
    return attempt.target if attempt.source == end else attempt.source


def _once(attempts: Iterable[Attempt]) -> list[tuple[End, End]]:
    """Return the pairs of ends without duplicates."""
    ends: dict[frozenset[End], tuple[End, End]] = {}
    for attempt in attempts:
        ends.setdefault(frozenset((attempt.source, attempt.target)), (attempt.source, attempt.target))
    return sorted(ends.values())
