"""The loss of a component that is slow for a share of the time is what a healthy component would not lose."""

from __future__ import annotations

import numpy as np
import pytest

from fablint.analyse import diagnose
from fablint.model import State
from fablint.simulate import SimulatedFabric, SimulatedRow, fat_tree, random_faults

LINKS = ("link", "cable")


@pytest.mark.parametrize("seed", [3, 7])
def test_links_that_differ_by_more_than_is_tolerated_have_their_whole_loss(seed: int) -> None:
    """30 faults in 128 cables: links as such cannot be judged, and what each of them may lose is far above 5 %."""
    fabric = fat_tree(8, 2)
    faults = random_faults(fabric, 30, np.random.default_rng(seed))
    simulated = SimulatedFabric(fabric, tuple(faults), seed=seed)
    run = simulated.measure(None, [SimulatedRow("bandwidth", (1 << 20,))])
    true = {fault.component: fault.effect for fault in simulated.truth(run)}
    findings = [
        finding
        for finding in diagnose(run, fabric.topology).verdict.findings
        if finding.state is State.FAULT and finding.component in LINKS
    ]
    losses = [(finding.effect, true.get(finding.components[0])) for finding in findings]
    assert losses
    assert [pair for pair in losses if pair[1] is not None and abs(pair[0] - pair[1]) > 0.05] == []
