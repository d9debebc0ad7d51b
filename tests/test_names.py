"""Names of hosts and parts: in the order that people expect, folded where that loses nothing."""

from __future__ import annotations

from itertools import pairwise

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from hypothesis import given, strategies as st

from fablint.names import fold, natural, plural

NAMES = st.text(st.sampled_from("ab01²٣[],@&! /=>-"), min_size=1, max_size=8)


def test_numbers_count() -> None:
    assert sorted(["s10", "s2", "login", "s2b"], key=natural) == ["login", "s2", "s2b", "s10"]


@given(st.lists(NAMES))
def test_any_names_have_an_order(names: list[str]) -> None:
    ordered = sorted(names, key=natural)
    assert all(natural(one) <= natural(other) for one, other in pairwise(ordered))


@given(st.lists(NAMES))
def test_nothing_is_lost_by_folding(names: list[str]) -> None:
    folded = fold(names, "\n")
    if len(folded.split("\n")) < 2 and folded not in names:
        assert set(NodeSet(folded, resolver=RESOLVER_NOGROUP)) == set(names)
    else:
        assert set(folded.split("\n")) == set(names)


def test_what_means_something_else_in_a_node_set_is_not_folded() -> None:
    assert fold(["nid002", "nid001", "login", "nid001"]) == "login,nid[001-002]"
    assert fold(["nid001/hsn0", "nid002/hsn0"]) == "nid[001-002]/hsn0"
    assert fold(["s[0-1]", "@all"], ", ") == "@all, s[0-1]"


def test_plurals() -> None:
    assert [plural(1, "host"), plural(2, "switch"), plural(1234, "pair")] == ["1 host", "2 switches", "1,234 pairs"]
