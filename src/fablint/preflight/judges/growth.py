"""Judge of error counters: growth per hour, and at the first reading totals compared with those of peers.

Without peers a total is growth since the boot, when the driver set the counters to 0.

Growth since the last reading alone says little if hosts are checked every ten minutes. It is therefore computed from
the last reading, from one of about an hour ago and from one of about a day ago.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from statistics import quantiles
from typing import NamedTuple

from fablint.model.preflight_results import Result
from fablint.preflight.check import Check, Judge
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.snapshot.counter_deltas import Delta, is_same, total
from fablint.snapshot.host_snapshot import text_in

_HOUR = 3600.0
_FEWEST_PEERS = 4  # components of other hosts, for a comparison of totals
_TIMES = 10.0  # factor above most peers, and above the limit per hour
_LASTING = 7 * 24.0  # hours since the boot in which a total counts as growth
_RARE = 0.1  # share of the limit per hour, on average since boot: less is old

DIAGS_LIMITS = {  # defaults of infiniband-diags; errors of the link
    "symbol_error": 10,
    "link_error_recovery": 10,
    "link_downed": 10,
    "port_rcv_errors": 10,
    "local_link_integrity_errors": 10,
    "excessive_buffer_overrun_errors": 10,
    "port_rcv_remote_physical_errors": 100,
    "port_rcv_switch_relay_errors": 100,
    "port_xmit_discards": 100,
    "port_xmit_constraint_errors": 100,
    "port_rcv_constraint_errors": 100,
    "VL15_dropped": 100,
}


class Limit(NamedTuple):
    """Limits of the growth of a counter."""

    now: int  # within the snapshot's own window
    hour: int  # per hour since a stored reading, at least for one hour
    most: float = inf  # since any stored reading


class CountedPart(NamedTuple):
    """A part of a host and its counters, which are files of one folder."""

    target: str
    folder: str
    files: Mapping[str, str]  # by the counters' names
    why_not: str = ""  # reason why it cannot be judged

    def path(self, name: str) -> str:
        """Return the path of counter `name`."""
        return f"{self.folder}/{self.files[name]}"

    def grows(self, host: Host) -> bool:
        """Return whether the growth of any counter within the snapshot's window is known."""
        return any(host.grown_now(self.path(name)) is not None for name in self.files)


class Excess(NamedTuple):
    """Counters of a component that exceed their limits."""

    grown: Mapping[str, Delta]
    totals: Mapping[str, str]  # at the first reading: texts about counters that are high since the boot

    def words(self, form: str = "{} {}") -> list[str]:
        """Describe each counter with its growth or total."""
        growths = [form.format(name, grown) for name, grown in self.grown.items()]
        return growths + [form.format(name, text) for name, text in self.totals.items()]

    @property
    def most(self) -> int:
        """Largest growth."""
        return max((one.growth for one in self.grown.values()), default=0)


def any_excess(most: int | None = None) -> Callable[[Check, Host, CountedPart, Excess], Result]:
    """Return the judgement for `growth` by which each counter above its limit is a failure of the component.

    Parameters
    ----------
    most
        Largest number of counters that a failure names; None: all.
    """

    def judged(check: Check, host: Host, part: CountedPart, excess: Excess) -> Result:
        if words := excess.words():
            return check.failure(host.name, part.target, ", ".join(words[:most]), excess.most, 0)
        return check.ok(host.name, part.target)

    return judged


def excess(host: Host, path: str, limit: Limit) -> Delta | None:
    """Return growth above a limit: within the window of the snapshot, or the fastest since a stored reading."""
    if host.before is None and not host.has_moved(path):  # most counters
        return None
    within = host.grown_now(path)
    if within and within.growth >= limit.now:
        return within
    least = min(limit.hour, limit.most)
    many = [one for one in host.growths(path, int(least)) if one.growth >= min(limit.hour * _hours(one), limit.most)]
    return max(many, key=lambda one: (one.growth / _hours(one), one.growth), default=None)


def _hours(delta: Delta) -> float:
    return max(delta.seconds / _HOUR, 1.0)


