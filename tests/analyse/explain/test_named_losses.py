"""The loss that a run states to name in 9 of 10 cases, beside runs in which a component loses as much."""

from __future__ import annotations

import pytest

from fablint.analyse import diagnose
from fablint.model import Diagnosis
from fablint.simulate import Fault, Noise, SimulatedFabric, SimulatedRow, full_mesh
from fablint.simulate.fault_syntax import parse_fault

MESH = full_mesh(6, 6)
ROW = SimulatedRow("bandwidth", (1 << 20,))
SCALES = {"quiet": 0.01, "loud": 0.035}


def judged(scale: float, seed: int, *faults: Fault) -> Diagnosis:
    """Diagnosis of a run of all pairs with noise of this standard deviation."""
    noise = Noise(scale=scale, spike_share=0.0, host_spread=0.004)
    return diagnose(SimulatedFabric(MESH, faults, noise, seed=seed).measure(None, (ROW,)), MESH.topology)


def stated(diagnosis: Diagnosis) -> dict[str, float]:
    """Loss of bandwidth by type of component."""
    limits = diagnosis.verdict.limits
    assert limits is not None
    return {str(one.component): one.loss for one in limits.named if one.quantity == "bandwidth"}


def is_named(diagnosis: Diagnosis, *nodes: str) -> bool:
    """Whether the component with these ends is at FAULT."""
    findings = diagnosis.verdict.findings
    return any(one.state == "FAULT" and set(one.components[0].nodes) == set(nodes) for one in findings)


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
@pytest.mark.parametrize(("component", "kind"), [("host:h08:tx", "host"), ("link:s1>s4", "cable")])
def test_a_loss_as_large_as_stated_is_named(component: str, kind: str, scale: float) -> None:
    """At the stated loss in most runs, at a little more in all but a few, far below it in few."""
    loss = stated(judged(scale, 1))[kind]
    nodes = component.split(":")[1].replace(">", "=").split("=")

    def count(factor: float) -> int:
        fault = parse_fault(f"{component}:-{100 * factor * loss:.2f}%")
        return sum(is_named(judged(scale, seed, fault), *nodes) for seed in range(2, 14))

    assert count(1.0) >= 7
    assert count(1.2) >= 11
    assert count(0.6) <= 3


def test_more_noise_hides_larger_losses() -> None:
    quiet, loud = (stated(judged(scale, 1)) for scale in SCALES.values())
    assert quiet.keys() == loud.keys() >= {"host", "cable"}
    assert all(quiet[kind] < loud[kind] for kind in quiet)
    assert min(quiet.values()) > 0.05
