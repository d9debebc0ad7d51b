"""The fewest hosts with one of every pair: compared with all sets of hosts of small graphs."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest
from hypothesis import given, strategies as st

from fablint.preflight import smallest_cover
from fablint.preflight.pings import host_cover

HOSTS = [f"h{number}" for number in range(8)]
EVERY = [frozenset(pair) for pair in combinations(HOSTS, 2)]
ACROSS = [frozenset((one, other)) for one in HOSTS[:4] for other in HOSTS[4:]]


def fewest(pairs: set[frozenset[str]]) -> int:
    return next(
        size
        for size in range(len(HOSTS) + 1)
        for chosen in combinations(HOSTS, size)
        if all(not pair.isdisjoint(chosen) for pair in pairs)
    )


@given(st.sets(st.sampled_from(EVERY)))
def test_of_any_graph_no_smaller_set_covers(pairs: set[frozenset[str]]) -> None:
    cover = smallest_cover(pairs, HOSTS)
    assert all(not pair.isdisjoint(cover) for pair in pairs)
    assert len(cover) == fewest(pairs)
    assert cover == sorted(cover)


@given(st.sets(st.sampled_from(ACROSS)))
def test_of_hosts_behind_two_switches_no_smaller_set_covers(pairs: set[frozenset[str]]) -> None:
    cover = smallest_cover(pairs, HOSTS)
    assert all(not pair.isdisjoint(cover) for pair in pairs)
    assert len(cover) == fewest(pairs)


@pytest.mark.parametrize(("first", "second"), [(3, 5), (5, 3), (4, 4), (1, 7)])
def test_of_two_sides_the_smaller_is_the_cover_and_of_equal_ones_the_second(first: int, second: int) -> None:
    one, other = HOSTS[:first], HOSTS[first : first + second]
    cover = smallest_cover((frozenset((a, b)) for a in one for b in other), HOSTS)
    assert cover == (one if first < second else other)


def test_two_holes_have_a_cover_each() -> None:
    pairs = [frozenset((a, b)) for a, b in (("h0", "h2"), ("h1", "h2"), ("h4", "h5"), ("h4", "h6"), ("h4", "h7"))]
    assert smallest_cover(pairs, HOSTS) == ["h2", "h4"]


def test_a_hole_between_switches_of_many_hosts_is_solved_exactly() -> None:
    """A matching, not branching: 2^40 sets of one side could be the answer."""
    hosts = [f"h{number:03}" for number in range(120)]
    random = Random(3)
    pairs = {frozenset((hosts[at], hosts[40 + random.randrange(80)])) for at in range(40) for _ in range(6)}
    cover = smallest_cover(pairs, hosts)
    assert all(not pair.isdisjoint(cover) for pair in pairs)
    assert len(cover) <= 40


def test_a_large_graph_that_is_not_bipartite_is_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_cover, "_MOST_EXACT", 4)
    pairs = {*EVERY[:20]}
    cover = smallest_cover(pairs, HOSTS)
    assert all(not pair.isdisjoint(cover) for pair in pairs)
    assert smallest_cover([], HOSTS) == []
