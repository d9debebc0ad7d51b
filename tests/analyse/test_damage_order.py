"""Findings in the order of damage, each with the figures of its pairs."""

from __future__ import annotations

import pytest

from fablint.analyse import diagnose
from fablint.model import State
from fablint.simulate import Fault, SimulatedFabric, fat_tree
from finding_cases import ref

FABRIC = fat_tree(8, 2)
FAULTS = (
    Fault(ref("host", "h13"), "tx", bandwidth_factor=0.5),
    Fault(ref("switch", "leaf3"), bandwidth_factor=0.75),
    Fault(ref("host", "h60"), added_latency_s=50e-6),
)


@pytest.fixture(scope="module")
def findings():
    run = SimulatedFabric(FABRIC, FAULTS, seed=2).measure(None)
    verdict = diagnose(run, FABRIC.topology).verdict
    return [finding for finding in verdict.findings if finding.state is State.FAULT]


def test_a_switch_comes_before_a_host_that_loses_more(findings):
    damage = {finding.name: (finding.damage.hosts, finding.damage.pairs) for finding in findings}
    assert [finding.name for finding in findings] == ["leaf3", "h60", "h13"]
    assert damage == {"leaf3": (8, 2 * 8 * 63 - 8 * 7), "h60": (1, 2 * 63), "h13": (1, 63)}


def test_the_figures_are_those_of_a_healthy_pair_and_of_one_with_the_fault(findings):
    switch, latency, host = (finding.damage.figures for finding in findings)
    assert (switch.row, latency.row, host.row) == ("bandwidth", "latency", "bandwidth")
    assert switch.measured / switch.expected == pytest.approx(0.75, abs=0.02)
    assert host.measured / host.expected == pytest.approx(0.5, abs=0.02)
    assert host.expected == pytest.approx(24.9e9, rel=0.02)
    assert latency.measured - latency.expected == pytest.approx(50e-6, rel=0.05)


def test_the_quantity_with_the_largest_loss_is_quoted(findings):
    slow = next(finding for finding in findings if finding.name == "h60")
    assert slow.quantity == "latency"
    assert slow.loss == pytest.approx(1 - slow.damage.figures.expected / slow.damage.figures.measured)


def test_without_known_pairs_the_largest_effect_comes_first(findings):
    bare = [finding.model_copy(update={"damage": None}) for finding in findings]
    ordered = sorted(bare, key=lambda finding: finding.rank)
    assert [finding.name for finding in ordered] == ["h60", "h13", "leaf3"]


def test_a_graver_state_comes_first_whatever_the_damage(findings):
    suspect = findings[0].model_copy(update={"state": State.SUSPECT})
    assert suspect.rank > findings[-1].rank
