"""Flows per link, counted message by message."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fablint.simulate import dragonfly, fat_tree
from fablint.topology.contention import (
    detour_links,
    fair_shares,
    flows_on_busiest,
    flows_on_links,
    link_flows,
    most_flows,
    turns,
)
from fablint.topology.routed_placement import RoutedPlacement
from fablint.topology.routing import routes_of

ENTRIES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.floats(0, 1, width=32)), max_size=20)


@given(ENTRIES)
def test_flows_are_sums_of_shares(entries: list[tuple[int, int, float]]) -> None:
    turn, link, share = (np.array(column) for column in zip(*entries, strict=True)) if entries else [np.zeros(0)] * 3
    flows = flows_on_links(link.astype(np.int64), 5, share.astype(np.float64), turn.astype(np.int64), 4)
    sums: Counter[tuple[int, int]] = Counter()
    for when, where, much in entries:
        sums[when, where] += much
    assert flows == pytest.approx(np.array([[sums[when, where] for where in range(5)] for when in range(4)]))
    together = flows_on_links(link.astype(np.int64), 5)
    assert together.tolist() == [[float(np.count_nonzero(link == where)) for where in range(5)]]


def test_the_two_directions_of_a_round_are_two_turns() -> None:
    src, dst, number = np.array([0, 3, 1, 2]), np.array([3, 0, 2, 1]), np.array([0, 0, 4, 4])
    first, back, other, other_back = turns(src, dst, number).tolist()
    assert len({first, back, other, other_back}) == 4
    assert turns(src, dst, number, at_once=True).tolist() == [0, 0, 4, 4]


def test_the_busiest_link_of_each_message() -> None:
    assert flows_on_busiest(np.array([0, 0, 2]), np.array([1.0, 3.0, 2.0]), 4).tolist() == [3.0, 0.0, 2.0, 0.0]


@pytest.mark.parametrize("fabric", [fat_tree(4, 2), fat_tree(3, 3), dragonfly(5, 4, 3)], ids=["tree", "deep", "fly"])
def test_flows_of_a_round_are_the_probabilities_of_its_messages(fabric) -> None:
    placement = RoutedPlacement.on_routes(list(fabric.hosts), fabric.topology)
    order = np.random.default_rng(1).permutation(placement.ranks)[: placement.ranks // 2 * 2].astype(np.int32)
    pairs = order.reshape(-1, 2)
    assert placement.routes is not None
    expected = np.zeros((2, len(placement.routes.ends)))
    for pair in pairs:
        for direction, (src, dst) in enumerate((sorted(pair.tolist()), sorted(pair.tolist(), reverse=True))):
            _, link, share = placement.crossings(np.array([src], np.int32), np.array([dst], np.int32))
            np.add.at(expected[direction], link, share)
    flows = link_flows(pairs, placement)
    assert flows == pytest.approx(expected, rel=1e-5)
    assert most_flows([pairs], placement) == [pytest.approx(expected.max(), rel=1e-5)]


def test_only_adaptive_routing_makes_detours() -> None:
    assert detour_links(routes_of(fat_tree(4, 2).topology)) == 0.0
    fly = dragonfly(5, 4, 3)
    routes = routes_of(fly.topology)
    apart = routes.distances(np.arange(len(routes.switches), dtype=np.int32))
    share = 1.0 - fly.topology.routing.minimal_share
    assert detour_links(routes) == pytest.approx(2 * share * apart[apart > 0].mean())


MESSAGES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=24)


@given(MESSAGES)
def test_fair_shares_fill_a_nic_of_every_message_and_overload_none(messages: list[tuple[int, int, int]]) -> None:
    """Max-min fairness: each message crosses a full NIC on which no other message has a larger share."""
    sender, receiver, turn = (np.array(column) for column in zip(*messages, strict=True))
    shares = fair_shares((sender, receiver), turn)
    rate = 1 / shares.flows
    for nic, is_held in ((sender, shares.by_sender), (receiver, shares.by_receiver)):
        for number in range(rate.size):
            together = (nic == nic[number]) & (turn == turn[number])
            assert rate[together].sum() < 1 + 1e-6
            if is_held[number]:
                assert rate[together].sum() == pytest.approx(1.0)
                assert rate[number] == pytest.approx(rate[together].max())
    assert (shares.by_sender | shares.by_receiver).all()
