"""Rounds by distance: which hosts they pair, which links they cross and where they collide."""

from __future__ import annotations

import numpy as np
import pytest
from fabrics import dragonfly, fat_tree, scopes_of, two_level

from fablint.model import Scope, Topology
from fablint.plan.schedule.rank_pairs import pair_keys
from fablint.plan.schedule.stratified import collisions, strata, stratified_rounds
from fablint.topology.contention import link_flows, most_flows
from fablint.topology.routed_placement import RoutedPlacement, number_within

pytestmark = pytest.mark.long  # many sizes of fabrics


def placement_on(topology: Topology, missing: float = 0.0, each: int = 1, scattered: int = 0) -> RoutedPlacement:
    """`each` ranks on the hosts of a topology, of which some are left out, or `scattered` taken."""
    draw = np.random.default_rng(5)
    hosts = [host for host in topology.host_switch if draw.random() >= missing]
    if scattered:
        hosts = [hosts[i] for i in sorted(draw.choice(len(hosts), scattered, replace=False))]
    return RoutedPlacement.on_routes([host for host in hosts for _ in range(each)], topology)


def without_topology(ranks: int) -> RoutedPlacement:
    return RoutedPlacement.on_routes([f"h{rank}" for rank in range(ranks)])


def share_repeated(rounds: list[np.ndarray], placement: RoutedPlacement) -> float:
    keys = np.concatenate([pair_keys(pairs, placement.ranks) for pairs in rounds])
    return 1 - np.unique(keys).size / keys.size


FABRICS = {
    "two levels": placement_on(two_level(16, 16, 16)),
    "two levels, odd": placement_on(two_level(7, 5, 5)),
    "fat tree": placement_on(fat_tree(8, 8, 8)),
    "fat tree, odd": placement_on(fat_tree(9, 7, 6)),
    "fat tree, hosts missing": placement_on(fat_tree(8, 8, 8), missing=0.05),
    "fat tree, scattered": placement_on(fat_tree(8, 8, 8), scattered=100),
    "fat tree, four ranks": placement_on(fat_tree(6, 6, 6), each=4),
    "dragonfly": placement_on(dragonfly()),
    "dragonfly, adaptive": placement_on(dragonfly(kind="adaptive")),
    "no topology": without_topology(101),
}


@pytest.mark.parametrize("name", FABRICS)
def test_a_round_is_a_matching_between_hosts_that_keeps_nearly_all_busy(name):
    placement = FABRICS[name]
    rounds = stratified_rounds(placement)
    assert len(rounds) == sum(strata(placement).values())
    for pairs in rounds:
        assert np.unique(pairs).size == pairs.size
        assert (placement.host[pairs[:, 0]] != placement.host[pairs[:, 1]]).all()
        assert pairs.size >= 0.97 * placement.ranks
    assert share_repeated(rounds, placement) < 0.2


SEEDED = ("two levels, odd", "dragonfly, adaptive", "no topology")


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.long] * (one not in SEEDED)) for one in FABRICS])
def test_the_seed_makes_the_rounds(name):
    placement = FABRICS[name]
    first, again, other = (stratified_rounds(placement, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize(
    ("topology", "rounds"),
    [
        (fat_tree(8, 8, 8), {Scope.EDGE: 6, Scope.LOCAL: 9, Scope.GLOBAL: 9}),
        (fat_tree(4, 4, 4), {Scope.EDGE: 3, Scope.LOCAL: 9, Scope.GLOBAL: 9}),
        (two_level(16, 16, 16), {Scope.EDGE: 6, Scope.GLOBAL: 18}),
        (fat_tree(1, 8, 8), {Scope.EDGE: 6, Scope.LOCAL: 18}),
        (two_level(1, 40, 2), {Scope.EDGE: 6}),
        (fat_tree(40, 1, 1), {Scope.GLOBAL: 18}),
    ],
)
def test_strata_are_those_that_exist(topology, rounds):
    placement = placement_on(topology)
    assert strata(placement) == rounds
    shares = [
        {scope: (scopes_of(placement, pairs) == scope).mean() for scope in rounds}
        for pairs in stratified_rounds(placement)
    ]
    for scope, count in rounds.items():
        assert sum(share[scope] > 0.7 for share in shares) == count


def test_without_a_topology_all_rounds_are_a_tournament():
    placement = without_topology(64)
    assert strata(placement) == {Scope.GLOBAL: 24}
    assert share_repeated(stratified_rounds(placement), placement) == 0


@pytest.mark.parametrize("topology", [two_level(16, 16, 16), fat_tree(8, 8, 8), fat_tree(9, 7, 6), fat_tree(6, 4, 8)])
def test_nothing_collides_on_a_fat_tree_with_destination_routing(topology):
    placement = placement_on(topology)
    rounds = stratified_rounds(placement)
    assert max(most_flows(rounds, placement)) == 1
    assert collisions(rounds, placement) == 0
    crossed = sum(link_flows(pairs, placement).sum(axis=0) for pairs in rounds)
    assert crossed.min() >= 8


def test_random_rounds_collide_more_than_planned_ones():
    placement = placement_on(fat_tree(8, 8, 8), missing=0.05)
    draw = np.random.default_rng(1)
    random = [draw.permutation(placement.ranks)[: placement.ranks // 2 * 2].reshape(-1, 2) for _ in range(24)]
    planned = stratified_rounds(placement)
    assert max(most_flows(planned, placement)) <= 2 < max(most_flows(random, placement))
    assert 10 * collisions(planned, placement) < collisions(random, placement)


def test_a_dragonfly_is_loaded_evenly():
    """A group's hosts go to all the other groups: as many messages on a global cable as must be, or little more."""
    placement = placement_on(dragonfly(9, 8, 4))
    rounds = stratified_rounds(placement)
    must = 32 / 8  # hosts of a group for each cable to another one; in one direction they may all be
    assert max(most_flows(rounds, placement)) <= 2 * must
    crossed = sum(link_flows(pairs, placement).sum(axis=0) for pairs in rounds)
    assert crossed.min() >= 6  # from which a link is judged


def test_each_direction_has_loads_of_its_own():
    placement = placement_on(two_level(2, 4, 1))
    flows = link_flows(np.array([[0, 4], [1, 5]]), placement)
    assert flows.shape == (2, 4)
    assert flows.sum() == 8
    assert sorted(flows[0]) == [0, 0, 2, 2]
    assert (flows[0] * flows[1] == 0).all()


def test_messages_on_an_unknown_path_count_by_chance():
    placement = placement_on(two_level(2, 4, 4, kind="adaptive"))
    flows = link_flows(np.array([[0, 4]]), placement)[0]
    assert sorted(set(flows.tolist())) == [0, 0.25]  # a quarter on each of four spines


def test_a_host_of_another_name_sits_nowhere():
    placement = RoutedPlacement.on_routes(["h0.site.org", "h1", "login"], two_level())
    assert placement.location.tolist() == [0, 1, -1]
    assert set(scopes_of(placement, np.array([[0, 1], [1, 2]]))) == {Scope.EDGE, Scope.UNKNOWN}


def test_numbers_within_containers():
    containers, items = np.array([5, 5, 2, 5, 2]), np.array([9, 7, 7, 9, 3])
    assert number_within(containers, items).tolist() == [1, 0, 1, 1, 0]
