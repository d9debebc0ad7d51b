"""Owners of addresses: the addresses of each host, and the neighbour tables of the other hosts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from fablint.model.names import fold
from fablint.model.preflight_results import Outcome, Result, Severity
from fablint.preflight.address_owners import Owner, Owners, bonded, comparable, mac_of, of_rails, unseen
from fablint.preflight.base import Check
from fablint.preflight.checks.network.links import ABSENT
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.snapshot.parsers.inet import NeighbourEntry, dotted

_MANY = 3  # hosts with the same address, and more than half of all: a private network of each host
_OLD_S = 600  # failed requests that are older are ignored


class _AddressFault(NamedTuple):
    """A fault of a NIC's address."""

    outcome: Outcome
    message: str
    value: str


class IpDuplicate(Check):
    id = "net.ip.duplicate"
    what = "the owner of every address of the fabric, and the MAC that answers for it"
    source = "ip -j addr, ip -j neigh"
    rule = "one owner, with one MAC"
    severity = Severity.FAIL
    component = "config"
    remedy = "remove the address from the wrong host; if two NICs of one host answer, set arp_ignore=1"

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        owners = Owners(fleet.hosts)
        wrong: dict[str, dict[str, list[_AddressFault]]] = defaultdict(lambda: defaultdict(list))
        for number, having in owners.by_address.items():
            for owner, fault in _claimed(number, having, len(fleet.hosts)):
                wrong[owner.host.name][owner.nic].append(fault)
        for (number, mac), entries in _foreign_entries(owners).items():
            for owner, fault in _answered(owners, number, mac, entries):
                wrong[owner.host.name][owner.nic].append(fault)
        for host in fleet.hosts:
            yield from self._results(host, wrong.get(host.name, {}))

    def _results(self, host: Host, wrong: Mapping[str, Sequence[_AddressFault]]) -> Iterator[Result]:
        addresses = of_rails(host)
        if host.inet.addresses.missing:
            yield unseen(self, host, host.inet.addresses)
        elif not addresses:
            yield self.skip(host.name, "", "no NIC of the fabric has an address")
        for nic in {**addresses, **wrong}:
            for fault in wrong.get(nic, ()):
                yield Result(self.id, host.name, nic, fault.outcome, fault.message, fault.value)
            if nic not in wrong:
                yield self.ok(host.name, nic)


def _claimed(number: int, having: Sequence[Owner], hosts: int) -> Iterator[tuple[Owner, _AddressFault]]:
    """Yield a failure for each host that has the address of another host."""
    names = {owner.host.name for owner in having}
    if len(names) < 2 or len({mac_of(owner) for owner in having}) == 1:
        return  # the same MAC as well: a host listed twice, or private networks behind hypervisors
    if len(names) >= _MANY and 2 * len(names) > hosts:
        return
    for owner in having:
        others = [other.name for other in having if other.host is not owner.host]
        own = next((one for one in of_rails(owner.host)[owner.nic] if one.number != number), None)
        addition = f" (in addition to {own.text})" if own else ""
        message = f"address {dotted(number)}{addition} is also assigned to {', '.join(others[:3])}"
        yield owner, _AddressFault(Outcome.FAIL, message, dotted(number))


def _foreign_entries(owners: Owners) -> Mapping[tuple[int, str], list[tuple[Host, NeighbourEntry]]]:
    """Return neighbour entries that map an address of the fleet to a MAC other than its owner's."""
    found: dict[tuple[int, str], list[tuple[Host, NeighbourEntry]]] = defaultdict(list)
    macs: dict[int, set[str]] = {}
    for host in owners.hosts:
        rails = {nic.name for nic in host.interfaces}
        for entry in host.inet.entries.items:
            having = owners.by_address.get(entry.number)
            if not having or entry.silent or not entry.mac or entry.nic not in rails:
                continue
            mac = comparable(entry.mac)
            if entry.number not in macs:
                macs[entry.number] = {mac_of(owner) for owner in having}
            if mac not in macs[entry.number]:
                found[entry.number, mac].append((host, entry))
    return found


