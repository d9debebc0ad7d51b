"""The loop of a check: planned steps, then follow-up measurements until every component is decided.

Pure: the functions that measure and diagnose are parameters, so that one loop checks one machine, a cluster and a
simulated fabric.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass

from fablint.model import ComponentRef, Diagnosis, FollowUp, Run
from fablint.plan.check.plan_input import PlanInput
from fablint.plan.check.stages import MOST_ROUTES, Stage, first_stage, next_stage
from fablint.plan.rows.run_rows import planned_specs

MANY_RANKS = 4096
MORE_ROUNDS, MORE_ROUNDS_OF_MANY = 6, 16  # of follow-ups, where no budget limits them

# Adds a stage to a run (None: starts a run); returns all of the run, and whether further launches are possible.
Measure = Callable[[Stage, Run | None], tuple[Run, bool]]
# Measures a planned step of a check, starting from the run so far; returns the same as `Measure`. The run stays None
# where the step measured into another run.
Step = Callable[[Run | None], tuple[Run | None, bool]]
# Adds a follow-up to a run; returns the same as `Measure`.
MeasureFollowUp = Callable[[Stage, Run], tuple[Run, bool]]
Diagnose = Callable[[Run], Diagnosis]
# Announces a follow-up before it is measured: its stage, what it decides, seconds left of the budget (None: no
# budget).
Announce = Callable[[Stage, Sequence[FollowUp], float | None], None]


@dataclass(frozen=True)
class LoopResult:
    """Run and diagnosis after the last launch.

    Attributes
    ----------
    undecided
        The follow-ups that stay open.
    outstanding
        Findings, routes and paths whose pairs were to be measured once more, and were not.
    ended
        Why; empty where nothing is left, or where a launch failed.
    """

    run: Run
    diagnosis: Diagnosis
    undecided: tuple[FollowUp, ...] = ()
    outstanding: tuple[FollowUp, ...] = ()
    ended: str = ""


@dataclass(frozen=True)
class CheckLoop:
    """What the loop of a check is made of.

    Attributes
    ----------
    steps
        The planned steps, in order. Each is called, also after one that ended the launches.
    follow_up_request
        Returns what follow-up measurements of a run are planned with.
    measure
        Measures a follow-up into the run.
    diagnose
        Diagnoses a run.
    spent_s
        Returns the seconds of the budget that are spent.
    announce
        Announces each follow-up.
    """

    steps: Iterable[Step]
    follow_up_request: Callable[[Run], PlanInput]
    measure: MeasureFollowUp
    diagnose: Diagnose
    spent_s: Callable[[], float]
    announce: Announce = lambda *_: None

    def run(self, run: Run | None = None) -> LoopResult:
        """Measure all steps; then measure follow-ups until every component is decided or the budget is spent.

        Parameters
        ----------
        run
            The run of a check that is resumed.
        """
        is_going = True
        for step in self.steps:
            run, is_possible = step(run)
            is_going = is_going and is_possible
        assert run is not None  # one of the steps measures into the run
        if is_going:
            return self.follow_up(run)
        diagnosis = self.diagnose(run)
        return LoopResult(run, diagnosis, _open_follow_ups(diagnosis))

    def follow_up(self, run: Run) -> LoopResult:
        """Measure what a run leaves undecided, until the budget (without one: the planned rounds) ends."""
        request = self.follow_up_request(run)
        diagnosis, is_going = self.diagnose(run), True
        repeated: set[ComponentRef] = set()  # components whose pairs were measured once more
        rounds_left = _most_rounds(request)
        before = _follow_ups_of(run)
        for number in range(before + 1, before + 1000):
            follow_ups = _open_follow_ups(diagnosis)
            retests, routes, distances = _to_repeat(diagnosis, repeated)
            if not is_going or not (follow_ups or retests or routes or distances):
                break
            left_s = math.inf if request.budget_s is None else request.budget_s - self.spent_s()
            again = (routes, distances)
            stage = next_stage(request, run, [*retests, *follow_ups], number, left_s, rounds_left, again)
            if stage is None:
                break
            retested = retests if rounds_left > 0 else ()
            repeated |= {one.component for one in (*retested, *routes[:MOST_ROUTES], *distances)}
            rounds_left -= len(next(iter(stage.rounds.values()))) - stage.again
            self.announce(stage, [*retested, *follow_ups, *routes, *distances], None if left_s == math.inf else left_s)
            run, is_going = self.measure(stage, run)
            diagnosis = self.diagnose(run)
        undecided = _open_follow_ups(diagnosis)
        outstanding = tuple(one for kind in _to_repeat(diagnosis, repeated) for one in kind)
        ended = "the budget ended" if request.budget_s is not None else "the planned rounds ended"
        is_early = bool(undecided or outstanding) and is_going
        return LoopResult(run, diagnosis, undecided, outstanding, ended if is_early else "")


def first_step(request: PlanInput, measure: Measure) -> Step:
    """Return the step that measures the first stage of a request. No follow-up is possible after a matrix of all pairs.

    Where all pairs are measured, no healthy pair is left to compare a suspect with.
    """

    def step(_: Run | None) -> tuple[Run, bool]:
        stage = first_stage(request)
        run, is_going = measure(stage, None)
        return run, is_going and bool(stage.rounds)

    return step


def _follow_ups_of(run: Run) -> int:
    """Return the number of the last follow-up of a run: a check that is resumed continues to count."""
    return len({spec.rounds_file for spec in planned_specs(run).values() if spec.purpose == "follow_up"})


def _open_follow_ups(diagnosis: Diagnosis) -> tuple[FollowUp, ...]:
    return tuple(follow_up for follow_up in diagnosis.follow_ups if follow_up.open)


def _to_repeat(diagnosis: Diagnosis, repeated: Set[ComponentRef]) -> tuple[list[FollowUp], ...]:
    """Return retests of findings, routes and paths whose pairs were not measured once more."""
    return tuple(
        [one for one in kind if one.open and one.component not in repeated]
        for kind in (diagnosis.retests, diagnosis.routes, diagnosis.distances)
    )


def _most_rounds(request: PlanInput) -> int:
    if request.budget_s is not None:
        return 1000
    return MORE_ROUNDS if request.ranks <= MANY_RANKS else MORE_ROUNDS_OF_MANY
