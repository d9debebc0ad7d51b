"""One run of the engine, from the launcher's start to its end, whatever happens in between.

The engine ends by itself: when it is done, when it is asked to (it then finishes the round under way), when its
watchdog finds a rank that hangs. The launcher ends the survivors of a rank that died. Each of these has a deadline
here, after which the whole family of processes is killed, so that nothing hangs. Ranks of other hosts are no children
of ours: a launcher that loses its life ends them, and a wish to stop goes through it.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fablint.measure.engine import Engine
from fablint.measure.engine_messages import Lost
from fablint.measure.launch_watch import Watch
from fablint.measure.launchers.launcher import Death, Mpiexec
from fablint.measure.oversubscription import is_oversubscribed
from fablint.measure.progress import Progress
from fablint.model import Plan
from fablint.system import Process, System

DONE, DAMAGED, USAGE, INCOMPLETE, INTERNAL = 0, 1, 2, 3, 5  # exit statuses, docs/reference/engine.md

START_S, START_S_PER_RANK = 60.0, 0.05  # till all ranks are there: Hydra waits for ever for a host out of reach
STOP_S = 75.0  # after SIGINT: a round may last 60 s, then the engine writes
LOST_S = 30.0  # after a rank was reported lost
END_S = 15.0  # after the engine said that all is written: ranks of some MPI libraries stay in MPI_Finalize
UNREACHED_S = 5.0  # after ssh said that it does not reach a host: some launchers wait for ever
NO_END = "the engine did not end by itself and was killed"
_GLANCE_S = 0.2


@dataclass(frozen=True)
class EngineOutcome:
    """How a run of the engine ended."""

    status: int  # one of the engine's exit statuses
    error: str = ""  # what the engine or the launcher gave as the reason, one line
    lost: tuple[Lost, ...] = ()  # what the engine says, the likeliest first
    accused: tuple[Lost, ...] = ()  # all that it says: the two ends of a cut cable accuse each other
    deaths: tuple[Death, ...] = ()  # what the launcher says where the engine says nothing
    stopped_by: int | None = None  # the signal that we passed on
    apart: bool = False  # the launcher did not bring the ranks together: another one may
    start_s: float = field(default=0.0, compare=False)  # that the ranks took to start; 0: they did not
    said: tuple[str, ...] = field(default=(), compare=False)  # the last lines of a launcher that started no ranks


@dataclass(frozen=True)
class EngineOptions:
    """How the engine is run, in addition to the plan."""

    words: Sequence[str] = ()  # run options of its command line
    start_s: Callable[[], float] | None = None  # time limit of the start; asked again and again: it may get shorter
    end_s: float | None = None  # how long ranks that have written all are waited for; None: END_S


def start_limit_s(ranks: int) -> float:
    """Seconds within which so many ranks start, where no launch has shown how long that takes here."""
    return START_S + START_S_PER_RANK * ranks


_NO_OPTIONS = EngineOptions()


def name_host(lost: Lost, attributes: Mapping[str, Any]) -> Lost:
    """Say where a lost rank ran, from the run's root attributes, if nobody said it before."""
    if lost.rank is None or lost.host is not None:
        return lost
    return replace(lost, host=attributes["hosts"][attributes["rank_host"][lost.rank]])


