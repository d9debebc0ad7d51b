"""What changed between two runs: scopes, hosts, findings, and the verdict on the newer run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from fablint.analyse import diagnose
from fablint.analyse.changes import RunResult, compare_runs
from fablint.analyse.changes.fitted_rows import match_fits
from fablint.model import Run, Topology
from fablint.model.run_changes import ChangeState, RunChanges
from fablint.simulate import Fault, Noise, SimulatedRow, full_mesh, simulate
from fact_cases import with_facts
from finding_cases import ref
from pinned import pinned_by

PINNED = pinned_by("analyse.toml", __file__)

MESH = full_mesh(4, 8)
ROWS = (SimulatedRow("latency", (8,)), SimulatedRow("bandwidth", (1 << 20,)))
QUIET = Noise(scale=0.005, spike_share=0.0, host_spread=0.001, link_spread=0.0)
SLOW = Fault(ref("host", MESH.hosts[5]), "tx", bandwidth_factor=0.85)


def measured(seed: int, faults: Sequence[Fault] = (), rows: Sequence[SimulatedRow] = ROWS) -> Run:
    return simulate(MESH, faults=faults, noise=QUIET, seed=seed, rows=rows)


def result(run: Run, topology: Topology | None = MESH.topology) -> RunResult:
    return RunResult(run, diagnose(run, topology))


def compared(old: Run, new: Run, margin: float = 0.03) -> RunChanges:
    return compare_runs(result(old), result(new), margin)


def slower(run: Run, factor: float) -> Run:
    """The run with all times of its bandwidth longer."""
    rows = [
        replace(
            row,
            arrays={
                name: values * factor if name.startswith("time_") else values for name, values in row.arrays.items()
            },
        )
        if row.name == "bandwidth"
        else row
        for row in run.rows
    ]
    return replace(run, rows=tuple(rows))


def without(run: Run, host: int) -> Run:
    """The run with a host under another name."""
    hosts = [f"other{at}" if at == host else name for at, name in enumerate(run.hosts)]
    return with_facts(run, hosts=hosts)


def changed(changes: RunChanges) -> list[tuple[ChangeState, str, str | None]]:
    return [(host.state, host.component.label, host.direction) for host in changes.hosts if host.component]


@pytest.fixture(scope="module")
def healthy() -> Run:
    return measured(1)


@pytest.fixture(scope="module")
def faulty() -> Run:
    return measured(2, [SLOW])


def test_two_healthy_runs_differ_by_less_than_the_margin(healthy: Run) -> None:
    changes = compared(healthy, measured(2))
    assert (changes.verdict, changes.exit_code, changes.hosts, changes.notes) == ("pass", 0, (), ())
    assert {scope.state for scope in changes.scopes} == {ChangeState.NOT_WORSE}
    assert changes.hosts_compared == 32
    for change in (*changes.scopes, *changes.seen):
        assert change.interval
        low, high = change.interval
        assert low < change.change < high
        assert 0.03 <= change.smallest < 0.1


def test_a_host_that_became_slow_is_named_with_its_direction(healthy: Run, faulty: Run) -> None:
    changes = compared(healthy, faulty)
    assert (changes.verdict, changes.exit_code) == ("fault", 1)
    assert changed(changes) == [(ChangeState.WORSE, SLOW.component.label, "tx")]
    assert changes.hosts[0].change == pytest.approx(-0.15, abs=0.02)
    assert changes.hosts[0].interval
    assert changes.hosts[0].interval[1] < -0.1
    assert [(finding.kind, finding.finding.name) for finding in changes.findings] == [("new", SLOW.component.label)]


def test_a_repaired_host_is_better_and_its_fault_gone(healthy: Run, faulty: Run) -> None:
    changes = compared(faulty, healthy)
    assert changes.verdict == "pass"
    assert changed(changes) == [(ChangeState.BETTER, SLOW.component.label, "tx")]
    assert [(finding.kind, finding.finding.name) for finding in changes.findings] == [("gone", SLOW.component.label)]


def test_a_fault_of_both_runs_is_unchanged_and_no_loss(faulty: Run) -> None:
    changes = compared(faulty, measured(3, [SLOW]))
    assert (changes.verdict, changed(changes)) == ("pass", [])
    assert [finding.kind for finding in changes.findings] == ["unchanged"]


@pytest.mark.parametrize(
    ("factor", "state", "verdict"),
    [
        (1.08, ChangeState.WORSE, "fault"),
        (0.92, ChangeState.BETTER, "pass"),
        (1.0309, ChangeState.UNDECIDED, "incomplete"),
    ],
)
def test_a_change_of_all_pairs_is_one_of_the_scopes(
    healthy: Run, factor: float, state: ChangeState, verdict: str
) -> None:
    changes = compared(healthy, slower(measured(2), factor))
    streams = [scope for scope in changes.scopes if scope.quantity == "bandwidth"]
    assert {stream.state for stream in streams} == {state}
    assert streams[0].change == pytest.approx(1 / factor - 1, abs=0.005)
    assert (changes.verdict, changes.hosts) == (verdict, ())


def test_the_margin_decides(healthy: Run) -> None:
    assert compared(healthy, slower(measured(2), 1.08), margin=0.1).verdict == "pass"


def test_a_host_of_the_old_run_only_is_named_and_the_verdict_incomplete(healthy: Run) -> None:
    changes = compared(healthy, without(measured(2), 7))
    assert (changes.verdict, changes.only_old, changes.only_new) == ("incomplete", (MESH.hosts[7],), ("other7",))
    assert changes.hosts_compared == 31


def test_rows_of_one_run_only_are_named(healthy: Run) -> None:
    changes = compared(healthy, measured(2, rows=ROWS[:1]))
    assert changes.verdict == "incomplete"
    assert changes.notes == (PINNED["1 row of the old run"],)
    assert {scope.quantity for scope in changes.scopes} == {"latency"}


def test_figures_of_coarse_resolution_hide_changes_of_a_step(healthy: Run) -> None:
    def rounded(run: Run) -> Run:
        arrays = dict(run.rows[0].arrays)
        arrays["time_median"] = np.round(arrays["time_median"] / 1e-7) * 1e-7
        return replace(run, rows=(replace(run.rows[0], arrays=arrays),))

    changes = compared(rounded(healthy), rounded(measured(2)))
    assert changes.hosts == ()
    assert all(one.smallest > 0.05 for one in changes.seen)  # 0.1 us of 1.7 us


def drifting(run: Run, total: float) -> Run:
    """The run with times of its bandwidth that grow from its first to its last round."""
    row = run.row("bandwidth")
    grown = np.exp(total * row.arrays["round"][..., None] / row.facts.schedule.rounds)
    arrays = {name: values * grown if name.startswith("time_") else values for name, values in row.arrays.items()}
    return replace(run, rows=tuple(replace(one, arrays=arrays) if one is row else one for one in run.rows))


def test_a_change_that_a_slow_drift_may_explain_is_undecided(healthy: Run) -> None:
    for total, state in ((0.01, ChangeState.NOT_WORSE), (0.14, ChangeState.UNDECIDED)):
        streams = [
            scope for scope in compared(healthy, drifting(measured(2), total)).scopes if scope.quantity == "bandwidth"
        ]
        assert {stream.state for stream in streams} == {state}
    assert streams[0].change == pytest.approx(-0.067, abs=0.015)


def test_the_step_of_rounded_times_is_that_at_the_median(healthy: Run) -> None:
    row = healthy.row("latency")
    step = 0.05 * float(np.nanmedian(row.arrays["time_median"]))
    arrays = {**row.arrays, "time_median": np.round(row.arrays["time_median"] / step) * step}
    run = replace(healthy, rows=(replace(row, arrays=arrays),))
    [pair] = match_fits(result(run), result(run))
    assert 0.049 < pair.old.step < 0.07  # of times from 0.75 medians on; those of slow outliers are smaller


def test_a_host_is_worse_exactly_from_the_stated_loss_on() -> None:
    """On a noisy fabric the stated loss is that which the tails of the other hosts do not explain."""
    noise = replace(QUIET, scale=0.02, host_spread=0.005)
    old = result(simulate(MESH, noise=noise, seed=1, rows=ROWS))
    found = []
    for loss in (0.03, 0.05, 0.08, 0.12, 0.2, 0.3):
        slow = replace(SLOW, bandwidth_factor=1 - loss)
        changes = compare_runs(old, result(simulate(MESH, faults=[slow], noise=noise, seed=2, rows=ROWS)))
        [stated] = [one.smallest for one in changes.seen if one.direction == "tx"]
        named = [one for one in changes.hosts if one.component == SLOW.component and one.direction == "tx"]
        if loss > stated:
            assert named, (loss, stated)
        found.append(bool(named))
    assert found == sorted(found)
    assert found[-1]


def test_a_slow_host_of_few_is_compared_with_the_other_ones() -> None:
    """Its own loss does not widen the spread that the loss is compared with."""
    mesh = full_mesh(2, 3)
    old, new = (
        simulate(mesh, faults=faults, noise=QUIET, seed=seed, rows=ROWS)
        for seed, faults in ((1, ()), (2, [replace(SLOW, component=ref("host", mesh.hosts[4]))]))
    )
    changes = compare_runs(*(RunResult(run, diagnose(run, mesh.topology)) for run in (old, new)))
    assert changed(changes) == [(ChangeState.WORSE, mesh.hosts[4], "tx")]


def test_a_loss_that_the_new_run_rules_out_hides_in_no_host(healthy: Run) -> None:
    """Where the change of a host must be larger than 10 %, the diagnosis of the new run says whether it may hide."""
    loud = replace(QUIET, scale=0.05, host_spread=0.01)
    changes = compare_runs(result(healthy), result(simulate(MESH, noise=loud, seed=2, rows=ROWS)))
    assert max(one.smallest for one in changes.seen) > 0.1
    assert changes.notes == ()
