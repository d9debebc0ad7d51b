"""IPv4 addresses of the fabric's NICs: present, in the right network, as the switch requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from fablint.model.names import plural
from fablint.model.preflight_results import Result, Severity
from fablint.preflight.check import Check
from fablint.preflight.class_values import LEAST_OTHERS, Agreement, majority
from fablint.preflight.host import Host
from fablint.preflight.judges import among_peers, limit
from fablint.preflight.judges.outputs import NO_INTERFACE, unseen
from fablint.snapshot import NicFact
from fablint.snapshot.parsers.inet import Address
from fablint.snapshot.parsers.slingshot_tlv import requested


def _assigned(check: Check, host: Host) -> Mapping[str, Result | Sequence[Address]]:
    if host.inet.addresses.missing:
        return {"": unseen(check, host, host.inet.addresses)}
    result = host.addresses_of_interfaces
    return {nic.name: result.get(nic.name, ()) for nic in host.interfaces}


def _compared_assigned(check: Check, nic: str, like: Sequence[tuple[Host, Sequence[Address]]]) -> Iterator[Result]:
    agreed = Agreement.of([bool(addresses) for _, addresses in like])
    for host, addresses in like:
        if agreed.is_pair and agreed.is_divided:
            yield check.warning(host.name, nic, f"one of two hosts has an IPv4 address: {_owner(like)}")
        elif addresses:
            yield check.ok(host.name, nic, value=addresses[0].text)
        elif agreed.usual:
            message = f"no IPv4 address, {plural(agreed.count, 'other')} have one"
            yield check.difference(agreed.is_clear, host.name, nic, message)
        else:
            yield check.skip(host.name, nic, "no IPv4 address, the same as most others")


def _owner(like: Sequence[tuple[Host, Sequence[Address]]]) -> str:
    return next(host.name for host, addresses in like if addresses)


IP_ASSIGNED = Check(
    id="net.ip.assigned",
    what="the IPv4 address of every NIC of the fabric",
    source="ip -j addr",
    rule="present if most similar hosts have one, or the other of two",
    severity=Severity.FAIL,
    remedy="set the address; check DHCP or the fabric manager",
    judge=among_peers(_assigned, _compared_assigned, NO_INTERFACE),
)


def _compared_networks(check: Check, nic: str, like: Sequence[tuple[Host, Address]]) -> Iterator[Result]:
    """Compare networks: several hosts, such as those of a rack, may have their own network; one host may not."""
    networks = [address.network for _, address in like]
    usual, count = majority(networks)
    counted = Counter(networks)
    for (host, address), network in zip(like, networks, strict=True):
        if usual is None:
            yield check.skip(host.name, nic, f"{network}; no majority to compare with")
        elif network == usual or counted[network] >= LEAST_OTHERS:
            yield check.ok(host.name, nic, value=network)
        else:
            message = f"{address.text} in {network}, {plural(count, 'other')} in {usual}"
            yield check.failure(host.name, nic, message, network, usual)


IP_PREFIX = Check(
    id="net.ip.prefix",
    what="the network of every NIC of the fabric",
    source="ip -j addr",
    rule="the network of most similar hosts, or of at least two other hosts",
    remedy="set address and prefix length as on similar hosts",
    judge=among_peers(
        lambda _, host: {nic: addresses[0] for nic, addresses in host.addresses_of_interfaces.items()},
        _compared_networks,
        lambda host: host.inet.addresses.missing or "no NIC of the fabric has an address",
    ),
)


def _ip_tlv(check: Check, host: Host) -> Iterable[Result]:
    nics = {nic.name: nic for nic in host.nics}
    for neighbour in host.neighbours:
        nic = nics.get(neighbour.port)
        if nic and neighbour.tlv:
            yield _judge(check, host, nic, neighbour.tlv)


def _judge(check: Check, host: Host, nic: NicFact, tlv: str) -> Result:
    settings = requested(tlv)
    if settings is None:
        return check.error(host.name, nic.name, "the switch's TLV cannot be parsed")
    if not (settings.mtu and nic.mtu) and not (settings.address and nic.addresses):
        return check.skip(host.name, nic.name, "address and MTU of the NIC are unknown or not requested")
    wrong = []
    if settings.mtu and nic.mtu and nic.mtu != settings.mtu:
        wrong.append(f"MTU {nic.mtu}, the switch requests {settings.mtu}")
    if settings.address and nic.addresses and settings.address not in nic.addresses:
        wrong.append(f"address {', '.join(nic.addresses[:2])}, the switch requests {settings.address}")
    return check.failure(host.name, nic.name, "; ".join(wrong)) if wrong else check.ok(host.name, nic.name)


IP_TLV = Check(
    id="net.ip.tlv",
    what="address and MTU of NICs on Slingshot",
    source="LLDP (lldpcli, lldptool), ip -j addr",
    rule="as requested in the switch's TLV",
    remedy="use the requested values, or correct the table of the fabric manager",
    judge=limit(_ip_tlv, "no switch requests settings of a NIC"),
)
