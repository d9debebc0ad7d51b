"""Routes between switches, against a search that enumerates every shortest path."""

from collections import deque
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fablint.analyse import diagnose
from fablint.analyse.routes import MAX_HOPS, unique_routes
from fablint.model import Cable, State, Switch, Topology
from fablint.simulate import Fault, full_mesh, simulate


def topology_of(edges: list[tuple[int, int]], size: int) -> Topology:
    names = [f"s{index}" for index in range(size)]
    return Topology({name: Switch(name) for name in names}, {}, tuple(Cable(names[a], names[b]) for a, b in edges))


def shortest_paths(edges: set[tuple[int, int]], size: int, start: int) -> dict[int, list[tuple[int, ...]]]:
    """All shortest paths from one switch, by breadth-first search."""
    found: dict[int, list[tuple[int, ...]]] = {start: [(start,)]}
    queue = deque([(start,)])
    while queue:
        path = queue.popleft()
        for end in range(size):
            if (path[-1], end) not in edges or end in path:
                continue
            known = found.get(end)
            if known is None or len(known[0]) == len(path) + 1:
                found.setdefault(end, []).append((*path, end))
                queue.append((*path, end))
    return found


@settings(max_examples=60, deadline=None)
@given(size=st.integers(2, 7), data=st.data())
def test_routes_are_the_unique_shortest_paths(size: int, data: st.DataObject) -> None:
    every = [(a, b) for a in range(size) for b in range(a)]
    edges = data.draw(st.lists(st.sampled_from(every), max_size=10))
    routes = unique_routes(topology_of(edges, size), [f"s{index}" for index in range(size)])
    both = {(a, b) for a, b in edges} | {(b, a) for a, b in edges}
    for start in range(size):
        paths = shortest_paths(both, size, start)
        for end in range(size):
            links = [routes.links[link] for link in routes.hops[:, start, end] if link >= 0]
            wanted = paths.get(end, [])
            if start != end and len(wanted) == 1 and len(wanted[0]) <= MAX_HOPS + 1:
                path = [f"s{index}" for index in wanted[0]]
                assert links == list(pairwise(path))
            else:
                assert links == []


def test_parallel_cables_are_one_link() -> None:
    routes = unique_routes(topology_of([(0, 1), (1, 0), (0, 1)], 2), ["s0", "s1"])
    assert routes.links == (("s0", "s1"), ("s1", "s0"))
    assert np.array_equal(routes.crossing(1), [[False, False], [True, False]])


def test_a_link_in_the_middle_of_a_tree_is_found_by_all_that_cross_it() -> None:
    mesh = full_mesh(8, 6)
    spines = {name: Switch(name, "g0") for name in ("t0", "t1")}
    left = [f"s{index}" for index in (0, 1, 2, 3, 6, 7)]
    right = ["s4", "s5"]
    uplinks = [Cable(leaf, "t0") for leaf in left] + [Cable(leaf, "t1") for leaf in right] + [Cable("t0", "t1")]
    tree = Topology({**mesh.topology.switches, **spines}, mesh.topology.host_switch, tuple(uplinks))
    faults = [Fault("link", f"{a}>{b}", bandwidth_factor=0.6) for a in left for b in right]
    verdict = diagnose(simulate(mesh, faults=faults), tree).verdict
    fault = [(f.component, f.name) for f in verdict.findings if f.state is State.FAULT]
    assert fault == [("link", "t0>t1")]
