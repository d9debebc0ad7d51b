"""Localisation of failed pings: every kind of fault, and no finding without a fault."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from pinged_hosts import FAMILY, FINE, LOST, SHORT, Row, address, bare, detections, entry, mac, named, pinged, without
from preflight_help import host, nic, of, outcomes, wrong

from fablint.model import Switch, Topology
from fablint.model.preflight_results import Outcome
from fablint.preflight import Fleet, judge, offsets, table
from fablint.preflight.checks.network import reachability as checks
from fablint.snapshot.host_snapshot import Output
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

# ------------------------------------------------------------------------------------------------ pairs


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8, 9, 16, 33, 34, 100, 1000])
def test_quick_rounds_join_all_hosts_by_few_pings(count):
    steps = offsets(count, "quick")
    assert len(steps) <= 16
    assert (steps == offsets(count, "full")) == (count <= 33)  # of few hosts every pair is pinged
    assert all(0 < step < count for step in steps)
    reached, new = {0}, {0}
    while new:
        new = {(one + step) % count for one in new for step in steps} - reached
        reached |= new
    assert len(reached) == count


@pytest.mark.parametrize("count", [2, 3, 4, 7, 16])
def test_full_rounds_try_every_pair(count):
    pairs = {frozenset((one, (one + step) % count)) for one in range(count) for step in offsets(count, "full")}
    assert len(pairs) == count * (count - 1) // 2


def test_the_table_has_rails_with_their_address_and_frame():
    rows = table([bare(0, rails=2), bare(1, rails=2)])
    assert next(row for row in rows if row["host"] == "n1") == {
        "host": "n1",
        "own": "n1",
        "rails": {"hsn0": (address(1), 9000), "hsn1": (address(1, 1), 9000)},
    }


def test_consecutive_hosts_ping_hosts_of_all_switches():
    """With offsets of powers of two in their own order, no host of a switch of 8 pings one of the third switch on."""
    rows = table([bare(number) for number in range(128)])
    switches = [int(row["host"][1:]) // 8 for row in rows]
    pinged_switches = {
        frozenset((switches[at], switches[(at + step) % 128])) for at in range(128) for step in offsets(128, "quick")
    }
    assert len(pinged_switches) > 0.9 * 16 * 17 / 2
    assert rows == table([bare(number) for number in range(128)])  # the same order each time


def test_single_rails_ping_each_other_whatever_their_names():
    other = host("n1", nic("ens3"), commands={"ip-addr": json.dumps([entry("ens3", "10.150.0.11/24")])})
    assert [list(row["rails"]) for row in table([bare(0), other])] == [[""], [""]]


@pytest.mark.parametrize(
    ("local", "values", "why"),
    [
        (["10.150.0.11/24"], {"operstate": "down"}, "the link is down"),
        (["fe80::1/64"], {}, "it has no address that others can reach"),
        (["169.254.3.4/16"], {}, "it has no address that others can reach"),
        (["::1/128"], {}, "it has no address that others can reach"),
        (["nonsense/24"], {}, "it has no address that others can reach"),
    ],
)
def test_ends_that_cannot_be_pinged_are_skipped_with_the_reason(local, values, why):
    odd = host("n4", nic("hsn0", **values), commands={"ip-addr": json.dumps([entry("hsn0", *local)])})
    assert table([odd]) == []
    results = of(checks.PING_ANSWERS, *pinged(4), odd)
    assert [(result.outcome, result.message) for result in results if result.host == "n4"] == [(Outcome.SKIP, why)]
    assert not wrong(results)


# ------------------------------------------------------------------------------------------------ answers


@pytest.mark.parametrize("level", ["quick", "full"])
@pytest.mark.parametrize("count", [2, 3, 4, 16, 33])
def test_a_clean_cluster_is_silent(count, level):
    hosts = pinged(count, rails=2, level=level)
    assert detections(hosts) == []
    assert outcomes(of(checks.PING_ANSWERS, *hosts)) == [Outcome.PASS] * 2 * count


def test_without_pings_everything_is_skipped():
    for check in FAMILY:
        assert [one.message for one in of(check, bare(0))] == ["there is no other host"]
        assert outcomes(of(check, bare(0), bare(1))) == [Outcome.SKIP] * 2


@pytest.mark.parametrize("level", ["quick", "full"])
@pytest.mark.parametrize("count", [3, 4, 7, 16, 40])
def test_a_dead_host_is_named_and_not_its_victims(count, level):
    hosts = pinged(count, without(2), level=level)
    ((check, name, target, outcome, message),) = detections(hosts)
    assert (check, name, target, outcome) == ("net.ping", "n2", "hsn0", Outcome.FAIL)
    partners = len({(2 + s) % count for s in offsets(count, level)} | {(2 - s) % count for s in offsets(count, level)})
    assert message == PINNED["no answer from partners"].filled(partners=partners)


def test_two_dead_hosts_of_four():
    assert named(checks.PING_ANSWERS, pinged(4, without(0, 3))) == [
        ("n0", "hsn0", Outcome.FAIL),
        ("n3", "hsn0", Outcome.FAIL),
    ]


def test_one_rail_of_a_host_is_dead():
    hosts = pinged(8, rails=2)
    for one in hosts:
        for row in one.snapshot.reach["pings"]:
            if row[1] == "hsn1" and "n5" in (one.name, row[0]):
                row[2:] = LOST
    assert [detection[:3] for detection in detections(hosts)] == [("net.ping", "n5", "hsn1")]


def test_no_route_is_said():
    hosts = pinged(4, lambda one, other: ("no route", None, 0, "x", 3, 0) if one == 1 else LOST if other == 1 else FINE)
    ((_, name, _, _, message),) = detections(hosts)
    assert name == "n1"
    assert "no route to 3 of 3 others" in message or "no answer from 3 of 3 others" in message


@pytest.mark.parametrize("count", [4, 8])
def test_a_single_pair_is_a_route(count):
    hosts = pinged(count, lambda one, other: LOST if {one, other} == {0, 1} else FINE, level="full")
    ((check, name, target, outcome, message),) = detections(hosts)
    assert (check, name, target, outcome) == ("net.ping.route", "n0", "hsn0=n1/hsn0", Outcome.WARN)
    assert message == "no answer, although both reach others"


def test_of_two_hosts_neither_is_named():
    ((check, name, target, outcome, message),) = detections(pinged(2, without(1)))
    assert (check, name, target, outcome, message) == (
        "net.ping.route",
        "n0",
        "hsn0=n1/hsn0",
        Outcome.WARN,
        "no answer",
    )


def test_without_any_answer_pings_may_be_filtered():
    hosts = pinged(8, lambda one, other: LOST)
    found = detections(hosts)
    assert [one[:4] for one in found] == [("net.ping", f"n{n}", "hsn0", Outcome.WARN) for n in range(8)]
    assert {one[4] for one in found} == {PINNED["none of 8 NICs answers another"]}
    assert not judge(Fleet(hosts), FAMILY).unfit


def test_a_host_that_only_filters_pings_is_fit():
    hosts = pinged(8, lambda one, other: LOST if other == 3 else FINE)
    ((check, name, _, outcome, message),) = detections(hosts)
    assert (check, name, outcome) == ("net.ping", "n3", Outcome.WARN)
    assert "ICMP is filtered" in message


def test_a_host_whose_own_pings_fail():
    ((_, name, _, outcome, message),) = detections(pinged(8, lambda one, other: LOST if one == 3 else FINE))
    assert (name, outcome, message) == (
        "n3",
        Outcome.WARN,
        PINNED["no answer from 4 of 4 others"],
    )


def test_a_switch_that_is_cut_off_is_reported_as_one():
    hosts = pinged(16, lambda one, other: LOST if (one < 4) != (other < 4) else FINE, level="full")
    found = detections(hosts)
    assert [one[1:4] for one in found] == [(f"n{n}", "hsn0", Outcome.FAIL) for n in range(4)]
    assert {one[4] for one in found} == {PINNED["n 0-3 reach each other"]}


def test_of_two_halves_neither_is_unfit():
    hosts = pinged(8, lambda one, other: LOST if (one < 4) != (other < 4) else FINE, level="full")
    assert {(detection[0], detection[3]) for detection in detections(hosts)} == {("net.ping", Outcome.WARN)}
    assert not judge(Fleet(hosts), FAMILY).unfit


def test_a_host_that_reaches_hardly_anybody_is_named():
    hosts = pinged(16, lambda one, other: LOST if 5 in (one, other) and 6 not in (one, other) else FINE, level="full")
    assert named(checks.PING_ANSWERS, hosts) == [("n5", "hsn0", Outcome.FAIL)]
    assert "14 of 15 others, most of which" in of(checks.PING_ANSWERS, *hosts)[0].message
    assert named(checks.PING_ROUTES, hosts) == []


def test_a_pinger_that_gave_nothing_is_never_a_pass():
    silent = bare(9, reach={"error": "no end after 23 s"})
    results = of(checks.PING_ANSWERS, *pinged(4), silent)
    assert ("n9", "", Outcome.ERROR, "pinger: no end after 23 s") in wrong(results)
    assert Outcome.PASS not in [result.outcome for result in results if result.host == "n9"]


@pytest.mark.parametrize(
    ("text", "outcome"),
    [("not installed", Outcome.SKIP), ("ping: socket: Operation not permitted", Outcome.SKIP), ("odd", Outcome.ERROR)],
)
def test_a_host_that_cannot_ping(text, outcome):
    hosts = pinged(2, lambda one, other: ("not run", None, 0, text, 0, 0))
    assert outcomes(of(checks.PING_ANSWERS, *hosts)) == [outcome] * 2


# ------------------------------------------------------------------------------------------------ frames


@pytest.mark.parametrize("count", [3, 4, 16])
def test_a_black_hole_for_long_frames_is_named(count):
    ((check, name, target, outcome, message),) = detections(pinged(count, without(1, kind=SHORT)))
    assert (check, name, target, outcome) == ("net.ping.mtu", "n1", "hsn0", Outcome.FAIL)
    assert PINNED["frames of 9000 bytes"].begins(message)


def test_long_frames_to_a_host_only():
    ((check, name, _, outcome, message),) = detections(pinged(8, lambda one, other: SHORT if other == 1 else FINE))
    assert (check, name, outcome) == ("net.ping.mtu", "n1", Outcome.FAIL)
    assert message == PINNED["frames of 9000 bytes are"]


def test_a_host_that_refuses_long_frames_itself():
    refused = ("too long", None, 1500, "ping: local error: message too long, mtu=1500", 12, 0)
    ((check, name, _, _, message),) = detections(pinged(4, lambda one, other: refused if one == 1 else FINE))
    assert (check, name) == ("net.ping.mtu", "n1")
    assert message == PINNED["the host refuses full-size"]


def test_a_cable_between_switches_for_short_frames_only():
    found = detections(pinged(4, lambda one, other: SHORT if {one, other} == {0, 2} else FINE))
    ((check, name, target, outcome, message),) = found
    assert (check, name, target, outcome) == ("net.ping.route", "n0", "hsn0=n2/hsn0", Outcome.WARN)
    assert message == PINNED["frames of 9000 bytes are lost"]


def test_long_frames_nowhere():
    found = detections(pinged(8, lambda one, other: SHORT))
    assert {one[0] for one in found} == {"net.ping.mtu"}
    assert {one[3:] for one in found} == {(Outcome.WARN, PINNED["frames of 9000 bytes are lost, of"])}


def test_a_dead_host_has_no_black_hole():
    assert {detection[0] for detection in detections(pinged(8, without(3)))} == {"net.ping"}


# ------------------------------------------------------------------------------------------------ times


def slow(number: int, factor: int = 60) -> Callable[[int, int], Row]:
    return lambda one, other: ("", 200 * (factor if number in (one, other) else 1), 0, "", 3, 3)


def test_a_slow_host_is_named():
    ((check, name, target, outcome, message),) = detections(pinged(8, slow(3)))
    assert (check, name, target, outcome) == ("net.ping.rtt", "n3", "hsn0", Outcome.WARN)
    assert message == PINNED["round trip 12 ms with 7"]


@pytest.mark.parametrize("factor", [1, 4])
def test_times_below_the_limit_are_not_reported(factor):
    assert detections(pinged(8, slow(3, factor))) == []


def test_a_few_slow_pings_are_noise():
    assert (
        detections(pinged(16, lambda one, other: ("", 90_000 if (one * 7 + other) % 5 == 0 else 200, 0, "", 3, 3)))
        == []
    )


def test_far_pairs_are_compared_with_far_ones():
    switches = {f"s{n}": Switch(f"s{n}", f"g{n}") for n in range(4)}
    topology = Topology(switches, {f"n{n}": f"s{n // 4}" for n in range(16)})
    hosts = pinged(16, lambda one, other: ("", 50 if one // 4 == other // 4 else 5000, 0, "", 3, 3), level="full")
    assert detections(hosts, topology=topology) == []


# ------------------------------------------------------------------------------------------------ addresses


def test_a_host_with_a_shared_address_is_not_reported_as_dead():
    """Answers to its pings go to the other one."""
    taken = [{"dst": address(3), "dev": "hsn0", "lladdr": mac(1), "state": ["REACHABLE"]}]
    hosts = pinged(4, lambda one, other: LOST if one == 3 else FINE)
    hosts[2].snapshot.commands["ip-neigh"] = Output(json.dumps(taken), status=0)
    assert detections(hosts) == []
    assert [(one.host, one.outcome) for one in of(checks.PING_ANSWERS, *hosts) if one.outcome is not Outcome.PASS] == [
        ("n1", Outcome.SKIP),
        ("n3", Outcome.SKIP),
    ]


# ------------------------------------------------------------------------------------------------ IPv6


def of_ipv6(number: int, *more: str):
    said = {"ip-addr": json.dumps([entry("hsn0", "fe80::1/64", f"fd00::{number + 1:x}/64", *more)])}
    return host(f"n{number}", nic("hsn0"), commands=said)


def test_hosts_of_an_ipv6_fabric_ping_each_other():
    rows = table([of_ipv6(number) for number in range(4)])
    assert {row["host"]: row["rails"] for row in rows} == {
        f"n{number}": {"": (f"fd00::{number + 1:x}", 9000)} for number in range(4)
    }
    (row,) = table([of_ipv6(0, "10.0.0.1/24")])
    assert row["rails"][""][0] == "10.0.0.1", "IPv4 where there is one"