def _answered(
    owners: Owners, number: int, mac: str, entries: Sequence[tuple[Host, NeighbourEntry]]
) -> Iterator[tuple[Owner, _AddressFault]]:
    """Yield the faults that follow from an address answered with a MAC that is not its owner's."""
    owner = owners.by_address[number][0]
    address, observers = dotted(number), fold(host.name for host, _ in entries)
    lasting = [(host, entry) for host, entry in entries if entry.state == "PERMANENT"]
    for host, entry in lasting:
        message = f"permanent entry: {address} of {owner.name} has the MAC {entry.mac}, which is not its own"
        yield Owner(host, entry.nic), _AddressFault(Outcome.WARN, message, entry.mac)
    if len(lasting) == len(entries):
        return
    now = any(entry.state not in ("STALE", "PERMANENT") for _, entry in entries)  # confirmed, not only cached
    outcome = Outcome.FAIL if now else Outcome.WARN
    others = owners.by_mac.get(mac, ())
    at_home = [other for other in others if other.host is owner.host]
    if at_home:
        if not bonded(owner.host, owner.nic, at_home[0].nic):
            message = f"{address} is also answered by {at_home[0].nic}, according to {observers} (ARP flux)"
            yield owner, _AddressFault(Outcome.WARN, message, mac)
    elif others:
        message = f"{address} of {owner.name} is also answered by {others[0].name}, according to {observers}"
        yield owner, _AddressFault(outcome, message, mac)
        yield others[0], _AddressFault(outcome, message, mac)
    elif not owners.answers_for_others(mac):
        message = f"{address} is also answered by {mac}, which belongs to no known host, according to {observers}"
        yield owner, _AddressFault(outcome, message, mac)


class ArpFailed(Check):
    id = "net.arp.failed"
    what = "ARP requests without an answer"
    source = "ip -j -s neigh"
    rule = "none for one of these hosts within the last ten minutes"
    severity = Severity.WARN
    component = "nic"
    remedy = "check the link and the address of the host that does not answer"

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        owners = Owners(fleet.hosts)
        answers: Counter[str] = Counter()
        failed: dict[str, set[str]] = defaultdict(set)  # hosts that got no answer, by the end that did not answer
        missed: dict[str, set[str]] = defaultdict(set)  # ends that did not answer, by the end that got no answer
        for host, entry in _tried(owners):
            name = owners.by_address[entry.number][0].name
            if not entry.silent:
                answers[name] += 1
            elif entry.age_s <= _OLD_S:
                failed[name].add(host.name)
                missed[f"{host.name}/{entry.nic}"].add(name)
        silent = {name: hosts for name, hosts in failed.items() if len(hosts) > max(answers[name], 1)}
        for host in fleet.hosts:
            yield from self._look(host, silent, missed)

    def _look(self, host: Host, silent: Mapping[str, set[str]], missed: Mapping[str, set[str]]) -> Iterator[Result]:
        if host.inet.entries.missing:
            yield unseen(self, host, host.inet.entries)
            return
        if not host.interfaces:
            yield self.skip(host.name, "", ABSENT)
        for nic in host.interfaces:
            end = f"{host.name}/{nic.name}"
            hosts, partners = silent.get(end, ()), sorted(missed.get(end, set()) - silent.keys())
            if hosts:
                yield self.failure(host.name, nic.name, f"does not answer {fold(hosts)}", len(hosts), 0)
            elif partners:
                yield self.failure(host.name, nic.name, f"no answer from {', '.join(partners[:3])}", len(partners), 0)
            else:
                yield self.ok(host.name, nic.name)


def _tried(owners: Owners) -> Iterator[tuple[Host, NeighbourEntry]]:
    """Yield the neighbour entries of each host about other hosts of the fleet."""
    for host in owners.hosts:
        rails = {nic.name for nic in host.interfaces}
        for entry in host.inet.entries.items:
            having = owners.by_address.get(entry.number)
            if having and entry.nic in rails and having[0].host is not host:
                yield host, entry
