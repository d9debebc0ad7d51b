"""Which end loses pings: simulated hosts whose pings are lost by chance, or in a burst."""

from __future__ import annotations

from random import Random

import pytest
from preflight_help import of, wrong
from simulated_pings import Burst, at_hosts, simulated_hosts

from fablint.model.preflight_results import Outcome
from fablint.preflight import FIRST, SECOND, Fleet, judge, offsets, repeats
from fablint.preflight.checks.network.loss import PING_LOSS
from fablint.preflight.checks.network.reachability import FULL_SIZE, PING_ANSWERS, PING_ROUTES
from fablint.preflight.host import Host
from fablint.preflight.pings.losses import losses
from fablint.preflight.pings.mesh import End, reach_of
from fablint.snapshot.agent.pinger import GAP_S, SLACK_S
from fablint.snapshot.pinging import LIMITS_S
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

pytestmark = pytest.mark.long  # many simulated fleets

FAMILY = (PING_ANSWERS, PING_ROUTES, FULL_SIZE, PING_LOSS)


def detections(hosts: list[Host]) -> list[tuple[str, str, Outcome]]:
    return [(check.id, name, outcome) for check in FAMILY for name, _, outcome, _ in wrong(of(check, *hosts))]


@pytest.mark.parametrize("level", ["quick", "full"])
@pytest.mark.parametrize("count", [3, 4, 8, 16, 100])
@pytest.mark.parametrize(("percent", "crossings"), [(40, 1), (30, 2), (60, 1), (60, 2)])
def test_a_host_that_loses_much_fails_and_no_other_is_named(count, level, percent, crossings):
    found = detections(simulated_hosts(count, level, at_hosts(2, percent, crossings)))
    assert found == [("net.ping.loss", "n2", Outcome.FAIL)]


@pytest.mark.parametrize("count", [3, 4, 8, 16, 60])
def test_five_percent_are_seen_at_level_full(count):
    assert detections(simulated_hosts(count, "full", at_hosts(1, 5))) == [("net.ping.loss", "n1", Outcome.WARN)]


@pytest.mark.parametrize("count", [2, 3, 4, 8, 30, 67, 500])
def test_the_pings_of_level_full_suffice_for_five_percent_and_end_in_time(count):
    rows = 2 * len(offsets(count, "full"))
    assert rows * repeats(count, "full", FIRST) >= 200
    assert rows * repeats(count, "full", SECOND) >= 200  # so that 5 % are 10, and fewer than 2 once in 2,000 times
    assert repeats(count, "quick", FIRST) * GAP_S <= 1.8  # seconds
    for level in ("quick", "full"):
        assert repeats(count, level, SECOND) * GAP_S + SLACK_S <= LIMITS_S[level]


@pytest.mark.parametrize("level", ["quick", "full"])
@pytest.mark.parametrize("lossy", [{1, 3}, {1, 3, 5}, {0, 1, 2}])
def test_several_lossy_hosts_are_all_named(lossy, level):
    for seed in range(3):
        found = detections(simulated_hosts(8, level, at_hosts(lossy, 15), seed))
        assert {(check, name) for check, name, _ in found} == {("net.ping.loss", f"n{number}") for number in lossy}


def test_a_lossy_host_is_named_although_all_others_lose_a_few_pings():
    """The losses of the others together are more than those of the host."""
    hosts = simulated_hosts(16, "full", lambda one, other: 0.99 * (0.92 if 2 in (one, other) else 1.0))
    assert set(losses(reach_of(hosts).pings).ends) == {End("n2", "hsn0")}


# ------------------------------------------------------------------------------------------------ bursts


@pytest.mark.parametrize(("count", "level"), [(2, "quick"), (8, "quick"), (24, "quick"), (2, "full"), (8, "full")])
@pytest.mark.parametrize("number", [None, 1])
def test_a_burst_of_losses_names_no_host(count, level, number):
    """Half of all pings are lost for 0.2 to 1 s, between all hosts or those of one host, at any time."""
    for seed in range(10):
        random = Random(seed)
        length_s = random.uniform(0.2, 1.0)
        begin_s = random.uniform(-length_s, repeats(count, level, FIRST) * GAP_S)
        hosts = simulated_hosts(count, level, seed=seed, bursts=[Burst(begin_s, length_s, number=number)])
        assert detections(hosts) == []


def test_a_burst_that_ends_the_first_pass_is_over_before_the_second_one():
    """The pings of the first pass are those of a burst of 1 s that begins with its last ping."""
    begin_s = (repeats(8, "full", FIRST) - 1) * GAP_S
    hosts = simulated_hosts(8, "full", bursts=[Burst(begin_s, 1.0, share=0.9)])
    assert any("second" in one.snapshot.reach for one in hosts)
    assert detections(hosts) == []


def test_losses_without_a_second_pass_are_not_judged():
    hosts = simulated_hosts(8, "quick", at_hosts(2, 30))
    for one in hosts:
        one.snapshot.reach.pop("second", None)
    results = of(PING_LOSS, *hosts)
    assert ("n2", Outcome.SKIP) in {(one.host, one.outcome) for one in results}
    assert detections(hosts) == []


