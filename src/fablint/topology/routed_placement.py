"""A placement with the routes between its switches: which links each message between two ranks crosses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from fablint.model import Placement, Topology
from fablint.model.arrays import Codes, Values
from fablint.topology.routing import Routes, routes_of


@dataclass(frozen=True)
class RoutedPlacement(Placement):
    """Placement of ranks that are to be started, among all switches of the topology.

    `switch_index` and `host_index` count over the whole topology, so that the positions of hosts of other jobs stay
    empty; both are 0 for hosts that no topology names.
    """

    switch_index: Codes = field(default_factory=lambda: np.empty(0, np.int32))  # (n,) switch within its group
    host_index: Codes = field(default_factory=lambda: np.empty(0, np.int32))  # (n,) host on its switch
    routes: Routes | None = None  # with the codes of `switch`; None: no cables are declared

    @classmethod
    def on_routes(
        cls, rank_hosts: Sequence[str], topology: Topology | None = None, rank_nics: Sequence[str] = ()
    ) -> Self:
        """Placement of ranks on `rank_hosts`.

        Parameters
        ----------
        rank_hosts
            Host of each rank; `h00.site.org` is also found in the topology as `h00`.
        topology
            None: no switches are known.
        rank_nics
            NIC of each rank: selects the switch of a rank whose host has several.
        """
        placement = cls.of_hosts(rank_hosts, topology, rank_nics)
        if topology is None:
            none = np.zeros_like(placement.host)
            return replace(placement, switch_index=none, host_index=none)
        code = {name: index for index, name in enumerate(placement.switches)}
        host_switch = np.array([code[name] for name in topology.host_switch.values()], dtype=np.int32)
        group_code = {name: index for index, name in enumerate(placement.groups)}
        group_of = np.array(
            [group_code[switch.group or switch.name] for switch in topology.switches.values()], dtype=np.int32
        )
        used = np.unique(np.concatenate([host_switch, placement.switch[placement.switch >= 0]]))
        switch_index = np.zeros(len(code) + 1, dtype=np.int32)
        switch_index[used] = number_within(group_of[used], used)
        host_index = np.append(number_within(host_switch, np.arange(host_switch.size, dtype=np.int32)), 0)
        return replace(
            placement,
            switch_index=switch_index[placement.switch],
            host_index=host_index[placement.location].astype(np.int32),
            routes=routes_of(topology) if topology.cables else None,
        )

    def one_per_host(self, ranks: Codes) -> Self:
        """Placement of the given ranks, each as the only rank of a separate host."""
        codes = {
            name: getattr(self, name)[ranks] for name in ("switch", "group", "location", "switch_index", "host_index")
        }
        hosts = tuple(self.hosts[code] for code in self.host[ranks])
        return replace(self, host=np.arange(ranks.size, dtype=np.int32), hosts=hosts, **codes)

    def crossings(self, src: Codes, dst: Codes) -> tuple[Codes, Codes, Values]:
        """Flat: number of the message (src[i] -> dst[i]), link between switches, probability that the message crosses
        it.
        """
        has_switches = (self.switch[src] >= 0) & (self.switch[dst] >= 0)
        messages = np.flatnonzero(has_switches & (self.switch[src] != self.switch[dst]))
        if self.routes is None or not messages.size:
            return np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.float32)
        a, b = self.switch[src[messages]], self.switch[dst[messages]]
        row, link = links_crossed(self.routes, a, b, self.location[dst[messages]])
        parts = [(messages[row], link, np.ones(row.size, np.float32))]
        unknown = np.setdiff1d(np.arange(messages.size), row)
        if unknown.size:
            query, link, share = self.routes.exposure(a[unknown], b[unknown])
            parts.append((messages[unknown[query]], link, share))
        message, link, share = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return message.astype(np.int32), link.astype(np.int32), share

    def crossings_of_pairs(self, pairs: Codes, direction: int) -> tuple[Codes, Codes, Values]:
        """`crossings` of (k, 2) pairs: `direction` 0 from the lower rank of each pair to the higher, 1 back.

        So the engine sends the messages of a round: the two directions one after the other, so that they do not share
        links.
        """
        ends = np.sort(pairs, axis=1)
        return self.crossings(ends[:, direction], ends[:, 1 - direction])


def links_crossed(
    routes: Routes,
    src_switch: Codes,
    dst_switch: Codes,
    dst_host: Codes,
    switches: Sequence[str] | None = None,
) -> tuple[Codes, Codes]:
    """Return the directed links that messages cross.

    Parameters
    ----------
    routes
        Links and routing.
    src_switch, dst_switch
        (k,) switch of each sender and receiver, -1: unknown.
    dst_host
        (k,) position of the receiving host among the topology's hosts.
    switches
        Names of the switch codes; None: the codes are those of `routes`.

    Returns
    -------
    tuple of (Codes, Codes)
        Positions of messages, and the directed link that each crosses: one entry for each link of a message, none for a
        message whose path is not known.
    """
    if switches is not None:
        code = np.append(routes.codes(switches), np.int32(-1))
        src_switch, dst_switch = code[src_switch], code[dst_switch]
    hops = routes.hops(src_switch.astype(np.int32), dst_switch.astype(np.int32), dst_host)
    message, hop = np.nonzero(hops >= 0)
    return message.astype(np.int32), hops[message, hop]


def number_within(container: Codes, item: Codes) -> Codes:
    """Return the (k,) number from 0 of each item among the distinct items of its container, ascending.

    `container` and `item` are (k,) codes: of containers 1, 1, 2 and items 7, 5, 7 the numbers are 1, 0, 0.
    """
    order = np.lexsort((item, container))
    of_container, of_item = container[order], item[order]
    new_container = np.r_[True, of_container[1:] != of_container[:-1]] if of_container.size else np.zeros(0, bool)
    new = new_container.copy()
    new[1:] |= of_item[1:] != of_item[:-1]
    count = np.cumsum(new) - 1
    first = np.maximum.accumulate(np.where(new_container, count, 0))
    number = np.empty(container.size, dtype=np.int32)
    number[order] = count - first
    return number
