"""Names that hosts find for each other's addresses, and whatever a pinger says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from pinged_hosts import FAMILY, address, bare, detections, pinged, without
from preflight_help import of, outcomes

from fablint.model.preflight_results import Outcome
from fablint.preflight import Fleet, judge
from fablint.preflight.checks.network import reachability as checks
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

pytestmark = pytest.mark.long  # many simulated fleets


def found_by(names: Callable[[int, int], tuple[str, list[str]]]) -> Callable[[int, list[int]], Mapping[str, Any]]:
    return lambda number, peers: {"names": [[f"n{p}", address(p), *names(number, p)] for p in peers]}


def test_the_host_that_does_not_find_a_name_is_named():
    def names(one: int, other: int) -> tuple[str, list[str]]:
        return ("", []) if (one, other) == (1, 3) else (f"n{other}-hsn0", [address(other)])

    assert detections(pinged(4, say=found_by(names))) == [
        (
            "net.dns.peers",
            "n1",
            "n3/hsn0",
            Outcome.WARN,
            PINNED["does not find n3-hsn0 ( address"].filled(address=address(3)),
        )
    ]


def test_a_name_that_no_host_finds_is_a_fault_of_its_owner():
    def names(one: int, other: int) -> tuple[str, list[str]]:
        return ("", []) if other == 3 else (f"n{other}-hsn0", [address(other)])

    assert [detection[1:] for detection in detections(pinged(4, say=found_by(names)))] == [
        ("n3", "hsn0", Outcome.WARN, f"no host finds a name of its address {address(3)}")
    ]


def test_a_name_of_another_host():
    def names(one: int, other: int) -> tuple[str, list[str]]:
        return f"n{other}-hsn0", ["10.9.9.9" if (one, other) == (1, 3) else address(other)]

    ((_, name, target, _, message),) = detections(pinged(4, say=found_by(names)))
    assert (name, target, message) == ("n1", "n3/hsn0", f"n3-hsn0 is 10.9.9.9, not {address(3)}")


def test_a_fabric_without_names_has_no_finding():
    hosts = pinged(8, say=found_by(lambda one, other: ("", [])))
    assert detections(hosts) == []
    assert outcomes(of(checks.PEER_NAMES, *hosts)) == [Outcome.SKIP] * 8


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["n0", "n1", "", "lo"]),
    lambda inner: st.lists(inner, max_size=9) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
_KEYS = ("pings", "names", "error")


@settings(max_examples=150)
@given(st.lists(st.dictionaries(st.sampled_from(_KEYS), _JSON), min_size=1, max_size=4))
def test_nothing_that_a_pinger_says_stops_the_checks(said):
    judge(Fleet([bare(number, reach=one) for number, one in enumerate(said)]), FAMILY)


@settings(max_examples=150)
@given(st.lists(_JSON, max_size=9), st.sampled_from(_KEYS[:2]), st.integers(0, 3), st.integers(0, 1))
def test_a_row_that_is_spoilt_does_not_either(row, key, number, place):
    hosts = pinged(4)
    hosts[number].snapshot.reach[key][place:place] = [row]
    judge(Fleet(hosts), FAMILY)


@settings(max_examples=60)
@given(st.integers(6, 40), st.data())
def test_one_dead_host_in_any_fleet(count, data):
    dead = data.draw(st.integers(0, count - 1))
    level = data.draw(st.sampled_from(["quick", "full"]))
    assert [detection[:3] for detection in detections(pinged(count, without(dead), level=level))] == [
        ("net.ping", f"n{dead}", "hsn0")
    ]
