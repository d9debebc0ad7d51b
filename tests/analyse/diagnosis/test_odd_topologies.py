"""Topologies that say less than they should: hosts that they do not name, no cables, hosts on switches of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from analyse_cases import attributed, named, reported
from fabric_cases import ROUND_TRIP, STREAM, checked, faulty, measured
from hypothesis import given, settings, strategies as st

from fablint.analyse import diagnose
from fablint.model import Cable, Diagnosis, Routing, Run, State, Switch, Topology
from fablint.simulate import CHECK_ROWS, Fabric, Fault, Noise, SimulatedRow, fat_tree, full_mesh, simulate
from finding_cases import group, note_texts, ref

TREE = fat_tree(6, 2)
ALONE = SimulatedRow("bandwidth", (1 << 20,), "serial")
SLOW = Fault(ref("host", "h07"), bandwidth_factor=0.6)
LINK = Fault(ref("link", "leaf1", "spine4"), bandwidth_factor=0.6)


def renamed(run: Run, strangers: int) -> Run:
    """The run, whose last hosts the topology does not know."""
    known = len(run.hosts) - strangers
    return attributed(run, hosts=[host if index < known else f"x{index}" for index, host in enumerate(run.hosts)])


def said(diagnosis: Diagnosis, words: str) -> bool:
    return any(words in note for note in note_texts(diagnosis.verdict))


@pytest.mark.parametrize("layout", ["list", "matrix"])
@pytest.mark.parametrize("strangers", [1, 3, 12])
def test_hosts_that_the_topology_does_not_name_are_judged_as_hosts(strangers: int, layout: str) -> None:
    for fault, part in ((SLOW, ("host", "h07", "both")), (LINK, ("link", LINK.component.label, None))):
        run = renamed(measured(TREE, layout, fault), strangers)
        diagnosis = diagnose(run, TREE.topology)
        assert named(diagnosis) == {part}
        assert said(diagnosis, "the topology does not name x")


@pytest.mark.parametrize("layout", ["list", "matrix"])
def test_a_host_alone_without_a_switch_is_not_judged(layout: str) -> None:
    """Without spikes: a pair that is measured once, during one, is SUSPECT in healthy fabrics as well."""
    fabric = faulty(TREE, Fault(ref("host", "h35"), bandwidth_factor=0.6), noise=Noise(spike_share=0.0))
    run = checked(fabric) if layout == "list" else fabric.measure(None, (STREAM,))
    diagnosis = diagnose(renamed(run, 1), TREE.topology)
    assert reported(diagnosis) == set()
    assert any(finding.state is State.NOT_JUDGED and finding.name == "x35" for finding in diagnosis.verdict.findings)


@pytest.mark.parametrize("layout", ["list", "matrix"])
@pytest.mark.parametrize("strangers", [3, 12])
def test_a_slow_host_that_the_topology_does_not_name_is_named(strangers: int, layout: str) -> None:
    faulty_stranger = Fault(ref("host", "h35"), bandwidth_factor=0.6)
    diagnosis = diagnose(renamed(measured(TREE, layout, faulty_stranger), strangers), TREE.topology)
    assert {name for _, name, _ in named(diagnosis)} == {"x35"}


@pytest.mark.parametrize("layout", ["list", "matrix"])
def test_a_topology_of_another_machine_is_as_good_as_none(layout: str) -> None:
    run = renamed(measured(TREE, layout, SLOW), 36)
    other, none = diagnose(run, TREE.topology), diagnose(run)
    assert named(other) == named(none) == {("host", "x7", "both")}
    assert said(other, "the topology does not name x[0-35]")
    assert other.verdict.coverage.links == 0
    assert not [finding for finding in other.verdict.findings if finding.component in ("link", "cable", "switch")]


@pytest.mark.parametrize("layout", ["list", "matrix"])
def test_without_cables_hosts_and_switches_are_judged_and_links_are_not(layout: str) -> None:
    bare = replace(TREE.topology, cables=(), routing=Routing())
    assert named(diagnose(measured(TREE, layout, SLOW), bare)) == {("host", "h07", "both")}
    leaf = diagnose(measured(TREE, layout, Fault(ref("switch", "leaf3"), bandwidth_factor=0.6)), bare)
    assert {key[:2] for key in named(leaf)} == {("switch", "leaf3")}
    for fault in (None, LINK):
        diagnosis = diagnose(measured(TREE, layout, *([fault] if fault else [])), bare)
        assert named(diagnosis) == set()
        assert diagnosis.verdict.coverage.links == 0


@pytest.mark.parametrize("kind", ["d-mod-k", "tables", "ecmp", "adaptive"])
def test_a_routing_without_cables_is_harmless(kind: str) -> None:
    bare = replace(TREE.topology, cables=(), routing=Routing(kind))  # type: ignore[arg-type]
    assert named(diagnose(checked(faulty(TREE, SLOW), *CHECK_ROWS), bare)) == {("host", "h07", "both")}


def lonely() -> Fabric:
    """A leaf-spine with one host that is alone on its leaf."""
    one = TREE.topology
    return Fabric(
        replace(
            one,
            switches={**one.switches, "leaf9": Switch("leaf9")},
            host_switch={**one.host_switch, "z": "leaf9"},
            cables=(*one.cables, *(Cable("leaf9", f"spine{index}") for index in range(6))),
        )
    )


def not_routes(diagnosis: Diagnosis) -> set[tuple[str, str, str | None]]:
    """Components of findings but for routes: a pair that was hit by something else once is one to be measured again."""
    return {one for one in reported(diagnosis) if one[0] != "route"}


@pytest.mark.parametrize("layout", ["list", "matrix"])
def test_a_host_alone_on_its_switch_is_not_slow_for_it(layout: str) -> None:
    fabric = lonely()
    assert not_routes(diagnose(measured(fabric, layout), fabric.topology)) == set()


@pytest.mark.parametrize("layout", ["list", "matrix"])
def test_a_host_alone_on_its_switch_is_one_class_with_it(layout: str) -> None:
    fabric = lonely()
    diagnosis = diagnose(measured(fabric, layout, Fault(ref("host", "z"), bandwidth_factor=0.6)), fabric.topology)
    faults = [finding for finding in diagnosis.verdict.findings if finding.state is State.FAULT]
    assert len(faults) == 1
    assert {"z", "leaf9"} <= {faults[0].name, *(word for text in group(faults[0]) for word in text.split())}


def test_every_host_alone_on_its_switch() -> None:
    mesh = full_mesh(12, 1)
    assert not_routes(diagnose(simulate(mesh, seed=3), mesh.topology)) == set()
    assert {
        name
        for _, name, _ in named(
            diagnose(simulate(mesh, faults=[Fault(ref("host", "h05"), bandwidth_factor=0.5)]), mesh.topology)
        )
    } == {"h05"}


def test_switches_that_no_cable_joins() -> None:
    """Two halves in a topology whose cables between them are missing."""
    halves = replace(
        TREE.topology,
        cables=tuple(cable for cable in TREE.topology.cables if (cable.a < "leaf3") == (cable.b < "spine3")),
    )
    assert named(diagnose(measured(TREE, "list", SLOW), halves)) == {("host", "h07", "both")}
    assert named(diagnose(measured(TREE, "list"), halves)) == set()


@settings(max_examples=20)
@given(data=st.data())
def test_no_topology_makes_a_fault_of_a_healthy_run(data: st.DataObject) -> None:
    """Any declared topology: hosts missing, cables missing, any routing. No two pairs share a link."""
    rng = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    hosts = {host: switch for host, switch in TREE.topology.host_switch.items() if rng.random() < 0.8}
    cables = tuple(cable for cable in TREE.topology.cables if rng.random() < 0.8)
    kind = data.draw(st.sampled_from(["shortest", "d-mod-k", "tables", "ecmp", "adaptive"]))
    run = measured(
        TREE, data.draw(st.sampled_from(["list", "matrix"])), row=data.draw(st.sampled_from([ALONE, ROUND_TRIP]))
    )
    assert named(diagnose(run, Topology(TREE.topology.switches, hosts, cables, routing=Routing(kind)))) == set()


def test_a_wrong_routing_makes_no_fault_of_pairs_that_share_links() -> None:
    declared = replace(TREE.topology, routing=Routing("ecmp"))
    for seed in range(4):
        assert named(diagnose(measured(TREE, "matrix", seed=seed), declared)) == set()


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_the_only_paths_over_the_core_are_as_late_as_their_cables_explain(seed: int) -> None:
    """Two groups: nothing of the kind to compare their paths with, but four cables between switches are known."""
    tree = fat_tree(2, 3)
    findings = diagnose(simulate(tree, seed=seed), tree.topology).verdict.findings
    assert {finding.state for finding in findings} == {State.OK, State.NOT_JUDGED}  # few pairs cross each link
    late = Fault(ref("link", "agg0", "core0"), added_latency_s=6e-6)
    findings = diagnose(simulate(tree, faults=[late], seed=seed), tree.topology).verdict.findings
    assert (findings[0].state, findings[0].name) == (State.FAULT, "agg0>core0")
