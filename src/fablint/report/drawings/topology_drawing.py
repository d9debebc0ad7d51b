"""A drawing of the topology: groups, switches and hosts, with the components of the findings in their colours."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Literal, NamedTuple

from fablint.model import Finding, State, Topology
from fablint.model.names import fold, natural
from fablint.report import finding_order
from fablint.report.survey.report_source import ReportSource

WIDTH = 1000
MOST_SWITCHES = 3000
MOST_HOSTS = 600  # that are drawn one by one; of more, those of the findings
MOST_CABLES = 1500  # of more, those of the findings
FEW_CABLES = 100
MOST_NAMES = 24  # of components of findings
MOST_LINK_NAMES = 8  # faulty links whose names are written
MOST_SWITCH_NAMES = 100  # switches whose names are written
MOST_ROUTES = 40  # of findings, the gravest
_ROW = 110  # height of a level
_LINE = 13  # height of a name
_PITCH = 64.0  # height of a line of switches in a group, with two lines of hosts and their names
_SAG, _SAG_SHARE = 16.0, 0.08  # how far a route is drawn below its ends: at least, and of its width


_Places = dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Dot:
    """A switch or a host."""

    x: float
    y: float
    size: float
    kind: Literal["switch", "host"]
    state: str  # of the gravest finding, in small letters: `fault`; empty without one
    name: str
    switch: str  # itself, or the one of the host
    hosts: str = ""  # of a switch, folded: `h[00-07]`

    @property
    def title(self) -> str:
        """Return what the pointer shows: `leaf0: h[00-07]`."""
        return f"{self.name}: {self.hosts}" if self.hosts else self.name


class GroupBox(NamedTuple):
    """The place of a group."""

    x: float
    y: float
    width: float
    height: float
    name: str


class NamedLine(NamedTuple):
    """A link or a route of a finding."""

    points: tuple[tuple[float, float], ...]
    state: str
    name: str


class NameTag(NamedTuple):
    """A name beside a component: the middle of its foot."""

    x: float
    y: float
    name: str
    state: str  # empty: of a switch, or of its hosts


@dataclass
class Drawing:
    """What page and pictures show, in units of a box of WIDTH x `height`."""

    height: float
    words: str
    boxes: list[GroupBox] = field(default_factory=list)
    cables: list[tuple[tuple[float, float], ...]] = field(default_factory=list)  # ends of those without a finding
    links: list[NamedLine] = field(default_factory=list)
    routes: list[NamedLine] = field(default_factory=list)  # of pairs: their cables are not known
    dots: list[Dot] = field(default_factory=list)
    names: list[NameTag] = field(default_factory=list)

    @property
    def has_few_cables(self) -> bool:
        """True if cables are drawn darker: many together are dark."""
        return len(self.cables) <= FEW_CABLES


def drawing(source: ReportSource) -> Drawing | None:
    """The drawing of the run's topology; None without one, or if it has too many switches."""
    topology = source.diagnosis.topology
    if topology is None or not 1 < len(topology.switches) <= MOST_SWITCHES:
        return None
    levels = _levels(topology)
    places, drawn = _tree(topology, levels) if max(levels.values()) else _groups(topology)
    findings = [one for one in finding_order.faulty(source.found) if one.state is not State.NOT_JUDGED]
    routes = [one for one in findings if one.component == "route" and len(one.components[0].ends) == 2]
    states = _states([one for one in findings if one.component != "route"], set(topology.switches))
    _add_cables(drawn, topology, places, states)
    size = min(14.0, 0.8 * WIDTH / max(1, max(list(levels.values()).count(level) for level in set(levels.values()))))
    size = size if max(levels.values()) else 12.0
    hosts = _hosts_of_switches(source)
    for name, (x, y) in places.items():
        folded = fold(hosts.get(name, ()), ", ")
        drawn.dots.append(Dot(x, y, size, "switch", states.get(name, ""), name, name, folded))
    _add_hosts(drawn, hosts, places, states, ends_of_routes=frozenset().union(*(one.nodes for one in routes)))
    _add_routes(drawn, routes)
    _add_names(drawn, places, states)
    return drawn


