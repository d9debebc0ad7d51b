"""One run of the engine, from the launcher's start to its end, whatever happens in between.

The engine ends by itself: when it is done, when it is requested to stop (it then finishes the current round), when its
watchdog finds a stalled rank. The launcher ends the survivors of a rank that died. Each of these has a deadline here,
after which the whole process tree is killed, so that nothing stalls. Ranks of other hosts are not child processes: a
launcher that is killed ends them, and a request to stop goes through the launcher.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fablint.measure.engine import Engine
from fablint.measure.engine_messages import SizeMessage, failure_text
from fablint.measure.launch_watch import Watch
from fablint.measure.launchers.launcher import Death, Launch, Mpiexec
from fablint.measure.launchers.rendezvous import name_missing
from fablint.measure.oversubscription import is_oversubscribed
from fablint.measure.progress import Progress
from fablint.measure.served_launch import HELD, LaunchSetup, ServedLaunch, StartOfRanks, request_text
from fablint.model import Plan
from fablint.model.facts.failed_rank import FailedRank
from fablint.model.facts.run_attributes import RunFacts
from fablint.system import System

DONE, DAMAGED, USAGE, INCOMPLETE, INTERNAL = 0, 1, 2, 3, 5  # exit statuses, docs/reference/engine.md

START_S, START_S_PER_RANK = 60.0, 0.05  # until all ranks have started: Hydra waits without end for an unreachable host
STOP_S = 75.0  # after SIGINT: a round may last 60 s, then the engine writes
FAILED_S = 30.0  # after a rank was reported as failed
END_S = 15.0  # after the engine reported that all is written: ranks of some MPI libraries stay in MPI_Finalize
UNREACHED_S = 5.0  # after ssh reported an unreachable host: some launchers wait without end
NO_END = "the engine did not end by itself and was killed"
_POLL_S = 0.2


@dataclass(frozen=True)
class EngineOutcome:
    """How a run of the engine ended."""

    status: int  # one of the engine's exit statuses
    error: str = ""  # reason given by the engine or the launcher, one line
    failed: tuple[FailedRank, ...] = ()  # as the engine reports, the likeliest first
    reported: tuple[FailedRank, ...] = ()  # all reports of the engine: the two ends of a cut cable report each other
    deaths: tuple[Death, ...] = ()  # as the launcher reports if the engine reports nothing
    stopped_by: int | None = None  # the signal that was passed on
    is_over: bool = False  # the job of the launch has ended: no host is at fault, and no launch can follow
    is_disconnected: bool = False  # the ranks of this launcher did not connect: another launcher may work
    is_written: bool = field(default=False, compare=False)  # the engine reported that all it measured is in the run
    start_s: float = field(default=0.0, compare=False)  # duration of the start of the ranks; 0: they did not start
    is_new: bool = field(default=True, compare=False)  # the ranks were started for the plan
    launcher: Path | None = field(default=None, compare=False)  # that connected the ranks; None: they did not start
    launcher_output: tuple[str, ...] = field(default=(), compare=False)  # last lines, if it started no ranks


@dataclass(frozen=True)
class EngineOptions:
    """How the engine is run, in addition to the plan."""

    words: Sequence[str] = ()  # run options of its command line
    start_s: Callable[[], float] | None = None  # time limit of the start; called repeatedly: it may get shorter
    end_s: float | None = None  # limit for the end of ranks that have written all; None: END_S
    stop_s: float = STOP_S  # limit for the end after a signal; the ranks are killed after it
    on_size: Callable[[], None] | None = None  # called when another size of a row is in the run directory
    served: ServedLaunch | None = None  # ranks that measure one plan after the other; None: a launch for this plan
    why_over: Callable[[], str] = lambda: ""  # called after a launch that failed: why none can follow; '': one can


def start_limit_s(ranks: int) -> float:
    """Seconds within which so many ranks should start, without experience from an earlier launch."""
    return START_S + START_S_PER_RANK * ranks


_NO_OPTIONS = EngineOptions()


def name_host(failed: FailedRank, facts: RunFacts) -> FailedRank:
    """Add the host of a failed rank from the facts of the run, if it is missing."""
    if failed.rank is None or failed.host is not None:
        return failed
    return replace(failed, host=facts.hosts[facts.rank_host[failed.rank]])


def name_deaths(deaths: Sequence[Death], facts: RunFacts) -> list[FailedRank]:
    """Ranks that died, by the facts of the run: some launchers report only the pid, others the rank.

    A pid identifies the host only, unless the host has a single rank: Hydra ends the other ranks on the host of a rank
    that died, and then reports the first of them.
    """
    pids, rank_host, hosts = list(facts.rank_pid), list(facts.rank_host), facts.hosts
    named = []
    for death in deaths:
        rank, host = death.rank, death.host
        if rank is not None:
            host = hosts[rank_host[rank]]
        elif death.pid is not None and pids.count(death.pid) == 1:  # pids of several hosts may coincide
            suspect = pids.index(death.pid)
            host = hosts[rank_host[suspect]]
            rank = suspect if rank_host.count(rank_host[suspect]) == 1 else None
        named.append(FailedRank(rank, host, None, None, death.reason))
    return named


def run_engine(
    system: System,
    progress: Progress,
    mpiexec: Mpiexec,
    engine: Engine,
    plan: Plan,
    output: Path,
    *,
    options: EngineOptions = _NO_OPTIONS,
) -> EngineOutcome:
    """Measure `plan` into the run directory `output`.

    The first SIGINT or SIGTERM is passed on: the engine finishes its round. The second ends everything at once.
    """
    with system.caught_signals() as caught:
        process, is_new = _started(system, mpiexec, engine, plan, output, options)
        watch = Watch(
            [row.rounds for row in plan.rows],
            plan.ranks,
            options.on_size,
            options.served is not None,
            started=not is_new,
        )
        if options.on_size and watch.rows == [1]:
            spec = plan.rows[0].spec
            watch.size = SizeMessage(spec.name or spec.kernel, 0, len(spec.sizes))
        try:
            end_s = END_S if options.end_s is None else options.end_s
            ranks = _Ranks(engine.path, mpiexec.kind.stop_signal, end_s, options.start_s, options.stop_s)
            overdue = _follow(system, progress, process, watch, caught, ranks)
        finally:
            if options.served is None:
                process.kill()
            elif watch.request_end is None:
                options.served.kill()
    stopped_by = next(iter(caught), None)
    outcome = _outcome(mpiexec, process.poll() or 0, watch, overdue=overdue, stopped_by=stopped_by)
    outcome = _explained(outcome, options)
    if options.served is not None:
        outcome = replace(outcome, deaths=tuple(map(options.served.death_in_plan, outcome.deaths)))
    error = name_missing(outcome.error, plan.slots)
    launcher = mpiexec.path if watch.has_connected() else None
    start_s = watch.start_s if is_new else 0.0
    written = watch.is_written
    return replace(outcome, error=error, is_written=written, start_s=start_s, is_new=is_new, launcher=launcher)


def start_early(system: System, mpiexec: Mpiexec, engine: Engine, plan: Plan, options: EngineOptions) -> None:
    """Start the ranks of a served launch before what they are to measure is known.

    They measure the first plan of the same hosts. Where they do not start, the outcome of that plan has the reason.

    Parameters
    ----------
    system
        This machine.
    mpiexec
        The launcher.
    engine
        The program.
    plan
        The hosts, with the ranks on each.
    options
        Options of the engine, with the launch that plans follow to.
    """
    assert options.served is not None
    setup, start = _start_of(system, mpiexec, engine, options.served.widened(plan), options)
    options.served.begin(setup, plan, start)


def _started(
    system: System, mpiexec: Mpiexec, engine: Engine, plan: Plan, output: Path, options: EngineOptions
) -> tuple[Launch, bool]:
    """Return the launch that measures a plan, and whether it is a new one."""

    def request(words: Sequence[str]) -> str:
        return request_text(plan, output, [*options.words, *words])

    if options.served is None:
        _, start = _start_of(system, mpiexec, engine, plan, options)
        return start(plan, ["--plan", "-", "-o", str(output), *options.words]), True
    setup, start = _start_of(system, mpiexec, engine, options.served.widened(plan), options)
    return options.served.measure(setup, plan, request, start)


def _start_of(
    system: System, mpiexec: Mpiexec, engine: Engine, ranks: Plan, options: EngineOptions
) -> tuple[LaunchSetup, StartOfRanks]:
    """Return the setup of a launch of these ranks, and what starts the ranks of such a launch."""
    # The engine binds the ranks itself if they are to be near their NIC.
    environ = mpiexec.kind.environ(
        oversubscribed=is_oversubscribed(system, ranks), unbound="--ranks-per-nic" in options.words
    )
    is_served = options.served is not None

    def start(ranks: Plan, words: Sequence[str]) -> Launch:
        limit_s = options.start_s() if options.start_s else start_limit_s(ranks.ranks)
        command = [str(engine.path), *words, "--expect-ranks", str(ranks.ranks)]
        return mpiexec.start(system, ranks, command, environ, limit_s, is_served=is_served)

    return LaunchSetup.of(mpiexec.path, engine.path, environ, options.words), start


def _explained(outcome: EngineOutcome, options: EngineOptions) -> EngineOutcome:
    """Outcome of a launch whose job has ended: its end explains what the ranks and the launcher report."""
    failed = outcome.is_disconnected or (outcome.status == INCOMPLETE and outcome.stopped_by is None)
    why = options.why_over() if failed else ""
    return EngineOutcome(INCOMPLETE, why, is_over=True) if why else outcome


def run_on_first(
    system: System,
    progress: Progress,
    launchers: Sequence[Mpiexec],
    engine: Engine,
    plan: Plan,
    output: Path,
    *,
    options: EngineOptions = _NO_OPTIONS,
) -> EngineOutcome:
    """Measure a plan with the first of the launchers whose ranks connect.

    Parameters
    ----------
    system
        This machine.
    progress
        Shows rounds, and launchers that are not used.
    launchers
        In the order in which they are tried.
    engine
        The program.
    plan
        What is measured, on how many ranks.
    output
        The run directory.
    options
        Options of the engine beside the plan.

    Returns
    -------
    EngineOutcome
        How the engine ended. Where no launcher connects the ranks, its error has the reason of each.
    """
    failures: dict[Path, EngineOutcome] = {}
    for number, mpiexec in enumerate(launchers, 1):
        outcome = run_engine(system, progress, mpiexec, engine, plan, output, options=options)
        if not outcome.is_disconnected:
            return outcome
        failures[mpiexec.path] = outcome
        if number < len(launchers):
            progress.note(f"fablint: {mpiexec.path.name} is replaced by {launchers[number].path}: {outcome.error}")
    return _joined(list(failures.values()))


def _joined(failures: Sequence[EngineOutcome]) -> EngineOutcome:
    """Outcome of several launchers none of which connected the ranks."""
    statuses = {outcome.status for outcome in failures}
    return replace(
        failures[0],
        status=failures[0].status if len(statuses) == 1 else INCOMPLETE,
        error="; ".join(dict.fromkeys(outcome.error for outcome in failures)),
        launcher_output=tuple(line for outcome in failures for line in outcome.launcher_output),
    )


@dataclass(frozen=True)
class _Ranks:
    """How to stop the ranks, and how long they may take to start and to end."""

    program: Path
    passed_on: int  # the signal that the launcher passes on
    end_s: float  # limit after all is written
    start_s: Callable[[], float] | None = None
    stop_s: float = STOP_S  # limit after a signal

    def stop(self, process: Launch, count: int) -> None:
        """Request a stop: signal local ranks directly, ranks of other hosts through the launcher."""
        if process.signal_program(self.program, signal.SIGINT) < count and process.poll() is None:
            process.signal(self.passed_on)


@dataclass
class _Limits:
    """Time that a launch may still take, in seconds of the monotonic clock."""

    begun: float  # when the launcher was started
    start_s: Callable[[], float]  # limit for the start of the ranks
    end_s: float  # limit for their end, after all is written
    end: float | None = None  # None: no event limits it
    written: bool = False  # the engine has reported that the run is written

    def update(self, watch: Watch, now: float) -> None:
        """Set the limit that follows from the messages of the launch."""
        if watch.started and not watch.start_s:
            watch.start_s = now - self.begun
        if watch.ended is not None and not self.written:
            self.written, self.end = True, now + self.end_s
        elif self.end is None and (watch.reported or watch.stalled or watch.is_aborted()):
            self.end = now + FAILED_S
        elif self.end is None and watch.has_unreachable_host():
            self.end = now + UNREACHED_S

    def exceeded(self, watch: Watch, now: float) -> str | None:
        """Return why the launch has exceeded its limit, '' if its run is written; None: it has not."""
        if self.end is not None and now > self.end:
            why = watch.launcher_message() if watch.has_unreachable_host() else ""
            why = "a rank ended, and the launcher did not end by itself" if watch.is_aborted() else why
            return "" if self.written else f"the ranks did not start: {why}" if why else NO_END
        if watch.started:
            return None
        if failure := watch.joining.failure(now):
            return f"the ranks did not start: {failure}"
        if now > self.begun + (limit_s := self.start_s()):
            return f"the ranks did not start within {limit_s:.0f} s: {watch.absence()}"
        return None


def _follow(
    system: System, progress: Progress, process: Launch, watch: Watch, caught: Sequence[int], ranks: _Ranks
) -> str:
    """Read until the end. The exceeded limit, '' if the launch ended by itself or its run was written."""
    passed_on = 0
    limits = _Limits(system.monotonic(), ranks.start_s or (lambda: start_limit_s(watch.ranks)), ranks.end_s)
    while True:
        try:
            line = process.read_line(_POLL_S)
        except EOFError:
            ended = process.wait(ranks.end_s if limits.written else FAILED_S) is not None
            return "" if ended or limits.written else NO_END
        now = system.monotonic()
        if line is not None:
            watch.take(line, progress, now)
        else:
            watch.show(progress)
        if watch.request_end is not None:
            return ""
        limits.update(watch, now)
        if len(caught) > passed_on:
            if passed_on:
                return NO_END
            passed_on = len(caught)
            limits.end = now + ranks.stop_s
            if ranks.stop_s == STOP_S:
                progress.note("fablint: finishing the current round; press Ctrl-C again to stop at once")
            ranks.stop(process, watch.ranks)
        why = limits.exceeded(watch, now)
        if why == "":
            progress.note(HELD)
        if why is not None:
            return why


def _outcome(mpiexec: Mpiexec, status: int, watch: Watch, *, overdue: str, stopped_by: int | None) -> EngineOutcome:
    """EngineOutcome from the exit status and the messages.

    The engine's own messages have priority: without any the launch has measured nothing, whatever its exit status. A
    launcher's report of a death is used only without them, because a launcher also reports survivors that gave up as
    dead. Its exit status may be its own.
    """
    if failed := watch.failed_ranks():
        return EngineOutcome(INCOMPLETE, failure_text(failed), failed, tuple(watch.reported))
    if watch.errors:
        is_disconnected = watch.is_disconnected()
        exit_status = USAGE if is_disconnected else status if status in (DAMAGED, USAGE, INTERNAL) else INCOMPLETE
        # Of a run that went on without several transports: a reason for each.
        error = "; ".join(dict.fromkeys(watch.errors)) if watch.ended == INCOMPLETE else watch.errors[0]
        return EngineOutcome(exit_status, error, is_disconnected=is_disconnected)
    if stopped_by is not None:
        return EngineOutcome(INCOMPLETE, f"interrupted by {signal.Signals(stopped_by).name}", stopped_by=stopped_by)
    output = () if watch.started else tuple(watch.launcher_output)
    if overdue:
        return EngineOutcome(INCOMPLETE, overdue, launcher_output=output)
    if (reported := watch.status()) is not None:
        return EngineOutcome(reported)  # the launcher's own status may be that of ranks that had to be terminated
    deaths = tuple(watch.deaths(mpiexec))
    if watch.started and not watch.is_served and (status == DONE or (status in (DAMAGED, INCOMPLETE) and not deaths)):
        return EngineOutcome(status)
    if deaths and watch.started:
        return EngineOutcome(INCOMPLETE, deaths[0].reason, deaths=deaths)
    error = f"{mpiexec.path} failed: {watch.launcher_message(deaths) or _end(status)}"
    if watch.ended is not None:
        error = "the ranks ended before they measured the plan"
    return EngineOutcome(
        INCOMPLETE, error, deaths=deaths, is_disconnected=watch.is_disconnected(), launcher_output=output
    )


def _end(status: int) -> str:
    """Return how a launcher without a message ended."""
    if status < 0:
        return f"it was ended by signal {-status} ({signal.strsignal(-status) or 'unknown'})"
    return f"exit status {status}" if status else "it started no rank and printed no message"
