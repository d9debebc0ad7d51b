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
    # the noise of 20 pairs is known: Student's t
    ("host of 5 -10 %", 5001, {"node04"}),
    # all messages across some link have a slow end
    ("leaf of 3 -10 %", 6001, {"leaf2"}),
    # slow until the end is no load of a while, if it is a host
    ("host -40 % since the middle of the run", 5001, {"node46"}),
    ("cable -40 % since the middle of the run", 5001, set()),
    # the directions between two sets of hosts, where no switch is known
    ("three switches of 2, no topology: cable one way -50 %, one pair at a time", 5001, {"node[01-02]>node[03-04]"}),
    ("three switches of 2, no topology: cable one way -50 %", 5001, set()),
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


@pytest.mark.parametrize(
    ("scenario", "seed", "faulty"),
    [
        # most messages across leaf2=spine2 have a slow end
        ("many: 16 of 48 hosts -25 %", 4001, 16),
        # streams that have their share of an uplink show no healthy host of the switch
        ("contended: leaf -30 %", 4001, {"leaf4"}),
        # the slow state of leaf1 is that of most pairs on a switch
        ("large leaf: -25 %", 5001, {"leaf1"}),
        ("large leaf: +1 us in it", 5001, {"leaf1"}),
    ],
)
def test_many_slow_pairs_are_not_the_normal_state(
    scenario: str, seed: int, faulty: int | set[str], tmp_path: Path
) -> None:
    findings = judged(scenario, seed, tmp_path).findings
    faults = {finding.name for finding in findings if finding.state is State.FAULT}
    assert (len(faults) if isinstance(faulty, int) else faults) == faulty
    assert {finding.component for finding in findings if finding.state is State.FAULT} in ({"host"}, {"switch"})
    assert not [finding for finding in findings if finding.state is State.SUSPECT]
