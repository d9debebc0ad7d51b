"""Other jobs slow a cable for a share of the time as a faulty cable is slow: a finding of one says so."""

from __future__ import annotations

import pytest
from analyse_cases import reported
from fabric_cases import STREAM, TREE

from fablint.analyse import diagnose
from fablint.model import Diagnosis, Finding, State
from fablint.simulate import Fabric, Noise, SimulatedFabric, full_mesh
from fablint.simulate.fault_syntax import parse_fault

MESH = full_mesh(5, 6)
LOAD = "other jobs that load it now and then"


def diagnosis_of(fault: str, seed: int, fabric: Fabric = MESH) -> Diagnosis:
    simulated = SimulatedFabric(fabric, (parse_fault(fault),), Noise(scale=0.01, spike_share=0.0), seed=seed)
    return diagnose(simulated.measure(None, (STREAM,)), fabric.topology)


def faults_of(diagnosis: Diagnosis) -> list[Finding]:
    return [finding for finding in diagnosis.verdict.findings if finding.state is State.FAULT]


@pytest.mark.parametrize("percent", [35, 50, 65, 80])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_cable_with_fast_pairs_is_no_fault_without_the_load_of_others(percent: int, seed: int) -> None:
    diagnosis = diagnosis_of(f"cable:s1=s3:-33%,flap{percent}%", seed)
    assert reported(diagnosis) == {("cable", "s1=s3", "both")}
    for finding in faults_of(diagnosis):
        assert LOAD in {component.label for component in finding.ambiguity_group}


def test_a_cable_that_is_always_slow_is_a_fault_without_it() -> None:
    (finding,) = faults_of(diagnosis_of("cable:s1=s3:-33%", 1))
    assert LOAD not in {component.label for component in finding.ambiguity_group}


def test_other_jobs_do_not_slow_a_host_now_and_then() -> None:
    """An exclusive job has its hosts for itself."""
    (finding,) = faults_of(diagnosis_of("host:h09:-50%,flap33%", 1, TREE))
    assert LOAD not in {component.label for component in finding.ambiguity_group}
