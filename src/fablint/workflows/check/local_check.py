"""The check of one machine: one stage, then follow-up measurements; a launch that fails is the last one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fablint.errors import UsageError
from fablint.model import Run, Slots
from fablint.workflows import programs, run_files
from fablint.workflows.check.check_run import CheckOutcome, CheckRun
from fablint.workflows.check.launches import Launches
from fablint.workflows.context import Context

if TYPE_CHECKING:
    from fablint.plan.check.check_loop import Step
    from fablint.plan.check.plan_input import PlanInput
    from fablint.plan.check.stages import Stage
    from fablint.system import System
    from fablint.workflows.check.request import CheckRequest


@dataclass
class LocalCheck(CheckRun):
    """The check of ranks on one machine."""

    def steps(self, _: Run | None) -> Iterable[Step]:
        from fablint.plan.check.check_loop import first_step

        return [first_step(self.launches.request, self._measure)]

    def _measure(self, stage: Stage, _: Run | None) -> tuple[Run, bool]:
        return self.begin(lambda _: stage), not self.launches.error

    def follow_up_request(self, _: Run) -> PlanInput:
        return self.launches.request


def check_local(context: Context, request: CheckRequest, output: Path) -> CheckOutcome:
    """Check this machine: measure, diagnose, measure follow-ups, report.

    Parameters
    ----------
    context
        Machine, progress, MPI.
    request
        Number of ranks, and what to measure.
    output
        Run directory to write.

    Returns
    -------
    CheckOutcome
        Also of a run that is not complete: its verdict says so.
    """
    ranks = replace(
        local_input(context.system, request.ranks or 0),
        topology=run_files.load_topology(request.topology),
        full=request.full,
        budget_s=request.budget,
        media=request.media,
    )
    context = programs.with_programs(context, request.media)
    programs.build_first(context)
    return LocalCheck(Launches(context, ranks, output)).check()


def local_input(system: System, ranks: int) -> PlanInput:
    """Return what a check of so many ranks on this machine measures. Raises UsageError for fewer than two ranks."""
    from fablint.plan.check.plan_input import PlanInput

    if ranks < 2:
        raise UsageError(f"{ranks} ranks: at least 2 ranks are required", "give --local 2 or more")
    return PlanInput(ranks, oversubscribed=ranks > len(system.affinity()))


def hosts_input(slots: Sequence[Slots]) -> PlanInput:
    """Return what a check of several hosts measures. Raises UsageError for fewer than two ranks."""
    from fablint.plan.check.plan_input import PlanInput

    ranks = sum(slot.ranks for slot in slots)
    if ranks < 2:
        raise UsageError(f"{slots[0].host} has one rank: at least 2 ranks are required", "name two or more hosts")
    return PlanInput(ranks, tuple(slots))
