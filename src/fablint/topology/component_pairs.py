"""Which pairs use the component of a finding, how many they are, and which hosts are behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fablint.model import ComponentRef, Finding, Placement
from fablint.model.arrays import Mask
from fablint.model.host_name import NicRef
from fablint.topology.routing import Routes

MOST_PATHS = 16_000_000  # paths that are followed for one page
MOST_FRAMES = 4000  # rectangles of one finding


@dataclass
class ComponentPairs:
    """Ordered pairs of ranks whose messages use a component.

    Those of senders `tx`, of receivers `rx`, of blocks (sender mask, receiver mask), and those that `through` has by
    the sender's switch and the receiver: (switches + 1, n), the last row for ranks without a switch.
    """

    tx: Mask
    rx: Mask
    blocks: list[tuple[Mask, Mask]] = field(default_factory=list)
    through: Mask | None = None

    def of(self, src: np.ndarray, dst: np.ndarray, switch: np.ndarray, payload: str) -> Mask:
        """Tell whether the messages of each pair (k,) use the component; `payload` as in `Row`, `switch` of each
        rank.
        """
        directions = {"src": [(src, dst)], "dst": [(dst, src)]}.get(payload, [(src, dst), (dst, src)])
        crossed = np.zeros(src.size, dtype=bool)
        for a, b in directions:
            crossed |= self.tx[a] | self.rx[b]
            for senders, receivers in self.blocks:
                crossed |= senders[a] & receivers[b]
            if self.through is not None:
                crossed |= self.through[switch[a], b]
        return crossed

    def number(self, placement: Placement) -> int:
        """Return how many ordered pairs of ranks on different hosts use the component."""
        everything = np.ones(placement.ranks, dtype=bool)
        senders = np.stack([self.tx, *(block for block, _ in self.blocks), placement.switch]).T
        total = 0
        for (is_sender, *in_blocks, switch), count in zip(*np.unique(senders, axis=0, return_counts=True), strict=True):
            receivers = everything if is_sender else self.rx.copy()
            for is_inside, (_, others) in zip(in_blocks, self.blocks, strict=True):
                receivers = receivers | others if is_inside else receivers
            if self.through is not None:
                receivers = receivers | self.through[switch]
            total += int(count) * int(np.count_nonzero(receivers))
        return total - self._within_hosts(placement)

    def _within_hosts(self, placement: Placement) -> int:
        """Return how many ordered pairs of ranks of one host, and of a rank with itself, count as pairs that use it."""
        order = np.argsort(placement.host, kind="stable")
        total, shift = int(np.count_nonzero(self.of(order, order, placement.switch, "src"))), 1
        while (same := placement.host[order[:-shift]] == placement.host[order[shift:]]).any():
            a, b = order[:-shift][same], order[shift:][same]
            total += sum(int(np.count_nonzero(self.of(*ends, placement.switch, "src"))) for ends in ((a, b), (b, a)))
            shift += 1
        return total

    def senders(self, placement: Placement) -> Mask:
        """(n,) ranks whose messages to some other rank use the component."""
        senders = self.tx | bool(self.rx.any())
        for block, receivers in self.blocks:
            senders |= block & bool(receivers.any())
        return senders | self._ends(placement)[0]

    def ends(self, placement: Placement) -> Mask:
        """(n,) ranks that send or receive messages whose route uses the component."""
        senders, receivers = self._ends(placement)
        return senders | receivers

    def _ends(self, placement: Placement) -> tuple[Mask, Mask]:
        """(n,) ranks that send, and that receive, messages whose route uses the component."""
        through = self.through if self.through is not None else np.zeros((1, placement.ranks), dtype=bool)
        of_switch, receivers = np.asarray(through.any(axis=1)), np.asarray(through.any(axis=0))
        return (of_switch[placement.switch] if self.through is not None else receivers), receivers

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
            rows = [self.through[places[first]][order] for first in starts[:-1]]
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
        number = {name: index for index, name in enumerate(self.routes.names)}
        links: set[int] = set()
        for component in finding.components:
            ends = [end.nodes for end in component.ends]
            if len(ends) == 2:
                there = {f"{a}>{b}" for a in ends[0] for b in ends[1]}
                back = {f"{b}>{a}" for a in ends[0] for b in ends[1]}
                links |= {number[name] for name in (there if component.directed else there | back) if name in number}
            elif component.kind == "switch" and ends:
                codes = [code for code, name in enumerate(self.routes.switches) if name in ends[0]]
                links |= set(np.flatnonzero(np.isin(self.routes.ends, codes).any(axis=1)).tolist())
        return links

    def _through(self, links: list[int]) -> dict[int, Mask]:
        """Return for each link the paths that cross it, as in `ComponentPairs.through`."""
        place, routes = self.placement, self.routes
        size = (len(place.switches) + 1, place.ranks)
        if routes is None or not links or size[0] * size[1] > MOST_PATHS:
            return {}
        crossed = {link: np.zeros(size, dtype=bool) for link in links}
        code = np.append(routes.codes(place.switches), np.int32(-1))
        ranks = np.arange(place.ranks)
        certain = False
        for row in range(size[0] - 1):
            start = np.full(place.ranks, code[row], dtype=np.int32)
            hops = routes.hops(start, code[place.switch], place.location)
            certain = certain or bool((hops >= 0).any())
            for step in hops.T:
                for link in np.intersect1d(step, links).tolist():
                    crossed[link][row, ranks[step == link]] = True
        return crossed if certain else self._likely(links, code, crossed)

    def _likely(self, links: list[int], code: np.ndarray, crossed: dict[int, Mask]) -> dict[int, Mask]:
        """Return where no path is certain, the pairs of switches that cross a link most often."""
        assert self.routes is not None
        count = code.size - 1
        src, dst = (one.ravel() for one in np.meshgrid(code[:-1], code[:-1], indexing="ij"))
        query, link, share = self.routes.exposure(src, dst)
        for item in links:
            of_link = link == item
            if of_link.any():
                likely = query[of_link][share[of_link] >= 0.5 * share[of_link].max()]
                between = np.zeros((count + 1, count + 1), dtype=bool)
                between[likely // count, likely % count] = True
                crossed[item] = between[:, self.placement.switch]
        return crossed

    def _crossing(self, finding: Finding, links: set[int], through: dict[int, Mask]) -> ComponentPairs | None:
        none = np.zeros(self.placement.ranks, dtype=bool)
        crossing = ComponentPairs(none.copy(), none.copy())
        for component in finding.components:
            self._add(crossing, component, finding.direction, bool(links))
        for link in links & through.keys():
            crosses = through[link]
            crossing.through = crosses.copy() if crossing.through is None else crossing.through | crosses
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
        those whose messages cross them.
    """
    nodes = finding.nodes
    if hosts := _codes(nodes, placement.hosts):
        return hosts
    connected = np.isin(placement.switch, _codes(nodes, placement.switches))
    connected |= np.isin(placement.group, _codes(nodes, placement.groups))
    ranks = connected if connected.any() or crossing is None else crossing.ends(placement)
    return [int(code) for code in np.unique(placement.host[ranks])]