def growth(
    limits: Mapping[str, Limit],
    parts: Callable[[Host], Iterable[CountedPart]],
    judged: Callable[[Check, Host, CountedPart, Excess], Result],
    absent: str,
) -> Judge:
    """Judge the counters of each component of a host.

    Parameters
    ----------
    limits
        Limits by the counters' names.
    parts
        Returns the components of a host, each with the paths of its counters in the snapshot; none where the host has
        no such component. One whose counters cannot be read has the reason in `why_not`.
    judged
        Returns the result for a component, whose counters may exceed limits.
    absent
        Reason for a skip of a host without such a component.
    """

    def results(check: Check, fleet: Fleet) -> Iterator[Result]:
        parts_of_hosts = [(host, list(parts(host))) for host in fleet.hosts]
        peers = _Peers(parts_of_hosts, limits) if any(host.before is None for host in fleet.hosts) else None
        for host, of_host in parts_of_hosts:
            if not of_host:
                yield check.skip(host.name, "", absent)
            for part in of_host:
                if part.why_not:
                    yield check.skip(host.name, part.target, part.why_not)
                    continue
                is_first = peers is not None and host.before is None
                names = peers.moved.get((host.name, part.target), ()) if peers and is_first else part.files
                grown = {name: item for name in names if (item := excess(host, part.path(name), limits[name]))}
                totals = peers.above(host, part, grown) if peers and is_first else {}
                yield judged(check, host, part, Excess(grown, totals))

    return Judge(results)


class _Peers:
    """Totals of similar hosts by counter. Only totals that may exceed a limit are stored with host and component."""

    def __init__(
        self, parts_of_hosts: Sequence[tuple[Host, Sequence[CountedPart]]], limits: Mapping[str, Limit]
    ) -> None:
        self.limits = limits
        self.moved: dict[tuple[str, str], list[str]] = defaultdict(list)  # host and part: read twice, and not the same
        self.high: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)  # host and component: high totals
        self.own: Counter[tuple[str, str]] = Counter()  # host and counter: components with it, if some totals are high
        totals: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))  # by class and counter
        high = {name: min(_TIMES * limit.hour, limit.most) for name, limit in limits.items()}
        for host, parts in parts_of_hosts:
            of_kind = totals[host.kind]
            for part in parts:
                first, last = host.snapshot.readings_in(part.folder)
                for name, file in () if part.why_not else part.files.items():
                    begun, text = text_in(first, file), text_in(last, file)
                    if begun is not text and not is_same(begun, text):  # most readings are one object
                        self.moved[host.name, part.target].append(name)
                    if (value := total(file, text or host.read(part.path(name)))) is not None:
                        of_kind[name].append(value)
                        if value >= high[name]:
                            self.high[host.name, part.target][name] = value
            self.own.update(self._counts(host, parts))
        of_peers = {(kind, name): values for kind, of_kind in totals.items() for name, values in of_kind.items()}
        self.counts = {key: len(values) for key, values in of_peers.items()}
        self.usual = {key: third_quartile(values) for key, values in of_peers.items()}

    def _counts(self, host: Host, parts: Sequence[CountedPart]) -> Iterator[tuple[str, str]]:
        """Yield host and counter for each component with a counter that is high on one of the host's components."""
        names = {name for part in parts for name in self.high.get((host.name, part.target), ())}
        for part in parts if names else ():
            for name in names & part.files.keys() if not part.why_not else ():
                path = part.path(name)
                if total(path, host.snapshot.read_later(path) or host.read(path)) is not None:
                    yield host.name, name

    def above(self, host: Host, part: CountedPart, grown: Mapping[str, Delta]) -> Mapping[str, str]:
        """Return counters of a component that are far above those of peers, and not explained by the uptime.

        A total above the limit of any growth counts if the host was booted within a week.

        Without peers the limit per hour applies to the time since the boot.
        """
        result = {}
        for name, value in self.high.get((host.name, part.target), {}).items():
            key, limit = (host.kind, name), self.limits[name].hour
            others = self.counts[key] - self.own[host.name, name]
            usual, hours = self.usual[key], (host.uptime_s or 0.0) / _HOUR
            if name in grown:
                continue
            if value >= self.limits[name].most and host.uptime_s is not None and hours <= _LASTING:
                result[name] = f"{value} since boot"
            elif others < _FEWEST_PEERS:
                if host.uptime_s is not None and value >= limit * hours:
                    result[name] = f"{value} since boot, {value / max(hours, 1):.3g} per hour"
            elif value >= _TIMES * max(usual, 1) and value >= _RARE * limit * hours:
                result[name] = f"{value} so far, at most {usual:.0f} on most of {others} others"
        return dict(sorted(result.items()))


def third_quartile(values: Sequence[int]) -> float:
    """Return the third quartile."""
    return quantiles(values, n=4, method="inclusive")[2] if len(values) > 1 else float(values[0])
