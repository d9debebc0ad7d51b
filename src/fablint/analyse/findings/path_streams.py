"""Ways between switches whose streams are slower than the same hosts' streams on their own switch.

Parts are compared with their like. Where there is no like, as with the one cable between two groups or the two cables
of two groups, a slow one is what its kind seems to take. A stream that has the way to itself tells all the same: it
goes as fast as the hosts at its ends can, however far they are apart. In rounds with others it may be slow because
links are shared; then it is asked for alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from fablint.analyse.data.flows import Flows
from fablint.analyse.data.pairs import Pairs
from fablint.analyse.data.places import Codes, Places
from fablint.analyse.words import NEXT_STEP, size_text
from fablint.model import Finding, Question, State
from fablint.names import plural
from fablint.routing import Routes

ASKED = -math.log(0.85)  # log loss of a way, beside the streams on a switch, from which it is measured alone
SLOW = -math.log(0.75)  # of streams alone, from which the way is at fault
FINE = -math.log(0.9)  # up to which it is not
FEWEST_ALONE = 6  # streams, of
FEWEST_ENDS = 2  # hosts at each end
FEWEST_NEAR = 4  # streams on switches
MOST_ASKED = 16  # ways
NEARLY_ALL = 0.9  # of a slow way's streams are slow

Way = tuple[int, int]  # codes of two switches of the run, the sender's first
Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Distances:
    """What one view tells of the ways: those at fault, and those to be measured alone."""

    findings: tuple[Finding, ...] = ()
    questions: tuple[Question, ...] = ()


@dataclass(frozen=True)
class _Streams:
    """Streams along one way: log loss beside those on a switch, the ranks at its ends, and which were alone."""

    loss: Values
    src: Codes
    dst: Codes
    alone: npt.NDArray[np.bool_]

    @property
    def median(self) -> float:
        """Of those that were alone, where there are enough; else of all."""
        return float(np.median(self.loss[self.alone] if self.told else self.loss))

    @property
    def told(self) -> bool:
        """Was it measured alone, often enough and between several hosts?"""
        ends = (np.unique(end[self.alone]).size for end in (self.src, self.dst))
        return int(self.alone.sum()) >= FEWEST_ALONE and all(size >= FEWEST_ENDS for size in ends)

    @property
    def worth_asking(self) -> bool:
        """Were its streams slow among others? Of a few only, it may be chance."""
        return not self.told and self.loss.size >= FEWEST_ALONE and self.median > ASKED

    @property
    def slow(self) -> bool:
        return self.told and self.median > SLOW and bool((self.loss[self.alone] > SLOW / 2).mean() >= NEARLY_ALL)


@dataclass
class Slow:
    """A directed link and the slow ways across it."""

    link: int
    ways: frozenset[Way]
    others: list[int] = field(default_factory=list)  # links that lie in series with it


def distant(flows: Flows, places: Places, routes: Routes | None, named: Collection[int]) -> Distances:
    """Judge the ways of a view of streams. `named` are hosts that are at fault themselves: they do not count."""
    if not flows.one_way or flows.star or flows.observations.partner is None or places.switch.max(initial=-1) < 1:
        return Distances()
    ways = _ways(flows, places, named)
    slow = {way for way, streams in ways.items() if streams.slow}
    asked = [way for way, streams in ways.items() if streams.worth_asking]
    asked.sort(key=lambda way: -ways[way].median)
    questions = tuple(_question(way, ways[way], places) for way in asked[:MOST_ASKED])
    if not slow:
        return Distances((), questions)
    if routes is None or routes.routing.kind in ("adaptive", "ecmp"):
        return Distances(tuple(_unknown(flows, ways, slow, places)), questions)
    fine = {way for way, streams in ways.items() if streams.median < FINE}
    found = links_of(slow, fine, places, routes)
    return Distances(tuple(_findings(flows, found, ways, places, routes)), questions)


def _ways(flows: Flows, places: Places, named: Collection[int]) -> Mapping[Way, _Streams]:
    """The streams between each two switches; empty where too few went on a switch to compare them with."""
    pairs = Pairs.log_times(flows.observations)
    assert pairs.partner is not None
    src, column = np.nonzero(~np.isnan(pairs.value))
    dst = pairs.partner[src, column]
    clean = ~np.isin(places.host[src], list(named)) & ~np.isin(places.host[dst], list(named))
    clean &= (places.switch[src] >= 0) & (places.switch[dst] >= 0) & (places.host[src] != places.host[dst])
    src, dst, column = src[clean], dst[clean], column[clean]
    value = pairs.value[src, column].astype(np.float64)
    near = places.switch[src] == places.switch[dst]
    if near.sum() < FEWEST_NEAR:
        return {}
    loss = value - float(np.median(value[near]))
    alone = ~flows.concurrent[column]
    a, b = places.switch[src], places.switch[dst]
    found = {}
    for way in {(int(x), int(y)) for x, y in zip(a[~near], b[~near], strict=True)}:
        on = (a == way[0]) & (b == way[1])
        found[way] = _Streams(loss[on], src[on], dst[on], alone[on])
    return found


def _question(way: Way, streams: _Streams, places: Places) -> Question:
    """Pairs of different hosts along a way, each rank at most twice."""
    pairs = np.unique(np.stack([streams.src, streams.dst], axis=1), axis=0)
    pairs = np.random.default_rng(way).permutation(pairs)
    chosen: list[tuple[int, int]] = []
    for a, b in pairs.tolist():
        if sum(a in pair for pair in chosen) < 2 and sum(b in pair for pair in chosen) < 2:
            chosen.append((a, b))
    name = ">".join(places.switches[code] for code in way)
    return Question("route", name, np.array(chosen[:FEWEST_ALONE]).reshape(-1, 2))


# ------------------------------------------------------------------------------------------------ which link


def links_of(slow: set[Way], fine: set[Way], places: Places, routes: Routes) -> list[Slow]:
    """Links that only slow ways cross, those that explain most first, until every slow way is explained."""
    crossed: dict[int, set[Way]] = {}
    for way in slow | fine:
        for link in _crossed(way, places, routes):
            crossed.setdefault(link, set()).add(way)
    candidates = {link: frozenset(ways) for link, ways in crossed.items() if ways <= slow}
    left, found = set(slow), list[Slow]()
    while left:
        best = max(candidates, key=lambda link: len(candidates[link] & left), default=None)
        if best is None or not candidates[best] & left:
            break
        alike = [link for link, ways in candidates.items() if ways == candidates[best] and link != best]
        found.append(Slow(best, candidates[best], alike))
        left -= candidates[best]
    return _without_gates(found, routes, places)


def _crossed(way: Way, places: Places, routes: Routes) -> list[int]:
    """Directed links of a way. Where the destination host decides, those to the first of its switch."""
    code = {name: index for index, name in enumerate(routes.switches)}
    ends = [code.get(places.switches[switch], -1) for switch in way]
    host = int(places.number[np.flatnonzero(places.switch == way[1])[0]])
    hops = routes.hops(np.array([ends[0]]), np.array([ends[1]]), np.array([host]))
    return [int(link) for link in hops.ravel() if link >= 0]


def _without_gates(found: Sequence[Slow], routes: Routes, places: Places) -> list[Slow]:
    """The same without the ways of a switch out of its group where the way to one neighbour in it is slow as well.

    How a switch reaches other groups is presumed where nobody told; it is through that neighbour.
    """
    own = set(places.switches)
    inside = [one for one in found if all(end in own for end in _ends(one.link, routes))]
    kept = []
    for one in found:
        here, there = _ends(one.link, routes)
        switch = here if here in own else there
        explained = [other for other in inside if switch in _ends(other.link, routes)]
        if (here in own and there in own) or not (here in own or there in own) or not explained:
            kept.append(one)
    return kept


def _ends(link: int, routes: Routes) -> tuple[str, str]:
    here, there = routes.names[link].split(">")
    return here, there


# ------------------------------------------------------------------------------------------------ words


def _findings(
    flows: Flows, found: Sequence[Slow], ways: Mapping[Way, _Streams], places: Places, routes: Routes
) -> list[Finding]:
    """One for each link, or for the cable where both its directions are slow."""
    by_cable: dict[str, list[Slow]] = {}
    for one in found:
        by_cable.setdefault(routes.cable(one.link), []).append(one)
    findings = []
    for cable, slow in by_cable.items():
        both = len(slow) > 1
        streams = [ways[way] for one in slow for way in one.ways]
        name = cable if both else routes.names[slow[0].link]
        series = [routes.cable(link) if both else routes.names[link] for one in slow for link in one.others]
        findings.append(
            Finding(
                state=State.FAULT,
                component="cable" if both else "link",
                name=name,
                direction="both" if both else None,
                quantity="bandwidth",
                **_effect(streams),
                evidence=_evidence(flows, streams, places),
                alternatives=tuple(dict.fromkeys(other for other in series if other != name)),
                next_step=_next_step("cable" if both else "link", name, places),
            )
        )
    return findings


def _next_step(component: Literal["cable", "link"], name: str, places: Places) -> str:
    """A way through a group is presumed: its cables have to be found first."""
    ends = name.replace(">", "=").split("=")
    if all(end in places.switches for end in ends):
        return NEXT_STEP[component].format(name=name)
    return (
        f"find the cables between {' and '.join(ends)} (fablint discover --from), then read the counters of their ports"
    )


def _unknown(flows: Flows, ways: Mapping[Way, _Streams], slow: set[Way], places: Places) -> list[Finding]:
    """Where nobody knows which links the ways cross."""
    findings = []
    for way in sorted(slow):
        name = ">".join(places.switches[code] for code in way)
        findings.append(
            Finding(
                state=State.SUSPECT,
                component="route",
                name=name,
                quantity="bandwidth",
                **_effect([ways[way]]),
                evidence=_evidence(flows, [ways[way]], places),
                next_step=NEXT_STEP["route"].format(name=name),
            )
        )
    return findings


def _effect(streams: Sequence[_Streams]) -> dict[str, float | tuple[float, float]]:
    loss = np.concatenate([one.loss[one.alone] for one in streams])
    low, middle, high = (math.expm1(-float(x)) for x in np.quantile(loss, (0.975, 0.5, 0.025)))
    return {"effect": middle, "interval": (low, high)}


def _evidence(flows: Flows, streams: Sequence[_Streams], places: Places) -> str:
    loss = np.concatenate([one.loss[one.alone] for one in streams])
    hosts = {int(host) for one in streams for end in (one.src, one.dst) for host in places.host[end[one.alone]]}
    slow = int((loss > SLOW / 2).sum())
    return (
        f"{flows.row.kernel} {size_text(flows.observations.size)}, one stream at a time: {slow} of"
        f" {plural(loss.size, 'stream')} between {plural(len(hosts), 'host')} slower than streams on a switch"
    )
