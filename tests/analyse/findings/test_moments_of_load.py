"""A direction that was slow in its only measurement is never SUSPECT: a moment of load looks the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from analyse_cases import named

from fablint.analyse import diagnose
from fablint.model import Diagnosis, State
from fablint.plan.schedule.stratified import stratified_rounds
from fablint.simulate import Noise, SimulatedFabric, SimulatedRow, dragonfly, full_mesh
from fablint.simulate.rounds import all_rounds
from fablint.topology.routed_placement import RoutedPlacement
from fact_cases import attributes_of, run_facts, with_facts
from finding_cases import note_texts

MESH = full_mesh(4, 4)
CALM = Noise(scale=0.01, spike_share=0.0)
ROW = SimulatedRow("bandwidth", (1 << 20,))
ROUTE, OTHERS = (2, 13), [(0, 5), (7, 9), (14, 3), (11, 6)]
ROUTE_FOUND = {("route", "h02>h13", None)}


def measured(
    repeats: int, *moments: tuple[int, int], always: Sequence[tuple[int, int]] = (), without: str = ""
) -> Diagnosis:
    """All pairs in each repeat, `without` an attribute of the run; some slow in the first one only, some in all."""
    rounds = [pairs for _ in range(repeats) for pairs in all_rounds(len(MESH.hosts))]
    run = SimulatedFabric(MESH, (), CALM, seed=1).measure(rounds, (ROW,))
    row = run.row("bandwidth")
    times = np.array(row.arrays["time_median"])
    for src, dst in [*moments, *always]:
        columns = np.flatnonzero(row.arrays["dst"][src] == dst)
        times[src, columns if (src, dst) in always else columns[:1]] *= 1.6
    slowed = replace(row, arrays={**row.arrays, "time_median": times})
    kept = {name: value for name, value in attributes_of(run).items() if name != without}
    sent = replace(slowed, facts=with_facts(row, transport="mpi").facts)
    return diagnose(replace(run, facts=run_facts(kept), rows=(sent,)), MESH.topology)


def test_the_only_slow_measurement_of_a_calm_run_is_not_judged_and_measured_again() -> None:
    diagnosis = measured(1, ROUTE)
    assert (named(diagnosis, State.SUSPECT), named(diagnosis, State.NOT_JUDGED)) == (set(), ROUTE_FOUND)
    assert diagnosis.verdict.verdict == "incomplete"
    assert [follow_up.name for follow_up in diagnosis.routes if follow_up.open] == ["h02>h13"]


def test_several_slow_measurements_are_a_note_and_are_measured_again() -> None:
    diagnosis = measured(1, ROUTE, *OTHERS)
    assert named(diagnosis, State.SUSPECT) == set()
    assert diagnosis.verdict.verdict == "pass"
    (note,) = [note for note in note_texts(diagnosis.verdict) if "moments of load" in note]
    assert "5 directions" in note
    assert "h02>h13 -3" in note
    assert {follow_up.name for follow_up in diagnosis.routes if follow_up.open} == {
        f"h{a:02}>h{b:02}" for a, b in [ROUTE, *OTHERS]
    }


@pytest.mark.parametrize("simulated", [True, False])
def test_the_note_refers_to_a_check_only_where_fablint_can_measure(simulated: bool) -> None:
    notes = note_texts(measured(1, ROUTE, *OTHERS, without="" if simulated else "simulated").verdict)
    (note,) = [note for note in notes if "moments of load" in note]
    assert note.endswith("that this run has" if simulated else "fablint check measures these pairs again")


@pytest.mark.parametrize("repeats", [2, 3])
def test_a_direction_that_was_slow_each_time_is_suspect_beside_moments_of_load(repeats: int) -> None:
    assert named(measured(repeats, *OTHERS, always=[ROUTE]), State.SUSPECT) == ROUTE_FOUND


def test_two_measurements_do_not_decide_where_moments_are_frequent() -> None:
    """40 of 480 measurements are moments: 240 x (40 / 480)^2 directions, more than one, are slow twice by chance."""
    pairs = [(a, b) for a in range(16) for b in range(16) if (b - a) % 16 in (1, 6, 9)][:40]
    assert ROUTE not in pairs
    assert named(measured(2, *pairs, always=[ROUTE]), State.SUSPECT) == set()


@pytest.mark.parametrize("seed", [1, 7])
def test_spikes_of_a_dragonfly_report_no_healthy_route(seed: int) -> None:
    """1 % of the measurements have a spike: five and ten of them are separated by a gap from the other noise."""
    fabric = dragonfly(9, 4, 2)
    rounds = stratified_rounds(RoutedPlacement.on_routes(list(fabric.hosts), fabric.topology), seed)
    run = SimulatedFabric(fabric, (), Noise(), seed=seed).measure(rounds, (replace(ROW, histogram=True),))
    assert named(diagnose(run, fabric.topology), State.SUSPECT) == set()
