"""Names of the fabric's addresses. A site may have none; a single host without a name is a mistake."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from fablint.model.host_name import HostNames
from fablint.model.preflight_results import Result
from fablint.preflight.check import Check, Judge
from fablint.preflight.class_values import majority
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host

_SOURCE = "the host's own name service (getnameinfo, getaddrinfo)"
_HOSTNAME = "/proc/sys/kernel/hostname"


class NameAnswer(NamedTuple):
    """Answer of the name service about a NIC, or about the host itself."""

    host: str
    good: bool
    message: str  # missing or actual names and addresses
    value: str = ""


_Answers = Callable[[Host, HostNames], Iterator[tuple[str, NameAnswer]]]


def names(answers: _Answers, others: str) -> Judge:
    """Judge answers of the name service: of every host what most similar hosts have is required.

    Parameters
    ----------
    answers
        Returns each address or name that a host looked up, with the answer of its name service; none where this was
        not queried or did not answer in time. The names are those of all hosts.
    others
        Property of most hosts, for messages.
    """
    return Judge(partial(_judged_names, answers, others))


def _judged_names(answers: _Answers, others: str, check: Check, fleet: Fleet) -> Iterator[Result]:
    names_of_fleet = HostNames((host.name for host in fleet.hosts), complete=True)
    seen: dict[tuple[str, str], list[NameAnswer]] = defaultdict(list)
    for host in fleet.hosts:
        answers_of_host = list(answers(host, names_of_fleet))
        if not answers_of_host:
            yield check.skip(host.name, "", "the name service was not queried, or did not answer in time")
        for target, answer in answers_of_host:
            seen[host.kind, target].append(answer)
    for (_, target), like in seen.items():
        usual, count = majority([answer.good for answer in like])
        for answer in like:
            if answer.good:
                yield check.ok(answer.host, target, answer.message, answer.value)
            elif usual:
                yield check.failure(answer.host, target, f"{answer.message}; {count} others {others}")
            else:
                yield check.skip(answer.host, target, f"{answer.message}; the same on most others, or no others")


def _reverse(host: Host, fleet: HostNames) -> Iterator[tuple[str, NameAnswer]]:
    for nic, addresses in host.addresses_of_interfaces.items():
        for address in addresses[:1]:
            if address.text not in host.snapshot.names_of:
                continue
            name = host.snapshot.names_of[address.text]
            owner = fleet.owner(name or "")
            good = name is not None and owner in ("", host.name)
            message = f"{address.text} has the name {name}" if name else f"{address.text} has no name"
            yield nic, NameAnswer(host.name, good, message, name or "")


DNS_REVERSE = Check(
    id="net.dns.reverse",
    what="the name of every address on the fabric",
    source=_SOURCE,
    rule="present if most similar hosts have one, and not the name of another host",
    remedy="add the missing name to DNS or /etc/hosts",
    judge=names(_reverse, "have their own name"),
)


def _forward(host: Host, fleet: HostNames) -> Iterator[tuple[str, NameAnswer]]:
    addresses_of = host.snapshot.addresses_of
    for nic, addresses in host.addresses_of_interfaces.items():
        name = host.snapshot.names_of.get(addresses[0].text)
        if name and name in addresses_of:
            yield nic, _leads(host, name, addresses[0].text in addresses_of[name])
    hostname = host.read(_HOSTNAME) or host.name
    if hostname in addresses_of:
        yield "", _leads(host, hostname, bool(addresses_of[hostname]))


DNS_FORWARD = Check(
    id="net.dns.forward",
    what="the address of every name on the fabric, and of the host itself",
    source=_SOURCE,
    rule="the name of an address resolves to that address if it does on most similar hosts",
    remedy="correct the entry in DNS or /etc/hosts",
    judge=names(_forward, "resolve to their address"),
)


def _leads(host: Host, name: str, good: bool) -> NameAnswer:
    where = ", ".join(host.snapshot.addresses_of[name][:3]) or "no address"
    return NameAnswer(host.name, good, f"{name} resolves to {where}")
