"""How small a loss of one host of 16 is named, and that healthy hosts which differ are not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fablint.analyse import diagnose
from fablint.model import State
from fablint.simulate import Fault, Noise, SimulatedFabric, SimulatedRow, full_mesh
from fablint.simulate.fault_syntax import parse_fault
from fablint.simulate.rounds import all_rounds

FABRIC = full_mesh(4, 4)
STREAM = SimulatedRow("bandwidth", (1 << 20,))
NORMAL, HEAVY = ("normal", 0.013), ("student3", 0.04 / math.sqrt(3))
SEEDS = range(501, 521)


def faults_of(faults: tuple[Fault, ...], noise: Noise, seed: int) -> set[str]:
    """Names of the FAULTs of a run of all pairs."""
    rounds = [*all_rounds(len(FABRIC.hosts))]
    run = SimulatedFabric(FABRIC, faults, noise, seed=seed).measure(
        [rounds[at] for at in np.random.default_rng(seed).permutation(len(rounds))], (STREAM,)
    )
    return {finding.name for finding in diagnose(run, FABRIC.topology).verdict.findings if finding.state is State.FAULT}


@pytest.mark.parametrize(("kind", "loss"), [(NORMAL, 8), (HEAVY, 10.5)])
def test_a_small_loss_is_named_in_most_runs(kind: tuple[str, float], loss: float) -> None:
    """Noise of the medians of few hosts is no spread of the hosts, and a host is compared in the directions it has."""
    noise = Noise(*kind, spike_share=0.0)
    host = FABRIC.hosts[9]
    named = [faults_of((parse_fault(f"host:{host}:both:-{loss}%"),), noise, seed) for seed in SEEDS]
    assert sum(names == {host} for names in named) >= 17


@pytest.mark.parametrize("kind", [NORMAL, HEAVY])
@pytest.mark.parametrize("spread", [0.01, 0.02])
def test_hosts_that_differ_are_no_fault(kind: tuple[str, float], spread: float) -> None:
    noise = Noise(*kind, spike_share=0.0, host_spread=spread)
    assert [seed for seed in SEEDS if faults_of((), noise, seed)] == []


@pytest.mark.parametrize("direction", ["tx", "both"])
def test_a_host_within_the_tolerance_is_no_fault(direction: str) -> None:
    noise = Noise(*NORMAL, spike_share=0.0)
    fault = parse_fault(f"host:{FABRIC.hosts[3]}:{direction}:-4.5%")
    assert [seed for seed in SEEDS if faults_of((fault,), noise, seed)] == []
