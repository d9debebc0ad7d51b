"""Fabrics have the shape that they say, and messages go where their receiver is."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from simulate_cases import DEEP, FABRICS, FLY, GRID, RAILS, TREE

from fablint.errors import UsageError
from fablint.simulate import Fabric, dragonfly, fat_tree, full_mesh, multi_rail, torus
from fablint.simulate.fabrics.kinds import KINDS, build, rerouted
from fablint.simulate.messages.costs import ActualRouting, Measurements, mixed

small = st.integers(1, 4)
fabrics = st.one_of(
    st.builds(fat_tree, st.integers(2, 5), st.sampled_from([2, 3]), st.sampled_from(["d-mod-k", "ecmp"])),
    st.builds(dragonfly, st.integers(2, 6), small, small, st.none()),
    st.builds(torus, st.lists(st.integers(2, 4), min_size=1, max_size=3), st.integers(1, 2)),
    st.builds(full_mesh, st.integers(2, 5), small),
)


def all_cells(fabric: Fabric, ranks: int) -> Measurements:
    low, high = (side.astype(np.int32) for side in np.triu_indices(ranks, 1))
    return Measurements(np.concatenate([low, high]), np.concatenate([high, low]), np.zeros(2 * low.size, np.int32))


def actual_routing_of(fabric: Fabric, seed: int = 1) -> ActualRouting:
    ports = np.arange(fabric.ports, dtype=np.int32)
    return ActualRouting(fabric, ports, fabric.port_switch, seed)


def ends(fabric: Fabric, link: int) -> list[str]:
    return [end.label for end in fabric.link_ref(link).ends]


@settings(max_examples=40)
@given(fabric=fabrics, rails=st.integers(1, 2), seed=st.integers(0, 99))
def test_every_path_leads_from_the_sender_to_the_receiver(fabric: Fabric, rails: int, seed: int) -> None:
    fabric = multi_rail(fabric, rails)
    cells = all_cells(fabric, fabric.ports)
    actual = actual_routing_of(fabric, seed)
    src, dst = actual.ports(cells)
    for path, a, b in zip(actual.paths(cells).links.tolist(), src.tolist(), dst.tolist(), strict=True):
        crossed = [link for link in path if link < fabric.links]
        if a // fabric.rails == b // fabric.rails:
            assert not crossed
            continue
        assert crossed[0] == fabric.up(a)
        assert crossed[-1] == fabric.down(b)
        stops = [ends(fabric, link) for link in crossed]
        assert all(here[1] == there[0] for here, there in itertools.pairwise(stops))
        assert (stops[0][0], stops[-1][1]) == (fabric.hosts[a // rails], fabric.hosts[b // rails])


@given(fabric=fabrics)
def test_links_are_found_by_their_names(fabric: Fabric) -> None:
    for link in range(fabric.links):
        start, end = ends(fabric, link)
        assert fabric.link(start, end) == link
    assert fabric.link("unknown", "nowhere") == fabric.link(fabric.hosts[0], fabric.hosts[-1]) == -1


@given(arity=st.integers(2, 6), levels=st.sampled_from([2, 3]), shift=st.integers(0, 300))
def test_shifts_do_not_collide_in_a_fat_tree(arity: int, levels: int, shift: int) -> None:
    """Zahavi's theorem for d-mod-k: with shift permutations every link carries one flow."""
    fabric = fat_tree(arity, levels)
    hosts = np.arange(arity**levels, dtype=np.int32)
    crossed = actual_routing_of(fabric).hops(hosts, ((hosts + shift) % hosts.size).astype(np.int32))
    used = crossed[crossed >= 0]
    assert np.unique(used).size == used.size


def test_sizes_of_fat_trees() -> None:
    for arity, levels in ((16, 3), (46, 3), (16, 2)):
        fabric = fat_tree(arity, levels)
        assert len(fabric.hosts) == arity**levels
        assert fabric.links == 2 * levels * arity**levels
    assert {switch.group for switch in DEEP.topology.switches.values()} == {"pod0", "pod1", "pod2", ""}
    assert {switch.group for switch in TREE.topology.switches.values()} == {""}


def test_groups_of_a_dragonfly_have_one_cable_to_each_other() -> None:
    topology = dragonfly(9, 4, 2).topology
    between = [
        frozenset((topology.switches[c.a].group, topology.switches[c.b].group))
        for c in topology.cables
        if topology.switches[c.a].group != topology.switches[c.b].group
    ]
    assert len(between) == len(set(between)) == 9 * 8 // 2
    degree = {name: 0 for name in topology.switches}
    for cable in topology.cables:
        degree[cable.a] += 1
        degree[cable.b] += 1
    assert set(degree.values()) == {3 + 2}  # the router's group, and two of eight cables to other groups