def _add_names(drawn: Drawing, places: _Places, states: dict[str, str]) -> None:
    """Names of faulty hosts, switches and links, and of the switches and all hosts where they fit."""
    below: dict[str, float] = {}  # lowest edge of the hosts of each switch
    for dot in drawn.dots:
        below[dot.switch] = max(below.get(dot.switch, 0.0), dot.y + dot.size / 2)
    for dot in drawn.dots:
        if dot.name in states:
            _add_name(drawn, dot.x, below[dot.switch] + _LINE, dot.name, states[dot.name])
    if len(drawn.links) <= MOST_LINK_NAMES:
        for ((x, y), (u, v)), state, name in drawn.links:
            above = 12 if abs(v - y) < _LINE else 0  # a name on a level line would hide it
            legs = [(x + at * (u - x), y + at * (v - y) - above) for at in (0.5, 0.35, 0.65)]
            any(_add_name(drawn, *leg, name, state) for leg in legs)
    if len(places) <= MOST_SWITCH_NAMES:
        for name, (x, y) in places.items():
            _add_name(drawn, x, y - 12, name)
    before = len(drawn.names)
    lines = (_LINE, 2 * _LINE + 1)  # the second one below the name of a faulty host
    for dot in drawn.dots:
        low = below[dot.switch]
        if dot.hosts and not any(_add_name(drawn, dot.x, low + line, dot.hosts) for line in lines):
            del drawn.names[before:]
            break
    drawn.height = max(drawn.height, *(name.y + _LINE / 2 for name in drawn.names), 0.0)


def _add_name(drawn: Drawing, x: float, y: float, name: str, state: str = "") -> bool:
    """Add a name, unless it overprints another one."""
    half = 4.0 * len(name)
    x = min(max(x, half), WIDTH - half)
    free = all(abs(u - x) > half + 4.0 * len(other) or abs(v - y) > _LINE for u, v, other, _ in drawn.names)
    if free and (not state or len(drawn.names) < MOST_NAMES):
        drawn.names.append(NameTag(x, y, name, state))
        return True
    return False


def _levels(topology: Topology) -> dict[str, int]:
    """Distance of each switch from the next one with hosts."""
    neighbours = defaultdict(set)
    for cable in topology.cables:
        neighbours[cable.a].add(cable.b)
        neighbours[cable.b].add(cable.a)
    level = dict.fromkeys({*topology.host_switch.values(), *topology.nic_switch.values()} & set(topology.switches), 0)
    frontier = list(level)
    while frontier:
        next_level = list(dict.fromkeys(b for a in frontier for b in sorted(neighbours[a]) if b not in level))
        depth = level[frontier[0]] + 1
        level |= dict.fromkeys(next_level, depth)
        frontier = next_level
    return {name: level.get(name, 0) for name in topology.switches}


def _sorted(names: list[str], topology: Topology) -> list[str]:
    return sorted(names, key=lambda name: (natural(topology.switches[name].group), natural(name)))


def _tree(topology: Topology, levels: dict[str, int]) -> tuple[_Places, Drawing]:
    """Levels above each other, those with hosts at the bottom."""
    top = max(levels.values())
    drawn = Drawing(_ROW * top + 80.0, "switches with hosts at the bottom, the levels above them")
    places: _Places = {}
    for level in range(top + 1):
        row = _sorted([name for name in topology.switches if levels[name] == level], topology)
        for index, name in enumerate(row):
            places[name] = (WIDTH * (index + 0.5) / len(row), 34 + _ROW * (top - level))
    return places, drawn


