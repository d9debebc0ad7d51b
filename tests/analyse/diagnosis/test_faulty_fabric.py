"""Faulty components are reported with direction and size of the loss, and nothing else is reported."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from analyse_cases import changed, deleted, fit_of, in_rounds, named, permuted, reported
from hypothesis import example, given, settings, strategies as st

from fablint.analyse import diagnose
from fablint.analyse.phrasing import with_possible_steps
from fablint.model import Finding, Run, Scope, State
from fablint.simulate import CHECK_ROWS, Fabric, Fault, Noise, full_mesh, simulate
from fablint.text import actions as advise
from fablint.text.actions import advice
from fablint.text.evidence_sentences import sentences
from fact_cases import attributes_of, run_facts, with_facts
from finding_cases import group, note_texts, ref

MESH = full_mesh(8, 8)
HOST = Fault(ref("host", "h05"), bandwidth_factor=0.8)
SLOW_LINK = Fault(ref("link", "s4", "s1"), bandwidth_factor=0.6)

CASES = [
    ([HOST], {("host", "h05", "both")}),
    ([Fault(ref("host", "h05"), "tx", bandwidth_factor=0.8)], {("host", "h05", "tx")}),
    ([Fault(ref("host", "h05"), "rx", bandwidth_factor=0.8)], {("host", "h05", "rx")}),
    ([Fault(ref("cable", "s1", "s4"), bandwidth_factor=0.6)], {("cable", "s1=s4", "both")}),
    ([SLOW_LINK], {("link", "s4>s1", None)}),
    ([Fault(ref("switch", "s3"), bandwidth_factor=0.8)], {("switch", "s3", "both")}),
    (
        [
            Fault(ref("host", "h05"), bandwidth_factor=0.7),
            Fault(ref("link", "s0", "s2"), bandwidth_factor=0.6),
        ],
        {("host", "h05", "both"), ("link", "s0>s2", None)},
    ),
    (
        [
            Fault(ref("host", "h05"), bandwidth_factor=0.3),
            Fault(ref("link", "s0", "s2"), bandwidth_factor=0.8),
        ],
        {("host", "h05", "both"), ("link", "s0>s2", None)},
    ),
    (
        [
            Fault(ref("switch", "s3"), bandwidth_factor=0.7),
            Fault(ref("host", "h40"), "rx", bandwidth_factor=0.5),
        ],
        {("switch", "s3", "both"), ("host", "h40", "rx")},
    ),
]


@pytest.mark.parametrize(("faults", "truth"), CASES)
def test_the_faulty_component_is_reported_and_nothing_else(faults, truth, noise) -> None:
    for seed in range(3):
        diagnosis = diagnose(simulate(MESH, faults=faults, noise=Noise(noise), seed=seed), MESH.topology)
        assert named(diagnosis) == truth
        assert (diagnosis.verdict.verdict, diagnosis.verdict.exit_code) == ("fault", 1)


@pytest.mark.long
def test_a_slow_host_of_a_thousand_is_named() -> None:
    fabric = full_mesh(32, 32)
    run = simulate(fabric, faults=[Fault(ref("host", "h0500"), bandwidth_factor=0.8)], noise=Noise("student3"))
    assert named(diagnose(run, fabric.topology)) == {("host", "h0500", "both")}


@pytest.mark.parametrize(
    ("fault", "loss"),
    [(HOST, -0.2), (SLOW_LINK, -0.4), (Fault(ref("switch", "s3"), bandwidth_factor=0.8), -0.2)],
)
def test_the_interval_of_the_loss_holds_the_truth(fault, loss) -> None:
    finding = diagnose(simulate(MESH, faults=[fault]), MESH.topology).verdict.findings[0]
    assert finding.state is State.FAULT
    assert finding.quantity == "bandwidth"
    assert finding.interval[0] - 0.015 <= loss <= finding.interval[1] + 0.015
    assert finding.interval[0] <= finding.effect <= finding.interval[1]


def test_a_host_has_its_series_class_and_a_next_step() -> None:
    finding = diagnose(simulate(MESH, faults=[HOST]), MESH.topology).verdict.findings[0]
    assert group(finding) == ("NIC of h05", "cable h05=s0", "port of s0 to h05")
    assert "loopback" in advice(finding.next_step)
    assert "of 126 pairs slow" in sentences(finding.evidence)


@pytest.mark.parametrize(
    ("origin", "complete", "kinds"),
    [
        ({}, False, ["swap_cable", "retest", "measure_longer", "resume"]),
        ({}, True, ["swap_cable", "retest", "measure_longer"]),
        ({"imported": {"tool": "osu"}}, False, ["swap_cable", "retest", "measure_longer"]),
        ({"simulated": {"kind": "mesh"}}, False, ["swap_cable"]),
    ],
)
def test_no_step_measures_a_simulated_fabric_or_resumes_what_has_no_rest(origin, complete, kinds) -> None:
    run = simulate(MESH)
    run = replace(
        run,
        facts=run_facts(
            {name: attributes_of(run)[name] for name in attributes_of(run) if name != "simulated"} | origin
        ),
    )
    host = ref("host", "h05")
    steps = advise.swap_cable(host, host) + advise.retest(run="a.run") + advise.measure_longer() + advise.resume()
    found = Finding(state=State.FAULT, components=(host,), next_step=steps)
    possible = with_possible_steps(found, run, complete=complete, has_all_partners=False)
    assert [step.kind for step in possible.next_step] == kinds


def test_one_host_per_switch_is_indistinguishable_from_its_switch() -> None:
    fabric = full_mesh(12, 1)
    finding = diagnose(
        simulate(fabric, faults=[Fault(ref("switch", "s03"), bandwidth_factor=0.6)]), fabric.topology
    ).verdict.findings[0]
    assert (finding.state, finding.component, finding.name) == (State.FAULT, "host", "h03")
    assert "switch s03" in group(finding)


def test_round_trips_name_the_part_but_not_the_direction() -> None:
    for fault, truth in (
        (Fault(ref("host", "h05"), "tx", added_latency_s=1e-6), ("host", "h05", None)),
        (Fault(ref("link", "s4", "s1"), added_latency_s=3e-6), ("cable", "s1=s4", None)),
    ):
        diagnosis = diagnose(simulate(MESH, rows=CHECK_ROWS[:1], faults=[fault]), MESH.topology)
        assert named(diagnosis) == {truth}
        assert diagnosis.verdict.findings[0].effect > 0.1
        assert any("no one-way streams" in note for note in note_texts(diagnosis.verdict))


def test_streams_settle_the_direction_that_round_trips_leave_open() -> None:
    fault = Fault(ref("link", "s4", "s1"), bandwidth_factor=0.6, added_latency_s=1e-6)
    diagnosis = diagnose(simulate(MESH, faults=[fault]), MESH.topology)
    assert named(diagnosis) == {("link", "s4>s1", None)}
    finding = diagnosis.verdict.findings[0]
    assert "latency 8 B" in sentences(finding.evidence)
    assert "bandwidth 1 MiB" in sentences(finding.evidence)


def test_hosts_behind_a_slow_switch_are_not_called_fine() -> None:
    findings = diagnose(
        simulate(MESH, faults=[Fault(ref("switch", "s3"), bandwidth_factor=0.8)]), MESH.topology
    ).verdict.findings
    hidden = next(f for f in findings if f.state is State.NOT_JUDGED)
    assert (hidden.name, "s3" in sentences(hidden.evidence)) == ("h[24-31]", True)
    fine = next(f for f in findings if f.state is State.OK and f.component == "host")
    assert fine.name == "h[00-23,32-63]"


def test_without_a_topology_hosts_are_still_named() -> None:
    assert named(diagnose(simulate(MESH, faults=[HOST]))) == {("host", "h05", "both")}


def test_without_a_topology_a_slow_cable_is_pairs_to_retest() -> None:
    diagnosis = diagnose(simulate(MESH, faults=[Fault(ref("cable", "s0", "s1"), bandwidth_factor=0.6)], seed=2))
    assert named(diagnosis) == set()
    assert ("route", "h[00-07]=h[08-15]", None) in named(diagnosis, State.SUSPECT)
    assert diagnosis.verdict.exit_code == 3


def test_a_pair_slow_in_both_directions_is_a_suspect_route_and_one_direction_measured_once_a_note() -> None:
    def slow(times: np.ndarray, row: str) -> np.ndarray:
        if row == "bandwidth":
            times[3, 40] *= 1.6
            times[40, 3] *= 1.6
            times[7, 50] *= 1.6
        return times

    diagnosis = diagnose(changed(simulate(MESH, noise=Noise(spike_share=0)), slow), MESH.topology)
    assert reported(diagnosis) == {("route", "h03=h40", None)}
    assert diagnosis.verdict.findings[0].state is State.SUSPECT
    assert any("h07>h50" in note and "measured once" in note for note in note_texts(diagnosis.verdict))


@pytest.mark.parametrize(("hosts", "faulty"), [(3, set()), (4, {("host", "h01", "both")})])
def test_a_host_with_three_partners_can_be_a_fault(hosts: int, faulty: set[tuple[str, str, str]]) -> None:
    fabric = full_mesh(1, hosts)
    diagnosis = diagnose(simulate(fabric, faults=[Fault(ref("host", "h01"), bandwidth_factor=0.5)]), fabric.topology)
    assert named(diagnosis) == faulty
    assert diagnosis.verdict.verdict != "pass"


def test_nine_matchings_are_enough_for_a_slow_host_or_switch() -> None:
    for seed in range(4):
        run = in_rounds(simulate(MESH, faults=[HOST], seed=seed), 9, seed)
        assert named(diagnose(run, MESH.topology)) == {("host", "h05", "both")}
        run = in_rounds(simulate(MESH, faults=[Fault(ref("switch", "s0"), bandwidth_factor=0.7)], seed=seed), 9, seed)
        assert named(diagnose(run, MESH.topology)) == {("switch", "s0", "both")}


def test_the_fit_gives_back_what_was_simulated() -> None:
    quiet = Noise(scale=0.002, spike_share=0, host_spread=0)
    diagnosis = diagnose(
        simulate(MESH, faults=[Fault(ref("host", "h05"), "tx", bandwidth_factor=0.8)], noise=quiet),
        MESH.topology,
    )
    fit = fit_of(diagnosis, "bandwidth")
    assert fit.tx[5] == pytest.approx(-np.log(0.8), abs=0.005)
    assert abs(np.delete(fit.tx, 5)).max() < 0.005
    assert abs(fit.rx).max() < 0.005
    assert fit.class_time[Scope.EDGE] == pytest.approx((1 << 20) / 25e9, rel=0.005)
    assert fit.noise == pytest.approx(0.002, rel=0.1)
    latency = fit_of(diagnosis, "latency")
    assert latency.class_time[Scope.LOCAL] > 1.2 * latency.class_time[Scope.EDGE]
    np.testing.assert_array_equal(latency.tx, latency.rx)


@settings(max_examples=10)
@given(order=st.permutations(range(64)), case=st.sampled_from(CASES), seed=st.integers(0, 1000))
def test_the_order_of_the_hosts_does_not_matter(order, case, seed) -> None:
    faults, truth = case
    run = simulate(MESH, faults=faults, seed=seed)
    assert named(diagnose(permuted(run, order), MESH.topology)) == named(diagnose(run, MESH.topology)) == truth


@settings(max_examples=10)
@given(factor=st.floats(1e-3, 1e3), case=st.sampled_from(CASES), seed=st.integers(0, 1000))
def test_a_faster_clock_changes_nothing(factor, case, seed) -> None:
    run = simulate(MESH, faults=case[0], seed=seed)
    scaled = changed(run, lambda times, _: times * np.float32(factor))
    assert named(diagnose(scaled, MESH.topology)) == named(diagnose(run, MESH.topology))


@settings(max_examples=15)
@given(share=st.floats(0.05, 0.95), case=st.sampled_from(CASES), seed=st.integers(0, 1000))
@example(
    share=0.9499999999999998,
    case=([Fault(ref("switch", "s3"), bandwidth_factor=0.8)], {("switch", "s3", "both")}),
    seed=470,
)
def test_deleting_measurements_never_creates_a_fault(share, case, seed) -> None:
    faults, truth = case
    diagnosis = diagnose(deleted(simulate(MESH, faults=faults, seed=seed), share, seed), MESH.topology)
    parts = {name for _, name, _ in truth} | {name.replace(">", "=") for _, name, _ in truth}
    for _, name, _ in named(diagnosis):
        assert name in parts or "=".join(sorted(name.split(">"))) in parts


def test_only_the_faulty_host_has_an_effect_in_the_fit() -> None:
    """A slow switch is not an effect of its hosts, and no host looks faster for it."""
    faults = [
        Fault(ref("switch", "s3"), bandwidth_factor=0.6),
        Fault(ref("host", "h05"), "tx", bandwidth_factor=0.7),
    ]
    fit = fit_of(diagnose(simulate(MESH, faults=faults), MESH.topology), "bandwidth")
    assert np.flatnonzero(np.abs(fit.tx) > 0.05).tolist() == [5]
    assert fit.tx[5] == pytest.approx(-np.log(0.7), abs=0.02)
    assert np.abs(fit.rx).max() < 0.05
    assert np.abs(fit.healthy).max() < 0.05


def as_measured(fabric: Fabric, noise: Noise, faults: Sequence[Fault] = (), **attributes: object) -> Run:
    """A simulated run without the mark of a simulation: its findings advise to measure."""
    run = simulate(fabric, seed=1, noise=noise, faults=faults)
    kept = {name: value for name, value in attributes_of(run).items() if name != "simulated"}
    rows = [with_facts(row, transport="mpi") for row in run.rows]
    return replace(run, facts=run_facts(kept | attributes), rows=tuple(rows))


@pytest.mark.parametrize(("state", "words"), [("complete", "measure"), ("interrupted", "finish the run")])
def test_only_a_run_that_is_not_complete_is_to_be_resumed(state, words) -> None:
    run = as_measured(full_mesh(1, 3), Noise(), state=state)  # of each host, two partners: too few
    verdict = diagnose(run).verdict
    steps = [advice(one.next_step) for one in verdict.findings if one.state is State.NOT_JUDGED and one.next_step]
    assert steps
    assert all(step.startswith(words) for step in steps)
    assert any("fablint resume measures it" in note for note in note_texts(verdict)) == (state != "complete")


@pytest.mark.parametrize(
    ("hosts", "scale", "step"),
    [
        (3, 0.025, "measure with at least 4 hosts to judge a fabric"),
        (8, 0.08, "measure longer"),
        (8, 0.04, "measure h01 again"),
    ],
)
def test_where_all_hosts_were_measured_with_each_other_no_more_partners_are_advised(hosts, scale, step) -> None:
    run = as_measured(full_mesh(1, hosts), Noise(scale=scale), [Fault(ref("host", "h01"), bandwidth_factor=0.9)])
    advised = [advice(one.next_step) for one in diagnose(run).verdict.findings if one.next_step]
    assert step in advised
    assert not [step for step in advised if "more partners" in step]
