"""Whole jobs that measure, judge and measure again: check and retest."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fablint.errors import FablintError, IncompleteError, UsageError
from fablint.model import Diagnosis, Question, Run, Slots, Topology
from fablint.workflows import flow
from fablint.workflows.job_hosts import slots_of_job
from fablint.workflows.shared_folder import refuse_unshared

if TYPE_CHECKING:
    from fablint.plan.check.check_request import Asked
    from fablint.plan.check.retest import Fate
    from fablint.plan.check.stages import Stage
    from fablint.system import System

_SHOWN = 8  # undecided parts that are named


@dataclass(frozen=True)
class Checked:
    """A run, what it means, and where the page is that says so."""

    run: Run
    diagnosis: Diagnosis
    page: Path
    error: str = ""


@dataclass(frozen=True)
class Retested:
    """What became of the findings of a run; `checked` is the run that says so."""

    checked: Checked
    fates: Sequence[Fate]

    @property
    def exit_code(self) -> int:
        """1: something is at fault; 3: something is undecided, or the run is not complete; else 0.

        The rest of the fabric is not judged by a retest, and does not count.
        """
        if self.checked.diagnosis.verdict.verdict == "fault":
            return 1
        complete = self.checked.run.state == "complete"
        return 0 if complete and all(fate.state == "gone" for fate in self.fates) else 3


def asked_local(system: System, ranks: int) -> Asked:
    """What `check --local` measures with `ranks` ranks on this machine."""
    from fablint.plan.check.check_request import Asked

    if ranks < 2:
        raise UsageError(f"{ranks} rank has nobody to talk to" if ranks == 1 else f"{ranks} ranks", "give two or more")
    return Asked(ranks, oversubscribed=ranks > len(system.affinity()))


def asked_hosts(slots: Sequence[Slots]) -> Asked:
    """What a check of several hosts measures. Raises UsageError where nobody has a partner."""
    from fablint.plan.check.check_request import Asked

    ranks = sum(slot.ranks for slot in slots)
    if ranks < 2:
        raise UsageError(f"{slots[0].host} alone has nobody to talk to", "name two or more hosts")
    return Asked(ranks, tuple(slots))


def check(around: flow.Surroundings, asked: Asked, output: Path) -> Checked:
    """Measure, judge, ask again what is open, report. An incomplete run is judged as well: the verdict says so."""
    from fablint.plan.check.stages import investigate

    errors: list[str] = []

    def measure(stage: Stage, run: Run | None) -> tuple[Run, bool]:
        measured = measure_stage(around, stage, output, run)
        if run is None:
            flow.keep_topology(asked.topology, output)
        if measured.error:
            errors.append(measured.error)
        return measured.run, not measured.error and measured.run.state == "complete"

    def judge(run: Run) -> Diagnosis:
        return flow.diagnose(run, asked.topology)

    done = investigate(asked, measure, judge, around.system.monotonic)
    diagnosis = with_undecided(done.diagnosis, done.undecided, done.ended)
    flow.write_report(done.run, diagnosis, flow.page_of(output))
    return Checked(done.run, diagnosis, flow.page_of(output), next(iter(errors), ""))


def measure_stage(
    around: flow.Surroundings, stage: Stage, output: Path, run: Run | None = None, options: Sequence[str] = ()
) -> flow.Measured:
    """Measure a stage into a new run, or add it to `run`; its rounds files become part of the run.

    `options` are run options of the engine.
    """
    from fablint.plan.check.resume import grown_plan

    write_rounds(stage, output)
    if run is not None:
        return flow.measure(around, grown_plan(run, stage.plan), output, [*flow.going_on(run), *options])
    try:
        return flow.measure(around, stage.plan, output, options)
    except (FablintError, KeyboardInterrupt):
        if not (output / "zarr.json").exists():
            _remove_rounds(stage, output)
        raise


def _remove_rounds(stage: Stage, output: Path) -> None:
    """Take back what a launch that measured nothing was to read. What a check can go on with stays."""
    with suppress(OSError):
        for name in stage.rounds:
            (output / name).unlink(missing_ok=True)
        (output / flow.ROUNDS).rmdir()
        output.rmdir()


def write_rounds(stage: Stage, output: Path) -> None:
    """The rounds files of a stage, into the run that they are for."""
    try:
        for name, text in stage.texts().items():
            flow.keep_text(output / name, text)
    except IncompleteError:
        _remove_rounds(stage, output)
        raise


def with_undecided(diagnosis: Diagnosis, undecided: Sequence[Question], why: str) -> Diagnosis:
    """The same with a note that names the parts that are neither convicted nor cleared."""
    if not why:
        return diagnosis
    names = [f"{question.component} {question.name}" for question in undecided[:_SHOWN]]
    names += [f"{len(undecided) - _SHOWN:,} more"] if len(undecided) > _SHOWN else []
    note = f"undecided when {why}: {', '.join(names)} (a larger --budget decides more)"
    verdict = diagnosis.verdict.model_copy(update={"notes": (*diagnosis.verdict.notes, note)})
    return replace(diagnosis, verdict=verdict)


# ------------------------------------------------------------------------------------------------ retest


def retest(
    around: flow.Surroundings, path: Path, output: Path, topology: Topology | None, budget_s: float | None
) -> Retested | None:
    """Measure what a run accuses once more, into a run of its own; None where it accuses nothing.

    The cable may have been exchanged since, so that old and new times do not belong together.

    Raises:
        UsageError: the run was simulated or imported, no pair of ranks would tell, or the job that we are in lacks a
            host that has to be measured, or the host of rank 0 does not see the folder of the run.
        IncompleteError: the ranks were not on the run's hosts.
    """
    from fablint.plan.check.retest import accused, fates, plan_retest

    run = flow.read(path)
    flow.refuse_unmeasured(run, path)
    before = flow.diagnose(run, topology)
    if not accused(before):
        return None
    planned = plan_retest(run, before, topology, budget_s)
    if planned is None:
        names = ", ".join(finding.name for finding in accused(before)[:_SHOWN])
        raise UsageError(f"{path}: no pair of ranks would tell about {names}", "see its findings: fablint analyse")
    stage = planned.stage
    stage = replace(stage, plan=replace(stage.plan, slots=slots_of_job(around.system, stage.plan.slots)))
    refuse_unshared(around.system, output.parent, stage.plan.slots)
    measured = measure_stage(around, stage, output)
    flow.keep_topology(topology, output)
    after = flow.diagnose(measured.run, topology)
    page = flow.page_of(output)
    flow.write_report(measured.run, after, page)
    found = fates(before, after, measured.run, planned)
    return Retested(Checked(measured.run, after, page, measured.error), found)
