"""Follow-up measurements of what a run leaves undecided: of which hosts, how often, and until when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from fablint.model import Diagnosis, FollowUp, RowSpec, Run, Slots, Verdict
from fablint.plan.check.check_loop import CheckLoop, LoopResult
from fablint.plan.check.plan_input import PlanInput
from fablint.plan.check.stages import MOST_ROUTES, ROUTE_REPEATS, Stage
from fact_cases import run_facts
from finding_cases import component

HOSTS = 64
PARTNERS = {rank: np.array([(rank, other) for other in range(HOSTS) if other != rank]) for rank in (0, 20, 40)}
VERDICT = {
    "verdict": "pass",
    "exit_code": 0,
    "findings": (),
    "coverage": {"pairs_planned": 1, "pairs_measured": 1, "hosts": 1, "hosts_judged": 1},
}


def about_host(rank: int) -> FollowUp:
    return FollowUp(component("host", f"h{rank}"), PARTNERS[rank])


def about_route(a: int, b: int) -> FollowUp:
    return FollowUp(component("route", f"h{a}=h{b}"), np.array([(a, b), (b, a)]))


def says(
    follow_ups: Sequence[FollowUp] = (), retests: Sequence[FollowUp] = (), routes: Sequence[FollowUp] = ()
) -> Diagnosis:
    verdict = Verdict.model_validate(VERDICT)
    return Diagnosis(verdict, (), follow_ups=tuple(follow_ups), retests=tuple(retests), routes=tuple(routes))


def asked(hosts: int = HOSTS, **more: float) -> PlanInput:
    slots = tuple(Slots(f"h{number}", 1) for number in range(hosts))
    return PlanInput(hosts, slots, None, **more)  # type: ignore[arg-type]


@dataclass
class FakeFabric:
    """Keeps the stages that it should measure; time passes as they predict."""

    asked: PlanInput
    fails_at: int = 0
    stages: list[Stage] = field(default_factory=list)

    def __call__(self, stage: Stage, run: Run | None) -> tuple[Run, bool]:
        assert run is not None
        self.stages.append(stage)
        return run, len(self.stages) != self.fails_at

    def again(self, judge: Callable[[Run], Diagnosis]) -> LoopResult:
        hosts = [slot.host for slot in self.asked.slots]
        run = Run(None, run_facts({"hosts": hosts, "rank_host": list(range(len(hosts)))}), ())
        return self.loop(judge, self.spent_s).follow_up(run)

    def loop(self, judge: Callable[[Run], Diagnosis], spent_s: Callable[[], float]) -> CheckLoop:
        return CheckLoop((), lambda _: self.asked, self, judge, spent_s)

    def spent_s(self) -> float:
        return sum(stage.plan.predicted_s for stage in self.stages)

    def met(self, number: int) -> Counter[tuple[int, int]]:
        """How often each two ranks meet in a stage."""
        (rounds,) = self.stages[number].rounds.values()
        return Counter((min(pair), max(pair)) for pair in np.concatenate(rounds).tolist())

    def rounds(self) -> list[int]:
        return [stage.plan.rows[0].rounds for stage in self.stages]


def in_turn(*diagnoses: Diagnosis) -> Callable[[Run], Diagnosis]:
    """One after the other; the last one for good."""
    left = list(diagnoses)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def test_where_nothing_is_open_nothing_is_measured() -> None:
    fabric = FakeFabric(asked())
    done = fabric.again(in_turn(says()))
    assert (fabric.stages, done.undecided, done.ended) == ([], (), "")


# ------------------------------------------------------------------------------------------------ routes


def test_a_route_is_measured_seven_times_once() -> None:
    fabric = FakeFabric(asked())
    fabric.again(in_turn(says(routes=[about_route(3, 9)])))
    assert len(fabric.stages) == 1
    assert ROUTE_REPEATS == 7
    assert fabric.rounds() == [7]
    met = fabric.met(0)
    assert met[3, 9] == 7
    assert max(count for pair, count in met.items() if pair != (3, 9)) == 1  # controls are others each time
    (file,) = fabric.stages[0].texts()
    assert file == "rounds/follow-up-1.txt"


def test_in_each_of_its_rounds_healthy_pairs_are_measured_beside_it() -> None:
    fabric = FakeFabric(asked())
    fabric.again(in_turn(says(routes=[about_route(3, 9)])))
    (rounds,) = fabric.stages[0].rounds.values()
    for pairs in rounds:
        assert np.unique(pairs).size == pairs.size > 2
        beside = [pair for pair in pairs.tolist() if pair != [3, 9]]
        assert not {3, 9} & {rank for pair in beside for rank in pair}


def test_routes_with_an_end_in_common_have_rounds_of_their_own() -> None:
    fabric = FakeFabric(asked())
    routes = [about_route(3, 9), about_route(3, 12), about_route(20, 21)]
    fabric.again(in_turn(says(routes=routes)))
    assert fabric.rounds() == [2 * ROUTE_REPEATS]
    assert [fabric.met(0)[pair] for pair in ((3, 9), (3, 12), (20, 21))] == [7, 7, 7]


def test_another_route_that_shows_up_later_is_asked_as_well() -> None:
    fabric = FakeFabric(asked())
    one, other = about_route(3, 9), about_route(20, 21)
    fabric.again(in_turn(says(routes=[one]), says(routes=[one, other]), says(routes=[one, other])))
    assert [fabric.met(number)[pair] for number, pair in ((0, (3, 9)), (1, (20, 21)), (1, (3, 9)))] == [7, 7, 0]
    assert len(fabric.stages) == 2


def test_so_many_slow_pairs_are_not_all_asked_at_once() -> None:
    fabric = FakeFabric(asked(200))
    fabric.again(in_turn(says(routes=[about_route(rank, rank + 100) for rank in range(50)]), says()))
    asked_now = [pair for pair, count in fabric.met(0).items() if count >= ROUTE_REPEATS]
    assert len(asked_now) == MOST_ROUTES == 32


def test_a_route_does_not_leave_the_run_undecided() -> None:
    fabric = FakeFabric(asked())
    done = fabric.again(in_turn(says(routes=[about_route(3, 9)])))
    assert (done.undecided, done.ended) == ((), "")


def test_hosts_and_routes_are_asked_in_one_launch() -> None:
    fabric = FakeFabric(asked())
    fabric.again(in_turn(says([about_host(0)], routes=[about_route(20, 21)]), says()))
    assert len(fabric.stages) == 1
    met = fabric.met(0)
    assert met[20, 21] == 7
    assert sum(0 in pair for pair in met) >= 3


# ------------------------------------------------------------------------------------------------ the end


@pytest.mark.parametrize("kind", ["retests", "routes"])
def test_a_retest_or_a_route_is_measured_again_once(kind: str) -> None:
    fabric = FakeFabric(asked())
    fabric.again(in_turn(says(**{kind: [about_host(0)]})))
    assert len(fabric.stages) == 1


def test_follow_ups_are_measured_until_none_is_undecided() -> None:
    fabric = FakeFabric(asked())
    done = fabric.again(in_turn(says([about_host(0), about_host(20)]), says([about_host(20)]), says()))
    assert [list(stage.texts()) for stage in fabric.stages] == [["rounds/follow-up-1.txt"], ["rounds/follow-up-2.txt"]]
    assert (done.undecided, done.ended) == ((), "")


def test_without_a_budget_the_rounds_end() -> None:
    fabric = FakeFabric(asked())
    done = fabric.again(in_turn(says([about_host(0)])))
    assert sum(fabric.rounds()) == 6
    assert [follow_up.name for follow_up in done.undecided] == ["h0"]
    assert done.ended == "the planned rounds ended"


def test_a_follow_up_without_pairs_is_not_measured() -> None:
    fabric = FakeFabric(asked())
    empty = FollowUp(component("host", "h0"), np.zeros((0, 2), dtype=np.int32))
    assert fabric.again(in_turn(says([empty], [empty], [empty]))).undecided == ()
    assert fabric.stages == []


@pytest.mark.parametrize("budget_s", [3.0, 20.0])
def test_a_budget_is_used_and_kept(budget_s: float) -> None:
    fabric = FakeFabric(asked(budget_s=budget_s))
    done = fabric.again(in_turn(says([about_host(0)], routes=[about_route(20, 21)])))
    assert 0.8 * budget_s < fabric.spent_s() <= budget_s
    assert fabric.met(0)[20, 21] == 7
    assert sum(fabric.met(number)[20, 21] for number in range(1, len(fabric.stages))) <= len(fabric.stages) - 1
    assert done.ended == "the budget ended"


def test_what_was_spent_before_counts() -> None:
    fabric = FakeFabric(asked(budget_s=10.0))
    run = Run(None, run_facts({"hosts": [f"h{rank}" for rank in range(HOSTS)], "rank_host": list(range(HOSTS))}), ())
    done = fabric.loop(in_turn(says([about_host(0)])), lambda: 10.0).follow_up(run)
    assert fabric.stages == []
    assert [follow_up.name for follow_up in done.undecided] == ["h0"]
    assert done.ended == "the budget ended"


@pytest.mark.parametrize("kind", ["retests", "routes"])
def test_a_budget_that_ends_before_a_retest_leaves_it_outstanding(kind: str) -> None:
    fabric = FakeFabric(asked(budget_s=10.0))
    run = Run(None, run_facts({"hosts": [f"h{rank}" for rank in range(HOSTS)], "rank_host": list(range(HOSTS))}), ())
    done = fabric.loop(in_turn(says(**{kind: [about_route(3, 9)]})), lambda: 10.0).follow_up(run)
    assert fabric.stages == []
    assert ([one.name for one in done.outstanding], done.undecided, done.ended) == (["h3=h9"], (), "the budget ended")


def test_a_retest_that_the_rounds_have_no_room_for_stays_outstanding() -> None:
    fabric = FakeFabric(asked())
    one, other = about_route(3, 9), about_route(20, 21)
    late = says(retests=[about_host(40)], routes=[one, other])
    done = fabric.again(in_turn(says([about_host(0)], routes=[one]), says([about_host(0)]), late))
    assert fabric.met(len(fabric.stages) - 1)[20, 21] == ROUTE_REPEATS
    assert [follow_up.name for follow_up in done.outstanding] == ["h40"]
    assert done.ended == "the planned rounds ended"


def test_a_launch_that_failed_is_the_last() -> None:
    fabric = FakeFabric(asked(), fails_at=1)
    done = fabric.again(in_turn(says([about_host(0)], routes=[about_route(20, 21)])))
    assert len(fabric.stages) == 1
    assert ([follow_up.name for follow_up in done.undecided], done.ended) == (["h0"], "")


def test_rows_of_a_follow_up_have_the_kernels_of_the_request() -> None:
    specs = (RowSpec("latency", sizes=(8,)), RowSpec("bandwidth", sizes=(64 << 10,), window=4, warmup=(1, 1)))
    fabric = FakeFabric(PlanInput(HOSTS, asked().slots, rows=specs))
    fabric.again(in_turn(says(routes=[about_route(3, 9)])))
    rows = [row.spec for row in fabric.stages[0].plan.rows]
    assert [row.name for row in rows] == ["latency-follow-up-1", "bandwidth-follow-up-1"]
    assert [row.sizes for row in rows] == [(8,), (64 << 10,)]


def test_a_slow_pair_leaves_the_rounds_of_the_follow_ups() -> None:
    fabric = FakeFabric(asked())
    done = fabric.again(in_turn(says(routes=[about_route(20, 21)]), says([about_host(0)]), says()))
    assert len(fabric.stages) == 2
    assert done.undecided == ()
