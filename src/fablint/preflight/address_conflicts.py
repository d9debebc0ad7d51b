"""Conflicts of addresses: two owners of an address, and neighbour tables that map it to another MAC."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from fablint.model.names import fold
from fablint.model.preflight_results import Outcome
from fablint.preflight.address_owners import Owner, Owners, bonded, comparable, entries_of, mac_of, of_rails_in_use
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.snapshot.parsers.inet import NeighbourEntry, dotted

_MANY = 3  # hosts with the same address, and more than half of all: a private network of each host


class AddressFault(NamedTuple):
    """A fault of a NIC's address."""

    outcome: Outcome
    message: str
    value: str


@lru_cache(maxsize=1)  # for several checks
def address_faults(fleet: Fleet) -> Mapping[str, Mapping[str, Sequence[AddressFault]]]:
    """Return the faults of the addresses of a fleet, by host and NIC."""
    owners = Owners(fleet.hosts)
    wrong: dict[str, dict[str, list[AddressFault]]] = defaultdict(lambda: defaultdict(list))
    for number, having in owners.by_address.items():
        for owner, fault in _claimed(number, having, len(fleet.hosts)):
            wrong[owner.host.name][owner.nic].append(fault)
    for (number, mac), entries in _foreign_entries(owners).items():
        for owner, fault in _answered(owners, number, mac, entries):
            wrong[owner.host.name][owner.nic].append(fault)
    return wrong


def contested_ends(fleet: Fleet) -> frozenset[tuple[str, str]]:
    """Return host and NIC of the addresses for which another NIC answers as well."""
    return frozenset(
        (host, nic)
        for host, of_host in address_faults(fleet).items()
        for nic, faults in of_host.items()
        if any(fault.outcome is Outcome.FAIL for fault in faults)
    )


def _claimed(number: int, having: Sequence[Owner], hosts: int) -> Iterator[tuple[Owner, AddressFault]]:
    """Yield a failure for each host that has the address of another host."""
    names = {owner.host.name for owner in having}
    if len(names) < 2 or len({mac_of(owner) for owner in having}) == 1:
        return  # the same MAC as well: a host listed twice, or private networks behind hypervisors
    if len(names) >= _MANY and 2 * len(names) > hosts:
        return
    for owner in having:
        others = [other.name for other in having if other.host is not owner.host]
        additional = next((one for one in of_rails_in_use(owner.host)[owner.nic] if one.number != number), None)
        addition = f" (in addition to {additional.text})" if additional else ""
        message = f"address {dotted(number)}{addition} is also assigned to {', '.join(others[:3])}"
        yield owner, AddressFault(Outcome.FAIL, message, dotted(number))


def _foreign_entries(owners: Owners) -> Mapping[tuple[int, str], list[tuple[Host, NeighbourEntry]]]:
    """Return neighbour entries that map an address of the fleet to a MAC other than its owner's."""
    neighbour_entries: dict[tuple[int, str], list[tuple[Host, NeighbourEntry]]] = defaultdict(list)
    macs: dict[int, set[str]] = {}
    for host in owners.hosts:
        rails = {nic.name for nic in host.interfaces}
        for entry in entries_of(host):
            having = owners.by_address.get(entry.number)
            if not having or entry.silent or not entry.mac or entry.nic not in rails:
                continue
            mac = comparable(entry.mac)
            if entry.number not in macs:
                macs[entry.number] = {mac_of(owner) for owner in having}
            if mac not in macs[entry.number]:
                neighbour_entries[entry.number, mac].append((host, entry))
    return neighbour_entries


def _answered(
    owners: Owners, number: int, mac: str, entries: Sequence[tuple[Host, NeighbourEntry]]
) -> Iterator[tuple[Owner, AddressFault]]:
    """Yield the faults that follow from an address answered with a MAC that is not its owner's."""
    owner = owners.by_address[number][0]
    address, observers = dotted(number), fold(host.name for host, _ in entries)
    lasting = [(host, entry) for host, entry in entries if entry.state == "PERMANENT"]
    for host, entry in lasting:
        message = f"permanent entry: {address} of {owner.name} has the MAC {entry.mac}, which is not its own"
        yield Owner(host, entry.nic), AddressFault(Outcome.WARN, message, entry.mac)
    if len(lasting) == len(entries):
        return
    now = any(entry.state not in ("STALE", "PERMANENT") for _, entry in entries)  # confirmed, not only cached
    outcome = Outcome.FAIL if now else Outcome.WARN
    others = owners.by_mac.get(mac, ())
    at_home = [other for other in others if other.host is owner.host]
    if at_home:
        if not bonded(owner.host, owner.nic, at_home[0].nic):
            message = f"{address} is also answered by {at_home[0].nic}, according to {observers} (ARP flux)"
            yield owner, AddressFault(Outcome.WARN, message, mac)
    elif others:
        message = f"{address} of {owner.name} is also answered by {others[0].name}, according to {observers}"
        yield owner, AddressFault(outcome, message, mac)
        yield others[0], AddressFault(outcome, message, mac)
    elif not owners.answers_for_others(mac):
        message = f"{address} is also answered by {mac}, which belongs to no known host, according to {observers}"
        yield owner, AddressFault(outcome, message, mac)
