"""Directed links that a message crosses on its path between two switches, as far as the topology's routing is known.

Planning (which pairs share links), analysis (whose messages cross a link) and simulation use this module. Cables
between a host and its switch are not included: they belong to the host.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fablint.model import ComponentRef, Routing, Topology
from fablint.model.arrays import Codes, Floats, Ints, Mask, Values
from fablint.model.figures.distinct_codes import are_few, ascending_order, distinct_codes

# A dragonfly's minimal paths cross at most one cable between groups, and any number inside groups: two cables between
# groups cost more than one plus two hops on either side. Fat trees have no cables between two declared groups.
BETWEEN_GROUPS = 5
UNREACHED = np.iinfo(np.int8).max
QUERIES = 1 << 14  # next hops that are looked up at a time
MAX_HOPS = 16  # of a forwarding table: a longer path is a routing loop


@dataclass(frozen=True)
class Routes:
    """Directed links between switches, and the path of every message over them.

    `ends` (L, 2) holds the switch codes of each link; link 2 c is cable c from its first end to its second, link 2 c +
    1 the opposite direction. Parallel cables between the same two switches are one.
    """

    switches: tuple[str, ...]
    ends: Codes
    routing: Routing
    hosts: tuple[str, ...]  # in the order of the topology: `dst_host` is an index into it
    costs: Ints  # (L,) of crossing each link: the path of least cost is taken
    speeds: Floats  # (L,) bytes/s as declared, of the slowest of parallel cables; NaN: not declared
    _leaves: Codes = field(repr=False)  # switches that have hosts

    @property
    def certain(self) -> bool:
        """True if one path is known for every message (where the path is known at all)."""
        return self.routing.kind != "adaptive"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Name of each directed link: `s0>s1`."""
        return tuple(f"{self.switches[a]}>{self.switches[b]}" for a, b in self.ends.tolist())

    @cached_property
    def numbers(self) -> Mapping[tuple[str, str], int]:
        """Number of each directed link by the names of its switches."""
        return {(self.switches[a], self.switches[b]): link for link, (a, b) in enumerate(self.ends.tolist())}

    def are_among(self, directions: Iterable[tuple[str, str]]) -> Mask:
        """(L,) which links are among those with these names of switches."""
        result = np.zeros(len(self.ends), dtype=bool)
        result[[self.numbers[ends] for ends in directions if ends in self.numbers]] = True
        return result

    def codes(self, switches: Sequence[str]) -> Codes:
        """(k,) codes of switches by name, -1 for switches that are not in the topology."""
        return codes_of(switches, {name: code for code, name in enumerate(self.switches)})

    def component(self, link: int) -> ComponentRef:
        """A directed link as findings name it."""
        return ComponentRef.of("link", *(self.switches[end] for end in self.ends[link].tolist()))

    def cable_component(self, link: int) -> ComponentRef:
        """The cable of a link as findings name it."""
        return ComponentRef.of("cable", *(self.switches[end] for end in self.ends[link - link % 2].tolist()))

    def hops(self, src_switch: Codes, dst_switch: Codes, dst_host: Codes) -> Codes:
        """(k, H) links in the order of the path, -1 after its end; all -1 on one switch or where the path is unknown.

        Parameters
        ----------
        src_switch, dst_switch
            (k,) switch of each sender and receiver, -1: unknown.
        dst_host
            (k,) position of the receiving host in `hosts`; read for `d-mod-k` and `tables` only.
        """
        src, dst, host = (np.asarray(values, dtype=np.int32).ravel() for values in (src_switch, dst_switch, dst_host))
        receivers = (len(self.switches) + 1) * (len(self.hosts) + 1)
        if not are_few(src.size, receivers):
            order = ascending_order(dst + 1)  # messages to one switch look up the same part of the table of distances
            ordered = self._hops(src[order], dst[order], host[order])
            hops = np.empty_like(ordered)
            hops[order] = ordered
            return hops
        # Many messages: each different path is looked up once.
        receiver = distinct_codes((dst + 1).astype(np.int64) * (len(self.hosts) + 1) + host + 1)
        path = distinct_codes((src + 1).astype(np.int64) * receiver.keys.size + receiver.number)
        example = path.positions
        return self._hops(src[example], dst[example], host[example])[path.number]

    def _hops(self, src: Codes, dst: Codes, host: Codes) -> Codes:
        """Return `hops` of messages, each looked up by itself."""
        columns: list[Codes] = []
        current = np.where(dst < 0, -1, src)
        unknown = (current < 0) | (self.routing.kind == "adaptive")
        for _ in range(self._longest):
            moving = np.flatnonzero((current != dst) & ~unknown)
            if not moving.size:
                break
            link = np.full(src.size, -1, dtype=np.int32)
            for first in range(0, moving.size, QUERIES):
                batch = moving[first : first + QUERIES]
                link[batch] = self._next(current[batch], dst[batch], host[batch])
            has_link = link >= 0
            unknown[moving] |= ~has_link[moving]
            current = np.where(has_link, self.ends[link, 1] if len(self.ends) else current, current)
            columns.append(link)
        unknown |= current != dst
        hops = np.stack(columns, axis=1) if columns else np.full((src.size, 0), -1, dtype=np.int32)
        hops[unknown] = -1
        return hops

    def distances(self, switches: Codes) -> Ints:
        """(k, k) links on a shortest path between each two of k switches with hosts; -1 where there is none."""
        links = self._distance[switches][:, self._row[switches]].T
        return np.where(links == UNREACHED, np.int8(-1), links)

    def path_costs(self, src_switch: Codes, dst_switch: Codes) -> Ints:
        """(k,) cost of a shortest path of each message, as `distances`; -1 where a switch is unknown as well."""
        row = self._row[dst_switch]
        cost = self._distance[src_switch, row].astype(np.int64)
        return np.where((src_switch < 0) | (dst_switch < 0) | (row < 0) | (cost == UNREACHED), -1, cost)

    def are_on_shortest(self, links: Codes, src_switch: int, dst_switch: Codes) -> Mask:
        """(l, k) whether a shortest path from a switch with hosts to each of k others crosses each of l links."""
        before, behind = self.ends[links].T
        row = self._row[dst_switch]
        cost = self._distance[before, self._row[src_switch]].astype(np.int64) + self.costs[links]
        return np.asarray(cost[:, None] + self._distance[behind][:, row] == self._distance[src_switch, row])

    def slowest_cables(self, switches: Codes) -> Floats:
        """(k, k) bytes/s of the slowest cable that a message between each two of k switches with hosts may cross.

        NaN where the speed of one of these cables is not declared. Where messages may leave the shortest paths, any
        cable may be crossed.
        """
        if self.routing.kind in ("tables", "adaptive") or np.isnan(self.speeds).all():
            return np.full((switches.size, switches.size), self.speeds.min(initial=np.inf))
        speeds = np.empty((switches.size, switches.size))
        start, end = self.ends[:, 0], self.ends[:, 1]
        for column, row in enumerate(self._row[switches].tolist()):
            distance = self._distance[:, row].astype(np.int64)
            onward = (distance[start] - distance[end] == self.costs) & (distance[start] < UNREACHED)
            slowest = np.full(len(self.switches), np.inf)
            for far in np.unique(distance[start[onward]]).tolist():
                link = np.flatnonzero(onward & (distance[start] == far))
                np.minimum.at(slowest, start[link], np.minimum(self.speeds[link], slowest[end[link]]))
            speeds[:, column] = slowest[switches]
        return speeds

    def exposure(self, src_switch: Codes, dst_switch: Codes) -> tuple[Codes, Codes, Values]:
        """Flat: query, link, and the probability that a message of the query crosses the link.

        Shortest paths are equally likely, times the share of messages that take a shortest path (`minimal_share`).
        Messages on detours are spread so thinly that they belong to the background.
        """
        src, dst = (np.asarray(values, dtype=np.int64).ravel() for values in (src_switch, dst_switch))
        between = np.flatnonzero((src != dst) & (src >= 0) & (dst >= 0))
        size = max(1, len(self.switches))
        pairs, which = np.unique(src[between] * size + dst[between], return_inverse=True)
        pair, link, share = self._exposure_of_pairs((pairs // size).astype(np.int32), (pairs % size).astype(np.int32))
        # Entries of a pair of switches are adjacent: each query takes those of its pair.
        count = np.bincount(pair, minlength=pairs.size)
        width, first = count[which], (np.cumsum(count) - count)[which]
        query = np.repeat(between, width)
        at = np.repeat(first - (np.cumsum(width) - width), width) + np.arange(query.size)
        return query.astype(np.int32), link[at], share[at]

    def _exposure_of_pairs(self, src: Codes, dst: Codes) -> tuple[Codes, Codes, Values]:
        """`exposure` of different pairs of different switches, in the order of the pairs."""
        share = np.float32(self.routing.minimal_share if self.routing.kind == "adaptive" else 1.0)
        query: Codes = np.arange(src.size, dtype=np.int32)
        at, weight = src, np.full(query.size, share, dtype=np.float32)
        entries: list[tuple[Codes, Codes, Values]] = []
        while query.size:
            on_path = self._shortest(at, dst[query])
            width = np.count_nonzero(on_path, axis=1)
            row, column = np.nonzero(on_path)
            link = self._out[at[row], column]
            query, weight, at = query[row], weight[row] / width[row].astype(np.float32), self.ends[link, 1]
            entries.append((query, link, weight))
            going = at != dst[query]
            query, weight, at = query[going], weight[going], at[going]
            query, at, weight = _joined(query, at, weight, len(self.switches))
        if not entries:
            return np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.float32)
        queries, links, weights = (np.concatenate(parts) for parts in zip(*entries, strict=True))
        return _joined(queries, links, weights, len(self.ends))

    # ------------------------------------------------------------------------------------------------ next hops

    def _next(self, at: Codes, dst: Codes, host: Codes) -> Codes:
        """(k,) link that each message takes from its switch, -1 if unknown."""
        if self.routing.kind == "tables":
            return np.where(host >= 0, self._table[at, host], -1)
        on_path = self._shortest(at, dst)
        width = np.count_nonzero(on_path, axis=1)
        place = np.cumsum(width) - width  # of the first link of each message among all links on a path
        is_known = width == 1
        if self.routing.kind == "d-mod-k":
            several = np.flatnonzero((width > 1) & (host >= 0))
            place[several] += host[several] // self._divisor[at[several]] % width[several]
            is_known[several] = True
        link = np.full(at.size, -1, dtype=np.int32)
        column = np.flatnonzero(on_path)[place[is_known]] % on_path.shape[1]
        link[is_known] = self._out[at[is_known], column]
        return link

    def _shortest(self, at: Codes, dst: Codes) -> Mask:
        """(k, degree) whether each of the switch's links lies on a shortest path to the destination."""
        row = self._row[dst]
        far = self._distance[at, row]
        far[(row < 0) | (far == UNREACHED)] = -1  # no path: no link leads nearer
        # Positions in the flat table: numpy looks these up in a third of the time of pairs of indices.
        place = self._beyond[at] + (row.astype(np.int64) * self._distance_to.shape[1])[:, None]
        return np.asarray(self._distance_to.ravel().take(place) == far[:, None] - self._cost[at])

    @cached_property
    def _cost(self) -> Ints:
        """(S, degree) cost of each link of `_out`."""
        return np.where(self._out >= 0, self.costs[self._out] if len(self.costs) else 1, 1).astype(np.int8)

    @cached_property
    def _beyond(self) -> Codes:
        """(S, degree) switch at the other end of each link of `_out`; an unreachable switch after the last link."""
        return np.where(self._out >= 0, self.ends[self._out, 1] if len(self.ends) else 0, len(self.switches))

    @cached_property
    def _distance_to(self) -> Ints:
        """(switches with hosts, S + 1) `_distance` by destination."""
        return np.ascontiguousarray(self._distance.T)

    @cached_property
    def _out(self) -> Codes:
        """(S, degree) links that leave each switch, in the order of the cables, -1 after the last link."""
        start = self.ends[:, 0]
        # Cables in order, whichever end the switch is: both directions of a cable sort by the cable's number.
        order = np.lexsort((np.arange(start.size) // 2, start))
        degree = np.bincount(start, minlength=len(self.switches))
        out = np.full((len(self.switches), max(1, int(degree.max(initial=0)))), -1, dtype=np.int32)
        first = np.cumsum(degree) - degree
        out[start[order], np.arange(start.size) - first[start[order]]] = order
        return out

    @cached_property
    def _row(self) -> Codes:
        """(S,) column of each switch in the table of distances, -1 for those without hosts."""
        row = np.full(len(self.switches), -1, dtype=np.int32)
        row[self._leaves] = np.arange(self._leaves.size)
        return row

    @cached_property
    def _distance(self) -> Ints:
        """(S + 1, switches with hosts) cost of the path to each, UNREACHED where there is none, as in the last row.

        Breadth-first, to all destinations at once: each has one bit in the set of those that a switch reaches at a
        cost.
        """
        size, leaves = len(self.switches), self._leaves.size
        distance = np.full((size + 1, leaves), UNREACHED, dtype=np.int8)
        reached = np.zeros((size + 1, -(-leaves // 8)), dtype=np.uint8)  # at the cost that is looked at
        number = np.arange(leaves)
        reached[self._leaves, number >> 3] = 1 << (number & 7)
        open_ = ~reached
        before = np.zeros((int(self.costs.max(initial=1)), *reached.shape), dtype=np.uint8)  # at the costs before it
        for cost in range(UNREACHED):
            row = np.flatnonzero(reached.any(axis=1))
            is_reached = np.unpackbits(reached[row], axis=1, count=leaves, bitorder="little").view(bool)
            distance[row] = np.where(is_reached, np.int8(cost), distance[row])
            before = np.concatenate([reached[None], before[:-1]])
            if not before.any():
                break
            reached = np.zeros_like(reached)
            for column in range(self._out.shape[1]):
                reached[:-1] |= before[self._cost[:, column] - 1, self._beyond[:, column]]
            reached &= open_
            open_ &= ~reached
        return distance

    @cached_property
    def _longest(self) -> int:
        if self.routing.kind == "tables":
            return MAX_HOPS
        distance = self._distance[self._leaves]
        return int(distance[distance != UNREACHED].max(initial=0))

    @cached_property
    def _divisor(self) -> Codes:
        """(S,) divisor of d-mod-k: number of consecutive hosts that share an up-link of the switch.

        The up-link at level l is number d / (w0 w1 .. of the levels below) modulo its own count (Zahavi 2012).
        """
        level = self._distance[:-1].min(axis=1, initial=UNREACHED)
        divisor = np.ones(len(self.switches), dtype=np.int32)
        below = 1
        for height in range(int(level[level != UNREACHED].max(initial=0)) + 1):
            switches = np.flatnonzero(level == height)
            divisor[switches] = below
            out = self._out[switches]
            up = (out >= 0) & (level[self.ends[out, 1]] == height + 1)
            below *= max(1, int(up.sum(axis=1).max(initial=0)))
        return divisor

    @cached_property
    def _table(self) -> Codes:
        """(S, hosts) link on which a switch sends a host's messages, -1 where the tables have no entry."""
        table = np.full((len(self.switches), len(self.hosts)), -1, dtype=np.int32)
        code = {name: index for index, name in enumerate(self.switches)}
        number = {name: index for index, name in enumerate(self.hosts)}
        link = {(a, b): index for index, (a, b) in enumerate(map(tuple, self.ends.tolist()))}
        for switch, entries in self.routing.tables.items():
            for host, neighbour in entries.items():
                if host in number and (code[switch], code[neighbour]) in link:
                    table[code[switch], number[host]] = link[code[switch], code[neighbour]]
        return table


def routes_of(topology: Topology) -> Routes:
    """Routes of a topology; without cables there are no links, and no path is known."""
    code = {name: index for index, name in enumerate(topology.switches)}
    seen: dict[tuple[int, int], float] = {}
    for cable in topology.cables:
        a, b = code[cable.a], code[cable.b]
        ends_of_cable = (b, a) if (b, a) in seen else (a, b)
        speed = np.nan if cable.speed is None else cable.speed
        seen[ends_of_cable] = float(np.minimum(seen.get(ends_of_cable, np.inf), speed))
    ends = np.array([(a, b) for pair in seen for a, b in (pair, pair[::-1])], dtype=np.int32).reshape(-1, 2)
    group = {code[name]: switch.group for name, switch in topology.switches.items()}
    between_groups = [bool(group[a] and group[b] and group[a] != group[b]) for a, b in ends.tolist()]
    used = {code[name] for name in (*topology.host_switch.values(), *topology.nic_switch.values())}
    return Routes(
        tuple(topology.switches),
        ends,
        topology.routing,
        tuple(topology.host_switch),
        np.where(between_groups, BETWEEN_GROUPS, 1).astype(np.int8).reshape(-1),
        np.repeat(np.array(list(seen.values()), dtype=np.float64), 2),
        np.array(sorted(used), dtype=np.int32),
    )


def codes_of(names: Sequence[str], codes: Mapping[str, int]) -> Codes:
    """(k,) positions of names, -1 for names that are not in `codes`."""
    return np.array([codes.get(name, -1) for name in names], dtype=np.int32)


def _joined(query: Codes, place: Codes, weight: Values, places: int) -> tuple[Codes, Codes, Values]:
    """Entries with the weights of equal (query, place) added up."""
    key = query.astype(np.int64) * max(1, places) + place
    unique, inverse = np.unique(key, return_inverse=True)
    total = np.bincount(inverse, weights=weight, minlength=unique.size).astype(np.float32)
    return (unique // max(1, places)).astype(np.int32), (unique % max(1, places)).astype(np.int32), total
