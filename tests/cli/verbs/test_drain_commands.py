"""The stage act: drain commands and hosts without suspects."""

from __future__ import annotations

import json
import shlex

import pytest
from act_cases import CABLE, EVERY, HOSTS, MTU, commands, finding, preflight
from hypothesis import given, settings, strategies as st

from fablint.act import Drain, HostFindings, drains, parse_source, ticket_text
from fablint.model import State
from pinned import pinned_by

PINNED = pinned_by("cli.toml", __file__)


def test_hosts_at_fault_are_drained_by_reason():
    assert commands(EVERY) == [
        PINNED["scontrol update NodeName="],
        PINNED["scontrol update NodeName=nid001005"],
    ]


def test_pbs_has_its_own_command():
    assert commands(MTU, "pbs") == [PINNED["pbsnodes -o -C net.link.mtu"]]


def test_slurm_calls_nodes_by_their_short_names():
    found = finding("host", "n1.site.org", "host.shm: full")
    assert shlex.split(commands([found], hosts=["n1.site.org"])[0])[2] == "NodeName=n1"
    assert commands([found], "pbs", ["n1.site.org"])[0].endswith(" n1.site.org")
    address = finding("host", "10.0.0.7", "host.shm: full")
    assert shlex.split(commands([address], hosts=["10.0.0.7"])[0])[2] == "NodeName=10.0.0.7"


def test_parts_of_a_host_that_have_the_same_are_one_reason():
    both = [finding("nic", f"n1/hsn{nic}", "net.link.up: link down") for nic in (0, 1)]
    assert drains(HostFindings(both, ["n1"])) == [Drain("net.link.up hsn[0-1] link down (fablint)", ["n1"])]


def test_of_several_reasons_the_first_is_printed_and_the_others_are_counted():
    found = [finding("nic", "n1/hsn0", "net.link.up: link down"), finding("host", "n1", "host.shm: full")]
    assert drains(HostFindings(found, ["n1"]))[0].reason == "net.link.up hsn0 link down +1 (fablint)"


@pytest.mark.parametrize(
    "said",
    [
        "no answer: " + "x" * 200,
        "net.link.mtu: " + "y" * 200,
        'net.abcdefghijklmnop: \x1b[31m"it\'s" `gone` \\ \u2028 äöü',
    ],
)
def test_a_reason_has_60_letters_and_begins_with_the_check(said):
    reason = drains(HostFindings([finding("host", "n1", said), finding("nic", "n1/a", "x.y: z")], ["n1"]))[0].reason
    assert len(reason) <= 60
    assert reason.endswith(" +1 (fablint)")
    assert reason[:20].startswith("fabric.host" if said.startswith("no") else said.partition(":")[0])
    assert reason.isascii()
    assert reason.isprintable()


def test_a_cable_to_a_host_drains_it_and_a_cable_between_switches_drains_no_host():
    to_host = finding("cable", "nid001005=s1", "slow", quantity="bandwidth", effect=-0.3)
    assert [one.hosts for one in drains(HostFindings([to_host, CABLE], HOSTS))] == [["nid001005"]]
    assert drains(HostFindings([to_host, CABLE], HOSTS))[0].reason == PINNED["fabric.cable to s1 bandwidth"]


def test_without_hosts_findings_of_hosts_name_them():
    to_host = finding("cable", "nid001005=s1", "slow")
    assert drains(HostFindings([to_host])) == []  # it might be a switch
    known = finding("host", "nid[001001-001008]", state=State.OK)
    assert drains(HostFindings([to_host, known]))[0].hosts == ["nid001005"]


def test_a_setting_of_no_host_drains_no_host():
    assert drains(HostFindings([finding("config", "edge latency 8 B", "all miss it")], HOSTS)) == []
    assert drains(HostFindings([finding("config", "nid001001/MTU", "odd")], HOSTS))[0].hosts == ["nid001001"]


def test_routes_of_a_host_drain_it_and_a_route_between_two_drains_no_host():
    own = finding("route", "nid001001/hsn1", "net.route.rails: leaves by hsn0")
    assert drains(HostFindings([own], HOSTS)) == [Drain(PINNED["net.route.rails hsn1 leaves"], ["nid001001"])]
    assert drains(HostFindings([finding("route", "nid001001=nid001002", "stalled with each other")], HOSTS)) == []


def test_what_is_only_suspected_drains_no_host():
    states = (State.SUSPECT, State.CONFOUNDED, State.NOT_JUDGED, State.OK)
    assert drains(HostFindings([finding("host", HOSTS[0], state=state) for state in states], HOSTS)) == []


@settings(max_examples=100)
@given(st.text(max_size=40), st.text(max_size=80), st.sampled_from(["slurm", "pbs"]))
def test_no_name_and_no_message_does_anything_in_a_shell(name, said, scheduler):
    for line in commands([finding("host", name, said), finding("nic", "n1/x", said)], scheduler, None):
        assert "\n" not in line
        words = shlex.split(line)
        assert words[0] in ("scontrol", "pbsnodes")
        if scheduler == "slurm":
            assert [word.partition("=")[0] for word in words[2:]] == ["NodeName", "State", "Reason"]
        else:
            assert not any(word.startswith("-") for word in words[4:])


@pytest.mark.parametrize("name", ["-x", "$(reboot)", "a;reboot", "a b", "n1'", "", "n[1-", "é"])
def test_a_name_that_is_none_is_left_to_the_ticket(name):
    source = HostFindings([finding("host", name, "host.shm: full")])
    assert drains(source) == []
    assert "FAULT" in ticket_text(source)


def test_hosts_that_are_neither_at_fault_nor_suspect_are_left():
    left = HostFindings(EVERY, HOSTS).left()
    assert left == ["nid001001", "nid001002", "nid001006", "nid001008"]


def test_long_and_short_names_are_one_host():
    assert HostFindings([finding("host", "n1", "x")], ["n1.site.org", "n2.site.org"]).left() == ["n2.site.org"]


EVERYWHERE = {f"n{number}": "WARN" for number in range(1, 21)}


def test_a_warning_that_all_hosts_share_leaves_out_none():
    source = parse_source(
        preflight({"host.cstates": EVERYWHERE, "host.bios": {"n3": "WARN"}, "x.y": {"n7": "FAIL"}}), "x"
    )
    others = [f"n{number}" for number in range(1, 21)]
    assert source.left() == [one for one in others if one not in ("n3", "n7")]
    assert source.left(with_warnings=True) == [one for one in others if one != "n7"]


def test_a_host_that_was_not_read_as_a_whole_is_not_left():
    source = parse_source(preflight({"host.snapshot": {"n2": "ERROR"}}), "x")
    assert "n2" not in source.left(with_warnings=True) and len(source.left()) == 19


def test_hosts_of_one_finding_are_all_left_out():
    """A cause is one finding, and its hosts are unfit."""
    text = json.loads(preflight({}))
    cause = finding("config", "image 5.14", "host.memlock: only 8 MiB; common to 2 hosts of image 5.14: n[1-2]")
    text |= {"findings": [cause.model_dump(mode="json")], "unfit": {"n1": "x", "n2": "x"}}
    source = parse_source(json.dumps(text), "x")
    assert source.left(with_warnings=True) == [f"n{number}" for number in range(3, 21)]
    assert drains(source) == []
