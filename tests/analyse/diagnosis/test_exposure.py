"""Links whose messages cannot be followed: dragonflies with adaptive routing and leaf-spines with ECMP."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from analyse_cases import named
from fabric_cases import faulty, findings, rounds_of

from fablint.analyse import diagnose
from fablint.model import Diagnosis, State, Topology
from fablint.simulate import Fabric, Fault, Noise, SimulatedFabric, SimulatedRow, dragonfly, fat_tree
from fablint.text.actions import advice
from fablint.text.evidence_sentences import sentences
from finding_cases import group, ref
from pinned import pinned_by

PINNED = pinned_by("analyse.toml", __file__)

STREAM = SimulatedRow("bandwidth", (1 << 20,), "serial", histogram=True)
MEDIANS = SimulatedRow("bandwidth", (1 << 20,), "serial")
OVERSUBSCRIBED = replace(STREAM, order="parallel")  # 16 hosts share 8 cables to other groups
ANSWERS = SimulatedRow("latency", (8,), histogram=True)

LOCAL = Fault(ref("link", "g3r1", "g3r2"), bandwidth_factor=0.6)
GLOBAL = Fault(ref("link", "g1r0", "g2r3"), bandwidth_factor=0.6)
HOST = Fault(ref("host", "h100"), "tx", bandwidth_factor=0.6)
TRUTH = {
    ("link", LOCAL.component.label, None),
    ("link", GLOBAL.component.label, None),
    ("host", HOST.component.label, "tx"),
}


def fly(share: float) -> Fabric:
    return dragonfly(9, 4, 4, share)


def judged(
    fabric: SimulatedFabric, rounds: int, row: SimulatedRow = STREAM, topology: Topology | None = None
) -> Diagnosis:
    run = fabric.measure(rounds_of(fabric.fabric)[:rounds], [row])
    return diagnose(run, topology or fabric.fabric.topology)


def assumed(fabric: Fabric, share: float) -> Topology:
    """A topology that declares a wrong share."""
    return replace(fabric.topology, routing=replace(fabric.topology.routing, minimal_share=share))


@pytest.mark.parametrize(("share", "rounds"), [(0.25, 24), (0.5, 16), (0.9, 12)])
def test_global_link_local_link_and_host_are_named_at_once(share: float, rounds: int) -> None:
    assert named(judged(faulty(fly(share), LOCAL, GLOBAL, HOST), rounds)) == TRUTH


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_eight_rounds_name_what_most_messages_of_many_pairs_cross(share: float) -> None:
    found = named(judged(faulty(fly(share), LOCAL, GLOBAL, HOST), 8))
    assert TRUTH - {("link", LOCAL.component.label, None)} <= found <= TRUTH


@pytest.mark.parametrize(("truth", "said"), [(0.25, 0.5), (0.5, 0.25), (0.5, 0.9), (0.9, 0.5)])
def test_the_share_need_not_be_exact(truth: float, said: float) -> None:
    fabric = fly(truth)
    assert named(judged(faulty(fabric, LOCAL, GLOBAL, HOST), 24, topology=assumed(fabric, said))) == TRUTH


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_small_losses_show_beside_the_fast_messages_of_the_same_pair(seed: int) -> None:
    """Compared with other pairs only, one of the two links is below the noise of the pairs."""
    fabric = dragonfly(9, 4, 2)
    slower = (replace(fault, bandwidth_factor=0.85) for fault in (LOCAL, GLOBAL))
    diagnosis = judged(faulty(fabric, *slower, noise=Noise("lognormal"), seed=seed), 24)
    assert named(diagnosis) == {("link", fault.component.label, None) for fault in (LOCAL, GLOBAL)}


@pytest.mark.parametrize("share", [0.25, 0.5, 0.9])
def test_shared_links_hide_components_and_report_none(share: float) -> None:
    diagnosis = judged(faulty(fly(share), LOCAL, GLOBAL, HOST), 24, OVERSUBSCRIBED)
    assert named(diagnosis) <= TRUTH
    asked = {follow_up.name for follow_up in diagnosis.follow_ups} | {name for _, name, _ in named(diagnosis)}
    assert GLOBAL.component.label in asked or share == 0.9


@pytest.mark.parametrize("share", [0.25, 0.9])
def test_a_healthy_dragonfly_is_not_reported(share: float, noise: str) -> None:
    fabric = fly(share)
    for seed in range(2):
        for row in (OVERSUBSCRIBED, ANSWERS):
            assert named(judged(faulty(fabric, noise=Noise(noise), seed=seed), 24, row)) == set()


def test_links_that_messages_may_cross_are_healthy_with_a_bound() -> None:
    diagnosis = judged(faulty(fly(0.5), GLOBAL), 12)
    (healthy,) = (one for one in diagnosis.verdict.findings if (one.state, one.component) == (State.OK, "link"))
    assert (healthy.components[0].count or 0) > 100 and -0.10 < (healthy.effect or 0.0) < -0.03
    assert sum(one.component == "link" for one in diagnosis.verdict.findings if one.state is State.FAULT) == 1


def test_paths_of_several_lengths_hide_what_a_link_adds_to_a_latency() -> None:
    diagnosis = judged(faulty(fly(0.5)), 12, ANSWERS)
    (hidden,) = (one for one in diagnosis.verdict.findings if one.component == "link")
    (reason,) = hidden.evidence
    assert (hidden.state, reason.kind, reason.values["adaptive"]) == (State.NOT_JUDGED, "hidden_loss", True)
    assert 0.1 < float(str(reason.values["bound"])) < 1.0
    assert PINNED["adaptive routing spreads"] in sentences(hidden.evidence)


def test_medians_alone_are_blind() -> None:
    fabric = faulty(fly(0.25), GLOBAL)
    assert named(judged(fabric, 16, MEDIANS)) == set()
    assert named(judged(fabric, 16)) == {("link", GLOBAL.component.label, None)}


def test_medians_of_contended_pairs_report_no_other_component() -> None:
    fabric = faulty(fly(0.25), LOCAL, GLOBAL)
    assert named(judged(fabric, 24, replace(MEDIANS, order="parallel"))) <= TRUTH


def test_round_trips_name_the_cable_and_not_the_direction() -> None:
    fabric = faulty(fly(0.5), Fault(GLOBAL.component, added_latency_s=2e-6))
    assert named(judged(fabric, 24, ANSWERS)) == {("cable", "g1r0=g2r3", None)}


def test_the_evidence_says_how_many_pairs_show_it() -> None:
    (finding,) = findings(judged(faulty(fly(0.5), GLOBAL), 24).verdict.findings, State.FAULT)
    assert PINNED["pairs that may cross it have"] in sentences(finding.evidence)
    assert finding.interval is not None
    assert finding.interval[0] - 0.05 < -0.4 < finding.interval[1] + 0.05


# ------------------------------------------------------------------------------------------------ adaptive leaf-spines

LEAF_SPINE = fat_tree(8, 2, "adaptive")
UP = Fault(ref("link", "leaf1", "spine2"), bandwidth_factor=0.4)


@pytest.mark.parametrize(
    ("fault", "order"),
    [
        (UP, "serial"),
        (UP, "parallel"),
        (Fault(ref("link", "spine2", "leaf1"), bandwidth_factor=0.7), "parallel"),
        (Fault(ref("cable", "leaf1", "spine2"), bandwidth_factor=0.1), "serial"),
    ],
    ids=["up", "up with contention", "down with contention", "cable"],
)
def test_a_faulty_cable_of_a_leaf_is_one_of_its_cables(fault: Fault, order: str) -> None:
    run = faulty(LEAF_SPINE, fault).measure(None, [replace(STREAM, order=order)])
    (finding,) = findings(diagnose(run, LEAF_SPINE.topology).verdict.findings, State.FAULT)
    known = {finding.name, *(text.split()[-1] for text in group(finding))}
    assert finding.component == fault.component.kind and fault.component.label in known
    assert sum("spine" in name and "leaf1" in name for name in known) >= 8
    assert PINNED["read the error and drop counters"].begins(advice(finding.next_step))


@pytest.mark.parametrize(
    ("share", "is_local", "is_named"), [(0.1, True, False), (0.3, True, False), (0.3, False, True)]
)
def test_late_messages_within_a_leaf_are_of_its_hosts(share: float, is_local: bool, is_named: bool) -> None:
    """Hosts of a leaf delay a share of all their messages, or the leaf only of those that leave it."""
    run = faulty(LEAF_SPINE).measure(None, [STREAM])
    counts = np.array(run.rows[0].arrays["histogram"])
    leaf = np.arange(8, 16)
    partners = [rank for rank in range(64) if is_local or rank not in leaf]
    at = np.ix_([0], leaf, partners, [0])
    late = np.random.default_rng(1).binomial(counts[at].astype(np.int64), share).astype(np.uint32)
    counts[at] = counts[at] - late + np.roll(late, 25, axis=-1)
    run.rows[0].arrays["histogram"] = counts
    faults = findings(diagnose(run, LEAF_SPINE.topology).verdict.findings, State.FAULT)
    assert ["leaf1" in finding.name for finding in faults] == [True] * is_named


def test_a_healthy_adaptive_leaf_spine_is_not_reported(noise: str) -> None:
    for row in (STREAM, replace(STREAM, order="parallel"), ANSWERS):
        run = faulty(LEAF_SPINE, noise=Noise(noise)).measure(None, [row])
        assert named(diagnose(run, LEAF_SPINE.topology)) == set()


# ------------------------------------------------------------------------------------------------ ECMP paths

LEAVES = fat_tree(8, 2, "ecmp")
CABLES = {
    "up": Fault(ref("link", "leaf2", "spine5"), bandwidth_factor=0.5),
    "down": Fault(ref("link", "spine5", "leaf2"), bandwidth_factor=0.5),
    "cable": Fault(ref("cable", "leaf2", "spine5"), bandwidth_factor=0.5),
}


@pytest.mark.parametrize("which", CABLES)
def test_a_cable_of_a_hashed_leaf_spine_is_found_at_its_leaf(which: str) -> None:
    fault = CABLES[which]
    run = faulty(LEAVES, fault).measure(None, [MEDIANS])
    ((component, name, _),) = named(diagnose(run, LEAVES.topology))
    assert component == fault.component.kind
    assert name.replace("spine0", "spine5") == fault.component.label or name == fault.component.label


@pytest.mark.parametrize("which", CABLES)
def test_up_links_of_a_leaf_that_hashes_are_one_class(which: str) -> None:
    run = faulty(LEAVES, CABLES[which]).measure(None, [MEDIANS])
    (finding,) = findings(diagnose(run, LEAVES.topology).verdict.findings, State.FAULT)
    known = {finding.name, *(text.split()[-1] for text in group(finding))}
    assert CABLES[which].component.label in known
    assert sum("spine" in name and "leaf2" in name for name in known) >= 8


def test_a_host_behind_a_hashed_leaf_is_named_exactly() -> None:
    run = faulty(LEAVES, Fault(ref("host", "h21"), "rx", bandwidth_factor=0.5)).measure(None, [MEDIANS])
    assert named(diagnose(run, LEAVES.topology)) == {("host", "h21", "rx")}


def test_a_healthy_leaf_spine_with_ecmp_is_not_reported(noise: str) -> None:
    for seed in range(3):
        run = faulty(LEAVES, noise=Noise(noise), seed=seed).measure(None, [MEDIANS])
        assert named(diagnose(run, LEAVES.topology)) == set()


def test_collisions_of_hashed_pairs_are_no_fault() -> None:
    for seed in range(8):
        run = faulty(LEAVES, seed=seed).measure(rounds_of(LEAVES), [replace(MEDIANS, order="parallel")])
        assert named(diagnose(run, LEAVES.topology)) == set()
