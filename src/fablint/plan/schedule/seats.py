"""Where the ranks sit, as far as planning cares, and how many messages of a round cross each cable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fablint.model import Scope, Topology
from fablint.topology.routing import Routes, routes_of

Codes = npt.NDArray[np.int32]
Pairs = npt.NDArray[np.int32]  # (k, 2) ranks, each at most once
Flows = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Seats:
    """One entry per rank. A host that no topology names is a switch and a group of its own.

    `shelf` is the number of the switch within its group and `slot` that of the host on its switch, both counted
    over all of the topology, so that hosts of other jobs leave their places empty.
    """

    host: Codes
    switch: Codes  # code in `routes.switches`; hosts without a switch have codes behind those
    group: Codes
    shelf: Codes
    slot: Codes
    place: Codes  # position among the topology's hosts, -1: not in it
    routes: Routes | None = None

    @property
    def ranks(self) -> int:
        return self.host.size

    @property
    def hosts(self) -> int:
        return int(self.host.max(initial=-1)) + 1

    def scopes(self, pairs: Pairs) -> npt.NDArray[np.object_]:
        """Scope of each pair."""
        a, b = pairs[:, 0], pairs[:, 1]
        far = np.where(self.group[a] == self.group[b], Scope.LOCAL, Scope.GLOBAL)
        known = (self.place[a] >= 0) & (self.place[b] >= 0)
        between = np.where(known, np.where(self.switch[a] == self.switch[b], Scope.EDGE, far), Scope.UNKNOWN)
        return np.where(self.host[a] == self.host[b], Scope.INTRA_NODE, between)


def seats_of(rank_hosts: Sequence[str], topology: Topology | None = None, rank_nics: Sequence[str] = ()) -> Seats:
    """The seats of ranks on the hosts `rank_hosts`; `rank_nics` tells the switch of those whose host has several.

    A run's `h00.site.org` is also found as `h00`.
    """
    codes: dict[str, int] = {}
    host = np.array([codes.setdefault(name, len(codes)) for name in rank_hosts], dtype=np.int32)
    if topology is None:
        each, none = host.copy(), np.zeros_like(host)
        return Seats(host, each, each, none, none, np.full_like(host, -1))
    places = {name: number for number, name in enumerate(topology.host_switch)}
    place_of = np.array([places.get(name, places.get(name.split(".")[0], -1)) for name in codes], dtype=np.int32)
    place = place_of[host]
    switches = {name: number for number, name in enumerate(topology.switches)}
    all_switches = np.array([switches[name] for name in topology.host_switch.values()], dtype=np.int32)
    named = {one.group or one.name: None for one in topology.switches.values()}
    groups = {name: number for number, name in enumerate(named)}
    group_of = np.array([groups[one.group or one.name] for one in topology.switches.values()], dtype=np.int32)
    switch = np.where(place >= 0, all_switches[place], len(switches) + host).astype(np.int32)
    for rank, nic in enumerate(rank_nics):
        if place[rank] >= 0 and (name := topology.nic_switch.get(f"{rank_hosts[rank]}/{nic}")) is not None:
            switch[rank] = switches[name]
    known = np.minimum(switch, len(switches) - 1)
    group = np.where(place >= 0, group_of[known], len(groups) + host).astype(np.int32)
    used = np.unique(np.concatenate([all_switches, switch[place >= 0]]))
    shelf_of = np.zeros(len(switches), dtype=np.int32)
    shelf_of[used] = number_within(group_of[used], used)
    slots = number_within(all_switches, np.arange(all_switches.size, dtype=np.int32))
    return Seats(
        host,
        switch,
        group,
        np.where(place >= 0, shelf_of[known], 0).astype(np.int32),
        np.where(place >= 0, slots[place], 0).astype(np.int32),
        place,
        routes_of(topology) if topology.cables else None,
    )


def pair_keys(pairs: Pairs, ranks: int) -> npt.NDArray[np.int64]:
    """One number per unordered pair."""
    keys: npt.NDArray[np.int64] = pairs.min(axis=1).astype(np.int64) * ranks + pairs.max(axis=1)
    return keys


def number_within(container: Codes, item: Codes) -> Codes:
    """(k,) number of each item among the distinct items of its container, in ascending order of the items."""
    order = np.lexsort((item, container))
    box, thing = container[order], item[order]
    new_box = np.r_[True, box[1:] != box[:-1]] if box.size else np.zeros(0, bool)
    new = new_box.copy()
    new[1:] |= thing[1:] != thing[:-1]
    count = np.cumsum(new) - 1
    first = np.maximum.accumulate(np.where(new_box, count, 0))
    number = np.empty(container.size, dtype=np.int32)
    number[order] = count - first
    return number


def stays(pairs: Pairs, scope: Scope | None, seats: Seats) -> npt.NDArray[np.bool_]:
    """Which pairs belong to a stratum (None: to any); two ranks of one host never do."""
    a, b = pairs[:, 0], pairs[:, 1]
    near, same = seats.switch[a] == seats.switch[b], seats.group[a] == seats.group[b]
    within = {Scope.EDGE: near, Scope.LOCAL: same & ~near, Scope.GLOBAL: ~same}
    apart: npt.NDArray[np.bool_] = seats.host[a] != seats.host[b]
    return apart if scope is None else apart & within[scope]


def crossings(src: Codes, dst: Codes, seats: Seats) -> tuple[Codes, Codes, Flows]:
    """Flat: which message (src[i] -> dst[i]), which link between switches, and how likely it crosses it."""
    routes = seats.routes
    known = (seats.place[src] >= 0) & (seats.place[dst] >= 0)
    travels = np.flatnonzero(known & (seats.switch[src] != seats.switch[dst]))
    if routes is None or not travels.size:
        return np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.float32)
    a, b = seats.switch[src[travels]], seats.switch[dst[travels]]
    hops = routes.hops(a, b, seats.place[dst[travels]])
    row, column = np.nonzero(hops >= 0)
    found = [(travels[row], hops[row, column], np.ones(row.size, np.float32))]
    lost = np.flatnonzero((hops < 0).all(axis=1))
    if lost.size:
        query, link, share = routes.exposure(a[lost], b[lost])
        found.append((travels[lost[query]], link, share))
    query, link, share = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return query.astype(np.int32), link.astype(np.int32), share


def crossings_in_turn(pairs: Pairs, way: int, seats: Seats) -> tuple[Codes, Codes, Flows]:
    """The same for the messages of a round: `way` 0 from the lower rank of each pair to the higher, 1 back.

    So the engine sends them; the two ways have their turns one after the other, so that they do not share links.
    """
    ends = np.sort(pairs, axis=1)
    return crossings(ends[:, way], ends[:, 1 - way], seats)


def link_flows(pairs: Pairs, seats: Seats) -> Flows:
    """(2, links) messages on each directed link when all pairs send at once: one way, then the other.

    Where the way of a message is not known it counts on each link by its probability.
    """
    links = len(seats.routes.ends) if seats.routes else 0
    flows = np.zeros((2, links), dtype=np.float32)
    for way in (0, 1):
        _, link, share = crossings_in_turn(pairs, way, seats)
        flows[way] = np.bincount(link, weights=share, minlength=links)
    return flows


def loads(rounds: Sequence[Pairs], seats: Seats) -> list[float]:
    """The most messages that cross one directed link at once, per round; both ends of a pair do not send at once."""
    return [float(link_flows(pairs, seats).max(initial=0.0)) for pairs in rounds]
