"""Which end loses pings: fleets whose loss is drawn, with the rounds and counts that hosts are given."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

import pytest
from preflight_help import host, nic, of, wrong

from fablint.model.preflight_results import Outcome
from fablint.preflight import Fleet, judge, offsets, repeats
from fablint.preflight.checks.network.loss import PingLoss
from fablint.preflight.checks.network.reachability import FullSize, PingAnswers, PingRoutes
from fablint.preflight.host import Host
from fablint.preflight.pings.losses import losses
from fablint.preflight.pings.mesh import End, Ping

FAMILY = (PingAnswers, PingRoutes, FullSize, PingLoss)
MORE = 9  # pings, and of that many each of two smaller sizes where none of full size was answered
Share = Callable[[int, int], float]  # of the pings between two hosts, that come back


def at_host(lossy: int, percent: float, crossings: int = 1) -> Share:
    """Share of pings that survive the cable of a host, crossed once or twice."""
    return lambda one, other: (1 - percent / 100) ** crossings if lossy in (one, other) else 1.0


def drawn(count: int, level: str, share: Share, seed: int = 1) -> list[list[list[object]]]:
    """What every host's pinger says, as `pinger.py` goes on where some pings are lost."""
    random = Random(seed)
    rows = []
    for number in range(count):
        mine: dict[int, list[int]] = {}

        def send(peer: int, pings: int, number: int = number, mine: dict[int, list[int]] = mine) -> None:
            came = sum(random.random() < share(number, peer) for _ in range(pings))
            sent, received = mine.get(peer, [0, 0])
            mine[peer] = [sent + pings, received + came]

        for peer in ((number + offset) % count for offset in offsets(count, level)):
            send(peer, 3)
            send(peer, repeats(count, level) - 3 if mine[peer][1] else 3 * MORE)
        if any(0 < received < sent for sent, received in mine.values()):
            for peer in sorted(mine, key=lambda one: mine[one][1] - mine[one][0])[:16]:
                if mine[peer][1] and mine[peer][0] < 3 + MORE:
                    send(peer, MORE)
        rows.append([[f"n{peer}", "", *_kind(*counts)] for peer, counts in mine.items()])
    return rows


def _kind(sent: int, received: int) -> list[object]:
    return ["", 200, 0, "", sent, received] if received else ["no answer", None, 0, "", sent, 0]


def fleet(count: int, level: str, share: Share, seed: int = 1) -> list[Host]:
    found = []
    for number, rows in enumerate(drawn(count, level, share, seed)):
        address = {"local": f"10.0.{number // 200}.{number % 200 + 1}", "prefixlen": 16, "scope": "global"}
        listed = json.dumps([{"ifname": "hsn0", "addr_info": [address]}])
        files = nic("hsn0", address=f"02:00:00:00:{number // 256:02x}:{number % 256:02x}")
        reach = {"fablint_reach": 1, "pings": rows}
        found.append(host(f"n{number}", files, commands={"ip-addr": listed}, reach=reach))
    return found


def detections(hosts: list[Host]) -> list[tuple[str, str, Outcome]]:
    return [(check.id, name, outcome) for check in FAMILY for name, _, outcome, _ in wrong(of(check, *hosts))]


@pytest.mark.parametrize("level", ["quick", "full"])
@pytest.mark.parametrize("count", [3, 4, 8, 16, 100])
@pytest.mark.parametrize(("percent", "crossings"), [(40, 1), (30, 2), (60, 1), (60, 2)])
def test_a_host_that_loses_much_fails_and_no_other_is_named(count, level, percent, crossings):
    found = detections(fleet(count, level, at_host(2, percent, crossings)))
    assert found == [("net.ping.loss", "n2", Outcome.FAIL)]


@pytest.mark.parametrize("count", [3, 4, 8, 16, 60])
def test_five_percent_are_seen_at_level_full(count):
    assert detections(fleet(count, "full", at_host(1, 5))) == [("net.ping.loss", "n1", Outcome.WARN)]


@pytest.mark.parametrize("count", [2, 3, 4, 8, 30, 67, 500])
def test_the_pings_of_level_full_suffice_for_five_percent_and_end_in_time(count):
    rows, each = 2 * len(offsets(count, "full")), repeats(count, "full")
    assert rows * each >= 200  # so that 5 % are 10, and fewer than 2 come once in 2,000 times
    assert each * 0.2 <= 20  # seconds
    assert repeats(count, "quick") * 0.2 <= 1.8


def test_several_lossy_hosts_are_all_named():
    lossy = {2, 5, 11}
    hosts = fleet(16, "full", lambda one, other: 0.9 ** len({one, other} & lossy))
    assert set(detections(hosts)) == {("net.ping.loss", f"n{number}", Outcome.WARN) for number in lossy}


@pytest.mark.parametrize("seed", range(5))
def test_a_lossy_cable_between_switches_names_no_single_host(seed):
    hosts = fleet(16, "full", lambda one, other: 0.9 if (one < 8) != (other < 8) else 1.0, seed)
    assert not judge(Fleet(hosts), FAMILY).unfit
    messages = {message for *_, message in wrong(of(PingLoss, *hosts))}
    assert len(messages) == 1
    assert "no NIC loses clearly more than the others" in messages.pop()


def test_a_single_lossy_pair_is_a_route():
    hosts = fleet(8, "full", lambda one, other: 0.8 if {one, other} == {3, 6} else 1.0)
    ((name, target, outcome, message),) = wrong(of(PingRoutes, *hosts))
    assert (name, target, outcome) == ("n3", "hsn0=n6/hsn0", Outcome.WARN)
    assert message.endswith("pings lost, although neither loses pings with others")
    assert detections(hosts) == [("net.ping.route", "n3", Outcome.WARN)]


def test_of_two_hosts_neither_is_named():
    assert detections(fleet(2, "full", at_host(1, 30))) == [("net.ping.route", "n0", Outcome.WARN)]


@pytest.mark.parametrize("lost", [0, 1])
def test_a_single_lost_ping_is_not_reported(lost):
    hosts = fleet(8, "quick", lambda one, other: 1.0)
    hosts[3].snapshot.reach["pings"][0][7] -= lost
    assert detections(hosts) == []
    hosts[3].snapshot.reach["pings"][1][7] -= 1
    assert detections(hosts) == ([("net.ping.loss", "n3", Outcome.WARN)] if lost else [])


def test_black_holes_of_pairs_that_lose_short_frames_too_are_not_reported():
    """With bit errors, long frames are lost before short ones: here all of three pairs'."""
    hosts = fleet(8, "full", at_host(2, 60))
    for one in hosts:
        for row in one.snapshot.reach["pings"]:
            if {one.name, row[0]} in ({"n2", "n1"}, {"n2", "n4"}, {"n2", "n5"}):
                row[2:] = ["mtu", None, 1500, "", 12, 0]
    assert detections(hosts) == [("net.ping.loss", "n2", Outcome.FAIL)]


def test_false_names_are_rare_where_loss_is_the_same_everywhere():
    named = sum(bool(losses(_pings(fleet_rows)).ends) for fleet_rows in _everywhere(0.01))
    assert named <= 2  # of 40


def _everywhere(share: float) -> list[list[list[list[object]]]]:
    return [drawn(16, "full", lambda one, other: 1 - share, seed) for seed in range(40)]


def _pings(rows: list[list[list[object]]]) -> list[Ping]:
    return [
        Ping(End(f"n{number}", "hsn0"), End(str(row[0]), "hsn0"), str(row[2]), None, 0, "", int(row[6]), int(row[7]))  # type: ignore[call-overload]
        for number, every in enumerate(rows)
        for row in every
    ]
