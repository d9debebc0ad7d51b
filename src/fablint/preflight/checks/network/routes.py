"""Check that packets to the same rail of other hosts leave by that rail."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from fablint.model.names import fold
from fablint.model.preflight_results import Result, Severity
from fablint.preflight.address_owners import same_make
from fablint.preflight.check import Check, Judge
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.preflight.judges.outputs import unseen
from fablint.preflight.route_lookup import RouteLookup
from fablint.snapshot.parsers.inet import Address, Route

_Rail = tuple[list[int], dict[int, str]]  # sorted addresses of all hosts, and the host of each address


def _route_rails(check: Check, fleet: Fleet) -> Iterator[Result]:
    rails: dict[str, dict[int, str]] = defaultdict(dict)
    for host in fleet.hosts:
        for nic, addresses in host.addresses_of_interfaces.items():
            rails[nic].update((address.number, host.name) for address in addresses)
    sorted_rails = {nic: (sorted(owners), owners) for nic, owners in rails.items()}
    for host in fleet.hosts:
        yield from _look(check, host, sorted_rails)


def _look(check: Check, host: Host, rails: Mapping[str, _Rail]) -> Iterator[Result]:
    if host.inet.missing_tables:
        yield unseen(check, host, host.inet.missing_tables)
        return
    addresses_of_nic = host.addresses_of_interfaces
    if not addresses_of_nic or host.inet.divided:
        why = "it has virtual routers (VRF)" if addresses_of_nic else "no NIC of the fabric has an address"
        yield check.skip(host.name, "", why)
        return
    lookup = RouteLookup(host.inet)
    down = {nic.name for nic in host.interfaces if nic.state == "down"}
    for nic, addresses in addresses_of_nic.items():
        if nic in down:
            yield check.skip(host.name, nic, "the link is down")
        else:
            yield _judge(check, host, addresses[0], lookup, rails[nic])


def _judge(check: Check, host: Host, address: Address, lookup: RouteLookup, rail: _Rail) -> Result:
    numbers, owners = rail
    inside = range(bisect_left(numbers, address.first), bisect_right(numbers, address.last))
    partners = False
    astray: dict[tuple[bool, tuple[str, ...]], list[tuple[Route | None, set[str]]]] = defaultdict(list)
    for section in lookup.sections(numbers, inside):
        partner = next((numbers[at] for at in section if owners[numbers[at]] != host.name), None)
        if partner is None:
            continue
        partners = True
        route = lookup.find_route(partner, address.number)
        if route is None or not (route.is_local or address.nic in route.nics):
            names = {owners[numbers[at]] for at in section} - {host.name}
            astray[_same_network(host, address, route), route.nics if route else ()].append((route, names))
    if not partners:
        return check.skip(host.name, address.nic, "no other host's address is in its network")
    for (same, nics), routes in sorted(astray.items(), key=lambda pair: pair[0]):
        if not same:
            return check.failure(host.name, address.nic, _describe(nics, routes), ", ".join(nics), address.nic)
        if any(same_make(address.nic, nic) for nic in nics):
            message = f"leaves by {', '.join(nics)}: both are in {address.network}, and no rule separates them"
            return check.warning(host.name, address.nic, message, ", ".join(nics), address.nic)
    return check.ok(host.name, address.nic)


ROUTE_RAILS = Check(
    id="net.route.rails",
    what="the route to the other hosts' addresses on the same rail",
    source="ip -j route, ip -j rule, ip -j addr",
    rule="through that rail, if they are in its network",
    severity=Severity.FAIL,
    component="route",
    remedy="remove the route, or add a rule for each rail's own address",
    judge=Judge(_route_rails),
)


def _describe(nics: Sequence[str], routes: Sequence[tuple[Route | None, set[str]]]) -> str:
    """Describe wrong routes: `n[2-3] reached by mgmt0: route 10.0.0.2 via 10.9.0.2 dev mgmt0 and 1 more`."""
    hosts = _some(name for _, names in routes for name in names)
    if routes[0][0] is None:
        return f"no route to {hosts}"
    more = f" and {len(routes) - 1} more" if len(routes) > 1 else ""
    how = f"reached by {', '.join(nics)}" if nics else "not reached"
    return f"{hosts} {how}: route {routes[0][0]}{more}"


def _same_network(host: Host, address: Address, route: Route | None) -> bool:
    """Tell whether a route belongs to the same network on another rail."""
    if route is None:
        return False
    nics = {
        nic
        for nic, addresses in host.addresses_of_interfaces.items()
        for other in addresses
        if other.network == address.network
    }
    return route.prefix <= address.prefix and not route.gateway and set(route.nics) <= nics and bool(route.nics)


def _some(names: Iterable[str]) -> str:
    """Fold hosts; a long list becomes the first host and the number of others."""
    ordered: Sequence[str] = sorted(set(names))
    folded = fold(ordered)
    return folded if len(folded) <= 60 else f"{ordered[0]} and {len(ordered) - 1} more"
