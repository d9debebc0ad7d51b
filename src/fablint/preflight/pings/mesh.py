"""Pings between hosts: the pairs of each round, and the parsed results of all hosts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address, ip_interface
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from fablint.model.host_name import NicRef

if TYPE_CHECKING:
    from fablint.preflight.host import Host

_MTU = 1500  # if a driver reports none
_MOST = 1 << 32  # pings, bytes: larger numbers are invalid
_FEWEST = 3  # pings of a pair in one direction
_ALL_PAIRS = 33  # hosts that all ping each other at every level: none pings more than 16
NO_ANSWER, UNREACHABLE, NO_ROUTE = "no answer", "unreachable", "no route"
TOO_LONG, MTU = "too long", "mtu"  # refused by its own host; lost on the path
NOT_RUN = "not run"
LOST = (NO_ANSWER, UNREACHABLE, NO_ROUTE)
KINDS = ("", *LOST, TOO_LONG, MTU, NOT_RUN)


class End(NamedTuple):
    """A NIC of a host."""

    host: str
    nic: str

    @property
    def name(self) -> NicRef:
        return NicRef.of(self.host, self.nic)


class Ping(NamedTuple):
    """Result of the pings from one end to another."""

    source: End
    target: End
    kind: str = ""  # empty: it was answered
    rtt_s: float | None = None  # the shortest
    passes: int = 0  # bytes of a smaller frame that was answered
    text: str = ""  # output of ping
    sent: int = 0  # pings with a known result
    received: int = 0  # answers to them
    is_second: bool = False  # of the second pass
    lost_first: int = 0  # in the first pass, if there is a second one


class PingCounts(NamedTuple):
    """Number of pings that a pass aims at."""

    end: int  # from and to an end
    most: int  # of a pair in one direction


FIRST = {"quick": PingCounts(36, 9), "full": PingCounts(200, 100)}  # of all pairs
SECOND = {"quick": PingCounts(300, 35), "full": PingCounts(500, 100)}  # of pairs of an end with losses


class PingTarget(NamedTuple):
    """An end that can be pinged."""

    end: End
    address: str
    mtu: int


class NameLookup(NamedTuple):
    """Name that a host finds for an address, and the addresses that it finds for that name."""

    host: str
    address: str
    name: str
    found: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """True if the name of the address resolves to the address."""
        return bool(self.name) and self.address in self.found


@dataclass(frozen=True, eq=False)
class Reach:
    """Pings and name lookups of all hosts."""

    targets: Mapping[End, PingTarget] = field(default_factory=dict)
    labels: Mapping[End, str] = field(default_factory=dict)  # equal for ends that ping each other
    left_out: Mapping[End, str] = field(default_factory=dict)  # ends that cannot be pinged, and why
    pings: Sequence[Ping] = ()
    lookups: Sequence[NameLookup] = ()
    silent: Mapping[str, str] = field(default_factory=dict)  # hosts that did not ping, and why

    @cached_property
    def by_rail(self) -> Mapping[str, Sequence[Ping]]:
        """Pings that were run, by the label of their rail."""
        pings: dict[str, list[Ping]] = defaultdict(list)
        for ping in self.pings:
            if ping.kind != NOT_RUN:
                pings[self.labels[ping.source]].append(ping)
        return pings

    @cached_property
    def owners(self) -> Mapping[str, Sequence[PingTarget]]:
        """Owners of each address, normally one."""
        ping_targets: dict[str, list[PingTarget]] = defaultdict(list)
        for target in self.targets.values():
            ping_targets[target.address].append(target)
        return ping_targets


# ------------------------------------------------------------------------------------------------ pairs


def offsets(count: int, level: str) -> list[int]:
    """Return the offset of the pinged host for each round.

    Full, or of few hosts: every pair, the middle ones in both directions. Else 1, 2, 4, 8 ..., so that few pings
    connect all hosts.
    """
    if level == "full" or count <= _ALL_PAIRS:
        return list(range(1, count // 2 + 1))
    return [1 << power for power in range((count - 1).bit_length())] if count > 1 else []


def repeats(count: int, level: str, counts: Mapping[str, PingCounts] = FIRST) -> int:
    """Return the number of pings per peer, so that an end has enough pings in total to measure its loss.

    Parameters
    ----------
    count
        Number of hosts that ping each other.
    level
        Level of preflight.
    counts
        Numbers of pings by level.
    """
    rows = 2 * len(offsets(count, level))  # that it sends, and that are sent to it
    aim, most = counts[level]
    return min(max(_FEWEST, -(-aim // rows)), most) if rows else _FEWEST


def table(hosts: Sequence[Host]) -> list[dict[str, Any]]:
    """Return one JSON object per host for the pinger: its name, and the address and MTU of each of its NICs by rail.

    They are shuffled, the same order each time: hosts of a switch often have consecutive names, and each is then
    pinged from, and pings, hosts of all switches.
    """
    targets, labels, _ = _targets(hosts)
    rails: dict[str, dict[str, tuple[str, int]]] = defaultdict(dict)
    for end, target in targets.items():
        rails[end.host][labels[end]] = (target.address, target.mtu)
    named = {one.name: one.read("/proc/sys/kernel/hostname") or one.name for one in hosts}
    rows = [{"host": one.name, "own": named[one.name], "rails": rails[one.name]} for one in hosts if one.name in rails]
    Random(len(rows)).shuffle(rows)
    return rows


def _targets(hosts: Sequence[Host]) -> tuple[dict[End, PingTarget], dict[End, str], dict[End, str]]:
    """Return the ends that can be pinged, their labels, and the reasons for the other ends.

    NICs of the same name ping each other; if no host has more than one NIC, these NICs ping each other.
    """
    targets: dict[End, PingTarget] = {}
    left_out: dict[End, str] = {}
    for host in hosts:
        for nic in host.interfaces:
            end, address = End(host.name, nic.name), _address(nic.addresses)
            if nic.state == "down":
                left_out[end] = "the link is down"
            elif not address:
                left_out[end] = "it has no address that others can reach"
            else:
                targets[end] = PingTarget(end, address, nic.mtu or _MTU)
    single = len({end.host for end in targets}) == len(targets)
    return targets, {end: "" if single else end.nic for end in targets}, left_out


def _address(texts: Iterable[str]) -> str:
    """Return the first address that other hosts can reach, of IPv4 if there is one; '' if there is none."""
    addresses: list[IPv4Address | IPv6Address] = []
    for text in texts:
        with suppress(ValueError):
            address = ip_interface(text).ip
            if not (address.is_link_local or address.is_loopback or address.is_unspecified or address.is_multicast):
                addresses.append(address)
    return str(min(addresses, key=lambda address: address.version)) if addresses else ""


# ------------------------------------------------------------------------------------------------ results


def reach_of(hosts: Sequence[Host]) -> Reach | None:
    """Parse the results of all pingers; None if no pinger ran. Malformed entries are skipped.

    Counts of the second pass replace those of the first, less those whose replies the target could not send.
    """
    if not any(host.snapshot.reach for host in hosts):
        return None
    targets, labels, left_out = _targets(hosts)
    end_of_label = {(end.host, label): end for end, label in labels.items()}
    pingable = {end.host for end in targets}
    results = {host.name: host.snapshot.reach for host in hosts if host.name in pingable}
    silent = {
        name: _text(item.get("error", "the pinger did not run"))
        for name, item in results.items()
        if "pings" not in item
    }
    pings: dict[tuple[End, End], Ping] = {}
    unsent: dict[str, int] = {}
    for name, result in results.items():
        pings |= {ping[:2]: ping for ping in _pings(name, result, end_of_label)}
        second = result.get("second")
        if isinstance(second, Mapping):
            unsent[name] = _whole(second.get("unsent"))
            for ping in _pings(name, second, end_of_label):
                if ping[:2] in pings:
                    pings[ping[:2]] = _with_second(pings[ping[:2]], ping)
    lookups = [_lookup(name, row) for name, one in results.items() for row in _rows(one, "names", 4)]
    return Reach(targets, labels, left_out, _without_unsent(pings.values(), unsent), lookups, silent)


def _pings(host: str, document: Mapping[str, Any], end_of_label: Mapping[tuple[str, str], End]) -> Iterator[Ping]:
    """Yield the valid pings of a host and a pass."""
    for row in _rows(document, "pings", 8):
        source, target = map(end_of_label.get, _labelled(host, row))
        if source and target and row[2] in KINDS:
            sent, received = _whole(row[6]), _whole(row[7])
            output = (_seconds(row[3]), _whole(row[4]), _text(row[5]))
            yield Ping(source, target, row[2], *output, sent, min(sent, received))


def _with_second(first: Ping, second: Ping) -> Ping:
    """Return the result of the second pass; it is an answer if either pass has one."""
    if second.kind == NOT_RUN or not second.sent:
        return first
    lost_first = first.sent - first.received
    if second.kind and not first.kind:
        return first._replace(sent=second.sent, received=second.received, is_second=True, lost_first=lost_first)
    return second._replace(is_second=True, lost_first=lost_first)


def _without_unsent(pings: Iterable[Ping], unsent: Mapping[str, int]) -> list[Ping]:
    """Remove the pings of the second pass whose replies were not sent, by the number of such replies of each host.

    Every CPU of a host has one send buffer for all replies. Those to a peer that ARP does not resolve fill it, and the
    replies to all peers are then discarded. They are distributed evenly over the pairs, at most as many as a pair lost.
    """
    ping_of_ends = {one[:2]: one for one in pings}
    to_host: dict[str, list[Ping]] = defaultdict(list)
    for value in ping_of_ends.values():
        if value.is_second and value.received < value.sent:
            to_host[value.target.host].append(value)
    for host, lost in to_host.items():
        left = unsent.get(host, 0)
        for place, value in enumerate(sorted(lost, key=lambda ping: ping.sent - ping.received)):
            discarded = min(value.sent - value.received, -(-left // (len(lost) - place)))
            ping_of_ends[value[:2]] = value._replace(sent=value.sent - discarded)
            left -= discarded
    return [*ping_of_ends.values()]


def unanswered(hosts: Sequence[Host]) -> frozenset[frozenset[str]]:
    """Return the pairs of hosts with a pair of NICs between which no ping of any size was answered."""
    reach = reach_of(hosts)
    pings = reach.pings if reach is not None else ()
    lost = (frozenset((one.source.host, one.target.host)) for one in pings if one.kind in LOST)
    return frozenset(pair for pair in lost if len(pair) == 2)


class LossyPairs(NamedTuple):
    """Pairs that ping each other a second time: those of every end with a loss."""

    ends: Sequence[tuple[str, str]] = ()  # host and rail of the ends with losses
    hosts: tuple[str, ...] = ()  # that send these pings


def lossy_pairs(hosts: Sequence[Host]) -> LossyPairs:
    """Return the pairs of the ends that lost some pings, but not all, with another end.

    Needs only the outputs of the pingers: snapshots are parsed once, when the hosts are judged.
    """
    rows = [(host.name, row) for host in hosts for row in _rows(host.snapshot.reach, "pings", 8)]
    lossy = {end for name, row in rows if _is_lossy(row) for end in _labelled(name, row)}
    senders = {name for name, row in rows if lossy and not lossy.isdisjoint(_labelled(name, row))}
    return LossyPairs(sorted(lossy), tuple(sorted(senders)))


def _is_lossy(row: Sequence[Any]) -> bool:
    """Return whether some pings of an answered peer were lost."""
    return row[2] == "" and _whole(row[7]) < _whole(row[6])


def _labelled(host: str, row: Sequence[Any]) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return host and rail of both ends of a row of the pinger on `host`."""
    return (host, _text(row[1])), (_text(row[0]), _text(row[1]))


def _lookup(name: str, row: Sequence[Any]) -> NameLookup:
    lookup = row[3] if isinstance(row[3], list) else []
    return NameLookup(name, _text(row[1]), _text(row[2]), tuple(map(_text, lookup)))


def _rows(document: Mapping[str, Any], name: str, length: int) -> list[list[Any]]:
    rows = document.get(name)
    return [row for row in rows if isinstance(row, list) and len(row) == length] if isinstance(rows, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _seconds(value: object) -> float | None:
    return value / 1e6 if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None


def _whole(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < _MOST else 0
