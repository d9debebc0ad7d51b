"""IPv4 addresses of the fabric's NICs: there, in the right network, as the switch asks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

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
from fablint.text.names import plural


class IpAssigned(Check):
    id = "net.ip.assigned"
    what = "the IPv4 address of every NIC of the fabric"
    source = "ip -j addr"
    rule = "there is one where most like hosts have one"
    severity = Severity.FAIL
    component = "config"
    remedy = "set the address; look at DHCP or at the fabric manager"

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        seen: dict[tuple[str, ...], list[tuple[str, Sequence[Address]]]] = defaultdict(list)
        for host in fleet.hosts:
            if host.inet.addresses.missing:
                yield unseen(self, host, host.inet.addresses)
                continue
            if not host.interfaces:
                yield self.skipped(host.name, "", ABSENT)
            found = of_rails(host)
            for nic in host.interfaces:
                seen[nic.name, *host.like(nic.name)].append((host.name, found.get(nic.name, ())))
        for (nic_name, *_), like in seen.items():
            agreed = Agreement.of([bool(addresses) for _, addresses in like])
            for name, addresses in like:
                if addresses:
                    yield self.passed(name, nic_name, value=addresses[0].text)
                elif agreed.usual:
                    message = f"no IPv4 address, {plural(agreed.count, 'other')} have one"
                    yield self.differs(agreed.is_clear, name, nic_name, message)
                else:
                    yield self.skipped(name, nic_name, "no IPv4 address, and most others have none either")


class IpPrefix(Check):
    id = "net.ip.prefix"
    what = "the network of every NIC of the fabric"
    source = "ip -j addr"
    rule = "that of most like hosts, or of others at least"
    severity = Severity.WARN
    component = "config"
    remedy = "set address and prefix length as on the others"

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        seen: dict[tuple[str, ...], list[tuple[str, Address]]] = defaultdict(list)
        for host in fleet.hosts:
            found = of_rails(host)
            if not found:
                yield self.skipped(host.name, "", host.inet.addresses.missing or "no NIC of the fabric has an address")
            for nic, addresses in found.items():
                seen[nic, *host.like(nic)].append((host.name, addresses[0]))
        for (nic, *_), like in seen.items():
            yield from self._compared(nic, like)

    def _compared(self, nic: str, like: Sequence[tuple[str, Address]]) -> Iterator[Result]:
        """Hosts of another rack may have another network; one host alone has not."""
        networks = [address.network for _, address in like]
        usual, count = majority(networks)
        counted = Counter(networks)
        for (host, address), network in zip(like, networks, strict=True):
            if usual is None:
                yield self.skipped(host, nic, f"{network}; no majority to compare with")
            elif network == usual or counted[network] >= LEAST_OTHERS:
                yield self.passed(host, nic, value=network)
            else:
                message = f"{address.text} in {network}, {plural(count, 'other')} in {usual}"
                yield self.wrong(host, nic, message, network, usual)


class IpTlv(HostCheck):
    id = "net.ip.tlv"
    what = "address and MTU of NICs on Slingshot"
    source = "LLDP (lldpcli, lldptool), ip -j addr"
    rule = "as the switch asks for by its TLV"
    severity = Severity.WARN
    component = "config"
    remedy = "set it as the switch tells, or mend the fabric manager's table"
    absent = "no switch tells how a NIC should be set"

    def look(self, host: Host) -> Iterable[Result]:
        nics = {nic.name: nic for nic in host.nics}
        for heard in host.neighbours:
            nic = nics.get(heard.port)
            if nic and heard.tlv:
                yield self._judge(host, nic, heard.tlv)

    def _judge(self, host: Host, nic: NicFact, tlv: str) -> Result:
        asked = requested(tlv)
        if asked is None:
            return self.unclear(host.name, nic.name, "the switch's TLV cannot be understood")
        if not (asked.mtu and nic.mtu) and not (asked.address and nic.addresses):
            return self.skipped(host.name, nic.name, "address and MTU of the NIC are not known, or not asked for")
        wrong = []
        if asked.mtu and nic.mtu and nic.mtu != asked.mtu:
            wrong.append(f"MTU {nic.mtu}, the switch asks for {asked.mtu}")
        if asked.address and nic.addresses and asked.address not in nic.addresses:
            wrong.append(f"address {', '.join(nic.addresses[:2])}, the switch asks for {asked.address}")
        return self.wrong(host.name, nic.name, "; ".join(wrong)) if wrong else self.passed(host.name, nic.name)
