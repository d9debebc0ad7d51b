"""Routes between switches, against searches that enumerate every shortest path and walk every table."""

from __future__ import annotations

from collections import Counter, deque
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fablint.model import Cable, Routing, Switch, Topology
from fablint.simulate import Fabric, dragonfly, fat_tree, multi_rail, torus
from fablint.topology.routing import MAX_HOPS, Routes, codes_of, routes_of

Edges = list[tuple[int, int]]
Path = tuple[int, ...]


def topology_of(edges: Edges, size: int, routing: Routing | None = None) -> Topology:
    """Switches s0, s1, ... with one host each: h0, h1, ..."""
    names = [f"s{index}" for index in range(size)]
    return Topology(
        {name: Switch(name) for name in names},
        {f"h{index}": name for index, name in enumerate(names)},
        tuple(Cable(names[a], names[b]) for a, b in edges),
        routing=routing or Routing(),
    )


def shortest_paths(edges: Edges, size: int, start: int) -> dict[int, list[Path]]:
    """All shortest paths from one switch, by breadth-first search."""
    both = {*edges, *((b, a) for a, b in edges)}
    found: dict[int, list[Path]] = {start: [(start,)]}
    queue = deque([(start,)])
    while queue:
        path = queue.popleft()
        for end in range(size):
            if (path[-1], end) not in both or end in path:
                continue
            known = found.get(end)
            if known is None or len(known[0]) == len(path) + 1:
                found.setdefault(end, []).append((*path, end))
                queue.append((*path, end))
    return found


def named_path(routes: Routes, src: int, dst: int, host: int) -> list[str]:
    """Names of the links of one message."""
    (hops,) = routes.hops(*(np.array([code]) for code in (src, dst, host)))
    return [routes.names[link] for link in hops.tolist() if link >= 0]


def named(path: Path) -> list[str]:
    return [f"s{a}>s{b}" for a, b in pairwise(path)]


def every_pair(fabric: Fabric) -> tuple[np.ndarray, np.ndarray]:
    """Ports of all pairs on different switches."""
    src, dst = (index.ravel() for index in np.indices((fabric.ports, fabric.ports)))
    apart = fabric.port_switch[src] != fabric.port_switch[dst]
    return src[apart], dst[apart]


