"""Which pairs use the component of a finding, how many they are, and which hosts are behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fablint.model import ComponentRef, Finding, Placement
from fablint.model.arrays import Codes, Floats, Mask, Values
from fablint.model.host_name import NicRef
from fablint.topology.routing import Routes

MOST_PATHS = 16_000_000  # paths that are followed for one page
MOST_FRAMES = 4000  # rectangles of one finding
LEAST_SHARE = 0.1  # of the messages that a host sends or receives: less, and the host is not behind the component

PathShares = dict[int, Mask | Values]  # of each link, as in `ComponentPairs.through`


@dataclass
class ComponentPairs:
    """Ordered pairs of ranks whose messages use a component.

    Those of senders `tx`, of receivers `rx`, of blocks (sender mask, receiver mask), and those that `through` has by
    the sender's switch and the receiver: (switches + 1, n), the last row for ranks without a switch. `through` is the
    share of the messages of each pair: true or false where their path is certain.
    """

    tx: Mask
    rx: Mask
    blocks: list[tuple[Mask, Mask]] = field(default_factory=list)
    through: Mask | Values | None = None

    def of(self, src: np.ndarray, dst: np.ndarray, switch: np.ndarray, payload: str) -> Mask:
        """Tell whether the messages of each pair (k,) use the component; `payload` as in `Row`, `switch` of each
        rank.
        """
        crossed = np.zeros(src.size, dtype=bool)
        if payload != "dst":
            crossed |= self._share(src, dst, switch) > 0
        if payload != "src":
            crossed |= self._share(dst, src, switch) > 0
        return crossed

    def _share(self, src: np.ndarray, dst: np.ndarray, switch: np.ndarray) -> Mask | Values:
        """(k,) share of the messages from `src` to `dst` that use the component."""
        whole = self.tx[src] | self.rx[dst]
        for senders, receivers in self.blocks:
            whole |= senders[src] & receivers[dst]
        return whole if self.through is None else np.asarray(np.maximum(whole, self.through[switch[src], dst]))

    def number(self, placement: Placement) -> int:
        """Return how many ordered pairs of ranks on different hosts use the component, each by its share."""
        return round(float(self._carried(placement)[0].sum()))

    def hosts(self, placement: Placement) -> list[int]:
        """Return the codes of the hosts that send, or receive, at least `LEAST_SHARE` of their messages across the
        component, where every rank sends one message to each rank of another host.
        """
        ranks = np.bincount(placement.host, minlength=len(placement.hosts))
        messages = ranks * (placement.ranks - ranks)
        across = [np.bincount(placement.host, part, minlength=ranks.size) for part in self._carried(placement)]
        return np.flatnonzero((np.maximum(*across) >= LEAST_SHARE * messages) & (messages > 0)).tolist()

    def _carried(self, placement: Placement) -> tuple[Floats, Floats]:
        """(n,) messages across the component that each rank sends to, and receives from, the ranks of other hosts: one
        of each pair, by its share.
        """
        switch = placement.switch if self.through is not None else np.zeros_like(placement.switch)
        profiles = np.stack([self.tx, *(senders for senders, _ in self.blocks), switch]).T
        _, example, profile, count = np.unique(
            profiles, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        sent, received = np.zeros(example.size), np.zeros(placement.ranks)
        for number, sender in enumerate(example.tolist()):
            whole = self.rx | self.tx[sender]
            for senders, receivers in self.blocks:
                whole = whole | receivers if senders[sender] else whole
            share = whole if self.through is None else np.maximum(whole, self.through[switch[sender]])
            sent[number] = share.sum(dtype=float)
            received += count[number] * share
        return self._between_hosts(sent[profile.ravel()], received, placement)

    def _between_hosts(self, sent: Floats, received: Floats, placement: Placement) -> tuple[Floats, Floats]:
        """Return messages without those of a rank to itself and to other ranks of its host."""
        order = np.argsort(placement.host, kind="stable")
        for shift in range(placement.ranks):
            same = placement.host[order[: order.size - shift]] == placement.host[order[shift:]]
            if not same.any():
                break
            a, b = order[: order.size - shift][same], order[shift:][same]
            for src, dst in ((a, b), (b, a))[: 1 + (shift > 0)]:
                share = self._share(src, dst, placement.switch)
                sent[src] -= share
                received[dst] -= share
        return sent, received

    def senders(self, placement: Placement) -> Mask:
        """(n,) ranks whose messages to some other rank use the component."""
        senders = self.tx | bool(self.rx.any())
        for block, receivers in self.blocks:
            senders |= block & bool(receivers.any())
        if self.through is not None:
            senders |= np.asarray(np.any(self.through > 0, axis=1))[placement.switch]
        return senders

    def rectangles(self, order: np.ndarray, switch: np.ndarray) -> list[tuple[int, int, int, int]]:
        """First sender, end of senders, first receiver, end of receivers: places in the order of the axes."""
        n = order.size
        result = [(a, b, 0, n) for a, b in _runs(self.tx[order])]
        result += [(0, n, a, b) for a, b in _runs(self.rx[order])]
        for senders, receivers in self.blocks:
            result += [(*one, *other) for one in _runs(senders[order]) for other in _runs(receivers[order])]
        if self.through is not None:
            places = switch[order]
            starts = [0, *(np.flatnonzero(np.diff(places)) + 1).tolist(), n]
            rows = [np.asarray(self.through[places[first], order] > 0) for first in starts[:-1]]
            first = 0
            for index in range(1, len(rows) + 1):
                if index == len(rows) or not np.array_equal(rows[index], rows[first]):
                    result += [(starts[first], starts[index], *run) for run in _runs(rows[first])]
                    first = index
        return result if len(result) <= MOST_FRAMES else []


def _runs(mask: Mask) -> list[tuple[int, int]]:
    """First and end of each run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


