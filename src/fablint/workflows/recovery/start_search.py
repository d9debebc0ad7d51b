"""The search for hosts that keep a launch from starting, by launches of fewer hosts (group testing).

A launch of all hosts did not start. Pairs of hosts are launched first: those that start show how long a start takes and
are witnesses. Groups of the other hosts are then halved until the hosts are known that start neither by halves nor with
a witness; groups that share no host are launched at the same time, so that many faulty hosts take as many rounds as
one: log2 of the hosts. A host is faulty only where it starts with none of three witnesses. Last, all others are
launched together. Where that does not start although its groups do, a path between two hosts is faulty: the host that
ends the start is found by bisection, then its partner.

Pure: what launches is a function, and a fake one in tests.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil, log2
from random import Random

Hosts = tuple[str, ...]

# Launches sets of hosts that share none, at the same time: which of them started. A set of one is two ranks on it.
Launch = Callable[[Sequence[Hosts]], Sequence[bool]]

AT_ONCE = 16  # launches at the same time
WITNESSES = 3  # with none of which a faulty host starts
_FIRST_PAIRS = 4
_FIRST_TRIES = 5  # rounds of pairs until one starts
_MOST_PARTNERS = 2  # of a host on faulty paths that are named: two show that it shares several


class SearchEndedError(Exception):
    """Raised by a `Launch` whose time or number is used up."""


@dataclass(frozen=True)
class Cause:
    """What is known of a host that keeps a launch from starting."""

    host: str
    fails_with: Hosts  # hosts with which it was launched alone, or that had to be left out for it: no launch started
    starts_with: Hosts = ()  # hosts with which it did
    alone: bool | None = None  # do ranks start on it alone? None: not tried
    in_company: bool = False  # pairs start; only launches of more hosts with it do not
    at_times: bool = False  # launches of all hosts with it start at times only


@dataclass
class StartResult:
    """What a search came to. Hosts are in the order in which they were given."""

    starting: Hosts = ()  # start together, or in groups where the search ended before; empty: no two hosts start
    faulty: list[Cause] = field(default_factory=list)
    paths: list[tuple[str, str]] = field(default_factory=list)  # start with others: (left out, kept)
    unknown: Hosts = ()  # not decided when the search ended

    @property
    def excluded(self) -> list[str]:
        """Hosts without which the engine starts."""
        return [*(one.host for one in self.faulty), *dict.fromkeys(path[0] for path in self.paths), *self.unknown]


@dataclass
class StartSearch:
    """One search. `progress` is given the hosts that are decided, and the rounds of launches that are left at most."""

    hosts: Sequence[str]
    launch: Launch
    suspects: Collection[str] = ()  # tried apart from the others
    unanswered: Collection[frozenset[str]] = ()  # pairs that are not witnesses of each other
    unfit: Collection[str] = ()  # known to be faulty: no path is searched that is at fault in their place
    progress: Callable[[int, int], None] = lambda decided, rounds: None
    _groups: list[Hosts] = field(default_factory=list)  # that started
    _good: Hosts = ()
    _fails: dict[str, list[str]] = field(default_factory=dict)  # by host: hosts with which it did not start
    _starts: dict[str, list[str]] = field(default_factory=dict)  # by host: hosts with which it did
    _result: StartResult = field(default_factory=StartResult)

    def run(self) -> StartResult:
        """Search until every host is decided or launches are used up."""
        try:
            self._start_pairs()
            if self._groups:
                self._isolate()
                mixed = self._confirm()
                self._grow(mixed)
                self._exchange()
        except SearchEndedError:
            pass
        return self._ended()

    # ------------------------------------------------------------------------------------------------ groups

    def _start_pairs(self) -> None:
        """A round of pairs, and further ones until a pair starts."""
        calm = [host for host in self.hosts if host not in self.suspects]
        shuffled_hosts = calm if len(calm) > 1 else list(self.hosts)
        Random(len(self.hosts)).shuffle(shuffled_hosts)
        for pairs in _rounds_of_pairs(shuffled_hosts):
            if self._groups:
                return
            chosen = [self._sorted(pair) for pair in pairs[:_FIRST_PAIRS]]
            for pair, started in zip(chosen, self._launched(chosen), strict=True):
                self._note_pair(pair, started)
                if started:
                    self._groups.append(pair)

    def _isolate(self) -> None:
        """Halve groups that do not start, until all groups start or are single hosts that do not."""
        started_hosts = {host for group in self._groups for host in group}
        open_hosts = [host for host in self.hosts if host not in started_hosts]
        apart = [host for host in open_hosts if host in self.suspects or host in self._fails]
        rest = tuple(host for host in open_hosts if host not in apart)
        groups = [rest, *_divided(apart)] if apart else list(_halves(rest))
        while groups := [group for group in groups if group]:
            groups = [half for group in self._failing(groups) for half in _halves(group)]

    def _failing(self, groups: Sequence[Hosts]) -> list[Hosts]:
        """Launch groups, single hosts with a witness; those that do not start and can be halved."""
        failing: list[Hosts] = []
        singles = [group[0] for group in groups if len(group) == 1]
        several = [group for group in groups if len(group) > 1]
        for group, started in zip(several, self._launched(several), strict=True):
            if started:
                self._groups.append(group)
            else:
                failing.append(group)
        for host, started in self._with_witnesses(singles).items():
            if started:
                self._groups.append((host,))
        return failing

    # ------------------------------------------------------------------------------------------------ witnesses

    def _with_witnesses(self, hosts: Sequence[str]) -> dict[str, bool]:
        """Launch each host with a witness; hosts without one are not in the result.

        Launches of a round share no host, so that hosts wait for each other where there are few witnesses.
        """
        witnesses: dict[str, bool] = {}
        waiting = list(hosts)
        while waiting:
            chosen: dict[str, str] = {}
            for host in waiting:
                witness = self._witness_of(host, chosen.values())
                if witness is not None and len(chosen) < AT_ONCE:
                    chosen[host] = witness
            if not chosen:
                break
            pairs = [self._sorted(pair) for pair in chosen.items()]
            for (host, witness), started in zip(chosen.items(), self._launched(pairs), strict=True):
                witnesses[host] = started
                (self._starts if started else self._fails).setdefault(host, []).append(witness)
            waiting = [host for host in waiting if host not in chosen]
        return witnesses

    def _witness_of(self, host: str, taken: Collection[str]) -> str | None:
        """A witness for a host, one that it was not launched with where there is one; None where all are taken."""
        tried = [*self._fails.get(host, ()), *self._starts.get(host, ())]
        started_hosts = [one for group in self._groups for one in group if one != host]
        free = [one for one in started_hosts if one not in taken]
        fresh = [one for one in free if one not in tried]
        if not fresh and set(started_hosts) - set(tried):
            return None  # it waits for those
        answered = [one for one in fresh if frozenset((one, host)) not in self.unanswered]
        pool = answered or fresh or free
        return pool[len(tried) % WITNESSES * len(pool) // WITNESSES] if pool else None

    def _confirm(self) -> list[str]:
        """Launch each host that started with no witness with two further ones, then alone.

        Returns hosts that start with some.
        """
        started_hosts = {host for group in self._groups for host in group}
        doubtful = [host for host in self.hosts if host not in started_hosts]
        failed = {host: [one for one in self._fails.get(host, ()) if one in started_hosts] for host in doubtful}
        for _ in range(WITNESSES):
            few = [one for one in doubtful if len(failed[one]) < WITNESSES and one not in self._starts]
            self._with_witnesses(few)
            failed = {host: [one for one in self._fails.get(host, ()) if one in started_hosts] for host in doubtful}
        mixed = [host for host in doubtful if host in self._starts or not failed[host]]
        faulty = [host for host in doubtful if host not in mixed]
        alone = self._launched([(host,) for host in faulty])
        for host, started in zip(faulty, alone, strict=True):
            self._result.faulty.append(Cause(host, tuple(dict.fromkeys(failed[host])), alone=started))
        return mixed

    # ------------------------------------------------------------------------------------------------ together

    def _grow(self, mixed: Sequence[str]) -> None:
        """Find the largest set that starts together, from the largest group on; judge each host that ends it."""
        groups = sorted(self._groups, key=len, reverse=True)
        self._good = groups[0]
        rest = [host for group in groups[1:] for host in group] + list(mixed)
        while rest:
            if self._is_starting([*self._good, *rest]):
                self._good = self._sorted([*self._good, *rest])
                return
            count = self._fewest(rest, self._good)
            self._good = self._sorted([*self._good, *rest[: count - 1]])
            self._judge(rest[count - 1])
            rest = rest[count:]

    def _fewest(self, hosts: Sequence[str], others: Sequence[str]) -> int:
        """Return how many of the first hosts it takes so that a launch with `others` does not start; all of them do."""
        starts, fails = 0, len(hosts)
        while fails - starts > 1:
            half = (starts + fails) // 2
            if self._is_starting([*others, *hosts[:half]]):
                starts = half
            else:
                fails = half
        return fails

    def _judge(self, host: str) -> None:
        """A host that ended the start of hosts that start together: by chance, on one path, or on several."""
        if host in self.unfit:  # it may start at the next attempt, and not at the one after it
            self._result.faulty.append(Cause(host, (), tuple(self._starts.get(host, ())), in_company=True))
            return
        if self._is_starting([*self._good, host]):
            self._good = self._sorted([*self._good, host])
            return
        partners: list[str] = []
        others = list(self._good)
        while others and len(partners) < _MOST_PARTNERS and (not partners or not self._is_starting([*others, host])):
            partner = self._partner_of(host, others, is_first=not partners)
            if partner is None:
                break
            others.remove(partner)
            partners.append(partner)
        if partners and not self._starts.get(host):
            self._with_witnesses([host])
        starts_with = tuple(one for one in self._starts.get(host, ()) if one not in partners)
        if len(partners) == 1 and others:
            self._result.paths.append((host, partners[0]))
        elif not partners and self._is_starting([*self._good, host]):  # in the third attempt
            self._good = self._sorted([*self._good, host])
        else:
            self._result.faulty.append(Cause(host, tuple(partners), starts_with, in_company=not partners))

    def _partner_of(self, host: str, others: Sequence[str], *, is_first: bool) -> str | None:
        """A host with which this one does not start, the two alone; None where only more of `others` do not."""
        silent = [one for one in others if frozenset((one, host)) in self.unanswered]
        for other in silent[:_MOST_PARTNERS]:
            if not self._is_starting([other, host]):
                return other
        other = others[self._fewest(others, [host]) - 1]
        for _ in range(2 if is_first else 1):
            if self._is_starting([other, host]):
                self._starts.setdefault(host, []).append(other)
                return None
        return other

    def _exchange(self) -> None:
        """Exclude the host that several faulty paths share, instead of their other ends."""
        kept = [path[1] for path in self._result.paths]
        for hub in dict.fromkeys(host for host in kept if kept.count(host) > 1):
            ends = [one for one, other in self._result.paths if other == hub]
            good = [host for host in self._good if host != hub] + ends
            if self._is_starting(good):
                self._good = self._sorted(good)
                witnesses = [host for host in self._good if host not in ends]
                self._result.paths = [path for path in self._result.paths if path[1] != hub]
                self._result.faulty.append(Cause(hub, tuple(ends), tuple(witnesses[:1])))

    # ------------------------------------------------------------------------------------------------ launches

    def _launched(self, sets: Sequence[Hosts]) -> list[bool]:
        """Return which of these sets start; they share no host, and so many at a time are launched."""
        launched: list[bool] = []
        for begin in range(0, len(sets), AT_ONCE):
            self.progress(self._decided(), self._rounds_left(sets))
            launched += self.launch(sets[begin : begin + AT_ONCE])
        return launched

    def _is_starting(self, hosts: Iterable[str]) -> bool:
        return self._launched([self._sorted(hosts)])[0]

    def _sorted(self, hosts: Iterable[str]) -> Hosts:
        """Return hosts in the order of all hosts, so that ranks meet as in the launch that did not start."""
        members = set(hosts)
        return tuple(host for host in self.hosts if host in members)

    def _note_pair(self, pair: Hosts, started: bool) -> None:
        if not started:
            for host, other in (pair, pair[::-1]):
                self._fails.setdefault(host, []).append(other)

    def _decided(self) -> int:
        return len({host for group in self._groups for host in group} | {one.host for one in self._result.faulty})

    def _rounds_left(self, sets: Sequence[Hosts]) -> int:
        """Rounds of launches until groups of this size are single hosts that were launched with witnesses."""
        return ceil(log2(max(map(len, sets), default=1))) + 1 + WITNESSES

    def _ended(self) -> StartResult:
        """The result, with the hosts that were not decided."""
        if not self._good and self._groups:
            self._good = self._sorted(host for group in self._groups for host in group)  # not launched together
        self._result.starting = self._good
        decided = {*self._good, *self._result.excluded}
        self._result.unknown = tuple(host for host in self.hosts if host not in decided) if self._good else ()
        return self._result


def _divided(hosts: Sequence[str]) -> list[Hosts]:
    """Few hosts each by itself, many as one group."""
    return [(host,) for host in hosts] if len(hosts) <= AT_ONCE else [tuple(hosts)]


def _halves(group: Hosts) -> list[Hosts]:
    """Two halves of a group; none of a single host."""
    middle = (len(group) + 1) // 2
    return [half for half in (group[:middle], group[middle:]) if half] if len(group) > 1 else []


def _rounds_of_pairs(hosts: Sequence[str]) -> list[list[Hosts]]:
    """Rounds of pairs that share no host, other pairs in each (round-robin tournament)."""
    ring: list[str | None] = [*hosts, *([None] if len(hosts) % 2 else [])]
    rounds: list[list[Hosts]] = []
    for _ in range(min(len(ring) - 1, _FIRST_TRIES)):
        half = len(ring) // 2
        ends = zip(ring[:half], reversed(ring[half:]), strict=True)
        rounds.append([(one, other) for one, other in ends if one is not None and other is not None])
        ring = [ring[0], ring[-1], *ring[1:-1]]
    return rounds