def _groups(topology: Topology) -> tuple[_Places, Drawing]:
    """Boxes of groups, each with its switches."""
    members = defaultdict(list)
    for name, switch in topology.switches.items():
        members[switch.group or "all switches"].append(name)
    groups = sorted(members, key=natural)
    columns = min(len(groups), max(1, math.ceil(math.sqrt(1.8 * len(groups)))))
    width = WIDTH / columns
    most = max(map(len, members.values()))
    inside = max(1, math.ceil(math.sqrt(1.5 * most)))
    height = max(80.0, _PITCH * math.ceil(most / inside) + 34)
    drawn = Drawing(height * math.ceil(len(groups) / columns), "groups with their switches and hosts")
    places: _Places = {}
    for number, group in enumerate(groups):
        left, top = width * (number % columns), height * (number // columns)
        drawn.boxes.append(GroupBox(left + 4, top + 4, width - 8, height - 8, group))
        for index, name in enumerate(_sorted(members[group], topology)):
            x = left + (index % inside + 0.5) * width / inside
            places[name] = (x, top + 46 + _PITCH * (index // inside))
    return places, drawn


def _states(faulty: list[Finding], switches: set[str]) -> dict[str, str]:
    """State of each named host and switch, and of each link `a>b` and `b>a`; the gravest first."""
    states: dict[str, str] = {}
    for finding in faulty:
        for component in finding.components:
            state = str(finding.state).lower()
            ends = [end.nodes for end in component.ends]
            if len(ends) == 2 and switches.issuperset((*ends[0], *ends[1])):
                there = [(a, b) for a in ends[0] for b in ends[1]]
                for a, b in there if component.directed else [*there, *((b, a) for a, b in there)]:
                    states.setdefault(f"{a}>{b}", state)
            elif ends:
                for name in ends[0]:
                    states.setdefault(name, state)
    return states


def _add_cables(drawn: Drawing, topology: Topology, places: _Places, states: dict[str, str]) -> None:
    for cable in topology.cables:
        ends = places[cable.a], places[cable.b]
        judged_links = [link for link in (f"{cable.a}>{cable.b}", f"{cable.b}>{cable.a}") if link in states]
        if judged_links:
            name = cable.name if len(judged_links) > 1 else judged_links[0]
            drawn.links.append(NamedLine(ends, states[judged_links[0]], name))
        elif len(topology.cables) <= MOST_CABLES:
            drawn.cables.append(ends)
    if len(topology.cables) > MOST_CABLES:
        drawn.words += "; of the cables only those of findings"


def _add_routes(drawn: Drawing, routes: list[Finding]) -> None:
    """A line below its two ends for every route: of two sets of hosts one for each pair of their switches."""
    dots = {dot.name: dot for dot in drawn.dots}
    for finding in routes:
        for component in finding.components:
            first, second = (
                {dots[name].switch: dots[name] for name in end.nodes if name in dots} for end in component.ends
            )
            for a, b in product(first.values(), second.values()):
                if len(drawn.routes) == MOST_ROUTES:
                    drawn.words += f"; lines below hosts: {MOST_ROUTES} pairs of the gravest routes"
                    return
                middle, low = (a.x + b.x) / 2, max(a.y, b.y) + _SAG + _SAG_SHARE * abs(a.x - b.x)
                points = (a.x, a.y), (middle, low), (b.x, b.y)
                route = NamedLine(points, str(finding.state).lower(), component.label)
                drawn.routes.append(route)
                drawn.height = max(drawn.height, low + 10)
                if len(routes) <= MOST_LINK_NAMES:
                    legs = [(middle + at * (b.x - middle), low + at * (b.y - low)) for at in (0.0, 0.3, 0.6)]
                    any(_add_name(drawn, x, y + 4, route.name, route.state) for x, y in legs)
    if drawn.routes:
        drawn.words += "; lines below hosts: pairs whose route has a finding"


def _hosts_of_switches(source: ReportSource) -> dict[str, list[str]]:
    """Return the hosts of the run by the switches of their ranks; those without a known switch under the empty name."""
    hosts = defaultdict(list)
    for name, switches in sorted(
        zip(source.placement.hosts, source.placement.host_switches, strict=True), key=lambda host: natural(host[0])
    ):
        for switch in switches or ("",):
            hosts[switch].append(name)
    return hosts


def _add_hosts(
    drawn: Drawing,
    hosts: Mapping[str, Sequence[str]],
    places: _Places,
    states: dict[str, str],
    *,
    ends_of_routes: frozenset[str],
) -> None:
    """Hosts of the run below their switches; of many hosts only those of findings."""
    has_all_hosts = sum(map(len, hosts.values())) <= MOST_HOSTS
    on_switch = {
        switch: [name for name in names if has_all_hosts or name in states or name in ends_of_routes]
        for switch, names in hosts.items()
        if switch in places
    }
    pitch = 7.0 if has_all_hosts else 10.0
    for switch, names in on_switch.items():
        x, y = places[switch]
        columns = max(1, min(len(names), int(30 // pitch)))
        for index, name in enumerate(names):
            across = x + (index % columns - (columns - 1) / 2) * pitch
            down = y + 14 + (index // columns) * pitch
            drawn.dots.append(Dot(across, down, pitch - 2, "host", states.get(name, ""), name, switch))
            drawn.height = max(drawn.height, down + 30)
    if not has_all_hosts:
        drawn.words += "; of the hosts only those of findings"
