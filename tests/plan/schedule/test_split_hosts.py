"""Hosts of several allocations, and rounds that tie their levels together."""

from __future__ import annotations

import numpy as np
import pytest
from fabrics import fat_tree, two_level

from fablint.errors import UsageError
from fablint.plan.schedule.split_hosts import TIED_ROUNDS, split_hosts, with_ties
from fablint.plan.schedule.stratified import stratified_rounds
from fablint.topology.routed_placement import RoutedPlacement


@pytest.mark.parametrize("count", [2, 3, 4, 8])
@pytest.mark.parametrize("overlap", [1, 2, 4])
def test_each_host_has_one_allocation_and_guests_of_the_next(count: int, overlap: int) -> None:
    topology = two_level()
    hosts = list(topology.host_switch)
    allocations = split_hosts(hosts, topology, count, overlap)
    own = [set(one.hosts) - set(one.guests) for one in allocations]
    assert sorted(host for members in own for host in members) == sorted(hosts)
    assert max(map(len, own)) - min(map(len, own)) <= 1
    for number, one in enumerate(allocations):
        following = allocations[(number + 1) % count]
        assert len(one.guests) == overlap
        assert set(one.guests) <= own[(number + 1) % count]
        assert one.guests == following.lent
        assert list(one.hosts) == sorted(one.hosts, key=hosts.index)


def test_each_allocation_has_hosts_of_all_switches_and_its_guests_of_different_ones() -> None:
    topology = two_level()
    for one in split_hosts(list(topology.host_switch), topology, 4, 2):
        assert {topology.host_switch[host] for host in one.hosts} == {f"l{leaf}" for leaf in range(8)}
        assert len({topology.host_switch[host] for host in one.guests}) == 2


def test_positions_of_the_hosts_are_mixed() -> None:
    """Destination routing chooses cables by position: with a constant step, a switch used some of them only."""
    topology = two_level(leaves=16)
    places = {host: at for at, host in enumerate(topology.host_switch)}
    for one in split_hosts(list(places), topology, 4, 2):
        assert len({places[host] % 4 for host in one.hosts}) == 4


@pytest.mark.parametrize(("overlap", "ranks"), [(2, 1), (3, 1), (4, 2)])
def test_hosts_in_two_allocations_meet_in_some_rounds_and_no_rank_is_twice_in_one(overlap: int, ranks: int) -> None:
    topology = fat_tree()
    for one in split_hosts(list(topology.host_switch), topology, 2, overlap):
        placement = RoutedPlacement.on_routes([host for host in one.hosts for _ in range(ranks)], topology)
        rounds = stratified_rounds(placement)
        tied = with_ties(rounds, placement, one.ties)
        assert sum(map(len, tied)) == pytest.approx(sum(map(len, rounds)), abs=4 * overlap * ranks)
        for pairs in tied:
            assert np.unique(pairs).size == pairs.size
            assert (placement.host[pairs[:, 0]] != placement.host[pairs[:, 1]]).all()
        for names in one.ties:
            codes = {placement.hosts.index(name) for name in names}
            met = sum(
                set(placement.host[pair].tolist()) <= codes and len(set(placement.host[pair].tolist())) == 2
                for pairs in tied
                for pair in pairs
            )
            assert met >= TIED_ROUNDS * (overlap // 2) * ranks


def test_too_few_hosts_are_refused() -> None:
    with pytest.raises(UsageError, match="7 hosts cannot be split into 2 allocations"):
        split_hosts([f"n{i}" for i in range(7)], None, 2, 2)
    assert [len(one.hosts) for one in split_hosts([f"n{i}" for i in range(8)], None, 2, 2)] == [6, 6]
