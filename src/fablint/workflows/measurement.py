"""The stages `measure` and `store` together: a plan becomes a run directory, and an interrupted run is resumed."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fablint.errors import FablintError, IncompleteError, InternalError, NotStartedError, StoppedError, UsageError
from fablint.model import Plan, Run, Slots
from fablint.system import System
from fablint.text.connection_steps import connection_step
from fablint.workflows.context import Context, KeptLaunch, load_launch, remove_launch, save_launch
from fablint.workflows.job_hosts import refuse_misplaced, slots_of_job
from fablint.workflows.run_files import LAUNCHES, ROUNDS, TABLES, reported_full_disk, save_text, whole_run
from fablint.workflows.shared_folder import explain_unshared, refuse_unshared

if TYPE_CHECKING:
    from fablint.measure import Choice, Engine, EngineOutcome
    from fablint.plan.check.stages import Stage


SKIP_REFUSED = "--skip-refused"  # run option of the engine: transports that do not start here do not end the others


@dataclass(frozen=True)
class MeasurementResult:
    """The run that a launch of the engine left; its state is final."""

    run: Run
    exit_code: int  # 0, 1 where payloads were damaged, 3 where rounds are missing
    error: str = ""
    start_s: float = 0.0  # that the ranks took to start
    is_new_launch: bool = True  # the ranks were started for it
    is_refused: bool = False  # rows did not start, of which the error is the reason; all others are complete

    @property
    def next_step(self) -> str:
        """Return what to do after the error; measured rounds are named unless the rows that failed measured none."""
        kept = "" if self.is_refused else f"measured rounds are kept: fablint resume {self.run.path}"
        return ": ".join(filter(None, (connection_step(self.error), kept)))


def free_output(system: System, output: Path | None) -> Path:
    """Return the path of a new run directory; None: `fablint-DATE-TIME.run`. Nothing is created.

    Raises
    ------
    UsageError
        The path exists, or its folder does not exist or is not writable.
    """
    path = output or Path(f"fablint-{system.now():%Y%m%d-%H%M%S}.run")
    if path.exists() or path.is_symlink():
        raise UsageError(f"{path} exists", "give another name with -o")
    parent = path.absolute().parent
    if not parent.is_dir():
        raise UsageError(f"{parent} is not a directory", "create it, or give another place with -o")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise UsageError(f"{parent} cannot be written", "give another place with -o")
    return path


def measure(context: Context, plan: Plan, output: Path, options: Sequence[str] = ()) -> MeasurementResult:
    """Measure a plan into a run directory; the engine is built first where that is necessary.

    Parameters
    ----------
    context
        Machine, progress, MPI.
    plan
        What to measure.
    output
        Run directory to create, or to continue with `--resume` among the options.
    options
        Run options of the engine.

    Returns
    -------
    MeasurementResult
        Also where the launch ended early and the run is not complete.

    Raises
    ------
    UsageError
        The engine refused the plan or its options.
    NotStartedError
        The ranks did not start; nothing was measured.
    FullDiskError
        The run could not be begun on its disk.
    StoppedError
        The job of the launch has ended, or a signal ended the launch; what was measured before is kept.
    InternalError
        The engine failed in itself.
    KeyboardInterrupt
        The user stopped the launch; what was measured before is in the run directory.
    """
    from fablint.cluster import why_job_ended
    from fablint.measure import EngineOptions, run_on_first

    engine, choice = _engine_and_launchers(context, plan)
    flags = ["--threads"] if any(row.spec.needs_threads for row in plan.rows) else []
    flags += ["--by-size"] if context.on_size else []
    words = EngineOptions([*options, *flags], context.start_s, context.end_s, on_size=context.on_size)
    served = None if context.is_scratch else context.served
    words = replace(words, served=served, why_over=partial(why_job_ended, context.system))
    if context.stop_s is not None:
        words = replace(words, stop_s=context.stop_s)
    is_new = not (output / "zarr.json").exists()
    if is_new and not context.is_scratch:
        save_launch(KeptLaunch.of(context, options), whole_run(output))
    launchers = sorted(choice.launchers, key=lambda launcher: launcher.path != context.used_launcher.path)
    outcome = run_on_first(context.system, context.progress, launchers, engine, plan, output, options=words)
    has_started, has_run = outcome.launcher is not None, (output / "zarr.json").exists()
    context.used_launcher.path = outcome.launcher or context.used_launcher.path
    is_usage = outcome.status == UsageError.exit_code and (is_new or has_started)
    if not outcome.is_over and (is_usage or not has_started or not has_run):
        explain_unshared(context.system, output.parent, engine.path, plan.slots)
    if is_usage:
        if is_new:
            _remove_unmeasured(output)
        raise UsageError(outcome.error)
    if outcome.status == InternalError.exit_code:
        raise InternalError(f"engine: {outcome.error}")
    if not has_run:
        _remove_unmeasured(output)
        if full := reported_full_disk(outcome.error, output):
            raise full
        raise _nothing_measured(outcome, "nothing was measured")
    if not (has_started or outcome.is_over or outcome.stopped_by):
        raise _nothing_measured(outcome, "this launch measured nothing")
    result = _sealed(context, output, outcome)
    refuse_misplaced(result.run, plan.slots)
    return result


def start_early(context: Context, plan: Plan) -> None:
    """Start the ranks of a check while its hosts are asked and its first plan is made.

    Nothing is started where the engine is still to be built: hosts are asked before that. Where the ranks do not
    start, the error is that of the first plan.

    Parameters
    ----------
    context
        Machine, progress, MPI; the launch that plans follow to.
    plan
        Hosts, and rows with the transports of later plans.
    """
    from fablint.measure import EngineOptions, kept_engine, start_early

    if context.compiler is None or kept_engine(context.system, context.compiler) is None:
        return
    engine, choice = _engine_and_launchers(context, plan)
    with suppress(UsageError):
        start_early(
            context.system, choice.launchers[0], engine, plan, EngineOptions((), context.start_s, served=context.served)
        )


def _remove_unmeasured(output: Path) -> None:
    """Remove the run of a launch that was refused before its first row: the name of the directory is free again."""
    remove_launch(output)
    with suppress(OSError):
        if {path.name for path in output.iterdir()} <= {"zarr.json", TABLES, ROUNDS}:
            (output / "zarr.json").unlink(missing_ok=True)
            shutil.rmtree(output / TABLES, ignore_errors=True)
            output.rmdir()  # not with rounds files, which have an owner


def _nothing_measured(outcome: EngineOutcome, what: str) -> BaseException:
    """Return the error of a launch that added nothing to a run directory."""
    if outcome.stopped_by == signal.SIGINT:
        return KeyboardInterrupt()
    if outcome.is_over:
        return StoppedError(outcome.error, "this launch measured nothing; start again in a new job")
    hint = f"{what}; fablint doctor looks at the set-up"
    if outcome.stopped_by is not None:
        return StoppedError(outcome.error, hint)
    return NotStartedError(outcome.error, hint, outcome.launcher_output)


def _engine_and_launchers(context: Context, plan: Plan) -> tuple[Engine, Choice]:
    """Return the engine, built if necessary, and what may start it. Raises UsageError."""
    from fablint.cluster import current_job
    from fablint.measure import build_engine, connects_without_mpi, find_launchers, find_rendezvous

    system, with_mpi = context.system, not connects_without_mpi(context.launcher, plan)
    engine = build_engine(
        system, context.progress, mpicxx=context.mpicxx, with_mpi=with_mpi, known_compiler=context.compiler
    )
    if with_mpi:
        return engine, find_launchers(system, engine.mpicxx, engine.libraries, requested=context.launcher)
    job = None if plan.slots else current_job(system)
    return engine, find_rendezvous(system, context.launcher, job.hosts[0] if job else "")


def _sealed(context: Context, path: Path, outcome: EngineOutcome) -> MeasurementResult:
    """Write into the run what the engine does not write: that it was interrupted, which ranks failed, checksums."""
    from fablint.measure import failure_text, name_deaths, name_host
    from fablint.store import read_run, set_state, write_checksums

    run = read_run(path)
    failed = tuple(name_host(loss, run.facts) for loss in outcome.failed)
    failed = failed or tuple(name_deaths(outcome.deaths, run.facts))
    unsealed = ""  # on a full disk the state stays `measuring`; the run can be resumed all the same
    if failed or run.state == "measuring":
        try:
            set_state(path, "interrupted", failed)
        except IncompleteError as error:
            unsealed = str(error)
        run = read_run(path)
    complete = [row.name for row in run.rows if row.facts.state == "complete"]
    with suppress(OSError):  # without checksums, as on a full disk, a run can be read as well
        write_checksums(path, complete)
    if outcome.stopped_by is not None or outcome.is_over:
        where = " in a new job" if outcome.is_over else ""
        hint = "" if context.is_scratch else f"measured rounds are kept: fablint resume {whole_run(path)}{where}"
        if outcome.stopped_by != signal.SIGINT:
            raise StoppedError(outcome.error, hint)
        context.progress.note("; ".join(filter(None, ("fablint: interrupted", hint))))
        raise KeyboardInterrupt
    why = failure_text(failed, run.rank_host) if failed else outcome.error or unsealed
    is_whole = not failed and outcome.is_written and len(complete) == len(run.rows)
    is_refused = bool(outcome.error) and is_whole
    return MeasurementResult(run, outcome.status, why, outcome.start_s, outcome.is_new, is_refused)


def resume(context: Context, path: Path, options: Sequence[str] | None = None) -> MeasurementResult | None:
    """Measure the rounds that a run lacks.

    Parameters
    ----------
    context
        Machine, progress, MPI.
    path
        Run directory.
    options
        Run options of the engine; None: those of the run.

    Returns
    -------
    MeasurementResult or None
        None where the run lacks no round.

    Raises
    ------
    UsageError
        The run was simulated or imported, or the job lacks some of its hosts.
    """
    from fablint.plan import resume_plan
    from fablint.store import missing_rounds, read_run

    refuse_unmeasured(read_run(path), path)
    restore(path)
    run = read_run(path)

    def read_rounds(name: str) -> str:
        """Read a rounds file of the run directory, else of the working directory."""
        return (path / name if (path / name).exists() else Path(name)).read_text()

    plan = resume_plan(run, {row.name: missing_rounds(row) for row in run.rows}, read_rounds)
    plan = replace(plan, slots=_slots_now(context.system, plan.slots))
    refuse_unshared(context.system, path, plan.slots)
    options = load_launch(path).options if options is None else options
    return measure(context, plan, path, [*resume_options(run), *options]) if plan.rows else None


def has_missing_rounds(run: Run) -> bool:
    """Tell whether a run lacks a round of a row that was begun, or a row that was planned."""
    from fablint.store import missing_rounds

    return {row.name for row in run.rows} != set(run.facts.rows) or any(map(missing_rounds, run.rows))


def _slots_now(system: System, slots: Sequence[Slots]) -> tuple[Slots, ...]:
    """Return the hosts of a run by the names of the current job. Outside a job a single host is this machine.

    Raises UsageError where the job lacks some of them.
    """
    if "SLURM_JOB_ID" not in system.environ and len({slot.host for slot in slots}) == 1:
        return ()
    return slots_of_job(system, slots)


def restore(path: Path) -> None:
    """Make a run ready to be resumed: remove what is damaged, and add what a killed check left elsewhere.

    These are the cells of relaunches without the failed hosts.
    """
    from fablint.store import absorb, discard_damaged

    discard_damaged(path)
    for part in sorted((path / LAUNCHES).glob("*.run")):
        if part.stem.isdigit() and (part / "zarr.json").exists():
            absorb(path, part)


def resume_options(run: Run) -> list[str]:
    """Options with which the engine continues a run; the times in `started` stay relative to the first launch."""
    return ["--resume", "--epoch", repr(run.facts.launch.started_epoch_s)]


def refuse_unmeasured(run: Run, path: Path) -> None:
    """Raise UsageError for a run that was simulated or imported: no fabric can be measured for it."""
    if not run.facts.is_measured:
        origin = "imported" if run.facts.simulated is None else "simulated"
        raise UsageError(f"{path} was {origin}", "there is no fabric to go on measuring")


def measure_stage(
    context: Context, stage: Stage, output: Path, run: Run | None = None, options: Sequence[str] = ()
) -> MeasurementResult:
    """Measure a stage of a check into a new run, or add its rows to an existing run.

    Parameters
    ----------
    context
        Machine, progress, MPI.
    stage
        Rows and their rounds; the rounds files become part of the run.
    output
        Run directory.
    run
        The run in `output`, None where there is none yet.
    options
        Run options of the engine.
    """
    from fablint.plan.check.resume import grown_plan

    write_rounds(stage, output)
    if run is not None:
        return measure(context, grown_plan(run, stage.plan), output, [*resume_options(run), *options])
    try:
        return measure(context, stage.plan, output, options)
    except (FablintError, KeyboardInterrupt):
        if not (output / "zarr.json").exists():
            _remove_rounds(stage, output)
        raise


def write_rounds(stage: Stage, output: Path) -> None:
    """Write the rounds files of a stage into the run that they are for."""
    try:
        for name, text in stage.texts().items():
            save_text(output / name, text)
    except IncompleteError:
        _remove_rounds(stage, output)
        raise


def _remove_rounds(stage: Stage, output: Path) -> None:
    """Remove the rounds files of a launch that measured nothing. Files with which a check can be resumed stay."""
    with suppress(OSError):
        for name in stage.rounds:
            (output / name).unlink(missing_ok=True)
        remove_launch(output)
        output.rmdir()