def test_a_torus_goes_dimension_by_dimension_in_the_shorter_direction() -> None:
    cells = all_cells(GRID, GRID.ports)
    actual = actual_routing_of(GRID)
    for path, src, dst in zip(actual.paths(cells).links.tolist(), cells.src, cells.dst, strict=True):
        here, there = (divmod(int(host) // 2, 4) for host in (src, dst))
        steps = [min((a - b) % length, (b - a) % length) for a, b, length in zip(here, there, (3, 4), strict=True)]
        crossed = [link for link in path if link < GRID.switch_links]
        assert len(crossed) == sum(steps)
        rows = [ends(GRID, link)[0].split("_")[0] != ends(GRID, link)[1].split("_")[0] for link in crossed]
        assert rows == sorted(rows, reverse=True)  # first dimension first


def test_rails_are_planes_of_their_own() -> None:
    cells = all_cells(RAILS, RAILS.ports)
    for path, src in zip(actual_routing_of(RAILS).paths(cells).links.tolist(), cells.src, strict=True):
        plane = f"p{src % 2}."
        crossed = [name for link in path if link < RAILS.links for name in ends(RAILS, link)]
        assert all(name.startswith(plane) for name in crossed if name not in RAILS.hosts)
    assert set(RAILS.topology.nic_switch) == {f"{host}/{nic}" for host in RAILS.hosts for nic in ("hsn0", "hsn1")}
    assert all(switch.startswith("p0.") for switch in RAILS.topology.host_switch.values())


def test_ecmp_selects_a_path_for_each_pair_and_keeps_it() -> None:
    fabric = fat_tree(8, 2, "ecmp")
    cells = all_cells(fabric, fabric.ports)
    first, again, other = (actual_routing_of(fabric, seed).paths(cells).links for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    far = (first[:, 1:-1] < fabric.links).any(axis=1)
    assert 0.8 < (first != other).any(axis=1)[far].mean() < 0.95  # one of eight spines is drawn twice
    flows = np.bincount(first[:, 1], minlength=fabric.links)[: fabric.switch_links]
    assert flows[flows > 0].min() > 0.5 * flows.max()


def test_adaptive_messages_keep_only_the_links_of_their_hosts() -> None:
    cells = all_cells(FLY, FLY.ports)
    assert actual_routing_of(FLY).paths(cells).links.shape[1] == 2


@given(seed=st.integers(0, 1000))
def test_mixed_numbers_are_even_and_depend_on_all(seed: int) -> None:
    a, b = (np.tile(np.arange(64, dtype=np.int32), 64), np.repeat(np.arange(64, dtype=np.int32), 64))
    drawn = mixed(a, b, seed)
    assert drawn.min() >= 0
    counts = np.bincount(drawn % 8, minlength=8)
    assert counts.min() > 400
    assert (drawn != mixed(b, a, seed)).mean() > 0.9
    assert (drawn != mixed(a, b, seed + 1)).all()


@pytest.mark.parametrize("kind", KINDS)
@given(hosts=st.integers(2, 300))
def test_a_number_of_hosts_is_met_exactly_or_refused(kind: str, hosts: int) -> None:
    try:
        fabric = build(kind, hosts)
    except UsageError as error:
        assert "do not fit" in str(error)
    else:
        assert len(fabric.hosts) == hosts


@pytest.mark.parametrize(
    ("kind", "hosts", "shape"),
    [
        ("fat-tree", 4096, "16-ary fat tree of 3"),
        ("fat-tree", 256, "16-ary fat tree of 2"),
        ("dragonfly", 4224, "33 groups of 16"),
        ("torus", 128, "4x4x4"),
        ("mesh", 64, "8 switches"),
    ],
)
def test_shapes_that_are_chosen(kind: str, hosts: int, shape: str) -> None:
    assert shape in build(kind, hosts).topology.source


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: fat_tree(4, 4), "it has 2 or 3"),
        (lambda: fat_tree(0), "0 arity"),
        (lambda: dragonfly(0), "0 groups"),
        (lambda: dragonfly(4, 2, 2, 0.0), "above 0"),
        (lambda: dragonfly(200, 1, 2), "fewer groups"),
        (lambda: torus([]), "no dimensions"),
        (lambda: torus((60, 60), 4), "make it smaller"),
        (lambda: multi_rail(TREE, 0), "0 rails"),
        (lambda: build("mesh"), "either the number of hosts or a shape"),
        (lambda: build("mesh", 4, "2x2"), "either the number of hosts or a shape"),
        (lambda: build("torus", shape="4"), "write AxBxCxHOSTS"),
        (lambda: build("fat-tree", shape="99x3"), "250,000 at most"),
        (lambda: build("fat-tree", 1), "between 2"),
        (lambda: rerouted("mesh", FABRICS["tree"], "ecmp", None), "choose from shortest"),
        (lambda: rerouted("fat-tree", TREE, None, 0.5), "belongs to adaptive"),
        (lambda: rerouted("dragonfly", FLY, None, 1.5), "1 at most"),
    ],
)
def test_shapes_that_are_none_are_refused(make, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make()


def test_another_routing() -> None:
    assert rerouted("fat-tree", TREE, "adaptive", 0.7).topology.routing.minimal_share == 0.7
    assert rerouted("dragonfly", FLY, "shortest", None).topology.routing.kind == "shortest"
    assert rerouted("fat-tree", TREE, None, None) is TREE
    assert math.isclose(rerouted("dragonfly", FLY, None, 0.25).topology.routing.minimal_share, 0.25)
