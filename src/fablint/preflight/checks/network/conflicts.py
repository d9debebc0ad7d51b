"""Whose is an address? What hosts say of themselves, and what their neighbour tables say of others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from fablint.model.preflight_results import Outcome, Result, Severity
from fablint.preflight.address_owners import Owner, Owners, bonded, comparable, mac_of, of_rails, unseen
from fablint.preflight.base import Check
from fablint.preflight.checks.network.links import ABSENT
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.snapshot.parsers.inet import NeighbourEntry, dotted
from fablint.text.names import fold

_MANY = 3  # hosts that have the same address, and more than half of all: it is of a network that each has for itself
_OLD_S = 600  # what was asked in vain so long ago says nothing of now


class _Said(NamedTuple):
    """Something that is wrong with a NIC's address."""

    outcome: Outcome
    message: str
    value: str


class IpDuplicate(Check):
    id = "net.ip.duplicate"
    what = "who has an address of the fabric, and who answers for it"
    source = "ip -j addr, ip -j neigh"
    rule = "one host, with one MAC"
    severity = Severity.FAIL
    component = "config"
    remedy = "take the address from the host that should not have it; two MACs of one host: set arp_ignore=1"

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        owners = Owners(fleet.hosts)
        wrong: dict[str, dict[str, list[_Said]]] = defaultdict(lambda: defaultdict(list))
        for number, having in owners.by_address.items():
            for owner, said in _claimed(number, having, len(fleet.hosts)):
                wrong[owner.host.name][owner.nic].append(said)
        for (number, mac), hearing in _heard(owners).items():
            for owner, said in _answered(owners, number, mac, hearing):
                wrong[owner.host.name][owner.nic].append(said)
        for host in fleet.hosts:
            yield from self._told(host, wrong.get(host.name, {}))

    def _told(self, host: Host, wrong: Mapping[str, Sequence[_Said]]) -> Iterator[Result]:
        addresses = of_rails(host)
        if host.inet.addresses.missing:
            yield unseen(self, host, host.inet.addresses)
        elif not addresses:
            yield self.skipped(host.name, "", "no NIC of the fabric has an address")
        for nic in {**addresses, **wrong}:
            for one in wrong.get(nic, ()):
                yield Result(self.id, host.name, nic, one.outcome, one.message, one.value)
            if nic not in wrong:
                yield self.passed(host.name, nic)


def _claimed(number: int, having: Sequence[Owner], hosts: int) -> Iterator[tuple[Owner, _Said]]:
    """Several hosts say of themselves that they have an address."""
    names = {owner.host.name for owner in having}
    if len(names) < 2 or len({mac_of(owner) for owner in having}) == 1:
        return  # the same MAC as well: one NIC asked twice, or each machine's own network behind its hypervisor
    if len(names) >= _MANY and 2 * len(names) > hosts:
        return
    for owner in having:
        others = [other.name for other in having if other.host is not owner.host]
        own = next((one for one in of_rails(owner.host)[owner.nic] if one.number != number), None)
        besides = f" besides {own.text}" if own else ""
        message = f"{dotted(number)}{besides} is the address of {', '.join(others[:3])} too"
        yield owner, _Said(Outcome.FAIL, message, dotted(number))


def _heard(owners: Owners) -> Mapping[tuple[int, str], list[tuple[Host, NeighbourEntry]]]:
    """Who takes which MAC for an address of the fleet's that is not known to have it."""
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
    owners: Owners, number: int, mac: str, hearing: Sequence[tuple[Host, NeighbourEntry]]
) -> Iterator[tuple[Owner, _Said]]:
    """Somebody answers for an address with a MAC that is not its owner's."""
    owner = owners.by_address[number][0]
    address, who = dotted(number), fold(host.name for host, _ in hearing)
    lasting = [(host, entry) for host, entry in hearing if entry.state == "PERMANENT"]
    for host, entry in lasting:
        message = f"permanent entry: {address} of {owner.name} has the MAC {entry.mac}, which is not its own"
        yield Owner(host, entry.nic), _Said(Outcome.WARN, message, entry.mac)
    if len(lasting) == len(hearing):
        return
    now = any(entry.state not in ("STALE", "PERMANENT") for _, entry in hearing)  # confirmed, not only remembered
    outcome = Outcome.FAIL if now else Outcome.WARN
    others = owners.by_mac.get(mac, ())
    at_home = [other for other in others if other.host is owner.host]
    if at_home:
        if not bonded(owner.host, owner.nic, at_home[0].nic):
            message = f"{address} is answered by {at_home[0].nic} too, say {who} (ARP flux)"
            yield owner, _Said(Outcome.WARN, message, mac)
    elif others:
        message = f"{address} of {owner.name} is answered by {others[0].name} too, say {who}"
        yield owner, _Said(outcome, message, mac)
        yield others[0], _Said(outcome, message, mac)
    elif not owners.answers_for_others(mac):
        message = f"{address} is answered by {mac} too, which is no host's here, say {who}"
        yield owner, _Said(outcome, message, mac)


class ArpFailed(Check):
    id = "net.arp.failed"
    what = "hosts that were asked for by ARP in vain"
    source = "ip -j -s neigh"
    rule = "none of these hosts, within the last ten minutes"
    severity = Severity.WARN
    component = "nic"
    remedy = "look at the link and the address of the host that does not answer"

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        owners = Owners(fleet.hosts)
        heard: Counter[str] = Counter()
        asking: dict[str, set[str]] = defaultdict(set)  # in vain, by the end that does not answer
        missed: dict[str, set[str]] = defaultdict(set)  # the other way round
        for host, entry in _tried(owners):
            name = owners.by_address[entry.number][0].name
            if not entry.silent:
                heard[name] += 1
            elif entry.age_s <= _OLD_S:
                asking[name].add(host.name)
                missed[f"{host.name}/{entry.nic}"].add(name)
        mute = {name: who for name, who in asking.items() if len(who) > max(heard[name], 1)}
        for host in fleet.hosts:
            yield from self._look(host, mute, missed)

    def _look(self, host: Host, mute: Mapping[str, set[str]], missed: Mapping[str, set[str]]) -> Iterator[Result]:
        if host.inet.entries.missing:
            yield unseen(self, host, host.inet.entries)
            return
        if not host.interfaces:
            yield self.skipped(host.name, "", ABSENT)
        for nic in host.interfaces:
            end = f"{host.name}/{nic.name}"
            who, partners = mute.get(end, ()), sorted(missed.get(end, set()) - mute.keys())
            if who:
                yield self.wrong(host.name, nic.name, f"does not answer {fold(who)}", len(who), 0)
            elif partners:
                yield self.wrong(host.name, nic.name, f"no answer from {', '.join(partners[:3])}", len(partners), 0)
            else:
                yield self.passed(host.name, nic.name)


def _tried(owners: Owners) -> Iterator[tuple[Host, NeighbourEntry]]:
    """What hosts found out about other hosts of the fleet."""
    for host in owners.hosts:
        rails = {nic.name for nic in host.interfaces}
        for entry in host.inet.entries.items:
            having = owners.by_address.get(entry.number)
            if having and entry.nic in rails and having[0].host is not host:
                yield host, entry
