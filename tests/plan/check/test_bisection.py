"""Halves of a fabric across its bottleneck."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from test_suites import asked, met, rounds_of, topology

from fablint.errors import UsageError
from fablint.plan.check.levels import level_stage
from fablint.plan.check.suites import find_suite
from fablint.plan.schedule.bisection import halves


def bisected(groups: list[list[int]], left_out=(), each: int = 1, **how):
    request = asked(topology(*groups), each)
    return halves(request.placement(), request.rank_hosts, left_out, **how)


def test_whole_groups_make_equal_halves():
    cut = bisected([[2], [3], [1, 2], [4]])
    assert (cut.one.size, cut.other.size, cut.idle, cut.kind) == (6, 6, (), "group")
    assert sorted(sum(cut.parts, ())) == ["g0", "g1", "g2", "g3"]
    assert cut.text.startswith("6 hosts of ")


def test_switches_where_there_is_one_group():
    cut = bisected([[3, 1, 2]])
    assert (cut.kind, cut.parts) == ("switch", (("g0s0",), ("g0s1", "g0s2")))


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([[4]], "all hosts are on one switch, which nothing cuts: measure --suite edge"),
        ([[3], [5]], r"no equal halves of 8 hosts \(groups: g0 3, g1 5\): leave out 2 hosts, such as h1-0-3, h1-0-4"),
        ([[1, 2]], r"no equal halves of 3 hosts \(switchs?e?s?: g0s0 1, g0s1 2\): leave out 1 host, such as h0-1-1"),
        ([[1]], "1 host: give two or more"),
    ],
)
def test_what_has_no_halves_is_refused(groups, message):
    with pytest.raises(UsageError, match=message):
        bisected(groups)


def test_the_bottleneck_is_unknown_without_a_topology():
    with pytest.raises(UsageError, match="give a --topology"):
        halves(asked(4).placement(), asked(4).rank_hosts)


def test_unequal_halves_leave_hosts_idle():
    cut = bisected([[3], [5]], unequal=True)
    assert (cut.one.size, cut.other.size, cut.idle) == (3, 3, ("h1-0-3", "h1-0-4"))
    assert "idle: h1-0-3, h1-0-4" in cut.text


def test_hosts_that_are_left_out_do_not_count():
    cut = bisected([[3], [5]], left_out=[3, 7])
    assert cut.one.size == cut.other.size == 3


@given(st.lists(st.integers(1, 6), min_size=2, max_size=6), st.integers(1, 3))
@settings(max_examples=60)
def test_every_pair_crosses_the_cut(sizes, each):
    request = asked(topology(*[[size] for size in sizes]), each)
    *_, level = find_suite("bisection", unequal=True).levels
    cut = halves(request.placement(), request.rank_hosts, unequal=True)
    stage = level_stage(level, request, request.placement())
    half = {int(rank): 0 for rank in cut.table[cut.one].ravel()}
    half |= {int(rank): 1 for rank in cut.table[cut.other].ravel()}
    for pairs in rounds_of(stage):
        assert np.unique(pairs).size == pairs.size == 2 * cut.one.size * each
        assert all(half[a] != half[b] for a, b in pairs.tolist())
    assert set(met(stage).values()) == {1}
    assert len(rounds_of(stage)) == min(8, cut.one.size)
    first = np.sort(rounds_of(stage)[0], axis=1).tolist()
    assert sorted(first) == sorted(
        sorted(pair)
        for pair in zip(cut.table[cut.one].ravel().tolist(), cut.table[cut.other].ravel().tolist(), strict=True)
    )
