"""Addresses of the fabric's NICs and their owners."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from fablint.model.host_name import NicRef
from fablint.preflight.host import NET, Host
from fablint.snapshot import NicFact
from fablint.snapshot.parsers.inet import Address, NeighbourEntry, number_of

_GUID = -23  # characters of a 20-octet IPoIB address; the rest depends on the queue pair


class Owner(NamedTuple):
    """A NIC of a host."""

    host: Host
    nic: str

    @property
    def name(self) -> NicRef:
        """Reference to the NIC."""
        return NicRef.of(self.host.name, self.nic)


def of_rails_in_use(host: Host) -> Mapping[str, Sequence[Address]]:
    """Return the addresses of each network interface of the fabric: of IPv4, else of IPv6."""
    result = dict(host.addresses_of_interfaces)
    names = {nic.name for nic in host.interfaces} - result.keys()
    if names and not host.inet.addresses.missing:
        for address in host.inet.ipv6_addresses.items:
            if address.nic in names:
                result[address.nic] = [*result.get(address.nic, ()), address]
    return result


def entries_of(host: Host) -> Iterator[NeighbourEntry]:
    """Yield the neighbour entries of a host; those of IPv6 where a NIC of the fabric has no other address."""
    yield from host.inet.entries.items
    if any(address.is_ipv6 for addresses in of_rails_in_use(host).values() for address in addresses):
        yield from host.inet.ipv6_entries.items


def siblings(host: Host) -> Mapping[str, Address]:
    """Return rails that share a subnet with a rail of the same prefix: `hsn1` and `hsn0`, not `wlan0` and `eth0`."""
    ordered = sorted((_make(address.nic), address.first, address.prefix, address) for address in _first_of_each(host))
    together = (list(group) for _, group in groupby(ordered, key=lambda one: one[:3]))
    return {address.nic: address for group in together if len(group) > 1 for *_, address in group}


def same_make(a: str, b: str) -> bool:
    """Tell whether two NIC names have the same prefix."""
    return _make(a) == _make(b)


def _make(nic: str) -> str:
    """Return the letters before the number: `hsn` of `hsn0`."""
    return nic[: next((at for at, letter in enumerate(nic) if not letter.isalpha()), len(nic))]


def _first_of_each(host: Host) -> list[Address]:
    return [addresses[0] for addresses in host.addresses_of_interfaces.values()]


@dataclass(frozen=True)
class Owners:
    """Owners of IP addresses and of MACs among hosts."""

    hosts: Sequence[Host]

    @cached_property
    def by_address(self) -> Mapping[int, Sequence[Owner]]:
        """Owners of each address in use on the fabric."""
        owners: dict[int, list[Owner]] = defaultdict(list)
        for host in self.hosts:
            for nic, addresses in of_rails_in_use(host).items():
                for address in addresses:
                    owners[address.number].append(Owner(host, nic))
        return owners

    @cached_property
    def by_mac(self) -> Mapping[str, Sequence[Owner]]:
        """Owners of each MAC, among all network interfaces of the hosts."""
        owners: dict[str, list[Owner]] = defaultdict(list)
        for host in self.hosts:
            for nic in host.nics:
                if nic.mac:
                    owners[comparable(nic.mac)].append(Owner(host, nic.name))
        return owners

    def answers_for_others(self, mac: str) -> bool:
        """Tell whether a MAC belongs to a router or to a cloud network that answers for all addresses."""
        answered = self._answered.get(mac, set())
        return bool(answered & self._gateways) or len(answered & self.by_address.keys()) > 1

    @cached_property
    def _answered(self) -> Mapping[str, set[int]]:
        """Addresses of each MAC in the neighbour tables."""
        result: dict[str, set[int]] = defaultdict(set)
        for host in self.hosts:
            for entry in entries_of(host):
                result[comparable(entry.mac)].add(entry.number)
        return result

    @cached_property
    def _gateways(self) -> set[int | None]:
        return {number_of(route.gateway) for host in self.hosts for route in host.inet.routes.items if route.gateway}


def mac_of(owner: Owner) -> str:
    """Return the MAC of a NIC in comparable form; '' if unknown."""
    nic: NicFact | None = next((nic for nic in owner.host.interfaces if nic.name == owner.nic), None)
    return comparable(nic.mac) if nic else ""


def comparable(mac: str) -> str:
    """Return the constant part of a hardware address: for IPoIB the GUID of the port."""
    return mac[_GUID:] if len(mac) > 2 * -_GUID else mac


def bonded(host: Host, a: str, b: str) -> bool:
    """Tell whether two NICs belong to one bond, or one is the bond of the other."""
    for master in (a, b, *(nic.name for nic in host.nics)):
        slaves = (host.read(f"{NET}/{master}/bonding/slaves") or "").split()
        if slaves and {a, b} <= {master, *slaves}:
            return True
    return False
