"""The probe, and what is made of its answers."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from discovery_help import SAMPLES, discovered, lldp, nic, probed, sample

from fablint.discover.answers import probe_text, read_answers
from fablint.discover.facts import Told
from fablint.discover.fleet import judge_fleet
from fablint.model import Answer, Finding, State
from fablint.snapshot import NicFact


def run_probe(*words: str) -> str:
    argv = [sys.executable, "-", *words]
    done = subprocess.run(argv, input=probe_text(), capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def unfold(folder: Path, name: str) -> Path:
    """A sample of /sys as files."""
    for path, content in json.loads(sample(f"sysroot/{name}.json")).items():
        at = folder / path.removesuffix("/@link").lstrip("/")
        at.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith("/@link"):
            at.symlink_to(content.strip())
        else:
            at.write_text(content)
    return folder


def test_the_probe_answers_on_this_machine_in_short_lines() -> None:
    begun = time.monotonic()
    output = run_probe()
    assert time.monotonic() - begun < 20  # it gives up by itself after two
    assert max(map(len, output.splitlines())) < 500
    answers = read_answers([Answer("here", output)])
    assert not [finding for finding in answers.findings if finding.component == "host"]


def test_the_probe_reads_slingshot_nics(tmp_path: Path) -> None:
    answers = read_answers([Answer("nid1", run_probe("--sysroot", str(unfold(tmp_path, "cxi-2rail-good"))))])
    nics = {fact.name: fact for fact in answers.nics}
    assert {"hsn0", "hsn1"} <= set(nics)
    assert nics["hsn0"].mtu == 9000
    assert nics["hsn0"].state == "up"
    assert {place.nic for place in answers.facts.attachments if place.source is Told.AMA} == {"hsn0", "hsn1"}


def test_the_probe_reads_infiniband_ports(tmp_path: Path) -> None:
    answers = read_answers([Answer("n1", run_probe("--sysroot", str(unfold(tmp_path, "mlx5-2rail-good"))))])
    ports = [fact for fact in answers.nics if fact.kind == "infiniband"]
    assert [(port.name, port.speed, port.state) for port in ports] == [
        ("mlx5_0", 400000, "up"),
        ("mlx5_1", 400000, "up"),
    ]


def test_the_probe_is_for_old_interpreters() -> None:
    import ast

    ast.parse(probe_text(), feature_version=(3, 6))
    imported = {
        name.name for node in ast.walk(ast.parse(probe_text())) if isinstance(node, ast.Import) for name in node.names
    }
    assert imported <= sys.stdlib_module_names


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer("n1", error="no answer after 20 s"), "no answer: no answer after 20 s"),
        (Answer("n1"), "no answer: it printed nothing"),
        (Answer("n1", "bash: python3: command not found\n"), "it printed no facts, but 'bash: python3: command not"),
        (Answer("n1", 'fablint:{"fablint_probe": 1, "nics": [.\n'), "it printed no facts"),
        (Answer("n1", "fablint:[1].\n"), "it printed no facts"),
    ],
)
def test_a_host_that_does_not_answer_is_a_fault(answer: Answer, why: str) -> None:
    (finding,) = read_answers([answer]).findings
    assert (finding.state, finding.component, finding.name) == (State.FAULT, "host", "n1")
    assert why in finding.evidence
    assert finding.next_step


def test_facts_of_the_wrong_kind_are_left_out() -> None:
    strange = [
        probed("n1", nics=3, infiniband="x", cxi=[1]),
        probed("n2", nics=[{"name": 7, "mtu": [], "addresses": 3}, {}, None]),
        probed("n3", infiniband=[{"device": "mlx5_0", "rate": "inf Gb/sec"}]),
    ]
    answers = read_answers(strange)
    assert not answers.findings
    assert [(fact.host, fact.name, fact.speed) for fact in answers.nics] == [("n2", "7", None), ("n3", "mlx5_0", None)]


def test_why_there_is_no_lldp_is_told() -> None:
    (report,) = read_answers([probed(f"n{n}", nics=[]) for n in range(3)]).reports
    assert (report.name, report.silent) == ("LLDP", "not installed (n[0-2])")


# ------------------------------------------------------------------------------------------------ Slingshot


def test_an_address_of_another_port_is_a_fault_of_the_configuration() -> None:
    text = (SAMPLES / "lldpcli-json0-slingshot-ama-mismatch-on-hsn1.json").read_text()
    nics = [nic("hsn0", mac="02:00:00:00:00:15"), nic("hsn1", mac="02:00:00:00:00:16")]
    found = discovered(answers=[probed("nid1", text, nics=nics)], hosts=["nid1"])
    (finding,) = found.findings
    assert (finding.state, finding.component, finding.name) == (State.FAULT, "config", "nid1/hsn1")
    assert (
        "port 22, but it is plugged into x3000c0r42b0 27, which is group0-switch0 port 27"
        in finding.evidence.replace("ros0p27", "27")
    )


def test_addresses_alone_tell_switch_and_group_and_the_template_its_name() -> None:
    answers = [probed(f"n{n}", nics=[nic("hsn0", mac=f"02:00:00:00:00:{0x40 + n:02x}")]) for n in range(2)]
    alone = discovered(answers=answers, hosts=["n0", "n1"]).topology
    assert alone is not None
    assert alone.host_switch == {"n0": "group0-switch1", "n1": "group0-switch1"}
    named = discovered("fabric_template.json", answers=answers, hosts=["n0", "n1"]).topology
    assert named is not None
    assert named.host_switch == {"n0": "x1000c0r7b0", "n1": "x1000c0r7b0"}
    assert named.group_of("n0") == "group0"
    assert named.routing.kind == "adaptive"


def test_what_the_switch_asks_for_and_the_nic_has_not() -> None:
    text = (SAMPLES / "lldpcli-json0-slingshot-ama-mismatch-on-hsn1.json").read_text()
    answers = [probed("nid1", text, nics=[nic("hsn0", mtu=1500, addresses=["10.9.9.9/16"])])]
    (finding,) = discovered(answers=answers, hosts=["nid1"]).findings
    assert (
        finding.evidence
        == "MTU 1500, the switch asks for 9000; address 10.9.9.9/16, the switch asks for 10.253.0.21/16"
    )


# ------------------------------------------------------------------------------------------------ the fleet


def fleet(count: int = 16, **odd: object) -> list[Finding]:
    """Findings of `count` hosts, of which nid001003 differs."""
    nics = []
    for index in range(count):
        fact = {"mtu": 9000, "speed": 200000, "state": "up", **(odd if index == 3 else {})}
        nics.append(NicFact(f"nid{1000 + index:06}", "hsn0", **fact))  # type: ignore[arg-type]
    return judge_fleet(nics)


def test_an_odd_mtu_is_told_with_what_the_others_have() -> None:
    (finding,) = fleet(mtu=1500)
    assert (finding.state, finding.component, finding.name) == (State.FAULT, "config", "nid001003/hsn0")
    assert finding.evidence == "MTU 1500, 15 others 9000"


@pytest.mark.parametrize(
    ("odd", "evidence"),
    [
        ({"state": "down"}, "link down, 15 others up"),
        ({"speed": 100000}, "100000 Mbit/s, 15 others 200000"),
    ],
)
def test_a_nic_that_is_down_or_slow_is_at_fault(odd: dict[str, object], evidence: str) -> None:
    (finding,) = fleet(**odd)
    assert (finding.component, finding.evidence) == ("nic", evidence)


def test_faster_unknown_or_alike_is_no_finding() -> None:
    assert not fleet(speed=400000)
    assert not fleet(speed=None, mtu=None, state="")
    assert not fleet()


@pytest.mark.parametrize("values", [[9000, 1500], [9000, 9000, 1500, 1500], [1, 2, 3], []])
def test_without_a_clear_majority_nothing_is_said(values: list[int]) -> None:
    assert not judge_fleet(NicFact(f"n{index}", "hsn0", mtu=mtu) for index, mtu in enumerate(values))


def test_a_nic_that_is_not_there_is_at_fault() -> None:
    nics = [NicFact(f"n{host}", f"hsn{rail}") for host in range(4) for rail in range(2) if (host, rail) != (2, 1)]
    (finding,) = judge_fleet(nics)
    assert (finding.name, finding.evidence) == ("n2/hsn1", "there is no hsn1, 3 others have it")


def test_lldp_of_a_probe_is_an_attachment() -> None:
    (place, _) = read_answers([probed("n1", lldp(("hsn0", "s0", "p7"), ("mgmt0", "m", "1")))]).facts.attachments
    assert (place.host, place.nic, place.switch, place.port) == ("n1", "hsn0", "s0", "p7")
