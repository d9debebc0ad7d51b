"""Levels on hosts that share CPUs, as containers of one machine do: small messages go pair by pair."""

from __future__ import annotations

import pytest
from fabrics import dragonfly

from fablint.model import PlanRow, RowSpec, Scope, Slots
from fablint.plan.check.default_rows import SHORTEST_S
from fablint.plan.check.levels import REACH_LEVEL, Level, level_stage, several_each
from fablint.plan.check.plan_input import PlanInput
from fablint.plan.check.rate_adaptation import slowest_seconds
from fablint.plan.check.stages import Stage
from fablint.plan.check.suites import BISECTION, INTRA_NODE, SUITES, SWITCH_PAIRS, between
from fablint.plan.rows.cost import OVERHEAD
from fablint.plan.rows.plan_file import parse_plan

FABRIC = dragonfly(4, 4, 4)
BETWEEN = [between(scope) for scope in (Scope.EDGE, Scope.LOCAL, Scope.GLOBAL)]


def asked(*, shared: bool = True, **more: object) -> PlanInput:
    slots = tuple(Slots(host, 1) for host in FABRIC.host_switch)
    return PlanInput(len(slots), slots, FABRIC, shared_cpus=shared, **more)  # type: ignore[arg-type]


def stage_of(level: Level, request: PlanInput | None = None, rate: float | None = None, budget_s: float = 0.0) -> Stage:
    request = request or asked()
    stage = level_stage(level, request, request.placement(), (), rate, budget_s or None)
    assert stage is not None
    parse_plan(stage.plan.text, request.ranks, "test", stage.texts().__getitem__)
    return stage


def rows(stage: Stage) -> list[tuple[PlanRow, RowSpec]]:
    return [(row, row.spec) for row in stage.plan.rows]


def turns(stage: Stage, order: str) -> float:
    """Budgets of a round that a row uses on average."""
    (rounds,) = stage.rounds.values()
    return sum(map(len, rounds)) / len(rounds) if order == "serial" else 1.0


@pytest.mark.parametrize("level", [*BETWEEN, REACH_LEVEL, BISECTION, SWITCH_PAIRS], ids=lambda level: level.name)
def test_small_messages_go_pair_by_pair_and_streams_side_by_side(level: Level) -> None:
    for _, row in rows(stage_of(level)):
        assert row.order == ("parallel" if row.kernel_info.is_windowed else "serial"), row.kernel


@pytest.mark.parametrize("level", [*BETWEEN, REACH_LEVEL, BISECTION, SWITCH_PAIRS], ids=lambda level: level.name)
def test_hosts_with_cpus_of_their_own_go_side_by_side(level: Level) -> None:
    assert {row.order for _, row in rows(stage_of(level, asked(shared=False)))} == {"parallel"}


def test_ranks_of_a_host_are_measured_as_ever() -> None:
    shared, own = (stage_of(INTRA_NODE, several_each(asked(shared=shared))) for shared in (True, False))
    assert shared.plan.rows == own.plan.rows


def test_oversubscribed_hosts_are_measured_pair_by_pair_whatever_is_sent() -> None:
    for level in BETWEEN:
        found = rows(stage_of(level, asked(oversubscribed=True)))
        assert {row.order for _, row in found} == {"serial"}
        assert all(planned.spec.text.count("--order") == 1 for planned, _ in found)


@pytest.mark.parametrize("level", BETWEEN, ids=lambda level: level.name)
def test_the_predicted_time_is_that_of_every_pair_by_itself(level: Level) -> None:
    stage = stage_of(level)
    (rounds,) = stage.rounds.values()
    for planned, row in rows(stage):
        assert row.budget is not None
        expected = len(rounds) * turns(stage, row.order) * row.budget * OVERHEAD
        assert planned.predicted_s == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("rate", [6.25e6, 1.25e6])
def test_a_slow_network_takes_its_time_in_every_turn(rate: float) -> None:
    for level in BETWEEN:
        stage = stage_of(level, rate=rate)
        (rounds,) = stage.rounds.values()
        for planned, row in rows(stage):
            least = len(rounds) * turns(stage, row.order) * slowest_seconds(row, rate) * OVERHEAD
            assert planned.predicted_s >= least * (1 - 1e-9)


@pytest.mark.parametrize("budget_s", [2.0, 20.0, 100.0])
@pytest.mark.parametrize("level", BETWEEN, ids=lambda level: level.name)
def test_a_budget_is_kept(level: Level, budget_s: float) -> None:
    assert stage_of(level, budget_s=budget_s).plan.predicted_s <= budget_s + 1e-9


@pytest.mark.parametrize("budget_s", [0.0, 20.0, 200.0])
@pytest.mark.parametrize("level", BETWEEN, ids=lambda level: level.name)
def test_small_messages_that_count_for_no_ok_take_little_of_the_time(level: Level, budget_s: float) -> None:
    (small,) = [row.budget for _, row in rows(stage_of(level, budget_s=budget_s)) if row.order == "serial"]
    assert small == SHORTEST_S


@pytest.mark.parametrize("level", BETWEEN, ids=lambda level: level.name)
def test_streams_have_the_rounds_and_the_time_that_they_have_when_all_go_pair_by_pair(level: Level) -> None:
    shared, serial = (stage_of(level, asked(shared=shared, oversubscribed=not shared)) for shared in (True, False))
    assert len(*shared.rounds.values()) >= len(*serial.rounds.values())
    times = [[row.budget for _, row in rows(stage) if row.kernel == "bandwidth"] for stage in (shared, serial)]
    assert times[0] >= times[1]


def test_every_level_of_every_suite_can_be_planned() -> None:
    request = several_each(asked())
    for suite in SUITES.values():
        for level in suite.levels:
            for _, row in rows(stage_of(level, request)):
                small = not row.kernel_info.is_windowed and not level.within_hosts
                assert row.order == ("serial" if small else "parallel")
