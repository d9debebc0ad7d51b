"""A host that loses more in one direction than in the other is slow at all times."""

from __future__ import annotations

import pytest
from analyse_cases import reported
from fabric_cases import STREAM, TREE

from fablint.analyse import diagnose
from fablint.model import State
from fablint.simulate import Noise, SimulatedFabric
from fablint.simulate.fault_syntax import parse_fault


@pytest.mark.parametrize("losses", [(50, 12), (12, 50), (30, 12), (60, 25)])
def test_a_host_with_two_losses_is_a_fault(losses: tuple[int, int]) -> None:
    faults = tuple(parse_fault(f"host:h09:{side}:-{loss}%") for side, loss in zip(("tx", "rx"), losses, strict=True))
    simulated = SimulatedFabric(TREE, faults, Noise(scale=0.01, spike_share=0.0), seed=3)
    diagnosis = diagnose(simulated.measure(None, (STREAM,)), TREE.topology)
    assert reported(diagnosis) == {("host", "h09", "both")}
    (finding,) = (finding for finding in diagnosis.verdict.findings if finding.state is State.FAULT)
    most = max(losses)
    assert finding.interval is not None
    assert finding.interval[0] - 0.02 <= -most / 100 <= finding.interval[1] + 0.02
    assert finding.interval[1] - finding.interval[0] < 0.1
    (record,) = (record for record in finding.evidence if record.kind == "unequal_directions")
    stated = record.values["sending"][0], record.values["receiving"][0]
    assert stated == pytest.approx([-loss / 100 for loss in losses], abs=0.03)


def test_a_host_with_one_loss_has_one_figure() -> None:
    simulated = SimulatedFabric(TREE, (parse_fault("host:h09:-30%"),), Noise(scale=0.01, spike_share=0.0), seed=3)
    diagnosis = diagnose(simulated.measure(None, (STREAM,)), TREE.topology)
    (finding,) = (finding for finding in diagnosis.verdict.findings if finding.state is State.FAULT)
    assert finding.direction == "both"
    assert "unequal_directions" not in {record.kind for record in finding.evidence}
