"""What is made of the snapshots of hosts."""

from __future__ import annotations

import pytest
from discovery_help import discovered, lldp, nic, sample, says

from fablint.discover.answers import read_snapshots
from fablint.discover.facts import Origin
from fablint.model import Answer, State
from fablint.snapshot import read_answers
from fablint.text.evidence_sentences import sentences
from pinned import pinned_by

PINNED = pinned_by("discover.toml", __file__)

MISMATCH = "lldpcli-json0-slingshot-ama-mismatch-on-hsn1.json"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer("n1", error="no answer after 20 s"), "no answer: no answer after 20 s"),
        (Answer("n1"), "no answer: no output"),
        (Answer("n1", "bash: python3: command not found\n"), "no snapshot in its output: 'bash: python3: command"),
        (Answer("n1", "fablint:bm9uZQ==.\n"), "no snapshot in its output"),
    ],
)
def test_a_host_that_does_not_answer_is_a_fault(answer: Answer, why: str) -> None:
    (finding,) = read_snapshots(read_answers([answer])).findings
    assert (finding.state, finding.component, finding.name) == (State.FAULT, "host", "n1")
    assert why in sentences(finding.evidence)
    assert finding.next_step


def test_the_reason_for_missing_lldp_is_reported() -> None:
    (report,) = read_snapshots(read_answers(says(f"n{n}") for n in range(3))).reports
    assert (report.name, report.silent) == ("LLDP", "not installed (n[0-2])")


def test_lldp_of_a_host_is_an_attachment() -> None:
    answers = read_snapshots(read_answers([says("n1", lldp(("hsn0", "s0", "p7"), ("mgmt0", "m", "1")))]))
    place = answers.facts.attachments[0]
    assert (place.host, place.nic, place.switch, place.port) == ("n1", "hsn0", "s0", "p7")


def test_where_lldpd_is_silent_lldpad_tells() -> None:
    commands = {"lldptool/hsn0": {"output": sample("lldptool-tn-from-lldpd-switch.txt"), "status": 0}}
    (place,) = read_snapshots(read_answers([says("n1", commands=commands)])).facts.attachments
    assert (place.nic, place.switch, place.port) == ("hsn0", "x3000c0r42b0", "ros0p51")


# ------------------------------------------------------------------------------------------------ Slingshot


def test_an_address_of_another_port_is_a_fault_of_the_configuration() -> None:
    nics = [nic("hsn0", address="02:00:00:00:00:15"), nic("hsn1", address="02:00:00:00:00:16")]
    found = discovered(answers=[says("nid1", sample(MISMATCH), nics)], hosts=["nid1"])
    (finding,) = found.findings
    assert (finding.state, finding.component, finding.name) == (State.FAULT, "config", "nid1/hsn1")
    assert PINNED["port 22, but it is connected"] in sentences(finding.evidence).replace("ros0p27", "27")


def test_addresses_alone_tell_switch_and_group_and_the_template_its_name() -> None:
    answers = [says(f"n{n}", nics=[nic("hsn0", address=f"02:00:00:00:00:{0x40 + n:02x}")]) for n in range(2)]
    alone = discovered(answers=answers, hosts=["n0", "n1"]).topology
    assert alone is not None
    assert alone.host_switch == {"n0": "group0-switch1", "n1": "group0-switch1"}
    named = discovered("fabric_template.json", answers=answers, hosts=["n0", "n1"]).topology
    assert named is not None
    assert named.host_switch == {"n0": "x1000c0r7b0", "n1": "x1000c0r7b0"}
    assert named.group_of("n0") == "group0"
    assert named.routing.kind == "adaptive"


def test_addresses_of_containers_tell_nothing() -> None:
    answers = [says("n0", nics=[nic("hsn0", address="02:00:00:00:00:40"), nic("veth7", address="02:00:00:00:01:41")])]
    places = read_snapshots(read_answers(answers)).facts.attachments
    assert [(place.nic, place.source) for place in places] == [("hsn0", Origin.AMA)]


def test_how_nics_are_set_is_no_finding_here() -> None:
    odd = [nic("hsn0", mtu="1500", operstate="down", carrier="0"), nic("hsn1", speed="100000")]
    answers = [says(f"n{n}", lldp(("hsn0", "s0", f"p{n}")), odd if n == 3 else [nic("hsn0")]) for n in range(8)]
    assert discovered(answers=answers, hosts=[f"n{n}" for n in range(8)]).findings == ()
