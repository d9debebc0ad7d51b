"""Names of hosts and parts: in the order that people expect, folded where that loses nothing."""

from __future__ import annotations

from itertools import pairwise

import pytest
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from hypothesis import given, settings, strategies as st

from fablint.model.names import MOST_HOSTS, expanded, fold, most_names, natural, plural, unfold

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


@given(st.lists(st.text(st.sampled_from("ab019.-"), min_size=1, max_size=5), min_size=33, unique=True))
def test_many_names_are_folded_as_one_by_one(names: list[str]) -> None:
    assert fold(names) == str(NodeSet.fromlist(names, resolver=RESOLVER_NOGROUP))


def test_what_means_something_else_in_a_node_set_is_not_folded() -> None:
    assert fold(["nid002", "nid001", "login", "nid001"]) == "login,nid[001-002]"
    assert fold(["nid001/hsn0", "nid002/hsn0"]) == "nid[001-002]/hsn0"
    assert fold(["s[0-1]", "@all"], ", ") == "@all, s[0-1]"


def test_plurals() -> None:
    assert [plural(1, "host"), plural(2, "switch"), plural(1234, "pair")] == ["1 host", "2 switches", "1,234 pairs"]


# Ranges that no cluster has: refused before ClusterShell expands them (it asserts, or fills the memory).
HUGE = [
    "n[1-99999999999]",
    "n[1-999999]p[1-999999]",
    "n[1-99999999999/99999999]",
    "n[1-" + "9" * 5000 + "]",
    "n[1-500000],n[1-500000]",
    "n[1-900000000",
    "n[1-99999999999,m[1-2]",
    "n[1-4-900000000]",
    "n[1-2]p" * 60,
    "a,n[0-300000]&n1",
]


@pytest.mark.parametrize("text", HUGE)
def test_too_many_names_are_refused_in_one_line(text: str) -> None:
    with pytest.raises(ValueError, match="stands for more than 250,000 names") as caught:
        expanded(text)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 200
    assert unfold(text) == ()


def test_names_with_dashes_are_no_ranges() -> None:
    assert expanded("rack1-99999999999,b") == ("b", "rack1-99999999999")
    assert expanded("n[99999999999999999999999]") == ("n99999999999999999999999",)
    assert len(expanded("n[1-200000]")) == 200_000


PIECES = st.sampled_from(
    ["n", "[", "]", "-", ",", "1", "0", "7", "300000", "9" * 20, "/", "&", "!", "^", "{", "}", "\n"]
)


@given(st.lists(PIECES, max_size=14))
@settings(max_examples=400, deadline=None)
def test_any_text_is_expanded_or_refused_in_one_line(pieces: list[str]) -> None:
    text = "".join(pieces)
    try:
        names = expanded(text)
    except ValueError as error:
        assert str(error).isprintable()
    else:
        assert len(names) <= most_names(text) <= MOST_HOSTS
