"""What the time, a launch or a single moment explains is a note: a healthy fabric passes, with a fault it does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from analyse_cases import named

from fablint.analyse import diagnose
from fablint.model import Diagnosis, State
from fablint.simulate import Fabric, Noise, SimulatedFabric, SimulatedRow, full_mesh

MESH = full_mesh(6, 6)
HOSTS = len(MESH.hosts)
CALM = Noise(scale=0.006, spike_share=0.0)
ROWS = (SimulatedRow("latency", (8,)), SimulatedRow("bandwidth", (1 << 20,)))
Floats = npt.NDArray[np.float64]
Slowing = Callable[[npt.NDArray[np.int64], Floats], Floats]  # (n, n) round of each pair, its progress -> factors


def measured(slowing: Slowing, *, row: str | None = None, fabric: Fabric = MESH) -> Diagnosis:
    """All pairs once, with the times of both rows, or of one `row`, multiplied."""
    run = SimulatedFabric(fabric, (), CALM, seed=5).measure(None, ROWS)
    rows = []
    for each in run.rows:
        times, number = np.array(each.arrays["time_median"]), np.asarray(each.arrays["round"][0])
        if row in (None, each.name):
            times[0] *= slowing(number, number / number.max())[..., None]
        rows.append(replace(each, arrays={**each.arrays, "time_median": times}))
    return diagnose(replace(run, rows=tuple(rows)), fabric.topology)


def reasons(diagnosis: Diagnosis) -> set[object]:
    return {note.values["reason"] for note in diagnosis.verdict.notes if note.kind == "explained_pairs"}


def slow_host(host: int, factor: float) -> Floats:
    factors = np.ones((HOSTS, HOSTS))
    factors[host] = factors[:, host] = factor
    return factors


def in_rounds(share: float, factor: float) -> Slowing:
    """Some rounds take longer, whatever their pairs."""

    def slowing(number: npt.NDArray[np.int64], _: Floats) -> Floats:
        slow = np.random.default_rng(11).random(int(number.max()) + 1) < share
        return np.where(slow[number], factor, 1.0)

    return slowing


TIMES: dict[str, Slowing] = {
    "rounds": in_rounds(0.12, 1.45),
    "a period": lambda number, progress: np.where((progress > 0.6) & (progress < 0.75), 1.3, 1.0),
    "the last rounds": lambda number, progress: np.where(progress > 0.92, 2.5, 1.0),
    "a drift": lambda number, progress: 1.2 - 0.2 * progress,
}


@pytest.mark.parametrize("times", TIMES)
def test_times_at_which_all_pairs_are_slow_leave_a_pass(times: str) -> None:
    diagnosis = measured(TIMES[times])
    assert diagnosis.verdict.verdict == "pass"
    assert times == "rounds" or {"slow_periods", "drift_of_all"} & {note.kind for note in diagnosis.verdict.notes}


@pytest.mark.parametrize("times", TIMES)
def test_a_slow_host_is_found_beside_times_at_which_all_are_slow(times: str) -> None:
    diagnosis = measured(lambda *when: TIMES[times](*when) * slow_host(16, 1.3))
    assert {name for _, name, _ in named(diagnosis, State.FAULT)} == {"h16"}


def shared(sigma: float, slow: tuple[int, int] | None = None) -> Slowing:
    """What a launch draws for each pair, and both directions share; one pair may take longer."""

    def slowing(number: npt.NDArray[np.int64], _: Floats) -> Floats:
        values = np.random.default_rng(3).standard_normal((HOSTS, HOSTS))
        upper = np.triu(values, 1)
        factors = np.exp(sigma * (upper + upper.T))
        for ends in [slow, slow[::-1]] if slow else []:
            factors[ends] *= 1.8
        return factors

    return slowing


@pytest.mark.parametrize("sigma", [0.02, 0.035])
def test_effects_of_a_launch_on_pairs_leave_a_pass(sigma: float) -> None:
    assert measured(shared(sigma)).verdict.verdict == "pass"


def test_a_pair_far_beyond_the_effects_of_a_launch_is_suspect() -> None:
    assert named(measured(shared(0.03, slow=(4, 29))), State.SUSPECT) == {("route", "h04=h29", None)}


def slow_once(count: int) -> Slowing:
    """Some directions of different pairs, once."""

    def slowing(number: npt.NDArray[np.int64], _: Floats) -> Floats:
        factors = np.ones(number.shape)
        for at in range(count):
            factors[2 * at, 2 * at + 9] = 2.2
        return factors

    return slowing


@pytest.mark.parametrize(("count", "reason"), [(1, "once"), (3, "load")])
def test_few_of_a_thousand_directions_that_were_measured_once_are_a_note(count: int, reason: str) -> None:
    diagnosis = measured(slow_once(count), row="bandwidth")
    assert diagnosis.verdict.verdict == "pass"
    assert reasons(diagnosis) == {reason}


def test_a_slow_direction_of_a_few_hundred_is_suspect() -> None:
    diagnosis = measured(slow_once(1), row="bandwidth", fabric=full_mesh(4, 5))
    assert named(diagnosis, State.SUSPECT) == {("route", "h00>h09", None)}


def test_pairs_slower_by_less_than_the_loss_in_scope_are_a_note_and_by_more_are_suspect() -> None:
    def block(factor: float) -> Slowing:
        def slowing(number: npt.NDArray[np.int64], _: Floats) -> Floats:
            factors = np.ones((HOSTS, HOSTS))
            factors[7, 20] = factors[20, 7] = factor
            return factors

        return slowing

    within, beyond = measured(block(1.08)), measured(block(1.2))
    assert (within.verdict.verdict, reasons(within)) == ("pass", {"scope"})
    assert named(beyond, State.SUSPECT) == {("route", "h07=h20", None)}
