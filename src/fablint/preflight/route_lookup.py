"""Route lookup of a host: its rules and routing tables, in the order in which the kernel uses them."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence

from fablint.snapshot.parsers.inet import Inet, Route, RoutingRule

_USUAL = (RoutingRule(0, "local"), RoutingRule(32766, "main"), RoutingRule(32767, "default"))
_NEXT_TABLE = "throw"


class RouteLookup:
    """Route lookup by addresses. Rules with marks or ports, and rules of unknown tables, are ignored."""

    def __init__(self, inet: Inet) -> None:
        self._rules = inet.rules.items or list(_USUAL)
        routes: dict[str, dict[int, dict[int, Route]]] = defaultdict(lambda: defaultdict(dict))
        ends = {0}
        for route in inet.routes.items:
            at = routes[route.table][route.prefix]
            earlier = at.get(route.first)
            if earlier is None or route.metric < earlier.metric:
                at[route.first] = route
            ends |= {route.first, route.last + 1}
        ends |= {
            end for rule in self._rules if rule.destination for end in (rule.destination[0], rule.destination[1] + 1)
        }
        self._tables = {table: sorted(by_prefix.items(), reverse=True) for table, by_prefix in routes.items()}
        self._ends = sorted(ends)

    def find_route(self, destination: int, source: int | None = None) -> Route | None:
        """Return the route to an address; `source` is the address of the host, None if not chosen yet."""
        for rule in self._rules:
            if _covers(rule.destination, destination) and _covers(rule.source, source):
                route = self._best(rule.table, destination)
                if route and route.kind != _NEXT_TABLE:
                    return route
        return None

    def sections(self, addresses: Sequence[int], inside: range) -> Iterator[range]:
        """Split a range of indices of sorted addresses so that all addresses of a section have the same route.

        Sections are ranges of indices, since a copy of all addresses for each host would be quadratic.
        """
        start = inside.start
        while start < inside.stop:
            after = bisect_left(self._ends, addresses[start] + 1)
            last = after == len(self._ends)
            stop = inside.stop if last else bisect_left(addresses, self._ends[after], start, inside.stop)
            yield range(start, stop)
            start = stop

    def _best(self, table: str, destination: int) -> Route | None:
        for prefix, routes in self._tables.get(table, ()):
            route = routes.get(destination >> (32 - prefix) << (32 - prefix))
            if route:
                return route
        return None


def _covers(span: tuple[int, int] | None, address: int | None) -> bool:
    return span is None or (address is not None and span[0] <= address <= span[1])
