"""IP configuration of a host from `ip -j` (iproute2): addresses, routes, rules, neighbour table.

Addresses are integers. Those of IPv6, in tables of their own, are larger than those of IPv4.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

from fablint.model.names import plain
from fablint.snapshot.host_snapshot import Snapshot
from fablint.snapshot.parsers.documents import dicts
from fablint.snapshot.sharing import parsed

_BITS, _BITS_6 = 32, 128
_CUT_OFF = 100_000  # characters: a longer text without an end was truncated, not malformed
SILENT = ("FAILED", "INCOMPLETE")  # states of a neighbour without an answer
_LOCAL = ("local", "broadcast", "multicast", "anycast")
_PLAIN_RULE = {"priority", "src", "srclen", "dst", "dstlen", "table", "protocol"}  # others: marks, ports, devices


class Address(NamedTuple):
    """A global address of an interface."""

    nic: str
    number: int
    prefix: int

    @property
    def text(self) -> str:
        return dotted(self.number)

    @property
    def is_ipv6(self) -> bool:
        """True if it is an address of IPv6."""
        return bool(self.number >> _BITS)

    @property
    def first(self) -> int:
        """The lowest address of its network."""
        return _first(self.number, self.prefix)

    @property
    def last(self) -> int:
        """Last address of the network, as a number."""
        return _last(self.number, self.prefix)

    @property
    def network(self) -> str:
        """The network as `ADDRESS/PREFIX`."""
        return f"{dotted(self.first)}/{self.prefix}"


class Route(NamedTuple):
    """A row of a routing table."""

    table: str
    first: int
    prefix: int
    nics: tuple[str, ...]
    kind: str = "unicast"  # or `local`, `blackhole`, ...
    metric: int = 0
    gateway: str = ""

    @property
    def last(self) -> int:
        """Last address of the destination, as a number."""
        return _last(self.first, self.prefix)

    @property
    def is_local(self) -> bool:
        """True if the destination is an address of this host."""
        return self.kind in _LOCAL

    def __str__(self) -> str:
        """Format as `ip route` writes it."""
        kind = "" if self.kind == "unicast" else f"{self.kind} "
        network = f"{dotted(self.first)}/{self.prefix}".removesuffix(f"/{_BITS}") if self.prefix else "default"
        via = f" via {self.gateway}" if self.gateway else ""
        return f"{kind}{network}{via}{''.join(f' dev {nic}' for nic in self.nics)}"


class RoutingRule(NamedTuple):
    """Rule that selects a routing table for packets between addresses of two ranges."""

    priority: int
    table: str
    source: tuple[int, int] | None = None  # None: all
    destination: tuple[int, int] | None = None


class NeighbourEntry(NamedTuple):
    """Row of the neighbour table: the MAC address that a host has for an address."""

    nic: str
    number: int
    mac: str
    state: str
    age_s: int  # since the last change of the state

    @property
    def silent(self) -> bool:
        """True if the requests for the address had no answer."""
        return self.state in SILENT


_Item = TypeVar("_Item")


class Listed(NamedTuple, Generic[_Item]):
    """Parsed items of an output, or the reason why there are none."""

    items: list[_Item]
    missing: str = ""
    garbled: bool = False  # the output is not JSON


@dataclass(frozen=True)
class Inet:
    """IP configuration of a host, of IPv4 unless stated otherwise; each table is parsed on first use."""

    snapshot: Snapshot

    @cached_property
    def addresses(self) -> Listed[Address]:
        """Addresses of all interfaces, of `ip addr`."""
        return _listed(self.snapshot, "ip-addr", _addresses)

    @cached_property
    def routes(self) -> Listed[Route]:
        """Routes of the main table, from `ip route`; with an error where it could not be read."""
        return _listed(self.snapshot, "ip-route", _routes)

    @cached_property
    def entries(self) -> Listed[NeighbourEntry]:
        """Neighbour entries, from `ip neigh`; with an error where it could not be read."""
        return _listed(self.snapshot, "ip-neigh", _entries)

    @cached_property
    def ipv6_addresses(self) -> Listed[Address]:
        """Global IPv6 addresses of all interfaces, of `ip addr`."""
        return _listed(self.snapshot, "ip-addr", _ipv6_addresses)

    @cached_property
    def ipv6_entries(self) -> Listed[NeighbourEntry]:
        """Neighbour entries of IPv6, from `ip neigh`."""
        return _listed(self.snapshot, "ip-neigh", _ipv6_entries)

    @cached_property
    def rules(self) -> Listed[RoutingRule]:
        """Rules with address ranges only, in the order of their priority; other rules are skipped."""
        result = _listed(self.snapshot, "ip-rule", _rules)
        if "not supported" in result.missing:
            return Listed([])  # a kernel without policy routing
        return result._replace(items=sorted(result.items, key=lambda rule: rule.priority))

    @property
    def missing_tables(self) -> Listed[Any] | None:
        """The first output that is missing for a route lookup; None if all are present."""
        parts: tuple[Listed[Any], ...] = (self.addresses, self.routes, self.rules)
        return next((part for part in parts if part.missing), None)

    @cached_property
    def divided(self) -> bool:
        """True for a host with virtual routers (VRF), whose tables no rule selects."""
        return "l3mdev" in self.snapshot.command("ip-rule").text


def number_of(text: object) -> int | None:
    """Return `10.0.0.1` as an integer; None for other texts.

    >>> number_of("10.0.0.1")
    167772161
    """
    try:
        return int.from_bytes(socket.inet_pton(socket.AF_INET, text), "big") if isinstance(text, str) else None
    except (OSError, ValueError):
        return None


def ipv6_number_of(text: object) -> int | None:
    """Return `fd00::1` as an integer; None for other texts."""
    try:
        return int.from_bytes(socket.inet_pton(socket.AF_INET6, text), "big") if isinstance(text, str) else None
    except (OSError, ValueError):
        return None


def dotted(number: int) -> str:
    """Format an address as `10.0.0.1`, or as `fd00::1` where it is larger than those of IPv4."""
    if number >> _BITS:
        return socket.inet_ntop(socket.AF_INET6, number.to_bytes(16, "big"))
    return ".".join(str(octet) for octet in number.to_bytes(4, "big"))


def _first(number: int, prefix: int) -> int:
    return number >> (_BITS - prefix) << (_BITS - prefix)


def _last(number: int, prefix: int) -> int:
    return number | ((1 << (_BITS - prefix)) - 1)


# ------------------------------------------------------------------------------------------------ outputs


def _listed(snapshot: Snapshot, name: str, read: Callable[[list[dict[str, Any]]], Iterator[_Item]]) -> Listed[_Item]:
    output = snapshot.command(name)
    if output.status != 0:
        return Listed([], f"{name.replace('-', ' ')}: {output.error or 'failed'}")
    try:
        documents = parsed((_whole(output.text) or "[]").encode())
    except (ValueError, RecursionError):
        return Listed([], f"the output of {name.replace('-', ' ')} is not JSON", True)
    return Listed(list(read(dicts(documents))))


def _whole(text: str) -> str:
    """Complete a list that the collector truncated: drop its last entry."""
    text = text.strip()
    if len(text) < _CUT_OFF or text.endswith("]"):
        return text
    return text[: text.rfind("},{") + 1] + "]"


def _addresses(documents: list[dict[str, Any]]) -> Iterator[Address]:
    yield from _addresses_of(documents, number_of, _BITS)


def _ipv6_addresses(documents: list[dict[str, Any]]) -> Iterator[Address]:
    yield from _addresses_of(documents, ipv6_number_of, _BITS_6)


def _addresses_of(
    documents: list[dict[str, Any]], number_in: Callable[[object], int | None], bits: int
) -> Iterator[Address]:
    for nic in documents:
        for item in dicts(nic.get("addr_info")):
            number, prefix = number_in(item.get("local")), _count(item.get("prefixlen"), bits)
            if number is not None and prefix is not None and item.get("scope") == "global":
                yield Address(plain(nic.get("ifname")), number, prefix)


def _routes(documents: list[dict[str, Any]]) -> Iterator[Route]:
    for document in documents:
        span = _network(document.get("dst"))
        if (
            span is None
            or "pref" in document
            or ":" in str(document.get("gateway"))
            or "dead" in str(document.get("flags"))
        ):
            continue  # IPv6, or inactive
        hops = dicts(document.get("nexthops")) if "nexthops" in document else [document]
        via = document.get("via")
        yield Route(
            str(document.get("table", "main")),
            *span,
            tuple(plain(hop.get("dev")) for hop in hops if hop.get("dev")),
            str(document.get("type", "unicast")),
            _count(document.get("metric")) or 0,
            str(document.get("gateway") or (via.get("host", "") if isinstance(via, dict) else "")),
        )


def _rules(documents: list[dict[str, Any]]) -> Iterator[RoutingRule]:
    for document in documents:
        source, destination = _range(document, "src"), _range(document, "dst")
        if not document.keys() <= _PLAIN_RULE or "table" not in document or () in (source, destination):
            continue
        yield RoutingRule(
            _count(document.get("priority")) or 0, str(document["table"]), source or None, destination or None
        )


def _range(rule: dict[str, Any], end: str) -> tuple[int, int] | tuple[()] | None:
    """Return the first and last address of a rule; None: all, (): malformed."""
    if rule.get(end, "all") == "all":
        return None
    span = _network(f"{rule[end]}/{rule.get(f'{end}len', _BITS)}")
    return (span[0], _last(*span)) if span else ()


def _entries(documents: list[dict[str, Any]]) -> Iterator[NeighbourEntry]:
    yield from _entries_of(documents, number_of)


def _ipv6_entries(documents: list[dict[str, Any]]) -> Iterator[NeighbourEntry]:
    yield from _entries_of(documents, ipv6_number_of)


def _entries_of(documents: list[dict[str, Any]], number_in: Callable[[object], int | None]) -> Iterator[NeighbourEntry]:
    for document in documents:
        number, states = number_in(document.get("dst")), document.get("state")
        if number is not None and isinstance(states, list) and states:
            mac, age = str(document.get("lladdr", "")).lower(), _count(document.get("updated")) or 0
            yield NeighbourEntry(plain(document.get("dev")), number, mac, str(states[0]), age)


def _network(text: object) -> tuple[int, int] | None:
    """Parse the first address and prefix length of `default`, `10.0.0.0/8` or `10.0.0.1`."""
    if text == "default":
        return 0, 0
    address, _, length = str(text).partition("/")
    number = number_of(address)
    if number is None:
        return None
    prefix = _count(int(length), _BITS) if length.isdecimal() and len(length) < 3 else None if length else _BITS
    return None if prefix is None else (_first(number, prefix), prefix)


def _count(value: object, most: int = 1 << 32) -> int | None:
    """Return an integer from 0 to `most`; None for other values."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most else None
