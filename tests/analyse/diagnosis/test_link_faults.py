"""Links of fat trees and dragonflies with known routes: each is named with its direction, and nothing else is."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from analyse_cases import named
from fabric_cases import BIG, NOISES, ROUND_TRIP, STREAM, checked, faulty, findings, rounds_of, thinned

from fablint.analyse import diagnose
from fablint.model import Cable, Diagnosis, Run, State, Switch, Topology
from fablint.simulate import (
    Fault,
    Noise,
    SimulatedFabric,
    SimulatedRow,
    dragonfly,
    fat_tree,
    full_mesh,
    random_faults,
    score,
    simulate,
)
from finding_cases import component, group, ref

DIRECT = dragonfly(5, 4, 4, minimal_share=None)  # contended: its pairs are measured one after the other
TWO_LEVELS = fat_tree(12, 2)

KINDS = {
    "leaf up": (BIG, Fault(ref("link", "leaf00", "agg03"), bandwidth_factor=0.7)),
    "leaf down": (BIG, Fault(ref("link", "agg03", "leaf00"), bandwidth_factor=0.7)),
    "core up": (BIG, Fault(ref("link", "agg03", "core03"), bandwidth_factor=0.7)),
    "core down": (BIG, Fault(ref("link", "core03", "agg03"), bandwidth_factor=0.7)),
    "leaf cable": (BIG, Fault(ref("cable", "leaf00", "agg03"), bandwidth_factor=0.7)),
    "core cable": (BIG, Fault(ref("cable", "agg03", "core03"), bandwidth_factor=0.7)),
    "host up": (BIG, Fault(ref("host", "h100"), "tx", bandwidth_factor=0.7)),
    "host down": (BIG, Fault(ref("host", "h100"), "rx", bandwidth_factor=0.7)),
    "host": (BIG, Fault(ref("host", "h100"), bandwidth_factor=0.7)),
    "leaf": (BIG, Fault(ref("switch", "leaf05"), bandwidth_factor=0.7)),
    "spine up": (TWO_LEVELS, Fault(ref("link", "leaf02", "spine07"), bandwidth_factor=0.7)),
    "spine down": (TWO_LEVELS, Fault(ref("link", "spine07", "leaf02"), bandwidth_factor=0.7)),
    "local": (DIRECT, Fault(ref("link", "g3r1", "g3r2"), bandwidth_factor=0.7)),
    "global": (DIRECT, Fault(ref("link", "g2r3", "g1r0"), bandwidth_factor=0.7)),
    "global cable": (DIRECT, Fault(ref("cable", "g1r0", "g2r3"), bandwidth_factor=0.7)),
}
ONE_WAY = {"link": None, "cable": "both", "switch": "both"}


def run_of(fabric: SimulatedFabric) -> Run:
    order: Literal["serial", "parallel"] = "serial" if fabric.fabric is DIRECT else "parallel"
    return checked(fabric, SimulatedRow("bandwidth", (1 << 20,), order))


def judged(fabric: SimulatedFabric) -> Diagnosis:
    return diagnose(run_of(fabric), fabric.fabric.topology)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_link_is_named_exactly(kind: str, noise: str) -> None:
    fabric, fault = KINDS[kind]
    truth = {(fault.component.kind, fault.component.label, ONE_WAY.get(fault.component.kind, fault.direction))}
    diagnosis = judged(faulty(fabric, fault, noise=Noise(noise), seed=NOISES.index(noise)))
    if noise == "lognormal" and "core" in kind:  # nine pairs cross it: with such tails it may stay a suspect
        assert named(diagnosis) <= truth
        assert fault.component.label in {name for _, name, _ in named(diagnosis, State.FAULT, State.SUSPECT)}
    else:
        assert named(diagnosis) == truth


@pytest.mark.parametrize("name", ["agg12", "core12"])
def test_a_switch_without_hosts_is_reported_and_not_its_cables(name: str) -> None:
    diagnosis = judged(faulty(BIG, Fault(ref("switch", name), bandwidth_factor=0.7)))
    assert {key[:2] for key in named(diagnosis)} == {("switch", name)}


@pytest.mark.parametrize("count", [2, 8, 16])
def test_several_at_once_are_all_named_or_asked_about(count: int, noise: str) -> None:
    """If heavy tails leave too little evidence for a detection, the component is SUSPECT and has a follow-up."""
    seed = count
    faults = random_faults(BIG, count, np.random.default_rng(seed), 0.2, rounds=rounds_of(BIG))
    fabric = faulty(BIG, *faults, noise=Noise(noise), seed=seed)
    run = checked(fabric)
    diagnosis = diagnose(run, BIG.topology)
    result = score(diagnosis.verdict.findings, fabric.truth(run))
    assert result.wrong_names == ()
    assert result.exact + result.in_class >= (0.9 if noise == "normal" else 0.6) * count
    assert result.direction_right == result.direction_decidable
    suspects = {finding.name for finding in findings(diagnosis.verdict.findings, State.SUSPECT)}
    asked = {follow_up.name for follow_up in diagnosis.follow_ups}
    assert {name.split()[1] for name in result.missed_names} <= suspects & asked


def test_a_healthy_tree_is_not_reported(noise: str) -> None:
    for fabric in (BIG, TWO_LEVELS, DIRECT):
        for seed in range(2):
            assert named(judged(faulty(fabric, noise=Noise(noise), seed=seed))) == set()


@pytest.mark.parametrize(
    "fault",
    [
        Fault(ref("host", "h133"), "rx", bandwidth_factor=0.7),
        Fault(ref("link", "agg21", "leaf16"), bandwidth_factor=0.7),
    ],
    ids=["h133", "agg21>leaf16"],
)
def test_a_host_and_the_cable_down_to_it_are_distinguished_by_its_neighbours(fault: Fault) -> None:
    """Under d-mod-k whatever comes to h133 from other leaves comes by agg21 and its link to leaf16: only those on the
    same leaf reach the host without it."""
    fabric = faulty(BIG, fault)
    assert {name for _, name, _ in named(judged(fabric))} == {fault.component.label}
    switch = fabric.fabric.port_switch
    far = [pairs[switch[pairs[:, 0]] != switch[pairs[:, 1]]] for pairs in rounds_of(BIG)]
    (finding,) = findings(
        diagnose(fabric.measure([pairs for pairs in far if len(pairs)], [STREAM]), BIG.topology).verdict.findings,
        State.FAULT,
    )
    assert {"h133", "agg21>leaf16"} <= {
        finding.name,
        *(name.split()[1] for name in group(finding) if " " in name),
    }


def test_round_trips_show_the_direction_only_if_the_path_back_is_another() -> None:
    """Under d-mod-k what h003 sends comes back over other cables than it went."""
    for fabric, link, part in (
        (BIG, "agg03>leaf00", ("link", "agg03>leaf00", None)),
        (DIRECT, "g2r3>g1r0", ("cable", "g1r0=g2r3", None)),
    ):
        run = checked(faulty(fabric, Fault(component("link", link), added_latency_s=3e-6)), ROUND_TRIP)
        assert named(diagnose(run, fabric.topology)) == {part}


@pytest.mark.parametrize("count", [0, 4])
def test_what_was_not_measured_makes_no_fault(noise: str, count: int) -> None:
    for fabric, times in ((BIG, 1), (TWO_LEVELS, 3), (DIRECT, 3)):
        faults = random_faults(fabric, count, np.random.default_rng(3), rounds=rounds_of(fabric))
        measured = faulty(fabric, *faults, noise=Noise(noise), seed=3)
        run = run_of(measured)
        truth = measured.truth(run)
        for seed in range(times):
            verdict = diagnose(thinned(run, 0.7, seed), fabric.topology).verdict
            assert score(verdict.findings, truth).wrong_names == ()


def test_a_link_in_the_middle_of_a_tree_is_found_by_all_that_cross_it() -> None:
    mesh = full_mesh(8, 6)
    spines = {name: Switch(name, "g0") for name in ("t0", "t1")}
    left = [f"s{index}" for index in (0, 1, 2, 3, 6, 7)]
    right = ["s4", "s5"]
    uplinks = [Cable(leaf, "t0") for leaf in left] + [Cable(leaf, "t1") for leaf in right] + [Cable("t0", "t1")]
    tree = Topology({**mesh.topology.switches, **spines}, mesh.topology.host_switch, tuple(uplinks))
    faults = [Fault(ref("link", a, b), bandwidth_factor=0.6) for a in left for b in right]
    verdict = diagnose(simulate(mesh, faults=faults), tree).verdict
    fault = [(f.component, f.name) for f in verdict.findings if f.state is State.FAULT]
    assert fault == [("link", "t0>t1")]


@pytest.mark.parametrize(("added", "state"), [(0.3e-6, State.CONFOUNDED), (3e-6, State.FAULT)])
def test_a_slow_spine_is_not_taken_for_the_hosts_behind_it(added: float, state: State) -> None:
    """All that a twelfth of the hosts send or receive far away crosses it. What a longer cable adds is not a fault."""
    tree = fat_tree(12, 2)
    run = SimulatedFabric(tree, (Fault(ref("switch", "spine03"), added_latency_s=added),)).measure(
        None, [SimulatedRow("latency", (8,))]
    )
    worse = (State.FAULT, State.SUSPECT, State.CONFOUNDED)
    found = {(f.name, f.state) for f in diagnose(run, tree.topology).verdict.findings if f.state in worse}
    assert found == {("spine03", state)}
