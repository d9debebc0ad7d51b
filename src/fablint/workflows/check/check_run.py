"""The state machine of a check, of one machine as well as of a cluster.

    planned steps -> follow-up measurements -> final diagnosis -> report

A launch that fails is handed to the recovery of `launches`: on one machine there is none, on a cluster faulty hosts are
excluded and the others are launched again. Where no further launch is possible, what was measured is diagnosed and
reported, and the outcome has an `error`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fablint.errors import INTERRUPTED, FullDiskError, IncompleteError, StoppedError, UsageError
from fablint.model import Diagnosis, Note, Run
from fablint.system import DISK_FULL
from fablint.text import notes as noted
from fablint.workflows import analysis, measurement, run_files, run_formats
from fablint.workflows.check.announcements import Announcements
from fablint.workflows.check.launches import Launches
from fablint.workflows.context import Context

if TYPE_CHECKING:
    from fablint.plan.check.check_loop import LoopResult, Step
    from fablint.plan.check.plan_input import PlanInput
    from fablint.plan.check.stages import Stage
    from fablint.workflows.measurement import MeasurementResult

_SHOWN = 8  # undecided components that are named
_PATHS_SHOWN = 4


@dataclass(frozen=True)
class CheckOutcome:
    """The run of a check, its diagnosis, and the page of its report."""

    run: Run
    diagnosis: Diagnosis
    page: Path | None  # None: it could not be written
    error: str = ""  # why not everything was measured or written
    exit_code: int | None = None  # of a check that a signal ended; None: that of the verdict


@dataclass
class CheckRun(ABC):
    """One check: its launches, and the state that its steps share."""

    launches: Launches
    announcements: Announcements = field(init=False)

    def __post_init__(self) -> None:
        self.announcements = Announcements(self.context.progress)

    @property
    def context(self) -> Context:
        """Context of the launches: machine, allocation and engine."""
        return self.launches.context

    def check(self, run: Run | None = None) -> CheckOutcome:
        """Measure the planned steps, diagnose, measure follow-ups, report.

        Parameters
        ----------
        run
            The run of a check that is resumed.
        """
        is_resumed = self.launches.output.exists()
        try:
            return self._checked(run)
        except UsageError:
            if not is_resumed:
                run_files.remove_unmeasured(self.launches.output)
            raise
        finally:
            self.launches.close()

    def _checked(self, run: Run | None) -> CheckOutcome:
        from fablint.plan.check.check_loop import CheckLoop

        clock = self.context.system.monotonic
        begun = clock()
        try:
            loop = CheckLoop(
                steps=self.steps(run),
                follow_up_request=self.follow_up_request,
                measure=self.launches.add,
                diagnose=self.judge,
                spent_s=lambda: clock() - begun,
                announce=self.announcements.follow_up,
            )
            result = loop.run(run)
            while (more := self.measure_more(result)) is not None:
                result = loop.follow_up(more)
            self.launches.release()
            diagnosis = with_undecided(self.final_diagnosis(result), result)
        except (KeyboardInterrupt, StoppedError, FullDiskError) as error:
            return self._report_interrupted(error)
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            failure = run_files.full_disk(error, Path(error.filename or self.launches.output))
            return self._report_interrupted(failure)
        if not self.launches.error:
            diagnosis = _without_undecided_paths(diagnosis)
        return self._report(result.run, diagnosis)

    @abstractmethod
    def steps(self, run: Run | None) -> Iterable[Step]:
        """Return the planned steps, those that a resumed run lacks."""

    def measure_more(self, result: LoopResult) -> Run | None:
        """Measure what the verdict lacks although no follow-up is open; None where that is nothing."""
        return None

    @abstractmethod
    def follow_up_request(self, run: Run) -> PlanInput:
        """Return what follow-up measurements of a run are planned with."""

    def diagnose(self, run: Run) -> Diagnosis:
        """Diagnose what was measured so far."""
        return analysis.diagnose(run, self.launches.request.topology)

    def judge(self, run: Run) -> Diagnosis:
        """Diagnose what was measured so far, and tell what is certain."""
        diagnosis = self.diagnose(run)
        self.announcements.judged(diagnosis)
        return diagnosis

    def final_diagnosis(self, result: LoopResult) -> Diagnosis:
        """Diagnose the run once all is measured."""
        return result.diagnosis

    @property
    def is_bounded(self) -> bool:
        """Return whether the losses that the user asked for would be named."""
        return True

    def notes(self, run: Run) -> Sequence[Note]:
        """Return notes of the verdict."""
        return ()

    def mark_ended(self) -> None:  # noqa: B027 - a check that cannot be resumed records nothing
        """Record that the check came to its verdict."""

    def begin(self, make: Callable[[PlanInput], Stage | None]) -> Run:
        """Measure the first stage of the run, write its topology into the run directory, and return the run.

        `make` returns the stage that suits a request; None: there is nothing to measure. Raises the errors of a launch.
        """
        run = self.launches.begin(make)
        run_files.save_topology(self.launches.request.topology, self.launches.output)
        return run

    def _report_interrupted(self, error: BaseException) -> CheckOutcome:
        """Diagnose and report what was measured until a signal or a full disk; raise it where that is nothing."""
        from fablint.analyse import amended

        output = self.launches.output
        run = run_formats.read(output) if (output / "zarr.json").exists() else None
        if run is None or not run.rows:
            if not isinstance(error, FullDiskError):
                raise error
            is_kept = run is not None or (output / run_files.CHECK).exists()
            next_step = f"then fablint resume {output}" if is_kept else "or choose another -o"
            raise FullDiskError(error.message, f"free space, {next_step}") from None
        diagnosis = self.diagnose(run)
        diagnosis = replace(diagnosis, verdict=amended(diagnosis.verdict, complete=False))
        why, code = "interrupted", INTERRUPTED
        if isinstance(error, StoppedError):
            why, code = error.message, error.exit_code
        if isinstance(error, FullDiskError):
            return self._report(run, diagnosis, f"{error.message}: free space")
        outcome = self._report(run, diagnosis, why)
        # A trial that is stopped names no run.
        said = outcome.error if isinstance(error, StoppedError) and not error.hint else str(error)
        return replace(outcome, error=said, exit_code=code)

    def _report(self, run: Run, diagnosis: Diagnosis, interrupted: str = "") -> CheckOutcome:
        error = interrupted or self.launches.error
        ended = [noted.ended_early(error)] if error else []
        from fablint.analyse import amended

        notes = (*diagnosis.verdict.notes, *ended, *self.notes(run))
        is_complete = not error and self.is_bounded
        diagnosis = replace(diagnosis, verdict=amended(diagnosis.verdict, complete=is_complete, notes=notes))
        if not error:
            with suppress(FullDiskError):
                self.mark_ended()
        return _reported(run, diagnosis, self.launches.output, f"{error}: {self._next_step(run)}" if error else "")

    def _next_step(self, run: Run) -> str:
        """Return what to do about a check that was ended early."""
        is_resumable = (self.launches.output / run_files.CHECK).exists() or measurement.has_missing_rounds(run)
        return f"go on with fablint resume {run.path}" if is_resumable else "repair the cause, then start a new check"


def _reported(run: Run, diagnosis: Diagnosis, path: Path, error: str, code: int | None = None) -> CheckOutcome:
    """Write the report of a run at `path`; the outcome has the diagnosis also where the report cannot be written."""
    page = analysis.page_of(path)
    try:
        analysis.write_report(run, diagnosis, page)
    except IncompleteError as failure:
        error = error or f"{failure.message}: free space, then fablint report {path}"
        return CheckOutcome(run, diagnosis, None, error, code or diagnosis.verdict.exit_code or failure.exit_code)
    return CheckOutcome(run, diagnosis, page, error, code)


def report_measured(result: MeasurementResult) -> CheckOutcome:
    """Diagnose and report a run that was measured without a check; what is damaged or missing decides the exit code."""
    path = result.run.path
    assert path is not None
    run = run_formats.read(path)
    diagnosis = analysis.judge(run)
    error = f"{result.error}: go on with fablint resume {path}" if result.error else ""
    return _reported(run, diagnosis, path, error, result.exit_code or None)


def with_undecided(diagnosis: Diagnosis, result: LoopResult) -> Diagnosis:
    """Add notes that name what further measurements would decide; none where the loop did not end early.

    Paths that were not measured alone have a note of their own, since they also refuse a pass.
    """
    from fablint.analyse import amended

    if not result.ended:
        return diagnosis
    paths = {one.component for one in result.diagnosis.distances}
    again = [one for one in result.outstanding if one.component not in paths]
    notes = [
        kind(
            ended=result.ended,
            components=tuple(one.component.text for one in follow_ups[:_SHOWN]),
            more=max(0, len(follow_ups) - _SHOWN),
        )
        for kind, follow_ups in ((noted.undecided, result.undecided), (noted.not_measured_again, again))
        if follow_ups
    ]
    return replace(diagnosis, verdict=amended(diagnosis.verdict, notes=(*diagnosis.verdict.notes, *notes)))


def _without_undecided_paths(diagnosis: Diagnosis) -> Diagnosis:
    """Refuse a pass where streams between switches were slow among others and could not be measured alone in time."""
    from fablint.analyse import amended

    paths = [follow_up.component.label for follow_up in diagnosis.distances]
    if not paths:
        return diagnosis
    note = noted.undecided_paths(paths=tuple(paths[:_PATHS_SHOWN]), more=max(0, len(paths) - _PATHS_SHOWN))
    notes = (*diagnosis.verdict.notes, note)
    return replace(diagnosis, verdict=amended(diagnosis.verdict, complete=False, notes=notes))
