"""What a launch measures after hosts were lost."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fablint.model import RowSpec, Slots
from fablint.plan.check.plan_input import PlanInput
from fablint.plan.check.stages import Stage, all_rounds, stage_of
from fablint.plan.check.surviving_ranks import HostPair, narrowed
from fablint.plan.rows.plan_file import parse_plan
from fablint.topology.routed_placement import RoutedPlacement

HOSTS = tuple("abcd")
SLOTS = tuple(Slots(host, 1) for host in HOSTS)
FILE = "rounds/edge.txt"
ROUNDS = [np.array(pairs, dtype=np.int32) for pairs in ([[0, 1], [2, 3]], [[0, 2], [3, 1]], [[3, 0], [1, 2]])]


def stage(rounds: Sequence[np.ndarray] = ROUNDS, slots: tuple[Slots, ...] = SLOTS) -> Stage:
    asked = PlanInput(sum(slot.ranks for slot in slots), slots)
    rows = [
        (RowSpec("latency", "edge-latency", sizes=(8,)), 0.1),
        (RowSpec("bandwidth", "edge-bandwidth", sizes=(1 << 20,)), 0.2),
    ]
    return stage_of("edge", rounds, asked, "parallel", rows)


def rows(narrow: Stage | None) -> list[RowSpec]:
    assert narrow is not None
    return [row.spec for row in narrow.plan.rows]


def measured(narrow: Stage | None) -> dict[str, dict[int, list[tuple[str, str]]]]:
    """Per row the rounds that are measured, as pairs of hosts: of what the engine would read."""
    if narrow is None:
        return {}
    hosts = [slot.host for slot in narrow.plan.slots for _ in range(slot.ranks)]
    lines = narrow.texts()[FILE].splitlines()
    parse_plan(narrow.plan.text, narrow.plan.ranks, "test", narrow.texts().__getitem__)  # refuses what is not a round
    found: dict[str, dict[int, list[tuple[str, str]]]] = {}
    for row in rows(narrow):
        pairs = {
            index: [tuple(hosts[int(rank)] for rank in pair.split("-")) for pair in lines[index].split()]
            for index in row.only_rounds or ()
        }
        found[str(row.name)] = {index: [(one, other) for one, other in every] for index, every in pairs.items()}
    return found


def test_the_pairs_of_a_lost_host_are_gone_and_the_others_keep_their_round() -> None:
    left = {0: [("c", "d")], 1: [("a", "c")], 2: [("d", "a")]}
    narrow = narrowed(stage(), SLOTS, {"b"})
    assert measured(narrow) == {"edge-latency": left, "edge-bandwidth": left}


def test_ranks_are_counted_anew() -> None:
    narrow = narrowed(stage(), SLOTS, {"b"})
    assert narrow is not None
    assert narrow.texts()[FILE] == "1-2\n0-1\n2-0\n"
    assert (narrow.plan.ranks, narrow.plan.slots) == (3, (SLOTS[0], SLOTS[2], SLOTS[3]))


def test_two_hosts_that_are_kept_apart_meet_others_still() -> None:
    narrow = narrowed(stage(), SLOTS, (), [frozenset("ab"), frozenset("ac")])
    left = {0: [("c", "d")], 1: [("d", "b")], 2: [("d", "a"), ("b", "c")]}
    assert measured(narrow) == {"edge-latency": left, "edge-bandwidth": left}
    assert narrow is not None
    assert narrow.plan.ranks == 4


def test_a_round_that_is_left_empty_keeps_its_line_and_is_not_measured() -> None:
    narrow = narrowed(stage(), SLOTS, {"b"}, [frozenset("ac")])
    assert [row.only_rounds for row in rows(narrow)] == [(0, 2), (0, 2)]
    assert measured(narrow)["edge-latency"] == {0: [("c", "d")], 2: [("d", "a")]}
    assert narrow is not None
    assert len(narrow.texts()[FILE].splitlines()) == 3


def test_only_what_is_wanted_is_measured() -> None:
    narrow = narrowed(stage(), SLOTS, {"b"}, wanted={"edge-latency": [2, 1], "edge-bandwidth": []})
    assert [(row.name, row.only_rounds) for row in rows(narrow)] == [("edge-latency", (1, 2))]


def test_rows_that_are_not_wanted_are_not_measured() -> None:
    assert list(measured(narrowed(stage(), SLOTS, {"b"}, wanted={"edge-bandwidth": range(3)}))) == ["edge-bandwidth"]


def test_the_time_is_that_of_the_rounds_that_are_left() -> None:
    whole = stage()
    narrow = narrowed(whole, SLOTS, {"b"}, wanted={row.name or "": [1] for row in rows(whole)})
    assert narrow is not None
    assert [row.rounds for row in narrow.plan.rows] == [1, 1]
    assert narrow.plan.predicted_s == pytest.approx(whole.plan.predicted_s / 3)


@pytest.mark.parametrize(
    ("left_out", "apart"),
    [("abc", ()), ("abcd", ()), ("cd", [frozenset("ab")]), ("", [frozenset(pair) for pair in combinations("abcd", 2)])],
    ids=["one host", "none", "two that are apart", "all apart"],
)
def test_nothing_is_left(left_out: str, apart: Collection[HostPair]) -> None:
    assert narrowed(stage(), SLOTS, set(left_out), apart) is None


def test_nothing_is_left_of_what_is_wanted() -> None:
    assert narrowed(stage(), SLOTS, {"b"}, wanted={}) is None
    assert narrowed(stage(), SLOTS, {"b"}, [frozenset("ac")], {"edge-latency": [1]}) is None


def test_without_excluded_hosts_the_stage_stays_the_same() -> None:
    whole, narrow = stage(), narrowed(stage(), SLOTS, ())
    assert narrow is not None
    assert narrow.texts() == whole.texts()
    assert narrow.plan.slots == SLOTS


SIZES = st.lists(st.integers(1, 3), min_size=2, max_size=5)


@given(SIZES, st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_every_pair_that_may_meet_meets_in_its_round_and_no_other_does(each: list[int], random: Random) -> None:
    slots = tuple(Slots(f"h{number}", count) for number, count in enumerate(each))
    hosts = [slot.host for slot in slots for _ in range(slot.ranks)]
    rounds = all_rounds(RoutedPlacement.on_routes(hosts), 2, random.randrange(100))
    names = list(dict.fromkeys(hosts))
    lost = set(random.sample(names, random.randrange(len(names))))
    every = [frozenset(pair) for pair in combinations(names, 2)]
    apart = random.sample(every, random.randrange(len(every) + 1))
    expected = {}
    for index, pairs in enumerate(rounds):
        ends = [(hosts[a], hosts[b]) for a, b in pairs.tolist()]
        kept = [pair for pair in ends if not lost & set(pair) and frozenset(pair) not in apart]
        if kept:
            expected[index] = kept
    found = measured(narrowed(stage(rounds, slots), slots, lost, apart))
    assert found == ({"edge-latency": expected, "edge-bandwidth": expected} if expected else {})
