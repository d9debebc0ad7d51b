"""Checks of the size of the neighbour table (ARP)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.check import Check, Judge
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.preflight.judges import limit, uniform
from fablint.snapshot.parsers.proc_files import table_overflows

_AT = "/proc/sys/net/ipv4/neigh/default"
_AT_6 = "/proc/sys/net/ipv6/neigh/default"
_LIMITS = ("gc_thresh1", "gc_thresh2", "gc_thresh3")
_COUNTS = "/proc/net/stat/arp_cache"
_SPARE = 1.25  # entries per needed entry
_ABSENT = "the kernel does not show the limits, as in a container"


def _arp_size(check: Check, fleet: Fleet) -> Iterator[Result]:
    numbers = sorted(
        address.number
        for host in fleet.hosts
        for addresses in host.addresses_of_interfaces.values()
        for address in addresses
    )
    ipv6_total = sum(_ipv6_addresses(host) for host in fleet.hosts)
    not_examined = _not_examined(fleet)
    for host in fleet.hosts:
        need = _needed(host, numbers, len(fleet.hosts), len(fleet.silent))
        whole = _needed(host, numbers, len(fleet.hosts), len(fleet.silent) + not_examined)
        yield _judged(check, host, "", _AT, need, whole)
        if ipv6_of_host := _ipv6_addresses(host):
            need = ipv6_total - ipv6_of_host + ipv6_of_host * len(fleet.silent)
            yield _judged(check, host, "IPv6", _AT_6, need, need + ipv6_of_host * not_examined)


def _judged(check: Check, host: Host, target: str, folder: str, need: int, whole: int) -> Result:
    """Return the result for a table: `need` entries for the hosts that were requested, `whole` for the topology."""
    first, _, last = (host.number(f"{folder}/{name}") for name in _LIMITS)
    if first is None or last is None:
        return check.skip(host.name, target, _ABSENT)
    if last < need:
        return check.failure(host.name, target, f"gc_thresh3 {last}, {need} neighbours need an entry", last, need)
    if last < whole:
        message = f"gc_thresh3 {last}, all hosts of the topology need {whole} entries"
        return check.warning(host.name, target, message, last, whole)
    if last < _SPARE * need:
        return check.warning(host.name, target, f"gc_thresh3 {last}, little more than {need} neighbours", last, need)
    if first < need:
        message = f"gc_thresh1 {first}: entries of {need} neighbours are removed repeatedly"
        return check.warning(host.name, target, message, first, need)
    return check.ok(host.name, target, value=last)


def _not_examined(fleet: Fleet) -> int:
    """Count the hosts of the topology that are not in the fleet."""
    hosts = {host.name for host in fleet.hosts} | fleet.silent.keys()
    return len(fleet.topology.host_switch.keys() - hosts) if fleet.topology else 0


def _ipv6_addresses(host: Host) -> int:
    """Count the IPv6 addresses of the fabric's NICs, without those of the link."""
    return sum(
        ":" in address and not address.lower().startswith("fe80:") for nic in host.rails for address in nic.addresses
    )


ARP_SIZE = Check(
    id="net.arp.size",
    what="the size of the neighbour table",
    source=f"{_AT}/gc_thresh*, {_AT_6}/gc_thresh*, ip -j addr",
    rule=(
        f"gc_thresh3 at least the number of addresses in the host's networks, better {_SPARE:g} times; gc_thresh1 too; "
        "enough for all hosts of the topology; the same for IPv6"
    ),
    severity=Severity.FAIL,
    remedy="raise net.ipv4.neigh.default.gc_thresh1, 2 and 3 (IPv6: net.ipv6); PERMANENT entries do not count",
    judge=Judge(_arp_size),
)


def _needed(host: Host, numbers: Sequence[int], hosts: int, silent: int) -> int:
    """Count the entries that a host needs to reach all others: one per NIC and address of the NIC's network.

    Hosts without addresses and hosts without a snapshot are assumed to have as many NICs as this one.
    """
    rails = host.addresses_of_interfaces
    if not rails:
        return (hosts + silent - 1) * len(host.interfaces) ** 2
    numbers_of_host = [address.number for addresses in rails.values() for address in addresses]
    need = 0
    for addresses in rails.values():
        first, last = addresses[0].first, addresses[0].last
        count = sum(first <= number <= last for number in numbers_of_host)
        need += bisect_right(numbers, last) - bisect_left(numbers, first) - count + silent * count
    return need


def _arp_uniform(host: Host) -> Mapping[str, Any]:
    numbers = [host.number(f"{_AT}/{name}") for name in _LIMITS]
    return {} if None in numbers else {"": "/".join(map(str, numbers))}


ARP_UNIFORM = Check(
    id="net.arp.uniform",
    what="the limits of the neighbour table",
    source=f"{_AT}/gc_thresh*",
    remedy="set net.ipv4.neigh.default.gc_thresh1, 2 and 3 to the same value on all hosts",
    judge=uniform(_arp_uniform, "gc_thresh {}", absent=_ABSENT),
)


def _arp_overflow(check: Check, host: Host) -> Iterable[Result]:
    grown = host.grown(_COUNTS, table_overflows)
    if grown is None and host.read(_COUNTS) and table_overflows(host.read(_COUNTS)) is None:
        yield check.error(host.name, "", f"{_COUNTS} cannot be parsed")
    elif grown and grown.growth:
        yield check.failure(host.name, "", f"the neighbour table overflowed: {grown}", grown.growth, 0)
    elif grown:
        yield check.ok(host.name)


ARP_OVERFLOW = Check(
    id="net.arp.overflow",
    what="overflows of the neighbour table",
    source=f"{_COUNTS}, table_fulls",
    rule="none",
    severity=Severity.FAIL,
    remedy="raise net.ipv4.neigh.default.gc_thresh1, 2 and 3",
    judge=limit(_arp_overflow, "the kernel does not show the counter, as in a container"),
)
