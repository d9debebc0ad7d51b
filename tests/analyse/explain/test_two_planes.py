"""Hosts with NICs on several switches: slow pairs are counted by the switches of the ranks that were measured."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from analyse_cases import attributed
from fabric_cases import ROUND_TRIP, STREAM, checked, faulty, measured

from fablint.analyse import diagnose
from fablint.analyse.explain.shares.slow_measurements import SlowMeasurements
from fablint.analyse.null_model.host_populations import _without_switches
from fablint.analyse.null_model.modes import Modes
from fablint.analyse.null_model.recorded_facts import facts_of
from fablint.analyse.other_questions.root_cause import fuse_run
from fablint.model import ComponentRef, Endpoint, Finding, Placement, State
from fablint.model.host_name import NicRef
from fablint.report.drawings.topology_drawing import drawing
from fablint.report.survey.report_source import ReportSource
from fablint.simulate import Fabric, SimulatedRow, fat_tree, full_mesh, multi_rail, simulate
from fablint.simulate.fault_syntax import parse_fault
from fablint.text.evidence_sentences import sentences

PLANES = multi_rail(fat_tree(4, 2), 2)
UNKNOWN_PATHS = Fabric(
    replace(PLANES.topology, routing=replace(PLANES.topology.routing, kind="shortest")), nics=PLANES.nics
)
LARGER = multi_rail(fat_tree(6, 2), 2)


@pytest.mark.parametrize(
    ("fabric", "fault"),
    [
        (UNKNOWN_PATHS, "switch:p0.spine0:+2us"),
        (LARGER, "switch:p1.spine2:+2us"),
        (LARGER, "link:p1.leaf0>p1.spine0:-50%"),
        (multi_rail(fat_tree(4, 2), 3), "link:p2.leaf1>p2.spine0:-50%"),
    ],
)
def test_a_slow_spine_of_one_plane_is_judged_without_a_warning(fabric: Fabric, fault: str) -> None:
    run = checked(faulty(fabric, parse_fault(fault), seed=3), ROUND_TRIP, STREAM)
    for topology in (fabric.topology, replace(fabric.topology, cables=())):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            verdict = diagnose(run, topology).verdict
        planes = {name.split(".")[0] for name in fabric.topology.switches} - {fault.split(":")[1].split(".")[0]}
        named = [finding for finding in verdict.findings if finding.state is State.FAULT]
        assert not any(node.startswith(tuple(planes)) for finding in named for node in finding.nodes)


def test_a_pair_of_hosts_has_an_entry_for_each_two_switches_that_its_nics_use() -> None:
    placement = Placement.of(checked(faulty(PLANES, seed=3), STREAM), PLANES.topology)
    ends = np.array([[0, 2], [2, 0], [1, 3], [1, 9]])  # ranks of hosts 0, 1 and 4: even ranks on plane 0
    zero = np.zeros(len(ends))
    cells = (ends[:, 0], ends[:, 1])
    taken = SlowMeasurements(
        cells, ends, zero, np.zeros((3, zero.size)), zero, zero, zero > 0, placement, one_way=True, most_of_pair=1.0
    )
    pairs = taken.pairs
    names = [[placement.switches[code].split(".")[0] for code in two] for two in pairs.switches.tolist()]
    assert names == [["p0", "p0"], ["p1", "p1"], ["p1", "p1"], ["p0", "p0"]]
    assert pairs.weight.tolist() == [0.5, 0.5, 1.0, 1.0]  # host 0 to host 1 weighs as one measurement


# ------------------------------------------------------------------------------------------------ switches of hosts


def test_a_host_has_the_switches_of_all_of_its_ranks() -> None:
    run = measured(PLANES, "list")
    placement = Placement.of(run, PLANES.topology)
    assert placement.host_switches[5] == placement.host_groups[5] == ("p0.leaf1", "p1.leaf1")
    assert Placement.of(run, None).host_switches[5] == ()
    facts = facts_of(run, placement, {})
    assert facts["switch"][5] == facts["group"][5] == "p0.leaf1/p1.leaf1"
    places = drawing(ReportSource(run, diagnose(run, PLANES.topology)))
    assert places is not None
    assert {dot.switch for dot in places.dots if dot.name == "h05"} == {"p0.leaf1", "p1.leaf1"}


def test_a_host_that_is_slow_on_two_switches_is_not_explained_by_one_cable() -> None:
    verdict = diagnose(measured(PLANES, "matrix", parse_fault("host:h05:-30%")), PLANES.topology).verdict
    (fault,) = (finding for finding in verdict.findings if finding.state is State.FAULT)
    assert (fault.component, fault.name) == ("host", "h05")
    assert {component.kind for component in fault.ambiguity_group}.isdisjoint({"cable", "port", "switch"})


@pytest.mark.parametrize("rail", [0, 1])
def test_neighbours_of_a_nic_are_the_hosts_of_its_switch(rail: int) -> None:
    nic = ComponentRef.of("nic", Endpoint(nodes=("h05",), part=PLANES.nics[rail]))
    slow_neighbour, slow_elsewhere = (
        Finding(state=State.FAULT, components=(ComponentRef.of("host", host),)) for host in ("h06", "h09")
    )
    run = measured(PLANES, "list")
    assert "other hosts" in sentences(fuse_run(run, PLANES.topology, nic, "rx", (slow_neighbour,)).reasons)
    assert "other hosts" not in sentences(fuse_run(run, PLANES.topology, nic, "rx", (slow_elsewhere,)).reasons)


@pytest.mark.parametrize("plane", ["p0", "p1"])
def test_the_hosts_of_one_whole_switch_of_any_plane_are_no_population(plane: str) -> None:
    """Of a fabric whose second plane connects each host to another leaf than the first."""
    topology = replace(
        PLANES.topology,
        nic_switch={
            NicRef.of(f"h{host:02}", f"hsn{rail}"): f"p{rail}.leaf{(host // 4, host % 4)[rail]}"
            for host in range(16)
            for rail in (0, 1)
        },
    )
    placement = Placement.of(measured(PLANES, "list"), topology)
    slow = [host for host, switches in enumerate(placement.host_switches) if f"{plane}.leaf2" in switches]
    label = np.zeros(16, dtype=np.int64)
    label[slow] = 1
    assert _without_switches(Modes(label, np.array([0.0, 0.2])), placement) is None


def test_a_misplaced_host_has_no_switch_by_its_nic_either() -> None:
    mesh = full_mesh(8, 8)
    run = attributed(simulate(mesh, rows=[SimulatedRow("latency", (8,))]), rank_nic=["hsn0"] * 64)
    declared = {**mesh.topology.host_switch, "h12": "s3"}
    nics = {NicRef.of(host, "hsn0"): switch for host, switch in declared.items()}
    topology = replace(mesh.topology, host_switch=declared, nic_switch=nics)
    diagnosis = diagnose(run, topology)
    assert [finding.name for finding in diagnosis.verdict.findings if finding.state is State.FAULT] == ["h12"]
    assert diagnosis.topology is not None
    assert Placement.of(run, diagnosis.topology).host_switches[12] == ()
    assert Placement.of(run, diagnosis.topology).host_switches[13] == ("s1",)


@pytest.mark.parametrize(("others", "is_population"), [(0, False), (4, False), (20, True)])
def test_all_hosts_of_a_switch_may_be_in_a_large_population_by_chance(others: int, *, is_population: bool) -> None:
    """All four hosts of s3, and as many others as make it likely that some switch has all of its hosts in the mode."""
    fabric = full_mesh(16, 4)
    placement = Placement.of(simulate(fabric), fabric.topology)
    label = np.zeros(64, dtype=np.int64)
    label[12:16] = 1
    label[[host for host in range(64) if host % 4 < 3 and host // 4 != 3][:: max(1, 45 // max(others, 1))][:others]] = 1
    modes = _without_switches(Modes(label, np.array([0.0, 0.2])), placement)
    assert (modes is not None and bool(modes.label[12:16].all())) is is_population
