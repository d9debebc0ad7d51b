"""The check of one machine: one stage, then follow-up measurements; a launch that fails is the last one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fablint.errors import UsageError
from fablint.model import Run, Slots
from fablint.workflows import programs
from fablint.workflows.check.check_run import CheckOutcome, CheckRun
from fablint.workflows.check.launches import Launches
from fablint.workflows.context import Context

if TYPE_CHECKING:
    from fablint.plan.check.check_loop import Step
    from fablint.plan.check.check_request import CheckRequest
    from fablint.plan.check.stages import Stage
    from fablint.system import System


@dataclass
class LocalCheck(CheckRun):
    """The check of ranks on one machine."""

    def steps(self, _: Run | None) -> Iterable[Step]:
        from fablint.plan.check.check_loop import first_step

        return [first_step(self.launches.request, self._measure)]

    def _measure(self, stage: Stage, _: Run | None) -> tuple[Run, bool]:
        return self.begin(lambda _: stage), not self.launches.error

    def follow_up_request(self, _: Run) -> CheckRequest:
        return self.launches.request


def check_local(context: Context, request: CheckRequest, output: Path) -> CheckOutcome:
    """Check this machine: measure, diagnose, measure follow-ups, report.

    Parameters
    ----------
    context
        Machine, progress, MPI.
    request
        What to measure.
    output
        Run directory to write.

    Returns
    -------
    CheckOutcome
        Also of a run that is not complete: its verdict says so.
    """
    context = programs.with_programs(context, request.media)
    programs.build_first(context)
    return LocalCheck(Launches(context, request, output)).check()


def local_request(system: System, ranks: int) -> CheckRequest:
    """Return what a check of so many ranks on this machine measures. Raises UsageError for fewer than two ranks."""
    from fablint.plan.check.check_request import CheckRequest

    if ranks < 2:
        raise UsageError(f"{ranks} ranks: at least 2 ranks are required", "give --local 2 or more")
    return CheckRequest(ranks, oversubscribed=ranks > len(system.affinity()))


def hosts_request(slots: Sequence[Slots]) -> CheckRequest:
    """Return what a check of several hosts measures. Raises UsageError for fewer than two ranks."""
    from fablint.plan.check.check_request import CheckRequest

    ranks = sum(slot.ranks for slot in slots)
    if ranks < 2:
        raise UsageError(f"{slots[0].host} has one rank: at least 2 ranks are required", "name two or more hosts")
    return CheckRequest(ranks, tuple(slots))
