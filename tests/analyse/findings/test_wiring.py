"""Hosts on another switch than the topology says, and maps made from the times alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from analyse_cases import attributed, changed, deleted, in_rounds, permuted
from hypothesis import given, settings, strategies as st

from fablint.analyse.other_questions.miswiring import shortest_round_trips, verify
from fablint.analyse.other_questions.topology_inference import infer_topology
from fablint.analyse.settings import Settings
from fablint.model import Finding, Placement, Run, State, Topology
from fablint.simulate import Fabric, Noise, SimulatedRow, full_mesh, simulate
from fablint.text.actions import advice
from fablint.text.evidence_sentences import sentences
from pinned import pinned_by

PINNED = pinned_by("analyse.toml", __file__)

MESH = full_mesh(8, 8)
KINDS = ("normal", "student3", "lognormal")
LATENCY = [SimulatedRow("latency", (8,))]


def run_of(mesh: Fabric, seed: int = 1, **noise: object) -> Run:
    return simulate(mesh, rows=LATENCY, noise=Noise(**noise), seed=seed)  # type: ignore[arg-type]


def elsewhere(topology: Topology, moved: Mapping[str, str]) -> Topology:
    """The topology with wrong switches of some hosts."""
    return replace(topology, host_switch={**topology.host_switch, **moved})


def verified(run: Run, topology: Topology | None) -> list[Finding]:
    observations = shortest_round_trips(run)
    assert observations is not None
    return verify(observations, Placement.of(run, topology), Settings())


def slowed(run: Run, between: list[int], other: list[int] | None, factor: float) -> Run:
    """Pairs of these ranks with those (None: with all) are slow both ways."""

    def slow(times: np.ndarray, _: str) -> np.ndarray:
        partners_of = np.arange(len(times)) if other is None else np.asarray(other)
        cells = np.zeros(times.shape, dtype=bool)
        cells[np.ix_(between, partners_of)] = True
        return np.where(cells | cells.T, times * factor, times)

    return changed(run, slow)


# ------------------------------------------------------------------------------------------------ verify


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("moved", [{"h12": "s3"}, {"h12": "s3", "h30": "s1"}, {"h00": "s7", "h01": "s6", "h40": "s2"}])
def test_a_host_on_another_switch_is_named_with_that_switch(kind: str, moved: dict[str, str]) -> None:
    findings = verified(run_of(MESH, kind=kind), elsewhere(MESH.topology, moved))
    assert [(f.state, f.component, f.name) for f in findings] == [(State.FAULT, "host", host) for host in sorted(moved)]
    for finding in findings:
        assert sentences(finding.evidence).startswith(f"declared on {moved[finding.name]}, but ")
        assert f"its times are those of {MESH.topology.host_switch[finding.name]} (" in sentences(finding.evidence)
        assert advice(finding.next_step) == PINNED["look where the cable of name"].filled(name=finding.name)
        assert finding.log10_e is not None
        assert finding.log10_e > np.log10(64 / 0.01)
        assert finding.effect == pytest.approx(0.27, abs=0.06)  # a cable and a switch more


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(2, 4), (4, 4), (8, 8), (16, 4)])
def test_a_correct_topology_reports_no_host(kind: str, shape: tuple[int, int]) -> None:
    mesh = full_mesh(*shape)
    for seed in range(15):
        assert verified(run_of(mesh, seed, kind=kind, host_spread=0.02), mesh.topology) == []


def test_a_slow_host_is_where_it_is() -> None:
    run = run_of(MESH)
    for factor in (1.1, 1.27, 2.0):
        assert verified(slowed(run, [12], None, factor), MESH.topology) == []


def test_a_slow_switch_is_not_eight_wrong_cables() -> None:
    hosts = list(range(8, 16))
    assert verified(slowed(run_of(MESH), hosts, hosts, 1.27), MESH.topology) == []


def test_a_host_that_is_slow_with_its_own_switch_alone_is_to_be_looked_at() -> None:
    (finding,) = verified(slowed(run_of(MESH), [12], list(range(8, 16)), 1.27), MESH.topology)
    assert (finding.state, finding.name) == (State.SUSPECT, "h12")
    assert PINNED["the switch that it is connected"].ends(sentences(finding.evidence))


def test_classes_that_overlap_report_no_host() -> None:
    assert verified(run_of(MESH, scale=0.12), elsewhere(MESH.topology, {"h12": "s3"})) == []


def test_too_few_partners_report_no_host() -> None:
    topology = elsewhere(MESH.topology, {"h12": "s3"})
    run = run_of(MESH)
    few = slowed(run, [12], [24, 25, 26, 27, 28, 29], float("nan"))
    assert [finding.name for finding in verified(run, topology)] == ["h12"]
    assert verified(few, topology) == []


def test_a_few_rounds_are_enough() -> None:
    topology = elsewhere(MESH.topology, {"h12": "s3"})
    findings = verified(in_rounds(run_of(MESH), 60, seed=1), topology)
    assert [(f.state, f.name) for f in findings] == [(State.FAULT, "h12")]
    assert verified(in_rounds(run_of(MESH), 12, seed=1), topology) == []


def test_several_ranks_of_a_host_are_one_witness() -> None:
    run = simulate(full_mesh(2, 4), rows=LATENCY, ranks_per_host=4)
    one = simulate(full_mesh(2, 4), rows=LATENCY)
    topology = elsewhere(full_mesh(2, 4).topology, {"h00": "s1"})
    for findings in (verified(run, topology), verified(one, topology)):
        assert all(finding.log10_e is not None and finding.log10_e < 6 for finding in findings)


def test_hosts_that_the_map_does_not_name_are_no_evidence() -> None:
    known = {host: switch for host, switch in MESH.topology.host_switch.items() if host not in ("h05", "h06")}
    topology = replace(MESH.topology, host_switch={**known, "h12": "s3"})
    assert [finding.name for finding in verified(run_of(MESH), topology)] == ["h12"]
    assert verified(run_of(MESH), None) == []


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32), share=st.floats(0, 0.95), kind=st.sampled_from(KINDS))
def test_no_gap_in_a_run_reports_a_host(seed: int, share: float, kind: str) -> None:
    assert verified(deleted(run_of(MESH, seed, kind=kind), share, seed), MESH.topology) == []


def test_the_shortest_round_trips_are_those_of_the_smallest_message() -> None:
    rows = [SimulatedRow("bandwidth", (8,)), SimulatedRow("latency", (64, 8, 1024))]
    observations = shortest_round_trips(simulate(MESH, rows=rows))
    assert observations is not None
    assert (observations.kernel, observations.size, observations.statistic) == ("latency", 8, "median")
    assert shortest_round_trips(simulate(MESH, rows=rows[:1])) is None


# ------------------------------------------------------------------------------------------------ infer


def inferred(run: Run) -> Topology | None:
    observations = shortest_round_trips(run)
    assert observations is not None
    return infer_topology(observations, Placement.of(run, None))


def parts(topology: Topology, hosts: list[str]) -> list[set[str]]:
    """Hosts of each switch."""
    found: dict[str, set[str]] = {}
    for host in hosts:
        found.setdefault(topology.host_switch[host], set()).add(host)
    return sorted(found.values(), key=min)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(4, 6), (8, 8), (16, 4), (3, 20)])
def test_switches_show_in_the_times(kind: str, shape: tuple[int, int]) -> None:
    mesh = full_mesh(*shape)
    order = np.random.default_rng(1).permutation(shape[0] * shape[1]).tolist()
    run = permuted(run_of(mesh, kind=kind), order)
    topology = inferred(run)
    assert topology is not None
    assert topology.inferred
    assert topology.source == "inferred from the times of latency"
    assert parts(topology, run.hosts) == parts(mesh.topology, run.hosts)
    assert topology.host_switch[run.hosts[0]] == "inferred-s0"


def test_a_slow_host_stays_with_its_switch() -> None:
    run = slowed(run_of(MESH), [12], None, 1.3)
    topology = inferred(run)
    assert topology is not None
    assert parts(topology, run.hosts) == parts(MESH.topology, run.hosts)


def test_groups_show_among_the_switches() -> None:
    group = np.repeat(np.arange(4), 16)

    def farther(times: np.ndarray, _: str) -> np.ndarray:
        return times + np.where(group[:, None] == group[None, :], 0, 0.4e-6)

    mesh = full_mesh(16, 4)
    run = changed(run_of(mesh), farther)
    topology = inferred(run)
    assert topology is not None
    assert parts(topology, run.hosts) == parts(mesh.topology, run.hosts)
    assert [topology.group_of(host) for host in run.hosts] == [f"inferred-g{code}" for code in group]


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    hosts=st.integers(2, 40),
    kind=st.sampled_from(KINDS),
    scale=st.sampled_from([0.002, 0.025, 0.1]),
    spread=st.sampled_from([0.0, 0.01, 0.05, 0.2]),
)
def test_noise_has_no_structure(seed: int, hosts: int, kind: str, scale: float, spread: float) -> None:
    run = run_of(full_mesh(1, hosts), seed, kind=kind, scale=scale, host_spread=spread)
    assert inferred(run) is None


def test_a_club_of_fast_hosts_is_no_switch() -> None:
    run = run_of(full_mesh(1, 32), scale=0.005)
    assert inferred(slowed(run, list(range(12, 32)), None, 1.3)) is None


def test_what_was_hardly_measured_has_no_map() -> None:
    run = run_of(MESH)
    assert inferred(run) is not None
    assert inferred(deleted(run, 0.5, 1)) is None
    assert inferred(in_rounds(run, 30, seed=1)) is None


def test_ranks_of_a_host_are_one_host() -> None:
    run = simulate(full_mesh(4, 4), rows=LATENCY, ranks_per_host=2)
    topology = inferred(run)
    assert topology is not None
    assert parts(topology, run.hosts) == parts(full_mesh(4, 4).topology, run.hosts)
    moved = attributed(run, rank_host=[15 - host for host in run.facts.rank_host])
    assert inferred(moved) is not None
