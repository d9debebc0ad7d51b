"""IPv4 addresses of the fabric's NICs: present, in the right network, as the switch requests."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from fablint.model.names import plural
from fablint.model.preflight_results import Result, Severity
from fablint.preflight.address_owners import of_rails, unseen
from fablint.preflight.base import LEAST_OTHERS, Check, HostCheck, majority
from fablint.preflight.checks.network.links import ABSENT
from fablint.preflight.class_values import Agreement
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.snapshot import NicFact
from fablint.snapshot.parsers.inet import Address
from fablint.snapshot.parsers.slingshot_tlv import requested


class IpAssigned(Check):
    id = "net.ip.assigned"
    what = "the IPv4 address of every NIC of the fabric"
    source = "ip -j addr"
    rule = "present if most similar hosts have one"
    severity = Severity.FAIL
    component = "config"
    remedy = "set the address; check DHCP or the fabric manager"

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        seen: dict[tuple[str, ...], list[tuple[str, Sequence[Address]]]] = defaultdict(list)
        for host in fleet.hosts:
            if host.inet.addresses.missing:
                yield unseen(self, host, host.inet.addresses)
                continue
            if not host.interfaces:
                yield self.skip(host.name, "", ABSENT)
            found = of_rails(host)
            for nic in host.interfaces:
                seen[nic.name, *host.like(nic.name)].append((host.name, found.get(nic.name, ())))
        for (nic_name, *_), like in seen.items():
            agreed = Agreement.of([bool(addresses) for _, addresses in like])
            for name, addresses in like:
                if addresses:
                    yield self.ok(name, nic_name, value=addresses[0].text)
                elif agreed.usual:
                    message = f"no IPv4 address, {plural(agreed.count, 'other')} have one"
                    yield self.difference(agreed.is_clear, name, nic_name, message)
                else:
                    yield self.skip(name, nic_name, "no IPv4 address, the same as most others")


class IpPrefix(Check):
    id = "net.ip.prefix"
    what = "the network of every NIC of the fabric"
    source = "ip -j addr"
    rule = "the network of most similar hosts, or of at least two other hosts"
    severity = Severity.WARN
    component = "config"
    remedy = "set address and prefix length as on similar hosts"

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        seen: dict[tuple[str, ...], list[tuple[str, Address]]] = defaultdict(list)
        for host in fleet.hosts:
            found = of_rails(host)
            if not found:
                yield self.skip(host.name, "", host.inet.addresses.missing or "no NIC of the fabric has an address")
            for nic, addresses in found.items():
                seen[nic, *host.like(nic)].append((host.name, addresses[0]))
        for (nic, *_), like in seen.items():
            yield from self._compared(nic, like)

    def _compared(self, nic: str, like: Sequence[tuple[str, Address]]) -> Iterator[Result]:
        """Compare networks: several hosts, such as those of a rack, may have their own network; one host may not."""
        networks = [address.network for _, address in like]
        usual, count = majority(networks)
        counted = Counter(networks)
        for (host, address), network in zip(like, networks, strict=True):
            if usual is None:
                yield self.skip(host, nic, f"{network}; no majority to compare with")
            elif network == usual or counted[network] >= LEAST_OTHERS:
                yield self.ok(host, nic, value=network)
            else:
                message = f"{address.text} in {network}, {plural(count, 'other')} in {usual}"
                yield self.failure(host, nic, message, network, usual)


class IpTlv(HostCheck):
    id = "net.ip.tlv"
    what = "address and MTU of NICs on Slingshot"
    source = "LLDP (lldpcli, lldptool), ip -j addr"
    rule = "as requested in the switch's TLV"
    severity = Severity.WARN
    component = "config"
    remedy = "use the requested values, or correct the table of the fabric manager"
    absent = "no switch requests settings of a NIC"

    def look(self, host: Host) -> Iterable[Result]:
        nics = {nic.name: nic for nic in host.nics}
        for neighbour in host.neighbours:
            nic = nics.get(neighbour.port)
            if nic and neighbour.tlv:
                yield self._judge(host, nic, neighbour.tlv)

    def _judge(self, host: Host, nic: NicFact, tlv: str) -> Result:
        settings = requested(tlv)
        if settings is None:
            return self.error(host.name, nic.name, "the switch's TLV cannot be parsed")
        if not (settings.mtu and nic.mtu) and not (settings.address and nic.addresses):
            return self.skip(host.name, nic.name, "address and MTU of the NIC are unknown or not requested")
        wrong = []
        if settings.mtu and nic.mtu and nic.mtu != settings.mtu:
            wrong.append(f"MTU {nic.mtu}, the switch requests {settings.mtu}")
        if settings.address and nic.addresses and settings.address not in nic.addresses:
            wrong.append(f"address {', '.join(nic.addresses[:2])}, the switch requests {settings.address}")
        return self.failure(host.name, nic.name, "; ".join(wrong)) if wrong else self.ok(host.name, nic.name)
