"""Checks of Slingshot's algorithmic MAC addresses (AMA), which contain the switch port of a NIC."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from fablint.model.host_name import NicRef
from fablint.model.preflight_results import Result, Severity
from fablint.preflight.check import Check, Judge
from fablint.preflight.class_values import Agreement
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import NET, Host
from fablint.preflight.judges import limit
from fablint.snapshot import NicFact
from fablint.snapshot.parsers.ama import decode

_SWITCH = "fe"  # second octet of addresses of switch ports
_NOT_SLINGSHOT = "no NIC on Slingshot"
_SOURCE = f"{NET}/hsn*/address"


def _nics(host: Host) -> list[NicFact]:
    """Return the NICs that may be on Slingshot."""
    return [nic for nic in host.interfaces if nic.mac and (nic.kind == "cxi" or nic.name.startswith("hsn"))]


def _assigned(mac: str) -> bool:
    """Tell whether a MAC is an algorithmic address of a host."""
    return decode(mac) is not None and mac.split(":")[1] != _SWITCH


def _ama_valid(check: Check, fleet: Fleet) -> Iterator[Result]:
    seen: dict[tuple[str, ...], list[bool]] = defaultdict(list)
    for host in fleet.hosts:
        for nic in _nics(host):
            seen[nic.name, *host.like(nic.name)].append(_assigned(nic.mac))
    usual = {key: Agreement.of(like) for key, like in seen.items()}
    for host in fleet.hosts:
        nics = _nics(host)
        if not nics:
            yield check.skip(host.name, "", _NOT_SLINGSHOT)
        for nic in nics:
            agreed = usual[nic.name, *host.like(nic.name)]
            if _assigned(nic.mac):
                yield check.ok(host.name, nic.name, value=nic.mac)
            elif nic.kind == "cxi" or agreed.usual:
                more = f", {agreed.count} others have one" if agreed.usual else ""
                message = f"{nic.mac} is {'that of a switch' if decode(nic.mac) else 'not an algorithmic MAC'}{more}"
                yield check.difference(nic.kind == "cxi" or agreed.is_clear, host.name, nic.name, message, nic.mac)
            else:
                yield check.skip(host.name, nic.name, _NOT_SLINGSHOT)


AMA_VALID = Check(
    id="ss.ama.valid",
    what="the algorithmic MAC of every NIC on Slingshot",
    source=_SOURCE,
    rule="present: 02:00:00:0, then group, switch and port",
    severity=Severity.FAIL,
    remedy="let the fabric manager assign it (slingshot-network-config), then bring the NIC up again",
    judge=Judge(_ama_valid),
)


def _ama_match(check: Check, host: Host) -> Iterable[Result]:
    nics = {nic.name: nic for nic in _nics(host)}
    for neighbour in host.neighbours:
        nic = nics.get(neighbour.port)
        position, port = decode(nic.mac) if nic else None, decode(neighbour.address)
        if not nic or position is None or port is None:
            continue
        if position == port:
            yield check.ok(host.name, nic.name, value=nic.mac)
        else:
            there = f"{neighbour.name} port {neighbour.its_port}"
            message = f"{nic.mac} is connected to {there}, whose MAC is {neighbour.address}"
            yield check.failure(host.name, nic.name, message, nic.mac, neighbour.address)


AMA_MATCH = Check(
    id="ss.ama.match",
    what="the MAC of every NIC and that of the switch port it is connected to",
    source=f"{_SOURCE}, LLDP",
    rule="both contain the same group, switch and port",
    severity=Severity.FAIL,
    component="cable",
    remedy="check whether the cable is in the right port; else let the fabric manager assign the MAC again",
    judge=limit(_ama_match, "no NIC on Slingshot has a neighbour with an algorithmic MAC"),
)


def _ama_unique(check: Check, fleet: Fleet) -> Iterator[Result]:
    having = defaultdict(list)
    for host in fleet.hosts:
        for nic in _nics(host):
            having[decode(nic.mac)].append((host.name, nic))
    without = dict.fromkeys(host.name for host in fleet.hosts)
    for place, ends in having.items():
        hosts = {name for name, _ in ends}
        for name, nic in ends if place else ():
            without.pop(name, None)
            others = [NicRef.of(other, one.name) for other, one in ends if other != name]
            if len(hosts) > 1:
                message = f"{nic.mac} is also the MAC of {', '.join(others[:3])}"
                yield check.failure(name, nic.name, message, nic.mac)
            else:
                yield check.ok(name, nic.name, value=nic.mac)
    for name in without:
        yield check.skip(name, "", _NOT_SLINGSHOT)


AMA_UNIQUE = Check(
    id="ss.ama.unique",
    what="the algorithmic MACs of all hosts",
    source=_SOURCE,
    rule="unique",
    severity=Severity.FAIL,
    remedy="let the fabric manager assign them again",
    judge=Judge(_ama_unique),
)
