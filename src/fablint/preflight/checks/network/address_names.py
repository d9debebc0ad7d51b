"""Names of the fabric's addresses. A site may have none; a single host without a name is a mistake."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from fablint.model.host_name import HostName, HostNames
from fablint.model.preflight_results import Result, Severity
from fablint.preflight.address_owners import of_rails
from fablint.preflight.base import Check, majority
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host

_HOSTNAME = "/proc/sys/kernel/hostname"


class NameAnswer(NamedTuple):
    """Answer of the name service about a NIC, or about the host itself."""

    host: str
    good: bool
    message: str  # missing or actual names and addresses
    value: str = ""


class NameCheck(Check):
    """Base of checks that require of every host what most similar hosts have in the name service."""

    source = "the host's own name service (getnameinfo, getaddrinfo)"
    severity = Severity.WARN
    component = "config"
    others: ClassVar[str]  # property of most hosts

    @abstractmethod
    def look(self, host: Host, fleet: HostNames) -> Iterator[tuple[str, NameAnswer]]:
        """Yield each address or name that the host looked up, with the answer of its name service.

        `fleet` are the names of all hosts. Nothing is yielded where the name service was not queried or did not answer
        in time.
        """

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        known = HostNames((host.name for host in fleet.hosts), complete=True)
        seen: dict[tuple[str, str], list[NameAnswer]] = defaultdict(list)
        for host in fleet.hosts:
            found = list(self.look(host, known))
            if not found:
                yield self.skip(host.name, "", "the name service was not queried, or did not answer in time")
            for target, answer in found:
                seen[host.kind, target].append(answer)
        for (_, target), like in seen.items():
            usual, count = majority([answer.good for answer in like])
            for answer in like:
                if answer.good:
                    yield self.ok(answer.host, target, answer.message, answer.value)
                elif usual:
                    yield self.failure(answer.host, target, f"{answer.message}; {count} others {self.others}")
                else:
                    yield self.skip(answer.host, target, f"{answer.message}; the same on most others, or no others")


class DnsReverse(NameCheck):
    id = "net.dns.reverse"
    what = "the name of every address on the fabric"
    rule = "present if most similar hosts have one, and not the name of another host"
    remedy = "add the missing name to DNS or /etc/hosts"
    others = "have their own name"

    def look(self, host: Host, fleet: HostNames) -> Iterator[tuple[str, NameAnswer]]:
        for nic, addresses in of_rails(host).items():
            for address in addresses[:1]:
                if address.text not in host.snapshot.names_of:
                    continue
                name = host.snapshot.names_of[address.text]
                owner = _host_of(name or "", fleet)
                good = name is not None and owner in ("", host.name)
                message = f"{address.text} has the name {name}" if name else f"{address.text} has no name"
                yield nic, NameAnswer(host.name, good, message, name or "")


class DnsForward(NameCheck):
    id = "net.dns.forward"
    what = "the address of every name on the fabric, and of the host itself"
    rule = "the name of an address resolves to that address if it does on most similar hosts"
    remedy = "correct the entry in DNS or /etc/hosts"
    others = "resolve to their address"

    def look(self, host: Host, fleet: HostNames) -> Iterator[tuple[str, NameAnswer]]:
        found = host.snapshot.addresses_of
        for nic, addresses in of_rails(host).items():
            name = host.snapshot.names_of.get(addresses[0].text)
            if name and name in found:
                yield nic, _leads(host, name, addresses[0].text in found[name])
        own = host.read(_HOSTNAME) or host.name
        if own in found:
            yield "", _leads(host, own, bool(found[own]))


def _leads(host: Host, name: str, good: bool) -> NameAnswer:
    where = ", ".join(host.snapshot.addresses_of[name][:3]) or "no address"
    return NameAnswer(host.name, good, f"{name} resolves to {where}")


def _host_of(name: str, fleet: HostNames) -> str:
    """Return the host that a name (`n3-hsn0`, `n3.site.org`) belongs to; '' if it resembles no host name."""
    label = HostName(name).short
    shorter = (label[:end] for end in range(len(label) - 1, 0, -1) if not label[end].isalnum())
    return next((host for form in (name, *shorter) if (host := fleet.find(form))), "")