class FindingPairs:
    """The pairs of findings, in the order of the findings; None where no pairs are known."""

    def __init__(self, findings: Sequence[Finding], placement: Placement, routes: Routes | None) -> None:
        self.placement, self.routes, self.findings = placement, routes, findings
        self.links = wanted = [self._links(one) for one in findings]
        through = self._through(sorted(set().union(*wanted))) if wanted else {}
        self.crossings = [self._crossing(one, links, through) for one, links in zip(findings, wanted, strict=True)]

    def drawn(self) -> list[tuple[Finding, ComponentPairs]]:
        """Findings with a crossing."""
        return [(one, crossing) for one, crossing in zip(self.findings, self.crossings, strict=True) if crossing]

    def _links(self, finding: Finding) -> set[int]:
        """Links between switches of a finding's components, by number in the routes."""
        if self.routes is None or finding.component == "route":
            return set()
        links: set[int] = set()
        for component in finding.components:
            ends = [end.nodes for end in component.ends]
            if len(ends) == 2:
                there = {(a, b) for a in ends[0] for b in ends[1]}
                named = there if component.directed else there | {(b, a) for a, b in there}
                links |= set(np.flatnonzero(self.routes.are_among(named)).tolist())
            elif component.kind == "switch" and ends:
                codes = [code for code, name in enumerate(self.routes.switches) if name in ends[0]]
                links |= set(np.flatnonzero(np.isin(self.routes.ends, codes).any(axis=1)).tolist())
        return links

    def _through(self, links: list[int]) -> PathShares:
        """Return for each link the paths that cross it, as in `ComponentPairs.through`."""
        place, routes = self.placement, self.routes
        size = (len(place.switches) + 1, place.ranks)
        if routes is None or not links or size[0] * size[1] > MOST_PATHS:
            return {}
        crossed: PathShares = {link: np.zeros(size, dtype=bool) for link in links}
        code = np.append(routes.codes(place.switches), np.int32(-1))
        if not self._is_certain(code):
            return self._likely(links, code, crossed)
        for row in range(size[0] - 1):
            ranks = self._receivers(links, code, row)
            hops = routes.hops(np.full(ranks.size, code[row]), code[place.switch[ranks]], place.location[ranks])
            for step in hops.T:
                for link in np.intersect1d(step, links).tolist():
                    crossed[link][row, ranks[step == link]] = True
        return crossed

    def _is_certain(self, code: Codes) -> bool:
        """Return whether the path of any message is known, by a receiver on each switch; `code` of each switch."""
        assert self.routes is not None
        _, example = np.unique(self.placement.switch, return_index=True)
        to, host = code[self.placement.switch[example]], self.placement.location[example]
        return any((self.routes.hops(np.full(to.size, start), to, host) >= 0).any() for start in code[:-1])

    def _receivers(self, links: list[int], code: Codes, row: int) -> Codes:
        """Return the ranks to which messages from a switch may cross a link: the others are not followed."""
        assert self.routes is not None
        if self.routes.routing.kind == "tables":
            return np.arange(self.placement.ranks)
        is_near = np.any(self.routes.are_on_shortest(np.array(links), code[row], code), axis=0)
        return np.flatnonzero(is_near[self.placement.switch])

    def _likely(self, links: list[int], code: Codes, crossed: PathShares) -> PathShares:
        """Return where no path is certain, the pairs of switches that cross a link most often, with their shares."""
        assert self.routes is not None
        count = code.size - 1
        entries = []
        for row in range(count):  # all paths of all pairs of switches at once fill the memory
            query, link, share = self.routes.exposure(np.full(count, code[row]), code[:-1])
            kept = np.isin(link, links)
            entries.append((row * count + query[kept], link[kept], share[kept]))
        query, link, share = (np.concatenate(parts) for parts in zip(*entries, strict=True))
        for item in links:
            of_link = link == item
            if of_link.any():
                is_likely = share[of_link] >= 0.5 * share[of_link].max()
                likely = query[of_link][is_likely]
                between = np.zeros((count + 1, count + 1), dtype=np.float32)
                between[likely // count, likely % count] = share[of_link][is_likely]
                crossed[item] = between[:, self.placement.switch]
        return crossed

    def _crossing(self, finding: Finding, links: set[int], through: PathShares) -> ComponentPairs | None:
        none = np.zeros(self.placement.ranks, dtype=bool)
        crossing = ComponentPairs(none.copy(), none.copy())
        for component in finding.components:
            self._add(crossing, component, finding.direction, bool(links))
        for link in links & through.keys():
            crosses = through[link]
            crossing.through = crosses if crossing.through is None else np.maximum(crossing.through, crosses)
        used = crossing.tx.any() or crossing.rx.any() or crossing.blocks or crossing.through is not None
        return crossing if used else None

    def _add(self, crossing: ComponentPairs, component: ComponentRef, direction: str | None, routed: bool) -> None:
        place = self.placement
        on_host = [np.isin(place.host, _codes(end.nodes, place.hosts)) for end in component.ends]
        on_switch = [np.isin(place.switch, _codes(end.nodes, place.switches)) for end in component.ends]
        in_group = [np.isin(place.group, _codes(end.nodes, place.groups)) for end in component.ends]
        hosts = [bool(mask.any()) for mask in on_host]
        if len(hosts) == 2 and hosts[0] == hosts[1]:
            if routed and not hosts[0]:
                return  # a link between switches: its routes
            a, b = (h if h.any() else s if s.any() else g for h, s, g in zip(on_host, on_switch, in_group, strict=True))
            crossing.blocks += [(a, b)] if component.directed else [(a, b), (b, a)]
            return
        ranks = next((mask for mask in (*on_host, *on_switch, *in_group) if mask.any()), None)
        if ranks is None:
            return
        if component.kind == "nic" and component.ends[0].part:
            names = [NicRef.of(node, component.ends[0].part) for node in component.ends[0].nodes]
            ranks_of_nic = ranks & np.isin(place.nic, _codes(names, place.nics))
            ranks = ranks_of_nic if ranks_of_nic.any() else ranks
        if component.directed and True in hosts:
            direction = "tx" if hosts[0] else "rx"
        if direction != "rx":
            crossing.tx |= ranks
        if direction != "tx":
            crossing.rx |= ranks


def _codes(names: object, ordered: tuple[str, ...]) -> list[int]:
    wanted = frozenset(names)  # type: ignore[call-overload]
    return [index for index, name in enumerate(ordered) if name in wanted]


def hosts_behind(finding: Finding, crossing: ComponentPairs | None, placement: Placement) -> list[int]:
    """Return the hosts behind the components of a finding.

    Parameters
    ----------
    finding
        Names components.
    crossing
        Messages that cross the components; None: not known.
    placement
        Hosts and switches of the ranks.

    Returns
    -------
    list of int
        Codes of hosts: those that the finding names, else those connected to its switches. Of switches without hosts,
        those that send or receive at least `LEAST_SHARE` of their messages across them.
    """
    nodes = finding.nodes
    if hosts := _codes(nodes, placement.hosts):
        return hosts
    connected = np.isin(placement.switch, _codes(nodes, placement.switches))
    connected |= np.isin(placement.group, _codes(nodes, placement.groups))
    if crossing is not None and not connected.any():
        return crossing.hosts(placement)
    return [int(code) for code in np.unique(placement.host[connected])]
