"""Findings are measured again in a run of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from simulated_check import SimulatedCheck, retested

from fablint.analyse import diagnose
from fablint.model import Row, Run, State
from fablint.plan.check.retest import fates, plan_retest, reported_findings, row_kinds
from fablint.plan.check.stages import ROUTE_REPEATS
from fablint.simulate import Fault, SimulatedFabric, SimulatedRow, fat_tree, full_mesh
from fablint.simulate.rounds import all_rounds
from fact_cases import row_facts, run_facts
from finding_cases import ref
from pinned import pinned_by

PINNED = pinned_by("plan.toml", __file__)

FABRIC = fat_tree(8, 3)
CABLE = FABRIC.topology.cables[0]
HOST = Fault(ref("host", "h100"), bandwidth_factor=0.8)
SLOW_START = Fault(ref("host", "h300"), added_latency_s=3e-7)
LINK = Fault(ref("link", CABLE.a, CABLE.b), bandwidth_factor=0.7)


@pytest.fixture(scope="module")
def checked():
    return SimulatedCheck(FABRIC, (HOST, SLOW_START, LINK)).run()


@pytest.fixture(scope="module")
def planned(checked):
    return plan_retest(checked.run, checked.diagnosis, FABRIC.topology)


@pytest.mark.parametrize(
    "left",
    [
        (HOST,),
        (SLOW_START, LINK),
        *(pytest.param(left, marks=pytest.mark.long) for left in ((SLOW_START,), (LINK,), ())),
    ],
)
def test_a_repaired_fault_is_gone_and_any_other_is_still_there(checked, planned, left):
    check = SimulatedCheck(FABRIC, left, seed=9)
    run = retested(check, planned)
    found = fates(checked.diagnosis, diagnose(run, FABRIC.topology), run, planned)
    expected = {fault.component.label: "still there" if fault in left else "gone" for fault in (HOST, SLOW_START, LINK)}
    assert {fate.was.name: fate.state for fate in found} == expected
    for fate in found:
        assert fate.effect is not None
        if fate.state == "gone":
            assert abs(fate.effect) < 0.05
        assert fate.facts()["state"] == fate.state


def test_only_hosts_that_are_needed_take_part(checked, planned):
    hosts = [slot.host for slot in planned.stage.plan.slots]
    assert len(hosts) == planned.stage.plan.ranks < 120
    assert {"h100", "h300"} <= set(hosts)
    assert planned.placement.ranks == len(hosts)
    (rounds,) = planned.stage.rounds.values()
    for pairs in rounds:
        assert np.unique(pairs).size == pairs.size
        assert pairs.max() < len(hosts)


def test_every_part_has_a_dozen_pairs_and_every_host_several_partners(checked, planned):
    (rounds,) = planned.stage.rounds.values()
    pairs = np.unique(np.sort(np.concatenate(rounds), axis=1), axis=0)
    hosts = [slot.host for slot in planned.stage.plan.slots]
    assert (pairs == hosts.index("h100")).sum() >= 12
    assert np.bincount(pairs.ravel()).min() >= 3


def test_a_retest_is_alone_and_has_the_kernels_of_the_run(checked, planned):
    rows = [row.spec for row in planned.stage.plan.rows]
    assert [(row.kernel, row.sizes, row.order, row.name) for row in rows] == [
        ("latency", (8,), "serial", "latency"),
        ("bandwidth", (1 << 20,), "serial", "bandwidth"),
    ]


def test_without_findings_there_is_nothing_to_plan():
    done = SimulatedCheck(fat_tree(4, 3)).run()
    assert reported_findings(done.diagnosis) == []
    assert plan_retest(done.run, done.diagnosis) is None


def a_row(options: str) -> Row:
    return Row("x", row_facts({"options": options}), {})


def test_a_kernel_that_was_measured_in_several_rows_is_measured_once():
    lines = (
        "put_bandwidth --name a --pattern all-pairs --repeats 3 --sizes 1M --sync lock --win create --budget 2",
        "put_bandwidth --name b --pattern rounds --rounds 0-1 --order serial --sizes 1M --sync lock --win create",
        "latency --name c --pattern all-pairs --sizes 8 --retest 2 --iterations 100 --directions single",
        "bandwidth --name d --pattern fan-in --sizes 8",
        "allreduce --name e --pattern world --sizes 8",
    )
    found = row_kinds(Run(None, run_facts({}), tuple(map(a_row, lines))))
    assert [row.text for row in found] == [PINNED["put_bandwidth --sizes 1M"], "latency --sizes 8"]


def test_a_finding_whose_pairs_were_not_measured_is_undecided(checked, planned):
    run = retested(SimulatedCheck(FABRIC, (), seed=9), planned)
    empty = replace(run, rows=tuple(row for row in run.rows if row.kernel == "latency"))
    found = {fate.was.name: fate for fate in fates(checked.diagnosis, diagnose(run), empty, planned)}
    assert found["h100"].effect is None
    assert found["h100"].state == "undecided"


SLOW = {"latency": 2.0, "bandwidth": 2.0}  # times of a slow pair
PAIR = (3, 40)  # ranks on two switches


def slowed(run: Run, ends: tuple[int, int], rows: tuple[str, ...]) -> Run:
    """A run in which both directions of one pair took longer."""
    changed = []
    for row in run.rows:
        arrays = {name: np.array(values) for name, values in row.arrays.items()}
        for a, b in (ends, ends[::-1]) if row.kernel in rows else ():
            arrays["time_median"][a, arrays["dst"][a] == b] *= SLOW[row.kernel]
        changed.append(replace(row, arrays=arrays))
    return replace(run, rows=tuple(changed))


@pytest.fixture(scope="module")
def slow_once():
    """A run of all pairs in rounds in which one pair was slow in one row, and its retest."""
    fabric = full_mesh(8, 8)
    rows = (SimulatedRow("latency", (8,)), SimulatedRow("bandwidth", (1 << 20,)))
    run = slowed(SimulatedFabric(fabric, seed=2).measure(all_rounds(64), rows), PAIR, ("latency",))
    diagnosis = diagnose(run, fabric.topology)
    return fabric, diagnosis, plan_retest(run, diagnosis, fabric.topology)


def test_a_route_that_was_slow_in_one_moment_is_measured_several_times(slow_once):
    fabric, diagnosis, planned = slow_once
    (finding,) = reported_findings(diagnosis)
    assert (finding.state, finding.component) == (State.NOT_JUDGED, "route")
    hosts = [slot.host for slot in planned.stage.plan.slots]
    ends = [hosts.index(fabric.hosts[rank]) for rank in PAIR]
    (rounds,) = planned.stage.rounds.values()
    assert sum((np.sort(pairs, axis=1) == sorted(ends)).all(axis=1).any() for pairs in rounds) == ROUTE_REPEATS


@pytest.mark.parametrize(("rows", "state"), [((), "gone"), (("latency", "bandwidth"), "still there")])
def test_a_retest_decides_whether_a_route_is_slow(slow_once, rows, state):
    fabric, diagnosis, planned = slow_once
    run = retested(SimulatedCheck(fabric, seed=5), planned)
    names = [run.hosts[code] for code in run.facts.rank_host]
    run = slowed(run, tuple(names.index(fabric.hosts[rank]) for rank in PAIR), rows)
    (fate,) = fates(diagnosis, diagnose(run, fabric.topology), run, planned)
    assert fate.state == state
    assert fate.effect == pytest.approx(1.0 if rows else 0.0, abs=0.1)
