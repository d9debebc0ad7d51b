"""Dragonflies whose routers have unequally many global links: their detours differ in length, and streams collide."""

from __future__ import annotations

import numpy as np
import pytest
from fabric_cases import findings, rounds_of

from fablint.analyse import diagnose
from fablint.model import Finding, State
from fablint.simulate import Fault, SimulatedFabric, SimulatedRow, dragonfly
from finding_cases import ref

LATENCY = SimulatedRow("latency", (8,), histogram=True)
AT_ONCE, SERIAL = (SimulatedRow("bandwidth", (1 << 20,), order, histogram=True) for order in ("parallel", "serial"))
SHAPES = [(4, 6, 4, 0.5), (3, 6, 3, 0.5), (5, 8, 2, 0.7), (6, 8, 2, 0.5), (4, 5, 4, 0.9)]
DOUBTED = (State.FAULT, State.SUSPECT, State.CONFOUNDED)


def judged(shape: tuple[int, int, int, float], row: SimulatedRow, *faults: Fault, seed: int = 1) -> list[Finding]:
    """Doubted components. Streams that are measured at once share what they cross."""
    fabric = dragonfly(*shape[:3], minimal_share=shape[3])
    run = SimulatedFabric(fabric, faults, seed=seed, contention=True).measure(rounds_of(fabric, seed), (LATENCY, row))
    return findings(diagnose(run, fabric.topology).verdict.findings, *DOUBTED)


def labels(doubted: list[Finding]) -> list[str]:
    return [finding.name for finding in doubted]


@pytest.mark.parametrize("seed", [2, 3, 4])
@pytest.mark.parametrize("shape", SHAPES)
def test_late_messages_of_long_detours_are_no_fault(shape: tuple[int, int, int, float], seed: int) -> None:
    assert [finding for finding in judged(shape, SERIAL, seed=seed) if finding.quantity == "latency"] == []


@pytest.mark.parametrize("shape", [(5, 4, 3, 0.5), (4, 6, 4, 0.5), (3, 5, 5, 0.5)])
def test_streams_that_share_links_are_not_a_finding_for_each_cable(shape: tuple[int, int, int, float]) -> None:
    doubted = [finding for seed in (1, 2, 3) for finding in judged(shape, AT_ONCE, seed=seed)]
    assert all(finding.state is State.SUSPECT for finding in doubted)
    assert set(labels(doubted)) <= {"paths between switches"}
    steps = {step.action for finding in doubted for step in finding.next_step}
    assert steps <= {"measure_serially"}


@pytest.mark.parametrize("link", ["g1r1>g1r3", "g2r0>g2r4"])
def test_a_late_link_is_named(link: str) -> None:
    a, b = link.split(">")
    fault = Fault(ref("link", a, b), added_latency_s=3e-6)
    named = [labels(judged((4, 6, 4, 0.5), SERIAL, fault, seed=seed)) for seed in (2, 3, 4)]
    assert np.sum([f"{a}={b}" in cables for cables in named]) >= 2
    assert {cable for cables in named for cable in cables} <= {f"{a}={b}"}
