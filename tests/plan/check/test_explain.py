"""What a plan promises, and whether it keeps that."""

from __future__ import annotations

import numpy as np
import pytest
from fabrics import dragonfly, fat_tree, two_level
from simulated_check import SimulatedCheck
from test_stages import asked

from fablint.model.limits.detection_limits import FEWEST_LINK_PAIRS, SMALLEST_FAULT, TOLERANCE
from fablint.plan.check.explain import NOISE, explain, smallest_fault
from fablint.plan.check.plan_input import PlanInput
from fablint.plan.check.stages import first_stage
from fablint.simulate import Fault, Noise, fat_tree as simulated_fat_tree
from finding_cases import component
from pinned import pinned_by

PINNED = pinned_by("plan.toml", __file__)


def explained(request: PlanInput):
    return explain(first_stage(request), request)


def test_a_fat_tree_with_known_routes():
    explanation = explained(asked(fat_tree(8, 8, 8)))
    assert explanation.rounds == {"edge": 6, "local": 9, "global": 9}
    assert (explanation.ranks, explanation.hosts, explanation.links, explanation.most_flows, explanation.colliding) == (
        512,
        512,
        2048,
        1.0,
        0.0,
    )
    assert explanation.fewest_crossings == 9
    by_part = {(sight.kernel, sight.part): sight for sight in explanation.sights}
    assert by_part["latency", "host"].measurements == 2 * by_part["bandwidth", "host"].measurements == 48
    assert by_part["latency", "link"].smallest > by_part["latency", "host"].smallest > TOLERANCE
    text = explanation.text()
    assert "     9 rounds  global" in text
    assert PINNED["1 flows at most on one"] in text


def test_what_collides_is_said():
    explanation = explained(asked(dragonfly(9, 8, 4)))
    assert explanation.most_flows >= 4
    assert 0 < explanation.colliding < 1
    assert explanation.facts()["most_flows_per_link"] == explanation.most_flows


def test_links_that_too_few_pairs_cross_are_not_promised():
    explanation = explained(asked(two_level(32, 2, 16)))
    assert explanation.fewest_crossings < FEWEST_LINK_PAIRS
    assert {sight.part: sight.smallest for sight in explanation.sights}["link"] is None
    assert PINNED["none smallest bandwidth fault"] in explanation.text()


def test_links_that_enough_pairs_cross_are_promised():
    """As many pairs as the diagnosis requires."""
    explanation = explained(asked(two_level(8, 4, 8)))
    assert FEWEST_LINK_PAIRS <= explanation.fewest_crossings < 8
    assert all(sight.smallest for sight in explanation.sights)
    assert f"(not judged below {FEWEST_LINK_PAIRS})" in explanation.text()


@pytest.mark.parametrize("request_", [asked(12), PlanInput(8), asked(64, full=True)])
def test_all_pairs_are_explained_too(request_):
    explanation = explained(request_)
    assert explanation.links == 0
    assert explanation.predicted_s > 0
    assert (len(explanation.sights) > 0) == (explanation.hosts > 1)


def test_more_measurements_and_less_noise_show_smaller_faults():
    assert smallest_fault(24, 0.03, 1000) < smallest_fault(12, 0.03, 1000)
    assert smallest_fault(24, 0.02, 1000) < smallest_fault(24, 0.03, 1000)
    assert smallest_fault(24, 0.03, 1000) < smallest_fault(24, 0.03, 100_000)
    assert smallest_fault(10**9, 0.01, 1000) == TOLERANCE + SMALLEST_FAULT


@pytest.mark.parametrize(
    ("part", "noise_"), [("host", 0.005), ("link", 0.025), pytest.param("link", 0.005, marks=pytest.mark.long)]
)
def test_the_promise_is_kept(part, noise_):
    """Faults of the promised size are found, all but one at most, and nothing else."""
    fabric = simulated_fat_tree(8, 3)
    noise = Noise(scale=noise_)
    explanation = explained(SimulatedCheck(fabric).asked())
    sight = {(sight.kernel, sight.part): sight for sight in explanation.sights}["bandwidth", part]
    size = smallest_fault(sight.measurements, noise_, 2 * explanation.hosts + explanation.links)
    assert (sight.noise, sight.smallest) == (NOISE["bandwidth"], pytest.approx(size)) or noise_ != sight.noise
    draw = np.random.default_rng(3)
    names = [fabric.hosts[i] for i in draw.choice(512, 8, replace=False)]
    if part == "link":
        cables = [fabric.topology.cables[i] for i in draw.choice(len(fabric.topology.cables), 8, replace=False)]
        names = [f"{cable.a}>{cable.b}" for cable in cables]
    # A loss of x makes a message take 1 / (1 - x): the promise is about the time.
    faults = tuple(Fault(component(part, name), bandwidth_factor=1 / (1 + size)) for name in names)
    found = SimulatedCheck(fabric, faults, noise).run()
    reported = {finding.name for finding in found.diagnosis.verdict.findings if finding.state == "FAULT"}
    assert len(reported & set(names)) >= 7
    assert reported <= set(names)
