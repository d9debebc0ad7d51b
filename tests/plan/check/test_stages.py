"""The stages of a check: what comes first, what follows, and when it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from fabrics import dragonfly, fat_tree, two_level
from simulated_check import SimulatedCheck, check_loop

from fablint.model import Diagnosis, FollowUp, Medium, RowSpec, Run, Scope, Slots, Topology, Verdict
from fablint.plan.check.levels import level_stage
from fablint.plan.check.plan_input import PlanInput
from fablint.plan.check.stages import Stage, first_stage, suspects_of, timed_stage
from fablint.plan.check.suites import between
from fablint.plan.rows.plan_file import parse_plan
from fablint.simulate import Fault, fat_tree as simulated_fat_tree
from fact_cases import run_facts
from finding_cases import component, ref


def asked(topology: Topology | int, **more) -> PlanInput:
    hosts = [f"h{i}" for i in range(topology)] if isinstance(topology, int) else list(topology.host_switch)
    known = None if isinstance(topology, int) else topology
    return PlanInput(len(hosts), tuple(Slots(host, 1) for host in hosts), known, **more)


def rows(stage: Stage) -> list[RowSpec]:
    return [row.spec for row in stage.plan.rows]


def test_many_hosts_are_measured_in_a_few_rounds():
    stage = first_stage(asked(fat_tree(8, 8, 8)))
    assert [(row.kernel, row.pattern, row.order, row.name) for row in rows(stage)] == [
        ("latency", "rounds", "parallel", "latency"),
        ("bandwidth", "rounds", "parallel", "bandwidth"),
    ]
    assert [row.rounds for row in stage.plan.rows] == [24, 24]
    assert {row.rounds_file for row in rows(stage)} == set(stage.texts()) == {"rounds/stratified.txt"}
    assert stage.plan.slots[-1].host == "h511"


def test_the_plan_is_what_the_engine_would_be_given():
    stage = first_stage(asked(two_level()))
    parsed = parse_plan(stage.plan.text, 64, "test", stage.texts().__getitem__)
    assert parsed.rows == stage.plan.rows


@pytest.mark.parametrize(
    ("request_", "pattern", "rounds"),
    [
        (asked(24), "rounds", 23 * 2),
        (asked(26), "rounds", 24),
        (asked(64, full=True), "all-pairs", 63 * 5),
        (PlanInput(64), "all-pairs", 63),
        (PlanInput(4, (Slots("a", 2), Slots("b", 2))), "rounds", 3 * 5),
    ],
)
def test_all_pairs_where_that_is_not_more_or_asked_for(request_, pattern, rounds):
    stage = first_stage(request_)
    assert {row.pattern for row in rows(stage)} == {pattern}
    assert stage.plan.rows[0].rounds >= rounds
    if pattern == "all-pairs":
        assert stage.rounds == {}


def test_all_pairs_that_are_spelt_out_are_all():
    stage = first_stage(asked(9))
    (rounds,) = stage.rounds.values()
    pairs, counts = np.unique(np.sort(np.concatenate(rounds), axis=1), axis=0, return_counts=True)
    assert len(pairs) == 9 * 8 / 2
    assert set(counts.tolist()) == {len(rounds) // 9}


def test_oversubscribed_hosts_are_measured_one_pair_at_a_time():
    stage = first_stage(asked(64, oversubscribed=True))
    assert {row.order for row in rows(stage)} == {"serial"}


def test_adaptive_routing_is_measured_message_by_message():
    adaptive = dragonfly(kind="adaptive")
    assert all(row.histogram for full in (False, True) for row in rows(first_stage(asked(adaptive, full=full))))
    assert not any(row.histogram for row in rows(first_stage(asked(dragonfly()))))


@pytest.mark.parametrize("budget_s", [0.3, 1.0, 10.0, 600.0])
def test_the_first_rounds_leave_half_of_the_budget(budget_s):
    stage = first_stage(asked(fat_tree(8, 8, 8), budget_s=budget_s))
    fewest = 4 * 2 * 0.01 * 1.1
    assert stage.plan.predicted_s <= max(budget_s / 2, fewest) + 1e-9
    assert stage.plan.rows[0].rounds == (24 if budget_s >= 10 else pytest.approx(min(24, budget_s / 0.044), abs=3))


def test_few_pairs_are_measured_alone_and_many_side_by_side():
    few, many = [np.arange(8).reshape(-1, 2)], [np.arange(512).reshape(-1, 2)] * 3
    orders = [{row.order for row in rows(timed_stage("x", some, asked(512), 1e9))} for some in (few, many)]
    assert orders == [{"serial"}, {"parallel"}]
    assert timed_stage("x", many, asked(512), 0.01) is None
    assert timed_stage("x", few, asked(512), 3.0).plan.predicted_s <= 3.0


def test_suspects_are_the_ranks_that_most_pairs_have_in_common():
    one = FollowUp(component("host", "h3"), np.array([[3, 5], [3, 6], [7, 3]]))
    link = FollowUp(component("link", "a>b"), np.array([[0, 9], [1, 8], [2, 10]]))
    assert suspects_of([one, link]) == [3]


# ------------------------------------------------------------------------------------------------ the loop

VERDICT = {"verdict": "pass", "exit_code": 0, "findings": ()}
COVERAGE = {"pairs_planned": 1, "pairs_measured": 1, "hosts": 1, "hosts_judged": 1}
FOLLOW_UP = FollowUp(component("host", "h0"), np.array([(0, partner) for partner in range(1, 25)]))


def diagnosis(*follow_ups: FollowUp, retests: tuple[FollowUp, ...] = ()) -> Diagnosis:
    verdict = Verdict.model_validate({**VERDICT, "coverage": COVERAGE})
    return Diagnosis(verdict, (), follow_ups=follow_ups, retests=retests)


class Measured:
    """Keeps the stages that were asked for; time passes as they predict."""

    def __init__(self, ranks: int, fails_at: int = 0) -> None:
        self.stages: list[Stage] = []
        self.fails_at = fails_at
        self._run = Run(
            None, run_facts({"hosts": [f"h{i}" for i in range(ranks)], "rank_host": list(range(ranks))}), ()
        )

    def __call__(self, stage: Stage, run: Run | None) -> tuple[Run, bool]:
        assert (run is None) == (not self.stages)
        self.stages.append(stage)
        return self._run, len(self.stages) != self.fails_at

    def seconds(self) -> float:
        return sum(stage.plan.predicted_s for stage in self.stages)

    @property
    def names(self) -> list[str]:
        return [str(rows(stage)[0].name) for stage in self.stages]


def judges(*diagnoses: Diagnosis) -> Callable[[Run], Diagnosis]:
    """One after the other; the last one for good."""
    left = list(diagnoses)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def test_it_ends_when_nothing_is_open():
    measured = Measured(64)
    done = check_loop(asked(64), measured, judges(diagnosis(FOLLOW_UP), diagnosis()), measured.seconds)
    assert measured.names == ["latency", "latency-follow-up-1"]
    assert (done.undecided, done.ended) == ((), "")


def test_without_a_budget_it_ends_after_a_few_rounds():
    measured = Measured(64)
    done = check_loop(asked(64), measured, judges(diagnosis(FOLLOW_UP)), measured.seconds)
    assert sum(stage.plan.rows[0].rounds for stage in measured.stages) == 24 + 6
    assert [follow_up.name for follow_up in done.undecided] == ["h0"]
    assert done.ended == "the planned rounds ended"


@pytest.mark.parametrize("budget_s", [5.0, 30.0])
def test_a_budget_is_used_and_kept(budget_s):
    measured = Measured(64)
    done = check_loop(asked(64, budget_s=budget_s), measured, judges(diagnosis(FOLLOW_UP)), measured.seconds)
    assert 0.9 * budget_s < measured.seconds() <= budget_s
    assert done.ended == "the budget ended"


def test_what_is_at_fault_is_measured_alone_once():
    found = diagnosis(retests=(FOLLOW_UP,))
    measured = Measured(64)
    done = check_loop(asked(64, budget_s=600.0), measured, judges(found), measured.seconds)
    assert measured.names == ["latency", "latency-follow-up-1"]
    assert rows(measured.stages[1])[0].order == "serial"
    assert done.ended == ""


@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_stage_that_failed_is_the_last(fails_at):
    measured = Measured(64, fails_at)
    done = check_loop(asked(64), measured, judges(diagnosis(FOLLOW_UP)), measured.seconds)
    assert len(measured.stages) == fails_at
    assert (len(done.undecided), done.ended) == (1, "")


def test_after_a_matrix_nothing_is_asked():
    for request in (asked(64, full=True), replace(asked(64), slots=())):
        measured = Measured(64)
        check_loop(request, measured, judges(diagnosis(FOLLOW_UP)), measured.seconds)
        assert len(measured.stages) == 1


# ------------------------------------------------------------------------------------------------ simulated fabrics


def faults_of(done) -> list[tuple[str, str]]:
    return [
        (finding.component, finding.name) for finding in done.diagnosis.verdict.findings if finding.state == "FAULT"
    ]


@pytest.mark.parametrize("arity", [4, 8])
def test_a_healthy_fabric_is_measured_once_and_passes(arity):
    checks = [SimulatedCheck(simulated_fat_tree(arity, 3), seed=seed) for seed in range(3)]
    assert {check.run().diagnosis.verdict.verdict for check in checks} == {"pass"}
    assert sum(len(check.stages) > 1 for check in checks) <= 1  # a false candidate is measured again now and then


def test_a_slow_host_and_a_slow_link_are_named_and_measured_alone():
    fabric = simulated_fat_tree(8, 3)
    cable = fabric.topology.cables[0]
    link = f"{cable.a}>{cable.b}"
    faults = (
        Fault(ref("host", "h100"), bandwidth_factor=0.8),
        Fault(ref("link", cable.a, cable.b), bandwidth_factor=0.8),
    )
    check = SimulatedCheck(fabric, faults)
    done = check.run()
    assert sorted(faults_of(done)) == [("host", "h100"), ("link", link)]
    assert sum(check.rounds()) <= 30
    assert {row.order for stage in check.stages[1:] for row in rows(stage)} == {"serial"}


def test_several_transports_share_the_rounds_and_the_time():
    media = (Medium(), Medium("tcp", device="hsn0"))
    alone, both = (first_stage(asked(9, budget_s=10, media=each)) for each in (media[:1], media))
    assert [row.name for row in rows(both)] == ["latency-mpi", "latency-tcp", "bandwidth-mpi", "bandwidth-tcp"]
    assert [row.medium for row in rows(both)] == [*media, *media]
    assert both.plan.predicted_s == pytest.approx(alone.plan.predicted_s, rel=0.2)
    assert len({row.rounds_file for row in rows(both)}) == 1


def test_levels_are_measured_with_the_messages_of_the_slowest_transport():
    request = asked(two_level(), media=(Medium("tcp"), Medium("ucx")))
    stage = level_stage(between(Scope.EDGE), request, request.placement(), rate=6e6)
    assert stage is not None
    assert [row.name for row in rows(stage)] == [
        *("edge-latency-tcp", "edge-latency-ucx", "edge-bandwidth-tcp", "edge-bandwidth-ucx")
    ]
    assert {row.sizes for row in rows(stage)[2:]} == {(1 << 16,)}
