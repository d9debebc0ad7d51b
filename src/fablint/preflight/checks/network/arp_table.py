"""Checks of the size of the neighbour table (ARP)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.address_owners import of_rails
from fablint.preflight.base import Check, HostCheck, UniformCheck
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host

_AT = "/proc/sys/net/ipv4/neigh/default"
_LIMITS = ("gc_thresh1", "gc_thresh2", "gc_thresh3")
_COUNTS = "/proc/net/stat/arp_cache"
_SPARE = 1.25  # entries per needed entry
_ABSENT = "the kernel does not show the limits, as in a container"


class ArpSize(Check):
    id = "net.arp.size"
    what = "the size of the neighbour table"
    source = f"{_AT}/gc_thresh*, ip -j addr"
    rule = (
        f"gc_thresh3 at least the number of addresses in the host's networks, better {_SPARE:g} times; gc_thresh1 too"
    )
    severity = Severity.FAIL
    component = "config"
    remedy = "raise net.ipv4.neigh.default.gc_thresh1, 2 and 3; PERMANENT entries do not count"

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        every = sorted(
            address.number for host in fleet.hosts for addresses in of_rails(host).values() for address in addresses
        )
        for host in fleet.hosts:
            first, _, last = (host.number(f"{_AT}/{name}") for name in _LIMITS)
            need = _needed(host, every, len(fleet.hosts), len(fleet.silent))
            if first is None or last is None:
                yield self.skip(host.name, "", _ABSENT)
            elif last < need:
                yield self.failure(host.name, "", f"gc_thresh3 {last}, {need} neighbours need an entry", last, need)
            elif last < _SPARE * need:
                yield self.warning(host.name, "", f"gc_thresh3 {last}, little more than {need} neighbours", last, need)
            elif first < need:
                message = f"gc_thresh1 {first}: entries of {need} neighbours are removed repeatedly"
                yield self.warning(host.name, "", message, first, need)
            else:
                yield self.ok(host.name, "", value=last)


def _needed(host: Host, every: Sequence[int], hosts: int, silent: int) -> int:
    """Count the entries that a host needs to reach all others: one per NIC and address of the NIC's network.

    Hosts without addresses and hosts without a snapshot are assumed to have as many NICs as this one.
    """
    found = of_rails(host)
    if not found:
        return (hosts + silent - 1) * len(host.interfaces) ** 2
    own = [address.number for addresses in found.values() for address in addresses]
    need = 0
    for addresses in found.values():
        first, last = addresses[0].first, addresses[0].last
        mine = sum(first <= number <= last for number in own)
        need += bisect_right(every, last) - bisect_left(every, first) - mine + silent * mine
    return need


class ArpUniform(UniformCheck):
    id = "net.arp.uniform"
    what = "the limits of the neighbour table"
    source = f"{_AT}/gc_thresh*"
    rule = "the same as on most similar hosts"
    severity = Severity.WARN
    component = "config"
    remedy = "set net.ipv4.neigh.default.gc_thresh1, 2 and 3 to the same value on all hosts"
    words = "gc_thresh {}"
    absent = _ABSENT

    def values(self, host: Host) -> Mapping[str, Any]:
        found = [host.number(f"{_AT}/{name}") for name in _LIMITS]
        return {} if None in found else {"": "/".join(map(str, found))}


class ArpOverflow(HostCheck):
    id = "net.arp.overflow"
    what = "overflows of the neighbour table"
    source = f"{_COUNTS}, table_fulls"
    rule = "none"
    severity = Severity.FAIL
    component = "config"
    remedy = "raise net.ipv4.neigh.default.gc_thresh1, 2 and 3"
    absent = "the kernel does not show the counter, as in a container"

    def look(self, host: Host) -> Iterable[Result]:
        grown = host.grown(_COUNTS, _table_fulls)
        if grown is None and host.read(_COUNTS) and _table_fulls(host.read(_COUNTS)) is None:
            yield self.error(host.name, "", f"{_COUNTS} cannot be parsed")
        elif grown and grown.growth:
            yield self.failure(host.name, "", f"the neighbour table overflowed: {grown}", grown.growth, 0)
        elif grown:
            yield self.ok(host.name)


def _table_fulls(text: str | None) -> str | None:
    """Return the sum of `table_fulls` over all CPUs: a header line, then a hexadecimal row per CPU."""
    head, _, rows = (text or "").partition("\n")
    names, words = head.split(), rows.split()
    if "table_fulls" not in names or len(words) % len(names):
        return None
    try:
        return str(sum(int(word, 16) for word in words[names.index("table_fulls") :: len(names)]))
    except ValueError:
        return None
