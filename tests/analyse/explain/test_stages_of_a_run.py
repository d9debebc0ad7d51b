"""A run that is judged after each of several stages spends its chance of error once, not once for each diagnosis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from analyse_cases import named

from fablint.analyse import diagnose
from fablint.analyse.explain import view_search
from fablint.analyse.settings import Detector, Settings
from fablint.model import Run
from fablint.simulate import Fault, Noise, SimulatedFabric, SimulatedRow, full_mesh
from fablint.simulate.rounds import all_rounds
from finding_cases import ref

MESH = full_mesh(4, 4)
ROW = SimulatedRow("bandwidth", (1 << 20,))


def measured(stages: int, *faults: Fault) -> Run:
    fabric = SimulatedFabric(MESH, faults, Noise(scale=0.01, spike_share=0), seed=1)
    rounds = all_rounds(len(MESH.hosts))
    run = fabric.measure(rounds, (ROW,))
    for _ in range(stages - 1):
        run = fabric.extended(run, rounds[:3], (ROW,))
    return run


@pytest.mark.parametrize("detector", ["components", "late messages", "retransmissions", "paths", "wiring"])
def test_all_looks_together_spend_the_share_of_a_detector(detector: Detector) -> None:
    whole = Settings().alpha_of(detector, each_look=False)
    spent = sum(Settings(look=look).alpha_of(detector) for look in range(1, 10_000))
    assert spent == pytest.approx(whole, rel=1e-3)
    assert spent < whole


@pytest.mark.parametrize("stages", [1, 2, 4])
def test_the_number_of_the_look_is_known_from_the_run(stages: int) -> None:
    """So that `analyse` of a stored run has the thresholds of the check that measured it."""
    assert diagnose(measured(stages), MESH.topology).settings["look"] == stages


@pytest.mark.parametrize("stages", [1, 2, 4])
def test_increments_are_those_of_the_noise_of_the_first_stage(stages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    gathered = view_search.gather_evidence

    def gather_evidence(*args: Any, **more: Any) -> Any:
        evidence = gathered(*args, **more)
        found.append((evidence.noise.size, np.count_nonzero(evidence.gain)))
        return evidence

    monkeypatch.setattr(view_search, "gather_evidence", gather_evidence)
    diagnose(measured(stages), MESH.topology)
    hosts = len(MESH.hosts)
    assert found == [(hosts * (hosts - 1), hosts * (hosts - 1 + 3 * (stages - 1)))], "every cell speaks"


@pytest.mark.parametrize("noise", ["normal", "student3"])
def test_healthy_hosts_stay_healthy_over_six_looks(noise: str) -> None:
    """Each look at the same run with three rounds more: no FAULT at any of them."""
    for seed in range(8):
        fabric = SimulatedFabric(MESH, (), Noise(noise), seed=seed)  # type: ignore[arg-type]
        rounds = all_rounds(len(MESH.hosts))
        run = fabric.measure(rounds[:9], (ROW,))
        for look in range(6):
            assert named(diagnose(run, MESH.topology)) == set()
            run = fabric.extended(run, rounds[3 * look % 12 :][:3], (ROW,))


def test_a_fault_is_found_at_the_first_look_and_stays_one_at_the_sixth() -> None:
    slow = Fault(ref("host", "h05"), bandwidth_factor=0.8)
    for stages in (1, 6):
        assert named(diagnose(measured(stages, slow), MESH.topology)) == {("host", "h05", "both")}
