"""Which component explains a set of slow paths: a link that only slow ones cross, or what their ends have in common."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fablint.analyse.settings import HALF
from fablint.model import ComponentKind, ComponentRef, Placement
from fablint.topology.routing import Routes

Path = tuple[int, int]  # codes of two switches of the run, the sender's first


@dataclass(frozen=True)
class Explanation:
    """A component and the slow paths across it."""

    component: ComponentRef
    paths: frozenset[Path]
    series: tuple[ComponentRef, ...] = ()  # components that the same paths cross


@dataclass
class SlowLink:
    """A directed link and the slow paths across it."""

    link: int
    paths: frozenset[Path]
    others: list[int] = field(default_factory=list)  # links that lie in series with it


def both_directions(paths: Collection[Path]) -> set[Path]:
    """The paths in both directions: round trips cross both."""
    return {*paths, *((b, a) for a, b in paths)}


# ------------------------------------------------------------------------------------------------ known links


def over_links(slow: set[Path], fine: set[Path], placement: Placement, routes: Routes) -> list[Explanation]:
    """Links that explain the slow paths, and cables where both directions of one do."""
    return _over_cables(links_of(slow, fine, placement, routes), routes)


def _over_cables(slow_links: Sequence[SlowLink], routes: Routes) -> list[Explanation]:
    """The links as explanations: a cable where both directions of one are slow."""
    by_cable: dict[int, list[SlowLink]] = {}
    for link in slow_links:
        by_cable.setdefault(link.link // 2, []).append(link)
    explanations = []
    for links in by_cable.values():
        reference = routes.cable_component if len(links) > 1 else routes.component
        component = reference(links[0].link)
        paths = frozenset().union(*(one.paths for one in links))
        others = dict.fromkeys(reference(other) for one in links for other in one.others)
        explanations.append(Explanation(component, paths, tuple(one for one in others if one != component)))
    return explanations


def links_of(slow: set[Path], fine: set[Path], placement: Placement, routes: Routes) -> list[SlowLink]:
    """Links that only slow paths cross, those that explain most first, until every slow path is explained."""
    crossed: dict[int, set[Path]] = {}
    for path in slow | fine:
        for link in _crossed(path, placement, routes):
            crossed.setdefault(link, set()).add(path)
    candidates = {link: frozenset(paths) for link, paths in crossed.items() if paths <= slow}
    left, links = set(slow), list[SlowLink]()
    while left:
        best = max(candidates, key=lambda link: len(candidates[link] & left), default=None)
        if best is None or not candidates[best] & left:
            break
        equal = [link for link, paths in candidates.items() if paths == candidates[best] and link != best]
        links.append(SlowLink(best, candidates[best], equal))
        left -= candidates[best]
    return _without_gates(links, routes, placement)


def _crossed(path: Path, placement: Placement, routes: Routes) -> list[int]:
    """Directed links of a path. Where the destination host decides, those to the first of its switch."""
    code = {name: index for index, name in enumerate(routes.switches)}
    ends = [code.get(placement.switches[switch], -1) for switch in path]
    host = int(placement.location[np.flatnonzero(placement.switch == path[1])[0]])
    hops = routes.hops(np.array([ends[0]]), np.array([ends[1]]), np.array([host]))
    return [int(link) for link in hops.ravel() if link >= 0]


def _without_gates(slow_links: Sequence[SlowLink], routes: Routes, placement: Placement) -> list[SlowLink]:
    """Return the same without the paths of a switch out of its group where the path to one neighbour in it is slow as
    well.

    How a switch reaches other groups is presumed where no source declares it; it is through that neighbour.
    """
    host_switches = set(placement.switches)
    inside = [one for one in slow_links if all(end in host_switches for end in _ends(one.link, routes))]
    kept = []
    for slow_link in slow_links:
        here, there = _ends(slow_link.link, routes)
        switch = here if here in host_switches else there
        explained = [other for other in inside if switch in _ends(other.link, routes)]
        if (
            (here in host_switches and there in host_switches)
            or not (here in host_switches or there in host_switches)
            or not explained
        ):
            kept.append(slow_link)
    return kept


def _ends(link: int, routes: Routes) -> tuple[str, str]:
    here, there = (routes.switches[end] for end in routes.ends[link].tolist())
    return here, there


# ------------------------------------------------------------------------------------------------ unknown links


def over_ends(slow: set[Path], measured: set[Path], placement: Placement) -> list[Explanation]:
    """The fewest sets of paths that have an end in common and of which all are slow.

    All paths out of a switch, into it, or both, and all between two groups; what is left is one path each, in one
    direction (`s0>s1`) or in both (`s0=s1`).
    """
    candidates = _common_ends(measured, placement)
    candidates = {key: paths for key, paths in candidates.items() if paths <= slow and len(paths) > 1}
    left, result = set(slow), list[Explanation]()
    while left:
        key = max(candidates, key=lambda key: len(candidates[key] & left), default=None)
        if key is None or len(candidates[key] & left) < 2:
            break
        result.append(Explanation(key, candidates[key]))
        left -= candidates[key]
    for path in sorted(left):
        back = path[::-1]
        if back in left and back < path:
            continue
        component = ComponentRef.of("cable" if back in left else "link", *(placement.switches[code] for code in path))
        result.append(Explanation(component, frozenset({path, back} & left)))
    return result


def _common_ends(measured: set[Path], placement: Placement) -> Mapping[ComponentRef, frozenset[Path]]:
    """Sets of paths by component."""
    by_component: dict[ComponentRef, frozenset[Path]] = {}
    for switch in sorted({end for path in measured for end in path}):
        name = placement.switches[switch]
        out = frozenset(path for path in measured if path[0] == switch)
        into = frozenset(path for path in measured if path[1] == switch)
        kinds: tuple[tuple[frozenset[Path], ComponentKind], ...] = (
            (out, "link"),
            (into, "link"),
            (out | into, "cable"),
        )
        for paths, kind in kinds:
            others = sorted({placement.switches[end] for path in paths for end in path} - {name})
            if len({frozenset(path) for path in paths}) > 1:
                by_component[ComponentRef.of(kind, *((others, name) if paths is into else (name, others)))] = paths
    return {**by_component, **_between_groups(measured, placement)}


def _between_groups(measured: set[Path], placement: Placement) -> Mapping[ComponentRef, frozenset[Path]]:
    group = {int(switch): int(code) for switch, code in zip(placement.switch, placement.group, strict=True)}
    names = placement.groups
    between: dict[Path, set[Path]] = {}
    for path in measured:
        between.setdefault((group[path[0]], group[path[1]]), set()).add(path)
    by_component: dict[ComponentRef, frozenset[Path]] = {}
    for (a, b), paths in between.items():
        if a == b or len(paths) < 2:
            continue
        back = between.get((b, a), set())
        by_component[ComponentRef.of("link", names[a], names[b])] = frozenset(paths)
        if back and a < b:
            by_component[ComponentRef.of("cable", names[a], names[b])] = frozenset(paths | back)
    return by_component


# ------------------------------------------------------------------------------------------------ one of several links


def over_candidates(slow: set[Path], fine: set[Path], placement: Placement, routes: Routes) -> list[Explanation]:
    """Return of paths that take one of several: links that most of the slow paths and fewest of the others may take.

    Links between which the paths do not decide are the series of an explanation by path.
    """
    code = {name: index for index, name in enumerate(routes.switches)}
    ordered = sorted(slow | fine)
    src, dst = (np.array([code.get(placement.switches[path[end]], -1) for path in ordered], np.int32) for end in (0, 1))
    query, link, _ = routes.exposure(src, dst)
    may: dict[int, set[Path]] = {}
    for at, over in zip(query.tolist(), link.tolist(), strict=True):
        may.setdefault(over, set()).add(ordered[at])
    left, links, routed = set(slow), list[SlowLink](), list[Explanation]()
    while left:
        score = {one: len(paths & left) - HALF * len(paths & fine) for one, paths in may.items()}
        best = max((one for one in score if may[one] & left), key=lambda one: score[one], default=None)
        if best is None or score[best] <= 0:
            break
        paths = frozenset(may[best] & left)
        equal = [one for one in score if score[one] == score[best] and may[one] & left == paths]
        left -= paths
        if len(equal) == 1:
            links.append(SlowLink(best, paths))
            continue
        [whole] = over_ends(set(paths), set(paths), placement)[:1]
        routed.append(replace(_as_route(whole), paths=paths, series=tuple(map(routes.component, equal))))
    joined = {frozenset(name.split(">")) for name in routes.names}
    return [
        *_over_cables(links, routes),
        *routed,
        *(
            case if case.component.nodes in joined else _as_route(case)
            for case in over_ends(left, left | fine, placement)
        ),
    ]


def _as_route(explanation: Explanation) -> Explanation:
    """Return it as a route: which cables messages between these ends cross is not known."""
    return replace(explanation, component=explanation.component.model_copy(update={"kind": "route"}))