def name_deaths(deaths: Sequence[Death], attributes: Mapping[str, Any]) -> list[Lost]:
    """Say which ranks died, from the run's root attributes: some launchers give the pid alone, others the rank.

    A pid alone tells the host and no more, unless it is the host's only rank: Hydra ends the neighbours of a rank that
    died at once, and then reports the first of them all.
    """
    pids, rank_host, hosts = list(attributes["rank_pid"]), list(attributes["rank_host"]), attributes["hosts"]
    named = []
    for death in deaths:
        rank, host = death.rank, death.host
        if rank is not None:
            host = hosts[rank_host[rank]]
        elif pids.count(death.pid) == 1:  # pids of several hosts may coincide
            suspect = pids.index(death.pid)
            host = hosts[rank_host[suspect]]
            rank = suspect if rank_host.count(rank_host[suspect]) == 1 else None
        named.append(Lost(rank, host, None, None, death.reason))
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

    SIGINT and SIGTERM are passed on once: the engine finishes its round. The second ends everything at once.
    """
    command = [str(engine.path), "--plan", "-", "-o", str(output), "--expect-ranks", str(plan.ranks), *options.words]
    argv = mpiexec.argv(system, plan, command)
    # The engine binds the ranks itself when they are to be near their NIC.
    environ = mpiexec.kind.environ(
        oversubscribed=is_oversubscribed(system, plan), unbound="--ranks-per-nic" in options.words
    )
    with system.caught_signals() as caught:
        process = system.spawn(argv, text=plan.text, environ=environ)
        watch = Watch([row.rounds for row in plan.rows], plan.ranks)
        try:
            end_s = END_S if options.end_s is None else options.end_s
            ranks = _Ranks(engine.path, mpiexec.kind.stop_signal, end_s, options.start_s)
            overdue = _follow(system, progress, process, watch, caught, ranks)
        finally:
            process.kill()
    launched = (output / "zarr.json").exists()
    stopped_by = next(iter(caught), None)
    outcome = _outcome(mpiexec, process.poll() or 0, watch, launched=launched, overdue=overdue, stopped_by=stopped_by)
    return replace(outcome, start_s=watch.start_s)


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
    """`run_engine` with the first of the launchers that brings the ranks together; says why others were left."""
    for number, mpiexec in enumerate(launchers, 1):
        outcome = run_engine(system, progress, mpiexec, engine, plan, output, options=options)
        if not outcome.apart or number == len(launchers):
            break
        progress.note(f"fablint: {mpiexec.path.name} is left for {launchers[number].path}: {outcome.error}")
    return outcome


@dataclass(frozen=True)
class _Ranks:
    """How to ask the ranks to stop, and how long they may take to start and to end."""

    program: Path
    passed_on: int  # the signal that the launcher passes on
    end_s: float  # when all is written
    start_s: Callable[[], float] | None = None

    def stop(self, process: Process, count: int) -> None:
        """Ranks below us are told at once, those of other hosts by the launcher."""
        if process.signal_program(self.program, signal.SIGINT) < count and process.poll() is None:
            process.signal(self.passed_on)


@dataclass
class _Limits:
    """How long a launch may still take, in seconds of the monotonic clock."""

    begun: float  # when the launcher was started
    start_s: Callable[[], float]  # how long the ranks may take to start
    end_s: float  # how long they may take to end, when all is written
    end: float | None = None  # None: nothing has happened that limits it
    written: bool = False  # the engine has said that the run is written

    def heed(self, watch: Watch, now: float) -> None:
        """What was seen may limit how long the launch is waited for."""
        if watch.ended is not None and not self.written:
            self.written, self.end = True, now + self.end_s
        elif self.end is None and (watch.accused or watch.stuck):
            self.end = now + LOST_S
        elif self.end is None and watch.unreached():
            self.end = now + UNREACHED_S

    def exceeded(self, watch: Watch, now: float) -> str | None:
        """Why the launch is not waited for any longer, empty where its run is written; None: it is waited for."""
        if self.end is not None and now > self.end:
            unreached = f"the ranks did not start: {watch.said()}" if watch.unreached() else NO_END
            return "" if self.written else unreached
        if not watch.started and now > self.begun + (limit_s := self.start_s()):
            said = watch.said() or "the launcher says nothing"
            return f"the ranks did not start within {limit_s:.0f} s: {said}"
        return None


def _follow(
    system: System, progress: Progress, process: Process, watch: Watch, caught: Sequence[int], ranks: _Ranks
) -> str:
    """Read until the end. What a deadline ended it for, empty where it ended by itself or its run was written."""
    passed_on = 0
    limits = _Limits(system.monotonic(), ranks.start_s or (lambda: start_limit_s(watch.ranks)), ranks.end_s)
    while True:
        try:
            line = process.read_line(_GLANCE_S)
        except EOFError:
            ended = process.wait(ranks.end_s if limits.written else LOST_S) is not None
            return "" if ended or limits.written else NO_END
        now = system.monotonic()
        if line is not None:
            watch.take(line, progress)
        if watch.started and not watch.start_s:
            watch.start_s = now - limits.begun
        limits.heed(watch, now)
        if len(caught) > passed_on:
            if passed_on:
                return NO_END
            passed_on = len(caught)
            limits.end = now + STOP_S
            progress.note("fablint: stopping after the round under way; once more to stop now")
            ranks.stop(process, watch.ranks)
        why = limits.exceeded(watch, now)
        if why == "":
            progress.note("fablint: all is written, but the ranks do not end by themselves: they are ended")
        if why is not None:
            return why


def _outcome(
    mpiexec: Mpiexec, status: int, watch: Watch, *, launched: bool, overdue: str, stopped_by: int | None
) -> EngineOutcome:
    """What the exit status and the messages say together.

    The engine's own words count most. A launcher's report of a death is taken only where there are none, for a
    launcher also reports survivors that gave up as dead. Its exit status may be its own.
    """
    if lost := watch.lost():
        return EngineOutcome(INCOMPLETE, str(lost[0]), lost, tuple(watch.accused))
    if watch.errors:
        apart = watch.apart()
        known = USAGE if apart else status if status in (DAMAGED, USAGE, INTERNAL) else INCOMPLETE
        return EngineOutcome(known, watch.errors[0], apart=apart)
    if stopped_by is not None:
        return EngineOutcome(INCOMPLETE, f"interrupted by {signal.Signals(stopped_by).name}", stopped_by=stopped_by)
    words = () if watch.started else tuple(watch.others)
    if overdue:
        return EngineOutcome(INCOMPLETE, overdue, said=words)
    if watch.ended is not None and launched:
        return EngineOutcome(watch.ended)  # the launcher's own status may be that of ranks that had to be ended
    if status == DONE or (status in (DAMAGED, INCOMPLETE) and launched and not watch.deaths(mpiexec)):
        return EngineOutcome(status)
    deaths = tuple(watch.deaths(mpiexec))
    if deaths and watch.started:
        return EngineOutcome(INCOMPLETE, deaths[0].reason, deaths=deaths)
    said = f"{mpiexec.path} failed: {watch.said() or f'exit status {status}'}"
    return EngineOutcome(INCOMPLETE, said, deaths=deaths, apart=watch.apart(), said=words)
