"""Runs of the second generator (benchmarks/held_out) that earlier editions of the analysis judged wrongly."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fablint.analyse import diagnose
from fablint.model import State, Verdict
from fablint.text.evidence_sentences import sentences
from fablint.workflows import run_files, run_formats

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))

from held_out.command import SCENARIOS
from held_out.rank_runs.rank_scenario import RankScenario
from held_out.scenario import build

CASES = [
    # the third host of the switch was measured beside others only, and fast there all the same
    ("two of three hosts on a switch -20 %", 1060, {"node04", "node05"}),
    # or once alone, and six times beside others
    ("two of three hosts on a switch -20 %", 24, {"node05"}),
    # load that varies on a switch makes some of the paths of its cables look evenly slow
    ("host -40 % beside load that varies", 1061, {"node30"}),
    # half of the round trips of one host are later, by no more than healthy hosts of this fabric differ
    ("8 leaves: host spread of heavy tails", 9, set()),
    # both hosts of a switch are slow at the same times, a fifth of all: its links, in streams as in round trips
    ("dragonfly: load that varies slowly on a switch", 5, set()),
    # all hosts of a leaf are among the slow ones by chance
    ("38 of 64 hosts lose 20 %", 10, set()),
]


@pytest.mark.parametrize(("scenario", "seed", "faulty"), CASES)
def test_the_fault_is_named_and_nothing_else(scenario: str, seed: int, faulty: set[str], tmp_path: Path) -> None:
    built = build(SCENARIOS[scenario], seed, tmp_path)
    topology = run_files.load_topology(built.topology) if built.topology is not None else None
    findings = diagnose(run_formats.read(*built.files), topology).verdict.findings
    assert {finding.name for finding in findings if finding.state is State.FAULT} == faulty


def judged(scenario: str, seed: int, folder: Path) -> Verdict:
    """The verdict on a scenario of ranks and NICs."""
    folder.mkdir(exist_ok=True)
    made = SCENARIOS[scenario]
    assert isinstance(made, RankScenario)
    case = made.case(seed, folder)
    assert case.topology is not None
    return diagnose(run_formats.read(*case.files), run_files.load_topology(case.topology)).verdict


@pytest.mark.parametrize("seed", [1, 4])
def test_isolated_follow_up_measurements_decide_about_a_host(seed: int, tmp_path: Path) -> None:
    """94 of 94 pairs slow while others sent; 36 of 36 as fast as others alone: the load of that time, and no fault."""
    beside = judged("follow-up: host -30 % beside load only, isolated as fast as others", seed, tmp_path / "beside")
    (finding,) = [finding for finding in beside.findings if finding.hosts == ("node12",)]
    assert finding.state is State.CONFOUNDED
    assert "with 36 partners" in sentences(finding.evidence)
    assert {finding.state for finding in beside.findings} == {State.CONFOUNDED, State.OK}
    always = judged("follow-up: host -30 % beside load, and isolated as slow", seed, tmp_path / "always")
    assert {finding.name for finding in always.findings if finding.state is State.FAULT} == {"node12"}


@pytest.mark.parametrize(
    ("scenario", "passes"),
    [
        ("ranks per NIC: 4 on one switch", True),
        ("ranks per NIC: 4, one NIC at half speed", False),
        ("rails: near NIC -15 %, as slow as far ones", False),
        ("rails: one near rail switch -15 %, undecided", False),
        ("planes: the second one has half the speed, as declared", True),
    ],
)
def test_kinds_and_shared_nics_of_other_clusters(scenario: str, passes: bool, tmp_path: Path) -> None:
    verdict = judged(scenario, 3, tmp_path)
    assert (verdict.verdict == "pass") is passes


def test_a_cable_that_is_late_and_slow_is_not_explained_by_geometry(tmp_path: Path) -> None:
    """Load on all four cables of a leaf: of one, the latency shows the larger loss."""
    verdict = judged("follow-up: host -30 % beside load, and isolated as slow", 3001, tmp_path)
    states = {finding.name: finding.state for finding in verdict.findings}
    assert {name for name, state in states.items() if state is State.FAULT} == {"node12"}
    assert {name for name, state in states.items() if state is State.SUSPECT} == {"leaf2"}
