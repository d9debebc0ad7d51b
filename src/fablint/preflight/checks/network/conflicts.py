"""Owners of addresses: the addresses of each host, and the neighbour tables of the other hosts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from fablint.model.host_name import NicRef
from fablint.model.names import fold
from fablint.model.preflight_results import Result, Severity
from fablint.preflight.address_conflicts import AddressFault, address_faults
from fablint.preflight.address_owners import Owners, entries_of, of_rails_in_use
from fablint.preflight.check import Check, Judge
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.preflight.judges.outputs import NO_INTERFACE, unseen
from fablint.snapshot.parsers.inet import NeighbourEntry

_OLD_S = 600  # failed requests that are older are ignored


def _ip_duplicate(check: Check, fleet: Fleet) -> Iterator[Result]:
    wrong = address_faults(fleet)
    for host in fleet.hosts:
        yield from _results(check, host, wrong.get(host.name, {}))


def _results(check: Check, host: Host, wrong: Mapping[str, Sequence[AddressFault]]) -> Iterator[Result]:
    addresses = of_rails_in_use(host)
    if host.inet.addresses.missing:
        yield unseen(check, host, host.inet.addresses)
    elif not addresses:
        yield check.skip(host.name, "", "no NIC of the fabric has an address")
    for nic in {**addresses, **wrong}:
        for fault in wrong.get(nic, ()):
            yield Result(check.id, host.name, nic, fault.outcome, fault.message, fault.value)
        if nic not in wrong:
            yield check.ok(host.name, nic)


IP_DUPLICATE = Check(
    id="net.ip.duplicate",
    what="the owner of every address of the fabric, and the MAC that answers for it",
    source="ip -j addr, ip -j neigh",
    rule="one owner, with one MAC",
    severity=Severity.FAIL,
    remedy="remove the address from the wrong host; if two NICs of one host answer, set arp_ignore=1",
    judge=Judge(_ip_duplicate),
)


def _arp_failed(check: Check, fleet: Fleet) -> Iterator[Result]:
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
            missed[NicRef.of(host.name, entry.nic)].add(name)
    silent = {name: hosts for name, hosts in failed.items() if len(hosts) > max(answers[name], 1)}
    for host in fleet.hosts:
        yield from _look(check, host, silent, missed)


def _look(check: Check, host: Host, silent: Mapping[str, set[str]], missed: Mapping[str, set[str]]) -> Iterator[Result]:
    if host.inet.entries.missing:
        yield unseen(check, host, host.inet.entries)
        return
    if not host.interfaces:
        yield check.skip(host.name, "", NO_INTERFACE)
    for nic in host.interfaces:
        end = NicRef.of(host.name, nic.name)
        hosts, partners = silent.get(end, ()), sorted(missed.get(end, set()) - silent.keys())
        if hosts:
            yield check.failure(host.name, nic.name, f"does not answer {fold(hosts)}", len(hosts), 0)
        elif partners:
            yield check.failure(host.name, nic.name, f"no answer from {', '.join(partners[:3])}", len(partners), 0)
        else:
            yield check.ok(host.name, nic.name)


ARP_FAILED = Check(
    id="net.arp.failed",
    what="ARP requests, and those of IPv6, without an answer",
    source="ip -j -s neigh",
    rule="none for one of these hosts within the last ten minutes",
    component="nic",
    remedy="check the link and the address of the host that does not answer",
    judge=Judge(_arp_failed),
)


def _tried(owners: Owners) -> Iterator[tuple[Host, NeighbourEntry]]:
    """Yield the neighbour entries of each host about other hosts of the fleet."""
    for host in owners.hosts:
        rails = {nic.name for nic in host.interfaces}
        for entry in entries_of(host):
            having = owners.by_address.get(entry.number)
            if having and entry.nic in rails and having[0].host is not host:
                yield host, entry
