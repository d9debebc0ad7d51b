"""Pairs of follow-up measurements, packed into rounds."""

from __future__ import annotations

import numpy as np
import pytest
from fabrics import fat_tree, two_level

from fablint.model import FollowUp, Row, Run
from fablint.plan.check.follow_up import follow_up_rounds, measured_pairs, with_controls
from fablint.plan.schedule.rank_pairs import pair_keys
from fablint.topology.contention import most_flows
from fablint.topology.routed_placement import RoutedPlacement
from fact_cases import row_facts, run_facts
from finding_cases import component


def about(rank: int, partners: list[int]) -> FollowUp:
    return FollowUp(component("host", f"h{rank}"), np.array([(rank, partner) for partner in partners]).reshape(-1, 2))


def pairs_of(rounds: list[np.ndarray]) -> set[frozenset[int]]:
    return {frozenset(pair) for pairs in rounds for pair in pairs.tolist()}


FLAT = RoutedPlacement.on_routes([f"h{rank}" for rank in range(40)])


def test_suspects_are_measured_side_by_side_each_with_three_partners():
    follow_ups = [about(rank, [20 + (rank + step) % 20 for step in range(3)]) for rank in range(10)]
    rounds = follow_up_rounds(follow_ups, FLAT)
    assert len(rounds) == 3
    assert all(np.unique(pairs).size == pairs.size for pairs in rounds)
    assert pairs_of(rounds) == {frozenset(pair) for follow_up in follow_ups for pair in follow_up.pairs.tolist()}


def test_pairs_that_were_not_measured_come_first():
    measured = pair_keys(np.array([[0, 1], [2, 0]]), FLAT.ranks)
    (pairs,) = follow_up_rounds([about(0, [1, 2, 3])], FLAT, measured, least=1)
    assert pairs.tolist() == [[0, 3]]
    again = follow_up_rounds([about(0, [1, 2, 3])], FLAT, measured)
    assert pairs_of(again) == {frozenset({0, 1}), frozenset({0, 2}), frozenset({0, 3})}


def test_follow_ups_take_turns_when_the_rounds_do_not_suffice():
    follow_ups = [about(0, [1, 2, 3]), about(4, [1, 2, 3])]
    rounds = follow_up_rounds(follow_ups, FLAT, most_rounds=2)
    assert len(rounds) == 2
    assert [sum(rank in pair for pair in pairs_of(rounds)) for rank in (0, 4)] == [2, 2]


def test_a_pair_of_two_follow_ups_is_measured_once():
    rounds = follow_up_rounds([about(0, [1]), about(1, [0])], FLAT)
    assert [pairs.tolist() for pairs in rounds] == [[[0, 1]]]


def test_room_that_is_left_is_used():
    follow_ups = [about(0, [10, 11, 12]), about(1, [13, 14, 15, 16, 17])]
    rounds = follow_up_rounds(follow_ups, FLAT)
    assert len(rounds) == 3
    assert sum(len(pairs) for pairs in rounds) == 6
    few = follow_up_rounds([about(0, [10, 11, 12]), *(about(1, [13 + i]) for i in range(3))], FLAT, least=1)
    assert sum(len(pairs) for pairs in few) == len(few) * 2  # three rounds for rank 1, in which rank 0 is free


def test_answers_do_not_collide_where_that_can_be_helped():
    placement = RoutedPlacement.on_routes([f"h{i}" for i in range(64)], two_level(8, 8, 4))
    # Destinations 16 and 20 are reached over the same spine.
    rounds = follow_up_rounds([about(0, [16]), about(1, [20])], placement)
    assert len(rounds) == 2
    assert most_flows(rounds, placement) == [1, 1]
    together = follow_up_rounds([about(0, [16]), about(1, [20])], placement, most_rounds=1)
    assert most_flows(together, placement) == [2]


def test_ranks_of_one_host_answer_nothing():
    placement = RoutedPlacement.on_routes(["a", "a", "b"])
    assert pairs_of(follow_up_rounds([about(0, [1, 2])], placement)) == {frozenset({0, 2})}
    assert follow_up_rounds([about(0, [1])], placement) == []
    assert follow_up_rounds([], placement) == []


def test_controls_are_pairs_of_others_in_the_same_rounds():
    topology = fat_tree(4, 4, 4)
    placement = RoutedPlacement.on_routes(list(topology.host_switch), topology)
    rounds = follow_up_rounds([about(0, [20, 30, 40])], placement)
    controlled = with_controls(rounds, placement, [0, 1], 5)
    for pairs, more in zip(rounds, controlled, strict=True):
        assert more[: len(pairs)].tolist() == pairs.tolist()
        assert len(more) == len(pairs) + 5
        assert np.unique(more).size == more.size
        assert not np.isin(more[len(pairs) :], [0, 1]).any()
    assert max(most_flows(controlled, placement)) == 1


def test_controls_are_as_many_as_there_are():
    placement = RoutedPlacement.on_routes([f"h{i}" for i in range(6)])
    ((*_, last),) = [pairs.tolist() for pairs in with_controls([np.array([[0, 1]])], placement, [0], 9)]
    assert len(last) == 2
    assert with_controls([], placement, [0], 9) == []


@pytest.mark.parametrize("layout", ["list", "matrix"])
def test_what_was_measured_is_read_from_lists(layout):
    partner = np.array([[1, 2], [0, -1], [-1, 0]])
    row = Row("latency", row_facts({"layout": layout}), {"dst": partner})
    found = measured_pairs(Run(None, run_facts({}), (row,)), 3)
    assert found.tolist() == ([1, 2] if layout == "list" else [])
