"""Check of the management network from the host's side; the scheduler reaches the host over it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from fablint.model.preflight_results import Result
from fablint.preflight.check import Check, Judge
from fablint.preflight.class_values import Agreement
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.snapshot.parsers.inet import SILENT, Route, number_of
from fablint.snapshot.parsers.ping_output import is_answered

_COMMAND = "ping-gateway"  # of the collector, by the address of the gateway
_NO_ROUTE = "no default route"
_KNOWN = ("REACHABLE", "DELAY", "PROBE")  # states of a neighbour that has answered within about a minute


class _Gateway(NamedTuple):
    """Gateway of the default route of a host."""

    nic: str
    address: str
    answers: bool | None  # None: not visible
    why: str = ""  # reason why it is not visible


def _default_route(host: Host) -> Route | None:
    """Return the default route with the lowest metric."""
    routes = [route for route in host.inet.routes.items if not route.prefix and route.table == "main" and route.gateway]
    return min(routes, key=lambda route: route.metric, default=None)


def _gateway(host: Host, route: Route) -> _Gateway:
    """Return whether the gateway of a route answers: its ping, else the state of its neighbour entry."""
    nic, address = "".join(route.nics[:1]), route.gateway
    said = host.command(f"{_COMMAND}/{address}")
    if is_answered(said.text):
        return _Gateway(nic, address, True)
    number = number_of(address)
    states = {entry.state for entry in host.inet.entries.items if entry.number == number and entry.nic == nic}
    if not states.isdisjoint(_KNOWN):
        return _Gateway(nic, address, True)
    if is_answered(said.text) is False or not states.isdisjoint(SILENT):
        return _Gateway(nic, address, False)
    return _Gateway(nic, address, None, said.error or "ping printed no result")


def _management(check: Check, fleet: Fleet) -> Iterator[Result]:
    gateways: dict[str, _Gateway | None] = {}
    answers: dict[str, list[bool]] = defaultdict(list)
    for host in fleet.hosts:
        if host.inet.routes.missing:
            yield check.skip(host.name, "", host.inet.routes.missing)
            continue
        route = _default_route(host)
        gateway = gateways[host.name] = _gateway(host, route) if route else None
        if gateway is None or gateway.answers is not None:
            answers[host.kind].append(gateway is not None and gateway.answers is True)
    agreed = {kind: Agreement.of(of_kind) for kind, of_kind in answers.items()}
    for host in fleet.hosts:
        if host.name in gateways:
            yield _judged(check, host, gateways[host.name], agreed.get(host.kind, Agreement.of([])))


def _judged(check: Check, host: Host, gateway: _Gateway | None, agreed: Agreement) -> Result:
    target = gateway.nic if gateway else ""
    if gateway and gateway.answers:
        return check.ok(host.name, target, value=gateway.address)
    if gateway and gateway.answers is None:
        return check.skip(host.name, target, f"gateway {gateway.address}: {gateway.why}")
    message = f"gateway {gateway.address} does not answer" if gateway else _NO_ROUTE
    if agreed.usual is not True:
        return check.skip(host.name, target, f"{message}; the same on most others, or no others")
    message = f"{message}, {agreed.count} others reach theirs"
    return check.difference(agreed.is_clear, host.name, target, message, False, True)


MANAGEMENT_NETWORK = Check(
    id="net.management",
    what="whether the host reaches the gateway of its default route, mostly that of the management network",
    source="ping of the gateway; ip -j route, ip -j neigh",
    rule="it answers a ping or has answered ARP, if those of most similar hosts do",
    component="nic",
    remedy="check the management NIC, its cable and its switch port; the scheduler and logins need that network",
    judge=Judge(_management),
)
