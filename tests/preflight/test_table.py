"""All checks together: their texts, and what they say where there is little to see."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from preflight_help import host, sample, sysroot
from preflight_reference import FAMILIES

from fablint.model.preflight_results import Fitness, Outcome
from fablint.preflight import CHECKS, Fleet, Host, judge
from fablint.preflight.check import Check
from fablint.snapshot import Snapshot, command_to_collect
from fablint.snapshot.collecting import snapshot_of, unpack

COMPONENTS = {"host", "nic", "cable", "link", "switch", "route", "config"}


def reported(fitness: Fitness, *outcomes: Outcome) -> list[tuple[str, str, str]]:
    return [(one.check, one.target, one.message) for one in fitness.results if one.outcome in outcomes]


def test_there_are_at_least_fifty_and_each_has_a_name_of_its_own() -> None:
    ids = [check.id for check in CHECKS]
    assert len(ids) >= 50
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_texts_of_a_check(check: Check) -> None:
    rule = check
    assert len(rule.id) <= 20, "sinfo -R shows 20 letters of a reason"
    assert rule.id.partition(".")[0] in FAMILIES
    assert rule.component in COMPONENTS
    assert all(text.strip() == text and text for text in (rule.what, rule.source, rule.rule, rule.remedy))


@pytest.mark.parametrize("count", [1, 3])
def test_a_host_of_which_nothing_is_known_has_passed_nothing(count: int) -> None:
    fitness = judge(Fleet([Host(Snapshot(f"n{index}")) for index in range(count)]))
    assert {one.outcome for one in fitness.results} == {Outcome.SKIP, Outcome.ERROR}
    assert {one.check for one in fitness.results if one.outcome is Outcome.ERROR} == {
        "host.snapshot",
        "net.examined",
    }
    assert fitness.exit_code == 3
    assert all(one.message for one in fitness.results)
    assert {one.check for one in fitness.results} == {check.id for check in CHECKS}


def test_no_host_no_result() -> None:
    assert [one for one in judge(Fleet([])).results if one.outcome is not Outcome.SKIP] == []


@pytest.mark.parametrize("count", [1, 3])
def test_a_plain_virtual_machine_has_no_finding(count: int) -> None:
    text = sample("host/snapshot-plain-vm.json")
    hosts = []
    for index in range(count):  # with addresses of its own
        own = text.replace('"192.0.2.2"', f'"192.0.2.20{index}"').replace(
            "02:fc:00:00:00:01", f"02:fc:00:00:01:0{index}"
        )
        own = own.replace("fd00::2", f"fd00::1{index}").replace("fe00:1", f"fe00:1{index}")
        own = own.replace('"hostname": "vm"', f'"hostname": "n{index}"')
        hosts.append(Host(snapshot_of({**json.loads(own), "host": f"n{index}"})))
    fitness = judge(Fleet(hosts))
    assert reported(fitness, Outcome.WARN, Outcome.FAIL, Outcome.ERROR) == []
    assert all(one.message for one in fitness.results if one.outcome is Outcome.SKIP)


def test_every_check_understands_this_machine() -> None:
    argv, program = command_to_collect("quick")
    done = subprocess.run(
        [sys.executable, *argv[1:]], input=program, capture_output=True, text=True, timeout=60, check=True
    )
    taken = unpack(done.stdout)
    assert taken is not None
    fitness = judge(Fleet([Host(snapshot_of(taken))]))
    assert reported(fitness, Outcome.ERROR) == []
    assert all(one.message for one in fitness.results if one.outcome is not Outcome.PASS)


def test_a_thousand_hosts_are_judged_and_the_faulty_one_is_found() -> None:
    files = [sysroot("cxi-2rail-good"), sysroot("mlx5-2rail-good")]
    hosts = [host(f"nid{index:04d}", files[index % 2]) for index in range(1000)]
    hosts[501] = host("nid0501", sysroot("mlx5-2rail-bad"))
    fitness = judge(Fleet(hosts))
    assert {one.host for one in fitness.results} >= {one.name for one in hosts}
    assert "nid0501" in fitness.unfit