def test_a_host_that_is_silent_in_the_second_pass_has_lost_these_pings():
    hosts = simulated_hosts(8, "quick", at_hosts(2, 30))
    for one in hosts:
        for row in one.snapshot.reach["second"]["pings"]:
            if "n2" in (one.name, row[0]):
                row[2:] = ["no answer", None, 0, "", 12, 0]
    assert detections(hosts) == [("net.ping.loss", "n2", Outcome.FAIL)]


@pytest.mark.parametrize("level", ["quick", "full"])
@pytest.mark.parametrize("count", [4, 5, 16])
@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_host_that_is_busy_in_the_second_pass_only_is_not_named_beside_a_lossy_one(count, level, lost):
    """All hosts have a second pass because all lost pings to n2: n0 loses some then, of each other host, not before."""
    hosts = simulated_hosts(count, level, at_hosts(2, 45))
    for one in hosts:
        for row in one.snapshot.reach["second"]["pings"]:
            ends = {one.name, row[0]}
            row[7] -= lost if "n0" in ends and "n2" not in ends else 0
    assert detections(hosts) == [("net.ping.loss", "n2", Outcome.FAIL)]


# ------------------------------------------------------------------------------------------------ other causes


@pytest.mark.parametrize("level", ["quick", "full"])
@pytest.mark.parametrize("is_counted", [True, False])
def test_replies_that_a_healthy_host_could_not_send_are_not_its_losses(level, is_counted):
    """Replies to the lossy host n2 fill the send buffer of n1: it discards 1, then 6 replies to each host."""
    hosts = simulated_hosts(4, level, at_hosts(2, 40))
    discarded = 0
    for one in hosts:
        for row in one.snapshot.reach["pings"]:
            row[7] -= 1 if row[0] == "n1" and row[7] > 1 else 0
        for row in one.snapshot.reach["second"]["pings"]:
            if row[0] == "n1":
                answered = min(row[7], 6)
                row[7], discarded = row[7] - answered, discarded + answered
    assert discarded >= 6
    hosts[1].snapshot.reach["second"]["unsent"] = discarded if is_counted else 0
    lossy = [("net.ping.loss", "n2", Outcome.FAIL)]
    assert (detections(hosts) == lossy) == is_counted


def test_replies_that_were_not_sent_do_not_hide_a_cable_that_loses_more():
    hosts = simulated_hosts(8, "quick", at_hosts(2, 30))
    hosts[2].snapshot.reach["second"]["unsent"] = 10
    assert detections(hosts) == [("net.ping.loss", "n2", Outcome.FAIL)]


@pytest.mark.parametrize("seed", range(5))
def test_a_lossy_cable_between_switches_names_no_single_host(seed):
    hosts = simulated_hosts(16, "full", lambda one, other: 0.9 if (one < 8) != (other < 8) else 1.0, seed)
    assert not judge(Fleet(hosts), FAMILY).unfit
    messages = {message for *_, message in wrong(of(PING_LOSS, *hosts))}
    assert len(messages) == 1
    assert PINNED["no NIC loses clearly more"] in messages.pop()


def test_a_single_lossy_pair_is_a_route():
    hosts = simulated_hosts(8, "full", lambda one, other: 0.8 if {one, other} == {3, 6} else 1.0)
    ((name, target, outcome, message),) = wrong(of(PING_ROUTES, *hosts))
    assert (name, target, outcome) == ("n3", "hsn0=n6/hsn0", Outcome.WARN)
    assert PINNED["pings lost, although neither"].ends(message)
    assert detections(hosts) == [("net.ping.route", "n3", Outcome.WARN)]


def test_of_two_hosts_neither_is_named():
    assert detections(simulated_hosts(2, "full", at_hosts(1, 30))) == [("net.ping.route", "n0", Outcome.WARN)]


@pytest.mark.parametrize("lost", [0, 1])
def test_a_single_lost_ping_of_the_second_pass_is_not_reported(lost):
    hosts = simulated_hosts(8, "quick", bursts=[Burst(0.0, 0.5)])
    rows = hosts[3].snapshot.reach["second"]["pings"]
    rows[0][7] -= lost
    assert detections(hosts) == []
    for row in rows:
        row[7] -= 2
    assert detections(hosts) == [("net.ping.loss", "n3", Outcome.WARN)]


def test_black_holes_of_pairs_that_lose_short_frames_too_are_not_reported():
    """With bit errors, long frames are lost before short ones: here all of three pairs'."""
    hosts = simulated_hosts(8, "full", at_hosts(2, 60))
    for one in hosts:
        reach = one.snapshot.reach
        for row in reach["pings"] + reach["second"]["pings"]:
            if {one.name, row[0]} in ({"n2", "n1"}, {"n2", "n4"}, {"n2", "n5"}):
                row[2:] = ["mtu", None, 1500, "", 12, 0]
    assert detections(hosts) == [("net.ping.loss", "n2", Outcome.FAIL)]


def test_false_names_are_rare_where_loss_is_the_same_everywhere():
    every = [simulated_hosts(16, "quick", lambda one, other: 0.98, seed) for seed in range(40)]
    assert sum(bool(losses(reach_of(hosts).pings).ends) for hosts in every) <= 2
