"""Check of the IPv6 addresses of the fabric's NICs: present, usable, of one host."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from ipaddress import ip_interface
from typing import Any

from fablint.model.names import plural
from fablint.model.preflight_results import Outcome, Result, Severity
from fablint.preflight.check import Check, Judge
from fablint.preflight.class_values import LEAST_OTHERS, Agreement
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.snapshot.nics import ip_documents
from fablint.snapshot.parsers.documents import dicts
from fablint.text.sanitise import shortened

_FAMILY = "inet6"


def _addresses(host: Host, rails: Collection[str]) -> Mapping[str, list[Mapping[str, Any]]]:
    """Return the IPv6 addresses of each NIC of the fabric as `ip -j addr` prints them, without those of the link."""
    infos_of_nic = {
        str(nic.get("ifname")): dicts(nic.get("addr_info")) for nic in ip_documents(host.snapshot, "ip-addr")
    }
    return {
        name: [one for one in infos if one.get("family") == _FAMILY and one.get("scope") == "global"]
        for name, infos in infos_of_nic.items()
        if name in rails
    }


def _ipv6(check: Check, fleet: Fleet) -> Iterator[Result]:
    rails: dict[str, set[str]] = defaultdict(set)  # of a class: a NIC without an address may not look like a rail
    for host in fleet.hosts:
        rails[host.kind] |= {nic.name for nic in host.interfaces}
    by_host = {host.name: _addresses(host, rails[host.kind]) for host in fleet.hosts}
    having: dict[tuple[str, ...], list[bool]] = defaultdict(list)
    networks: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)  # with the number of hosts
    owners: dict[str, dict[str, str]] = defaultdict(dict)  # of an address: a NIC of each host
    for host in fleet.hosts:
        for nic, addresses in by_host[host.name].items():
            having[nic, *host.like(nic)].append(bool(addresses))
            networks[nic, *host.like(nic)].update(_networks(addresses))
            for address in addresses:
                owners[str(address.get("local"))].setdefault(host.name, nic)
    agreed = {key: Agreement.of(values) for key, values in having.items()}
    for host in fleet.hosts:
        if not by_host[host.name]:
            yield check.skip(host.name, "", "no network interface of the fabric, or its addresses are not visible")
        for nic, addresses in by_host[host.name].items():
            key = nic, *host.like(nic)
            result = _judged(check, host.name, nic, addresses, agreed[key], owners)
            elsewhere = _elsewhere(addresses, networks[key], agreed[key]) if result.outcome is Outcome.PASS else ""
            yield check.warning(host.name, nic, elsewhere) if elsewhere else result


def _judged(
    check: Check,
    host: str,
    nic: str,
    addresses: list[Mapping[str, Any]],
    agreed: Agreement,
    owners: Mapping[str, Mapping[str, str]],
) -> Result:
    if agreed.is_pair and agreed.is_divided:
        return check.warning(
            host, nic, f"{'an' if addresses else 'no'} IPv6 address, other than on the other of two hosts"
        )
    if not addresses:
        if not agreed.usual:
            return check.skip(host, nic, "no IPv6 address, the same as most others")
        message = f"no IPv6 address, {plural(agreed.count, 'other')} have one"
        return check.difference(agreed.is_clear, host, nic, message)
    failed = [shortened(str(one.get("local"))) for one in addresses if one.get("dadfailed")]
    if failed:
        return check.failure(host, nic, f"{failed[0]} is not used: another host has it (duplicate address detection)")
    for item in addresses:
        address = str(item.get("local"))
        others = [f"{name} {owner}" for name, owner in owners[address].items() if name != host][:1]
        if others:
            return check.failure(host, nic, f"{shortened(address)} is also an address of {shortened(others[0])}")
    return check.ok(host, nic, value=shortened(str(addresses[0].get("local"))))


def _networks(addresses: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the networks of addresses: `2001:db8:1::/64`."""
    result = set()
    for item in addresses:
        with suppress(ValueError):  # a malformed address
            result.add(str(ip_interface(f"{item.get('local')}/{item.get('prefixlen')}").network))
    return result


def _elsewhere(addresses: list[Mapping[str, Any]], networks: Counter[str], agreed: Agreement) -> str:
    """Return how the networks of a NIC differ from that of most hosts; '' if it shares one with another host.

    Several hosts, such as those of a rack, may have a network of their own; a single host may not.
    """
    usual, count = max(networks.items(), key=lambda item: item[1], default=("", 0))
    ours = _networks(addresses)
    if count < LEAST_OTHERS or 2 * count <= agreed.total or any(networks[one] > 1 for one in ours):
        return ""
    return f"in {shortened(', '.join(sorted(ours)))}, {plural(count, 'other')} in {usual}"


IP6_ADDRESS = Check(
    id="net.ip6",
    what="the IPv6 addresses of every NIC of the fabric",
    source="ip -j addr",
    rule=(
        "present if most similar hosts have one, or the other of two; of no other host; duplicate address "
        "detection did not fail; a host alone in a network warns, if most similar hosts are in one"
    ),
    severity=Severity.FAIL,
    remedy="set another address; check router advertisements and DHCPv6",
    judge=Judge(_ipv6),
)
