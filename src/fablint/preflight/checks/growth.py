"""Counters that should hardly grow: judged by what they grow in an hour, and at the first reading by what others counted.

A rate needs a time: growth since the last look says nothing where hosts are looked at every ten minutes. So it is taken
from the last reading, from one of about an hour ago and from one of about a day ago.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from statistics import quantiles
from typing import ClassVar, NamedTuple

from fablint.model.preflight_results import Result
from fablint.preflight.base import Check
from fablint.preflight.counter_deltas import Delta, figure, total
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.snapshot.host_snapshot import text_in

_HOUR = 3600.0
_FEWEST_PEERS = 4  # parts of other hosts, for totals to be compared
_TIMES = 10.0  # as many as most peers, and as are too many in an hour
_RARE = 0.1  # of what is too many in an hour, on average since the boot: less is old


class Limit(NamedTuple):
    """How much growth is too much."""

    now: int  # within the snapshot's own window
    hour: int  # in an hour, since a reading that was kept; in less than an hour as many
    most: float = inf  # since any reading that was kept


class Counted(NamedTuple):
    """A part of a host and its counters, which are files of one folder."""

    target: str
    folder: str
    files: Mapping[str, str]  # by the counters' names
    why_not: str = ""  # it cannot be judged

    def path(self, name: str) -> str:
        return f"{self.folder}/{self.files[name]}"

    def grows(self, host: Host) -> bool:
        """Return whether the growth of any counter within the snapshot's window is known."""
        return any(host.grown_now(self.path(name)) is not None for name in self.files)


class Excess(NamedTuple):
    """What is too much at a part."""

    grown: Mapping[str, Delta]
    totals: Mapping[str, str]  # at the first reading: what to say of counters that are far above those of peers

    def words(self, form: str = "{} {}") -> list[str]:
        said = [form.format(name, grown) for name, grown in self.grown.items()]
        return said + [form.format(name, text) for name, text in self.totals.items()]

    @property
    def most(self) -> int:
        return max((one.growth for one in self.grown.values()), default=0)


def excess(host: Host, path: str, limit: Limit) -> Delta | None:
    """Growth that is too much: within the snapshot's own window, or the fastest since a reading that was kept."""
    if host.before is None and not host.has_moved(path):  # so it is of most counters
        return None
    within = host.grown_now(path)
    if within and within.growth >= limit.now:
        return within
    least = min(limit.hour, limit.most)
    many = [one for one in host.growths(path, int(least)) if one.growth >= min(limit.hour * _hours(one), limit.most)]
    return max(many, key=lambda one: (one.growth / _hours(one), one.growth), default=None)


def _hours(one: Delta) -> float:
    return max(one.seconds / _HOUR, 1.0)


class GrowthCheck(Check):
    """One that judges counters of parts of each host."""

    absent: ClassVar[str]
    limits: ClassVar[Mapping[str, Limit]]  # by the counters' names

    @abstractmethod
    def parts(self, host: Host) -> Iterable[Counted]:
        """What is counted on a host."""

    @abstractmethod
    def judged(self, host: Host, part: Counted, found: Excess) -> Result:
        """What is said of a part, of which something may be too much."""

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        every = [(host, list(self.parts(host))) for host in fleet.hosts]
        peers = _Peers(every, self.limits) if any(host.before is None for host in fleet.hosts) else None
        for host, parts in every:
            if not parts:
                yield self.skipped(host.name, "", self.absent)
            for part in parts:
                if part.why_not:
                    yield self.skipped(host.name, part.target, part.why_not)
                    continue
                is_first = peers is not None and host.before is None
                names = peers.moved.get((host.name, part.target), ()) if peers and is_first else part.files
                grown = {name: one for name in names if (one := excess(host, part.path(name), self.limits[name]))}
                totals = peers.above(host, part, grown) if peers and is_first else {}
                yield self.judged(host, part, Excess(grown, totals))


class _Peers:
    """Totals of similar hosts by counter. Most are 0: only those that may be too much are kept with host and part."""

    def __init__(self, every: Sequence[tuple[Host, Sequence[Counted]]], limits: Mapping[str, Limit]) -> None:
        self.limits = limits
        self.moved: dict[tuple[str, str], list[str]] = defaultdict(list)  # host and part: read twice, and not the same
        self.high: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)  # host and part: what may be too much
        self.own: Counter[tuple[str, str]] = Counter()  # host and counter: parts that have it, where some are high
        totals: dict[tuple[str, str], list[int]] = defaultdict(list)
        for host, parts in every:
            kind = host.kind
            for part in parts:
                first, last = host.snapshot.readings_in(part.folder)
                for name, file in () if part.why_not else part.files.items():
                    text = text_in(last, file)
                    if figure(text) != figure(text_in(first, file)):
                        self.moved[host.name, part.target].append(name)
                    if (value := total(file, text or host.read(part.path(name)))) is not None:
                        totals[kind, name].append(value)
                        if value >= _TIMES * limits[name].hour:
                            self.high[host.name, part.target][name] = value
            self.own.update(self._counts(host, parts))
        self.counts = {key: len(values) for key, values in totals.items()}
        self.usual = {key: _most_have(values) for key, values in totals.items()}

    def _counts(self, host: Host, parts: Sequence[Counted]) -> Iterator[tuple[str, str]]:
        """A host and the counters that are high on one of its parts, once for each part that has it."""
        names = {name for part in parts for name in self.high.get((host.name, part.target), ())}
        for part in parts if names else ():
            for name in names & part.files.keys() if not part.why_not else ():
                path = part.path(name)
                if total(path, host.snapshot.read_later(path) or host.read(path)) is not None:
                    yield host.name, name

    def above(self, host: Host, part: Counted, grown: Mapping[str, Delta]) -> Mapping[str, str]:
        """Counters of a part that are far above the others', and above what grows in so long a time."""
        found = {}
        for name, value in self.high.get((host.name, part.target), {}).items():
            key, limit = (host.kind, name), self.limits[name].hour
            others = self.counts[key] - self.own[host.name, name]
            if name in grown or others < _FEWEST_PEERS:
                continue
            usual, hours = self.usual[key], (host.uptime_s or 0.0) / _HOUR
            if value >= _TIMES * max(usual, 1) and value >= _RARE * limit * hours:
                found[name] = f"{value} so far, at most {usual:.0f} on most of {others} others"
        return dict(sorted(found.items()))


def _most_have(values: Sequence[int]) -> float:
    """What three of four are at most."""
    return quantiles(values, n=4, method="inclusive")[2] if len(values) > 1 else float(values[0])
