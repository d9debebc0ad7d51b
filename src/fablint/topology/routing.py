"""Which directed links a message crosses on its way between two switches, as far as the topology's routing tells.

Planning (which pairs collide), judging (whose messages cross a link) and simulating ask the same questions, and get the
same answers from here. Cables between a host and its switch are not in it: they are the host's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fablint.model import Routing, Topology

Index = npt.NDArray[np.int32]
Shares = npt.NDArray[np.float32]

# A dragonfly's minimal ways cross one cable between groups at most, however many inside them: two of the former cost
# more than one and two hops on either side. Fat trees have no cables between two declared groups.
BETWEEN_GROUPS = 5
UNREACHED = np.iinfo(np.int8).max
QUERIES = 1 << 18  # whose next hops are looked up at a time
MAX_HOPS = 16  # of a forwarding table: what is longer goes round in circles


@dataclass(frozen=True)
class Routes:
    """Directed links between switches, and the way of every message over them.

    `ends` (L, 2) holds the switch codes of each link; link 2 c is cable c from its first end to its second, link
    2 c + 1 the way back. Parallel cables between the same two switches are one.
    """

    switches: tuple[str, ...]
    ends: Index
    routing: Routing
    hosts: tuple[str, ...]  # in the order of the topology: what `dst_host` counts
    costs: npt.NDArray[np.int8]  # (L,) of crossing each link: the way that costs least is taken
    speeds: npt.NDArray[np.float64]  # (L,) bytes/s as declared, of the slowest of parallel cables; NaN: not declared
    _leaves: Index = field(repr=False)  # switches that have hosts

    @property
    def certain(self) -> bool:
        """Is one path known for every message (where it is at all)?"""
        return self.routing.kind != "adaptive"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """`s0>s1` per directed link."""
        return tuple(f"{self.switches[a]}>{self.switches[b]}" for a, b in self.ends.tolist())

    def codes(self, switches: Sequence[str]) -> Index:
        """(k,) codes of switches by name, -1 of those that are not in the topology."""
        return codes_of(switches, {name: code for code, name in enumerate(self.switches)})

    def cable(self, link: int) -> str:
        """`s0=s1`, as the topology names it."""
        a, b = self.ends[link - link % 2].tolist()
        return f"{self.switches[a]}={self.switches[b]}"

    def hops(self, src_switch: Index, dst_switch: Index, dst_host: Index) -> Index:
        """(k, H) links in the order of the way, -1 after its end; all -1 on one switch or where the way is unknown.

        Args:
            src_switch: (k,) switch of each sender, -1: unknown.
            dst_switch: (k,) switch of each receiver, -1: unknown.
            dst_host: (k,) position of the receiving host in `hosts`; read for `d-mod-k` and `tables` only.
        """
        src, dst, host = (np.asarray(values, dtype=np.int32).ravel() for values in (src_switch, dst_switch, dst_host))
        columns: list[Index] = []
        current = np.where(dst < 0, -1, src)
        lost = (current < 0) | (self.routing.kind == "adaptive")
        for _ in range(self._longest):
            moving = np.flatnonzero((current != dst) & ~lost)
            if not moving.size:
                break
            link = np.full(src.size, -1, dtype=np.int32)
            for first in range(0, moving.size, QUERIES):
                some = moving[first : first + QUERIES]
                link[some] = self._next(current[some], dst[some], host[some])
            found = link >= 0
            lost[moving] |= ~found[moving]
            current = np.where(found, self.ends[link, 1] if len(self.ends) else current, current)
            columns.append(link)
        lost |= current != dst
        hops = np.stack(columns, axis=1) if columns else np.full((src.size, 0), -1, dtype=np.int32)
        hops[lost] = -1
        return hops

    def apart(self, switches: Index) -> npt.NDArray[np.int8]:
        """(k, k) links of a shortest way between each two of k switches with hosts; -1 where there is none."""
        links = self._distance[self._row[switches]][:, switches]
        return np.where(links == UNREACHED, np.int8(-1), links)

    def narrowest(self, switches: Index) -> npt.NDArray[np.float64]:
        """(k, k) bytes/s of the slowest cable that a message between each two of k switches with hosts may cross.

        NaN where the speed of one of these cables is not declared. Where messages may leave the shortest ways, any
        cable may be crossed.
        """
        if self.routing.kind in ("tables", "adaptive") or np.isnan(self.speeds).all():
            return np.full((switches.size, switches.size), self.speeds.min(initial=np.inf))
        found = np.empty((switches.size, switches.size))
        start, end = self.ends[:, 0], self.ends[:, 1]
        for column, row in enumerate(self._row[switches].tolist()):
            left = self._distance[row].astype(np.int64)
            onward = (left[start] - left[end] == self.costs) & (left[start] < UNREACHED)
            slowest = np.full(len(self.switches), np.inf)
            for far in np.unique(left[start[onward]]).tolist():
                link = np.flatnonzero(onward & (left[start] == far))
                np.minimum.at(slowest, start[link], np.minimum(self.speeds[link], slowest[end[link]]))
            found[:, column] = slowest[switches]
        return found

    def exposure(self, src_switch: Index, dst_switch: Index) -> tuple[Index, Index, Shares]:
        """Flat: which query, which link, and the probability that one of its messages crosses it.

        Equal choice among the shortest ways, times the share of messages that take one (`minimal_share`). What takes
        a detour is spread so thin that it belongs to the background.
        """
        src, dst = (np.asarray(values, dtype=np.int32).ravel() for values in (src_switch, dst_switch))
        share = np.float32(self.routing.minimal_share if self.routing.kind == "adaptive" else 1.0)
        query = np.flatnonzero((src != dst) & (src >= 0) & (dst >= 0)).astype(np.int32)
        at, weight = src[query], np.full(query.size, share, dtype=np.float32)
        found: list[tuple[Index, Index, Shares]] = []
        while query.size:
            ways = self._shortest(at, dst[query])
            width = np.count_nonzero(ways, axis=1)
            row, column = np.nonzero(ways)
            link = self._out[at[row], column]
            query, weight, at = query[row], weight[row] / width[row].astype(np.float32), self.ends[link, 1]
            found.append((query, link, weight))
            going = at != dst[query]
            query, weight, at = query[going], weight[going], at[going]
            query, at, weight = _joined(query, at, weight, len(self.switches))
        if not found:
            return np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.float32)
        queries, links, weights = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return _joined(queries, links, weights, len(self.ends))

    # ------------------------------------------------------------------------------------------------ next hops

    def _next(self, at: Index, dst: Index, host: Index) -> Index:
        """(k,) the link that each message takes from where it is, -1 where nobody knows."""
        if self.routing.kind == "tables":
            return np.where(host >= 0, self._table[at, host], -1)
        ways = self._shortest(at, dst)
        width = np.count_nonzero(ways, axis=1)
        column = ways.argmax(axis=1)
        known = width == 1
        if self.routing.kind == "d-mod-k":
            open_ = np.flatnonzero((width > 1) & (host >= 0))
            chosen = host[open_] // self._divisor[at[open_]] % width[open_]
            column[open_] = (ways[open_].cumsum(axis=1, dtype=np.int16) <= chosen[:, None]).sum(axis=1)
            known[open_] = True
        return np.where(known, self._out[at, column], -1).astype(np.int32)

    def _shortest(self, at: Index, dst: Index) -> npt.NDArray[np.bool_]:
        """(k, degree) which of the switch's links lie on a shortest way to the destination."""
        row = self._row[dst]
        far = self._distance[row, at]
        far[(row < 0) | (far == UNREACHED)] = -1  # no way: nothing is nearer
        return np.asarray(self._distance[row[:, None], self._beyond[at]] == far[:, None] - self._cost[at])

    @cached_property
    def _cost(self) -> npt.NDArray[np.int8]:
        """(S, degree) of each link of `_out`."""
        return np.where(self._out >= 0, self.costs[self._out] if len(self.costs) else 1, 1).astype(np.int8)

    @cached_property
    def _beyond(self) -> Index:
        """(S, degree) switch at the other end of each link of `_out`; one that is nowhere behind the last."""
        return np.where(self._out >= 0, self.ends[self._out, 1] if len(self.ends) else 0, len(self.switches))

    @cached_property
    def _out(self) -> Index:
        """(S, degree) links that leave each switch, in the order of the cables, -1 behind the last."""
        start = self.ends[:, 0]
        # Cables in order, whichever end the switch is: both ways of a cable sort by the cable's number.
        order = np.lexsort((np.arange(start.size) // 2, start))
        degree = np.bincount(start, minlength=len(self.switches))
        out = np.full((len(self.switches), max(1, int(degree.max(initial=0)))), -1, dtype=np.int32)
        first = np.cumsum(degree) - degree
        out[start[order], np.arange(start.size) - first[start[order]]] = order
        return out

    @cached_property
    def _row(self) -> Index:
        """(S,) row of each switch in the table of distances, -1 for those without hosts."""
        row = np.full(len(self.switches), -1, dtype=np.int32)
        row[self._leaves] = np.arange(self._leaves.size)
        return row

    @cached_property
    def _distance(self) -> npt.NDArray[np.int8]:
        """(switches with hosts, S + 1) cost of the way, UNREACHED where there is none, as in the last column."""
        from scipy import sparse

        size = len(self.switches)
        distance = np.full((self._leaves.size, size + 1), UNREACHED, dtype=np.int8)
        distance[np.arange(self._leaves.size), self._leaves] = 0
        joined = {}
        for cost in np.unique(self.costs).tolist():
            a, b = self.ends[self.costs == cost].T
            joined[cost] = sparse.csr_matrix((np.ones(a.size, np.float32), (a, b)), shape=(size + 1, size + 1))
        furthest = 0
        for total in range(1, int(UNREACHED)):
            if total > furthest + max(joined, default=0):
                break
            for cost, links in joined.items():
                before = distance == total - cost
                if total >= cost and before.any():
                    touched = np.asarray(before.astype(np.float32) @ links) > 0
                    new = touched & (distance > total)
                    distance[new] = total
                    furthest = max(furthest, total if new.any() else 0)
        return distance

    @cached_property
    def _longest(self) -> int:
        if self.routing.kind == "tables":
            return MAX_HOPS
        known = self._distance[:, self._leaves]
        return int(known[known != UNREACHED].max(initial=0))

    @cached_property
    def _divisor(self) -> Index:
        """(S,) of d-mod-k: how many hosts in a row share an up-link of the switch.

        The up-link at level l is number d / (w0 w1 .. of the levels below) modulo its own count (Zahavi 2012).
        """
        level = self._distance[:, :-1].min(axis=0, initial=UNREACHED)
        divisor = np.ones(len(self.switches), dtype=np.int32)
        below = 1
        for height in range(int(level[level != UNREACHED].max(initial=0)) + 1):
            here = np.flatnonzero(level == height)
            divisor[here] = below
            out = self._out[here]
            up = (out >= 0) & (level[self.ends[out, 1]] == height + 1)
            below *= max(1, int(up.sum(axis=1).max(initial=0)))
        return divisor

    @cached_property
    def _table(self) -> Index:
        """(S, hosts) the link that a switch sends a host's messages to, -1 where the tables do not say."""
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
    """The routes of a topology; without cables there are no links, and no way is known."""
    code = {name: index for index, name in enumerate(topology.switches)}
    seen: dict[tuple[int, int], float] = {}
    for cable in topology.cables:
        a, b = code[cable.a], code[cable.b]
        ends_of_cable = (b, a) if (b, a) in seen else (a, b)
        speed = np.nan if cable.speed is None else cable.speed
        seen[ends_of_cable] = float(np.minimum(seen.get(ends_of_cable, np.inf), speed))
    ends = np.array([(a, b) for pair in seen for a, b in (pair, pair[::-1])], dtype=np.int32).reshape(-1, 2)
    group = {code[name]: switch.group for name, switch in topology.switches.items()}
    apart = [bool(group[a] and group[b] and group[a] != group[b]) for a, b in ends.tolist()]
    used = {code[name] for name in (*topology.host_switch.values(), *topology.nic_switch.values())}
    return Routes(
        tuple(topology.switches),
        ends,
        topology.routing,
        tuple(topology.host_switch),
        np.where(apart, BETWEEN_GROUPS, 1).astype(np.int8).reshape(-1),
        np.repeat(np.array(list(seen.values()), dtype=np.float64), 2),
        np.array(sorted(used), dtype=np.int32),
    )


def codes_of(names: Sequence[str], known: Mapping[str, int]) -> Index:
    """(k,) positions of names, -1 for those that are not known."""
    return np.array([known.get(name, -1) for name in names], dtype=np.int32)


def _joined(query: Index, place: Index, weight: Shares, places: int) -> tuple[Index, Index, Shares]:
    """The same with the weights of equal (query, place) added up."""
    key = query.astype(np.int64) * max(1, places) + place
    unique, inverse = np.unique(key, return_inverse=True)
    total = np.bincount(inverse, weights=weight, minlength=unique.size).astype(np.float32)
    return (unique // max(1, places)).astype(np.int32), (unique % max(1, places)).astype(np.int32), total
