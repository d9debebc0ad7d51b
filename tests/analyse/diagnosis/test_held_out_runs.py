"""Runs of the second generator (benchmarks/held_out) that earlier editions of the analysis judged wrongly."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fablint.analyse import diagnose
from fablint.model import State
from fablint.workflows import run_files, run_formats

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))

from held_out.command import SCENARIOS
from held_out.scenario import build

CASES = [
    # the third host of the switch was measured beside others only, and fast there all the same
    ("two of three hosts on a switch -20 %", 1060, {"node04", "node05"}),
    # load that varies on a switch makes some of the paths of its cables look evenly slow
    ("host -40 % beside load that varies", 1061, {"node30"}),
]


@pytest.mark.parametrize(("scenario", "seed", "faulty"), CASES)
def test_the_fault_is_named_and_nothing_else(scenario: str, seed: int, faulty: set[str], tmp_path: Path) -> None:
    built = build(SCENARIOS[scenario], seed, tmp_path)
    topology = run_files.load_topology(built.topology) if built.topology is not None else None
    findings = diagnose(run_formats.read(*built.files), topology).verdict.findings
    assert {finding.name for finding in findings if finding.state is State.FAULT} == faulty
