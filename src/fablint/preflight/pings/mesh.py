"""Who reaches whom: which hosts ping which, and what they said of it, as far as it can be understood."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import AddressValueError, IPv4Interface
from typing import TYPE_CHECKING, Any, NamedTuple

from fablint.snapshot import NicFact

if TYPE_CHECKING:
    from fablint.preflight.host import Host

_MTU = 1500  # where a driver does not tell its own
_MOST = 1 << 32  # pings, bytes: what is more is no figure
_AIMS = {"quick": 24, "full": 200}  # pings from and to an end, by level: of 200, 5 % lost are 3 to 17
_FEWEST, _LONGEST = 3, {"quick": 9, "full": 100}  # pings of a pair, one way
NO_ANSWER, UNREACHABLE, NO_ROUTE = "no answer", "unreachable", "no route"
TOO_LONG, MTU = "too long", "mtu"  # its own host refused the frame; it was lost on the way
NOT_RUN = "not run"
LOST = (NO_ANSWER, UNREACHABLE, NO_ROUTE)
KINDS = ("", *LOST, TOO_LONG, MTU, NOT_RUN)


class End(NamedTuple):
    """A NIC of a host."""

    host: str
    nic: str

    @property
    def name(self) -> str:
        return f"{self.host}/{self.nic}"


class Ping(NamedTuple):
    """What came of pings from one end to another."""

    source: End
    target: End
    kind: str = ""  # empty: it was answered
    rtt_s: float | None = None  # the shortest
    passes: int = 0  # bytes of a smaller frame that was answered
    text: str = ""  # what ping said
    sent: int = 0  # pings of which it is known
    received: int = 0  # answers to them


class PingTarget(NamedTuple):
    """An end that can be pinged."""

    end: End
    address: str
    mtu: int


class NameLookup(NamedTuple):
    """What name a host finds for an address, and which addresses it finds for that name."""

    host: str
    address: str
    name: str
    found: tuple[str, ...]

    @property
    def holds(self) -> bool:
        return bool(self.name) and self.address in self.found


@dataclass(frozen=True, eq=False)
class Reach:
    """What all hosts said."""

    targets: Mapping[End, PingTarget] = field(default_factory=dict)
    labels: Mapping[End, str] = field(default_factory=dict)  # ends that ping each other have the same
    left_out: Mapping[End, str] = field(default_factory=dict)  # ends that cannot be pinged, and why
    pings: Sequence[Ping] = ()
    lookups: Sequence[NameLookup] = ()
    silent: Mapping[str, str] = field(default_factory=dict)  # hosts that did not ping, and why

    @cached_property
    def by_rail(self) -> Mapping[str, Sequence[Ping]]:
        """Pings that were run, by the label of their rail."""
        found: dict[str, list[Ping]] = defaultdict(list)
        for one in self.pings:
            if one.kind != NOT_RUN:
                found[self.labels[one.source]].append(one)
        return found

    @cached_property
    def owners(self) -> Mapping[str, Sequence[PingTarget]]:
        """Who should have an address: one, as a rule."""
        found: dict[str, list[PingTarget]] = defaultdict(list)
        for target in self.targets.values():
            found[target.address].append(target)
        return found


# ------------------------------------------------------------------------------------------------ who pings whom


def offsets(count: int, level: str) -> list[int]:
    """How far the host is that each one pings, round by round.

    Quick: 1, 2, 4, 8 ..., so that all hosts hang together by few pings. Full: every pair, the middle ones both ways.
    """
    if level == "full":
        return list(range(1, count // 2 + 1))
    return [1 << power for power in range((count - 1).bit_length())] if count > 1 else []


def repeats(count: int, level: str) -> int:
    """How many pings every host sends to each of its peers, so that all of an end show how many are lost."""
    rows = 2 * len(offsets(count, level))  # that it sends, and that are sent to it
    return min(max(_FEWEST, -(-_AIMS[level] // rows)), _LONGEST[level]) if rows else _FEWEST


def table(hosts: Sequence[Host]) -> list[dict[str, Any]]:
    """The hosts and their rails, as the pinger wants them."""
    targets, labels, _ = _targets(hosts)
    rails: dict[str, dict[str, tuple[str, int]]] = defaultdict(dict)
    for end, target in targets.items():
        rails[end.host][labels[end]] = (target.address, target.mtu)
    named = {one.name: one.read("/proc/sys/kernel/hostname") or one.name for one in hosts}
    return [{"host": one.name, "own": named[one.name], "rails": rails[one.name]} for one in hosts if one.name in rails]


def _targets(hosts: Sequence[Host]) -> tuple[dict[End, PingTarget], dict[End, str], dict[End, str]]:
    """Ends that can be pinged, their labels, and why others cannot.

    NICs of the same name ping each other; where no host has more than one, those.
    """
    targets: dict[End, PingTarget] = {}
    left_out: dict[End, str] = {}
    for host in hosts:
        for nic in host.interfaces:
            end, address = End(host.name, nic.name), _address(nic.addresses)
            if nic.state == "down":
                left_out[end] = "the link is down"
            elif not address:
                left_out[end] = _without(nic)
            else:
                targets[end] = PingTarget(end, address, nic.mtu or _MTU)
    single = len({end.host for end in targets}) == len(targets)
    return targets, {end: "" if single else end.nic for end in targets}, left_out


def _address(every: Iterable[str]) -> str:
    """The first IPv4 address that others can reach; empty where there is none."""
    for text in every:
        try:
            address = IPv4Interface(text).ip
        except (AddressValueError, ValueError):
            continue
        if not (address.is_link_local or address.is_loopback or address.is_unspecified or address.is_multicast):
            return str(address)
    return ""


def _without(nic: NicFact) -> str:
    if any(":" in one and not one.lower().startswith("fe80") for one in nic.addresses):
        return "it has IPv6 addresses only, which are not pinged"
    return "it has no IPv4 address"


# ------------------------------------------------------------------------------------------------ what they said


def reach_of(hosts: Sequence[Host]) -> Reach | None:
    """What the hosts' pingers said; None where none was run. What is not as it should be is left out."""
    if not any(host.snapshot.reach for host in hosts):
        return None
    targets, labels, left_out = _targets(hosts)
    known = {(end.host, label): end for end, label in labels.items()}
    pingable = {end.host for end in targets}
    said = {host.name: host.snapshot.reach for host in hosts if host.name in pingable}
    silent = {name: _text(one.get("error", "it was not asked")) for name, one in said.items() if "pings" not in one}
    pings: list[Ping] = []
    for name, one in said.items():
        for row in _rows(one, "pings", 8):
            source, target = known.get((name, _text(row[1]))), known.get((_text(row[0]), _text(row[1])))
            if source and target and row[2] in KINDS:
                sent, received = _whole(row[6]), _whole(row[7])
                said_by_ping = (_seconds(row[3]), _whole(row[4]), _text(row[5]))
                pings.append(Ping(source, target, row[2], *said_by_ping, sent, min(sent, received)))
    lookups = [_lookup(name, row) for name, one in said.items() for row in _rows(one, "names", 4)]
    return Reach(targets, labels, left_out, pings, lookups, silent)


def unanswered(hosts: Sequence[Host]) -> frozenset[frozenset[str]]:
    """Pairs of hosts between which no ping of a pair of NICs was answered, of whatever size."""
    reach = reach_of(hosts)
    pings = reach.pings if reach is not None else ()
    lost = (frozenset((one.source.host, one.target.host)) for one in pings if one.kind in LOST)
    return frozenset(pair for pair in lost if len(pair) == 2)


def _lookup(name: str, row: Sequence[Any]) -> NameLookup:
    found = row[3] if isinstance(row[3], list) else []
    return NameLookup(name, _text(row[1]), _text(row[2]), tuple(map(_text, found)))


def _rows(document: Mapping[str, Any], name: str, length: int) -> list[list[Any]]:
    every = document.get(name)
    return [row for row in every if isinstance(row, list) and len(row) == length] if isinstance(every, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _seconds(value: object) -> float | None:
    return value / 1e6 if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None


def _whole(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < _MOST else 0