def hops_of(fabric: Fabric, src: np.ndarray, dst: np.ndarray) -> np.ndarray:
    """Links of the messages between ports."""
    at = fabric.port_switch
    return fabric.routes.hops(at[src], at[dst], (dst // fabric.rails).astype(np.int32))


EDGES = st.integers(2, 7).flatmap(
    lambda size: st.tuples(
        st.just(size), st.lists(st.sampled_from([(a, b) for a in range(size) for b in range(a)]), max_size=10)
    )
)

# ------------------------------------------------------------------------------------------------ shortest


@settings(max_examples=60)
@given(graph=EDGES, kind=st.sampled_from(["shortest", "ecmp"]))
def test_hops_are_the_shortest_path_where_there_is_one_only(graph: tuple[int, Edges], kind: str) -> None:
    size, edges = graph
    routes = routes_of(topology_of(edges, size, Routing(kind)))
    assert routes.certain
    for start in range(size):
        paths = shortest_paths(edges, size, start)
        for end in range(size):
            wanted = paths.get(end, [])
            unique = start != end and len(wanted) == 1
            assert named_path(routes, start, end, end) == (named(wanted[0]) if unique else [])


def test_all_queries_at_once_are_those_one_by_one() -> None:
    fabric = fat_tree(3, 3)
    src, dst = every_pair(fabric)
    together = hops_of(fabric, src, dst)
    for query in range(0, src.size, 37):
        (alone,) = hops_of(fabric, src[query : query + 1], dst[query : query + 1])
        assert alone.tolist() == [link for link in together[query].tolist() if link >= 0]


@pytest.mark.parametrize("fabric", [fat_tree(4, 3), dragonfly(5, 4, 2)], ids=["tree", "dragonfly"])
def test_a_path_crosses_only_links_of_shortest_paths(fabric: Fabric) -> None:
    routes = routes_of(fabric.topology)
    leaves = np.unique(routes.codes(list(fabric.topology.host_switch.values())))
    links = np.arange(len(routes.ends))
    for start in leaves.tolist():
        on_shortest = routes.are_on_shortest(links, start, leaves)
        _, link, _ = (entry for entry in routes.exposure(np.full(leaves.size, start), leaves))
        assert set(np.flatnonzero(on_shortest.any(axis=1)).tolist()) == set(link.tolist())


def test_links_are_selected_by_the_names_of_their_switches() -> None:
    routes = routes_of(fat_tree(4).topology)
    chosen = [tuple(routes.names[link].split(">")) for link in (0, 3)]
    assert np.flatnonzero(routes.are_among([*chosen, ("no", "switch")])).tolist() == [0, 3]


def test_parallel_cables_are_one_link() -> None:
    routes = routes_of(topology_of([(0, 1), (1, 0), (0, 1), (1, 2)], 3))
    assert routes.names == ("s0>s1", "s1>s0", "s1>s2", "s2>s1")
    assert [routes.cable_component(link).label for link in range(4)] == ["s0=s1", "s0=s1", "s1=s2", "s1=s2"]
    assert named_path(routes, 0, 2, 2) == ["s0>s1", "s1>s2"]


def test_switches_that_no_cable_joins_have_no_path() -> None:
    routes = routes_of(topology_of([(0, 1), (2, 3)], 4))
    assert named_path(routes, 0, 1, 1) == ["s0>s1"]
    assert named_path(routes, 0, 2, 2) == []
    query, link, _ = routes.exposure(np.array([0, 0]), np.array([2, 1]))
    assert (query.tolist(), [routes.names[one] for one in link]) == ([1], ["s0>s1"])


@pytest.mark.parametrize("kind", ["shortest", "d-mod-k", "tables", "ecmp", "adaptive"])
def test_without_cables_no_path_is_known(kind: str) -> None:
    routes = routes_of(topology_of([], 3, Routing(kind)))
    assert routes.ends.shape == (0, 2)
    assert routes.names == ()
    assert named_path(routes, 0, 2, 2) == []
    assert [part.size for part in routes.exposure(np.array([0, 1]), np.array([2, 2]))] == [0, 0, 0]


@pytest.mark.parametrize("kind", ["shortest", "d-mod-k", "tables", "ecmp", "adaptive"])
def test_unknown_ends_have_no_path(kind: str) -> None:
    routes = routes_of(topology_of([(0, 1)], 2, Routing(kind, tables={"s0": {"h1": "s1"}})))
    unknown = [(-1, 1, 1), (0, -1, -1), (-1, -1, -1)]
    assert (routes.hops(*(np.array(codes, dtype=np.int32) for codes in zip(*unknown, strict=True))) == -1).all()
    assert routes.exposure(np.array([-1, 0, -1]), np.array([1, -1, -1]))[0].size == 0


def test_names_have_codes() -> None:
    assert codes_of(["b", "unknown", "a"], {"a": 0, "b": 1}).tolist() == [1, -1, 0]


# ------------------------------------------------------------------------------------------------ d-mod-k

TREES = {"2 levels": fat_tree(4, 2), "wide": fat_tree(7, 2), "3 levels": fat_tree(3, 3), "deep": fat_tree(4, 3)}
LEVELS = ("leaf", "agg", "spine", "core")


@pytest.mark.parametrize("tree", TREES)
def test_a_message_climbs_to_the_nearest_common_switch_and_down_again(tree: str) -> None:
    fabric = TREES[tree]
    arity = int((fabric.port_switch == fabric.port_switch[0]).sum())
    src, dst = every_pair(fabric)
    hops = hops_of(fabric, src, dst)
    same_pod = src // arity**2 == dst // arity**2
    assert np.array_equal((hops >= 0).sum(axis=1), np.where(same_pod, 2, 4))
    ends = fabric.routes.ends
    for query in range(0, src.size, 29):
        links = [link for link in hops[query].tolist() if link >= 0]
        places = [fabric.port_switch[src[query]], *ends[links, 1]]
        assert places[:-1] == ends[links, 0].tolist()
        assert places[-1] == fabric.port_switch[dst[query]]


@pytest.mark.parametrize("tree", TREES)
def test_every_destination_has_one_path_down(tree: str) -> None:
    fabric = TREES[tree]
    src, dst = every_pair(fabric)
    hops = hops_of(fabric, src, dst)
    height = np.array([LEVELS.index(name.rstrip("0123456789")) for name in fabric.routes.switches])
    down = height[fabric.routes.ends[:, 0]] > height[fabric.routes.ends[:, 1]]
    for host in range(len(fabric.hosts)):
        links = np.unique(hops[dst == host])
        links = links[links >= 0]
        links = links[down[links]]
        entered = fabric.routes.ends[links, 0]
        assert links.size == np.unique(height[entered]).size  # one link per level


@pytest.mark.parametrize("tree", TREES)
def test_up_links_of_a_leaf_share_the_destinations_evenly(tree: str) -> None:
    fabric = TREES[tree]
    src, dst = every_pair(fabric)
    first = hops_of(fabric, src, dst)[:, 0]
    arity = int((fabric.port_switch == fabric.port_switch[0]).sum())
    for host in (0, len(fabric.hosts) // 2):
        shares = Counter(first[src == host].tolist())
        assert len(shares) == arity
        assert set(shares.values()) == {(len(fabric.hosts) - arity) // arity}


@pytest.mark.parametrize("tree", TREES)
def test_shifts_collide_nowhere(tree: str) -> None:
    """Zahavi, Fat-Trees Routing and Node Ordering Providing Contention Free Traffic (2012)."""
    fabric = TREES[tree]
    hosts = np.arange(len(fabric.hosts))
    for shift in range(1, hosts.size):
        to = (hosts + shift) % hosts.size
        apart = fabric.port_switch[hosts] != fabric.port_switch[to]
        hops = hops_of(fabric, hosts[apart], to[apart])
        assert np.bincount(hops[hops >= 0]).max() == 1


def test_rails_have_separate_paths() -> None:
    fabric = multi_rail(fat_tree(3, 2), 2)
    at = fabric.port_switch
    for rail in (0, 1):
        (hops,) = fabric.routes.hops(at[[rail]], at[[2 * 8 + rail]], np.array([8]))
        names = [fabric.routes.names[link] for link in hops]
        assert names == [f"p{rail}.leaf0>p{rail}.spine2", f"p{rail}.spine2>p{rail}.leaf2"]
    crossed = fabric.routes.hops(at[[0]], at[[2 * 8 + 1]], np.array([8]))
    assert (crossed == -1).all()  # from one plane into the other there is no cable


# ------------------------------------------------------------------------------------------------ forwarding tables


def test_tables_are_followed_even_on_detours() -> None:
    tables = {"s0": {"h2": "s3"}, "s3": {"h2": "s2"}, "s1": {"h2": "s0"}}
    routes = routes_of(topology_of([(0, 1), (1, 2), (2, 3), (3, 0)], 4, Routing("tables", tables=tables)))
    assert named_path(routes, 0, 2, 2) == ["s0>s3", "s3>s2"]
    assert named_path(routes, 1, 2, 2) == ["s1>s0", "s0>s3", "s3>s2"]  # although s2 is its neighbour


@pytest.mark.parametrize(
    ("tables", "why"),
    [
        ({"s0": {"h3": "s1"}, "s1": {"h3": "s0"}}, "a loop"),
        ({"s0": {"h3": "s1"}, "s1": {"h3": "s2"}, "s2": {"h3": "s0"}}, "a longer loop"),
        ({"s0": {"h3": "s1"}}, "a hole"),
        ({}, "nothing at all"),
        ({"s0": {"h3": "s3"}}, "a neighbour that is none"),
        ({"s0": {"h3": "s0"}}, "itself"),
        ({"s0": {"unknown": "s1"}}, "another host"),
    ],
)
def test_tables_that_lead_nowhere_leave_the_path_unknown(tables: dict[str, dict[str, str]], why: str) -> None:
    routes = routes_of(topology_of([(0, 1), (1, 2), (2, 0), (2, 3)], 4, Routing("tables", tables=tables)))
    assert named_path(routes, 0, 3, 3) == [], why


def test_a_host_that_no_table_knows_has_no_path() -> None:
    routes = routes_of(topology_of([(0, 1)], 2, Routing("tables", tables={"s0": {"h1": "s1"}})))
    assert named_path(routes, 0, 1, 1) == ["s0>s1"]
    assert named_path(routes, 0, 1, -1) == []


def walk(tables: dict[str, dict[str, str]], edges: Edges, src: int, dst: int) -> list[str]:
    both = {*edges, *((b, a) for a, b in edges)}
    at, links = src, []
    while at != dst:
        beyond = tables.get(f"s{at}", {}).get(f"h{dst}")
        if beyond is None or (at, int(beyond[1:])) not in both or len(links) >= MAX_HOPS:
            return []
        links.append(f"s{at}>{beyond}")
        at = int(beyond[1:])
    return links


@settings(max_examples=60)
@given(graph=EDGES, seed=st.integers(0, 1000), holes=st.sampled_from([0.0, 0.2]))
def test_hops_are_a_walk_through_the_tables(graph: tuple[int, Edges], seed: int, holes: float) -> None:
    size, edges = graph
    rng = np.random.default_rng(seed)
    tables = {
        f"s{at}": {f"h{host}": f"s{rng.integers(size)}" for host in range(size) if rng.random() >= holes}
        for at in range(size)
    }
    routes = routes_of(topology_of(edges, size, Routing("tables", tables=tables)))
    for src in range(size):
        for dst in range(size):
            assert named_path(routes, src, dst, dst) == walk(tables, edges, src, dst)


def test_a_torus_goes_dimension_by_dimension() -> None:
    fabric = torus((4, 3), 1)
    src, dst = every_pair(fabric)
    hops = hops_of(fabric, src, dst)
    for a, b, links in zip(src.tolist(), dst.tolist(), hops, strict=True):
        (x0, y0), (x1, y1) = divmod(a, 3), divmod(b, 3)
        apart = [min((x1 - x0) % 4, (x0 - x1) % 4), min((y1 - y0) % 3, (y0 - y1) % 3)]
        assert (links >= 0).sum() == sum(apart)


# ------------------------------------------------------------------------------------------------ exposure


def chances(paths: list[Path]) -> dict[str, float]:
    """Probability that a message crosses each link, when every switch chooses evenly among its next ones."""
    found: dict[str, float] = {}
    ahead: dict[Path, set[int]] = {}
    for path in paths:
        for place in range(1, len(path)):
            ahead.setdefault(path[:place], set()).add(path[place])
    for begin, beyond in ahead.items():
        chance = float(np.prod([1 / len(ahead[begin[:place]]) for place in range(1, len(begin))]))
        for end in beyond:
            name = f"s{begin[-1]}>s{end}"
            found[name] = found.get(name, 0.0) + chance / len(beyond)
    return found


@settings(max_examples=60)
@given(graph=EDGES, share=st.sampled_from([1.0, 0.5, 0.25]), kind=st.sampled_from(["ecmp", "adaptive"]))
def test_exposure_is_that_of_an_even_choice_at_every_switch(graph: tuple[int, Edges], share: float, kind: str) -> None:
    size, edges = graph
    routes = routes_of(topology_of(edges, size, Routing(kind, share)))  # a hashed message has no detours
    taken = share if kind == "adaptive" else 1.0
    src, dst = (index.ravel().astype(np.int32) for index in np.indices((size, size)))
    query, link, chance = routes.exposure(src, dst)
    for number in range(src.size):
        paths = shortest_paths(edges, size, int(src[number])).get(int(dst[number]), [])
        mine = query == number
        got = dict(zip([routes.names[one] for one in link[mine]], chance[mine].tolist(), strict=True))
        assert got == pytest.approx({name: taken * one for name, one in chances(paths).items()})
        assert sum(got.values()) == pytest.approx(taken * (len(paths[0]) - 1) if paths else 0.0)


@pytest.mark.parametrize("fabric", [dragonfly(5, 4, 2, 0.4), dragonfly(9, 4, 2, 0.9)], ids=["small", "wide"])
def test_exposure_of_a_dragonfly_adds_up_to_the_lengths_of_its_paths(fabric: Fabric) -> None:
    size = len(fabric.routes.switches)
    src, dst = (index.ravel().astype(np.int32) for index in np.indices((size, size)))
    query, _, chance = fabric.routes.exposure(src, dst)
    edges = [tuple(ends) for ends in fabric.routes.ends[::2].tolist()]
    total = np.bincount(query, weights=chance, minlength=src.size)
    for start in (0, 7):
        paths = shortest_paths(edges, size, start)  # type: ignore[arg-type]
        lengths = [len(paths[end][0]) - 1 for end in range(size)]
        assert total[src == start] == pytest.approx(fabric.topology.routing.minimal_share * np.array(lengths))


@pytest.mark.parametrize("fabric", [fat_tree(3), dragonfly(5, 4, 2), torus((4, 3))], ids=["tree", "dragonfly", "torus"])
def test_pairs_whose_paths_cost_the_same_cross_as_many_links(fabric: Fabric) -> None:
    """A cost says how many links are crossed, and is a lookup where `exposure` follows each path."""
    routes = routes_of(fabric.topology)
    codes = routes.codes(sorted({*fabric.topology.host_switch.values()}))
    src, dst = (ends.ravel() for ends in np.meshgrid(codes, codes, indexing="ij"))
    costs = routes.path_costs(src, dst)
    assert costs.tolist() == routes.distances(codes).ravel().tolist()
    query, _, share = routes.exposure(src, dst)
    links = np.bincount(query, share, src.size).round(3)
    assert len({*zip(costs.tolist(), links.tolist(), strict=True)}) == len({*costs.tolist()}) > 1


def test_the_cost_of_a_path_from_or_to_an_unknown_switch_is_unknown() -> None:
    routes = routes_of(topology_of([(0, 1)], 3))
    ends = np.array([0, 0, -1, 0, -1]), np.array([1, 2, 1, -1, -1])
    assert routes.path_costs(*ends).tolist() == [1, -1, -1, -1, -1]


def test_the_path_of_an_adaptive_message_is_unknown() -> None:
    routes = dragonfly(3, 2, 2).routes
    assert not routes.certain
    assert (routes.hops(np.array([0, 0]), np.array([1, 5]), np.array([2, 10])) == -1).all()
