"""One run of the engine, from the launcher's start to its end, whatever happens in between.

The engine ends by itself: when it is done, when it is asked to (it then finishes the round under way), when its
watchdog finds a rank that hangs. The launcher ends the survivors of a rank that died. Each of these has a deadline
here, after which the whole family of processes is killed, so that nothing hangs.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fablint.measure import messages
from fablint.measure.engine import Engine
from fablint.measure.launcher import Death, Mpiexec
from fablint.measure.messages import Failed, Lost, RoundBegun, Started, Stuck
from fablint.measure.progress import Progress
from fablint.model import Plan
from fablint.system import Process, System

DONE, DAMAGED, USAGE, INCOMPLETE, INTERNAL = 0, 1, 2, 3, 5  # exit statuses, docs/reference/engine.md

START_S, START_S_PER_RANK = 60.0, 0.05  # till all ranks are there: Hydra waits for ever for a host out of reach
STOP_S = 75.0  # after SIGINT: a round may last 60 s, then the engine writes
LOST_S = 30.0  # after a rank was reported lost
NO_END = "the engine did not end by itself and was killed"
_SILENT_SHOWN = 8  # ranks named in a message
_GLANCE_S = 0.2
_LAST_LINES = 200  # of what others than the engine print


@dataclass(frozen=True)
class Outcome:
    """How a run of the engine ended."""

    status: int  # one of the engine's exit statuses
    error: str = ""  # what the engine or the launcher gave as the reason, one line
    lost: tuple[Lost, ...] = ()  # what the engine says
    deaths: tuple[Death, ...] = ()  # what the launcher says where the engine says nothing
    stopped_by: int | None = None  # the signal that we passed on


@dataclass
class _Watch:
    """What was seen so far."""

    rows: Sequence[int]  # rounds of every row
    ranks: int
    errors: list[str] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    stuck: list[Stuck] = field(default_factory=list)
    others: list[str] = field(default_factory=list)  # lines that are not the engine's
    started: bool = False
    rows_begun: list[str] = field(default_factory=list)

    def deaths(self, mpiexec: Mpiexec) -> list[Death]:
        return mpiexec.kind.deaths(self.others)

    def take(self, line: str, progress: Progress) -> None:
        message = messages.parse(line)
        self.started |= message is not None
        match message:
            case Started():
                pass
            case RoundBegun() as begun:
                self._round(begun, progress)
            case Lost() as lost if lost.partner not in {one.rank for one in self.lost if one.rank is not None}:
                self.lost.append(lost)  # but not what a lost rank says when it is woken to be ended
            case Stuck() as stuck:
                self.stuck.append(stuck)
            case Failed(text):
                self.errors.append(text)
            case None if line.strip():
                self.others.append(line)
                del self.others[:-_LAST_LINES]
            case _:
                pass

    def said(self) -> str:
        """The first line of the launcher that is neither a ruler nor blank; empty where there is none."""
        return next((line.strip() for line in self.others if any(letter.isalpha() for letter in line)), "")

    def silent(self) -> Lost | None:
        """The rank that hangs in a group of many: the one that did not say that it waits."""
        if not self.stuck:
            return None
        silent = sorted(set(range(self.ranks)) - {one.rank for one in self.stuck})
        first = self.stuck[0]
        if len(silent) == 1:
            return Lost(silent[0], None, first.round, None, f"was lost ({first.reason})")
        shown = ", ".join(map(str, silent[:_SILENT_SHOWN])) + (", ..." if len(silent) > _SILENT_SHOWN else "")
        return Lost(None, None, first.round, None, f"among {shown or 'all'} was lost ({first.reason})")

    def _round(self, begun: RoundBegun, progress: Progress) -> None:
        if begun.row not in self.rows_begun:
            self.rows_begun.append(begun.row)
        number, of = len(self.rows_begun), len(self.rows)
        which = f"row {number} of {of}, {begun.row}" if number <= of > 1 else begun.row  # a retest is in no plan
        progress.step(which, begun.round, begun.of, begun.left_s)


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
    options: Sequence[str] = (),
) -> Outcome:
    """Measure `plan` into the run directory `output`; `options` are further run options of the engine.

    SIGINT and SIGTERM are passed on once: the engine finishes its round. The second ends everything at once.
    """
    argv = mpiexec.argv(system, plan, [str(engine.path), "--plan", "-", "-o", str(output), *options])
    crowded = plan.crowd > len(system.affinity())
    # The engine binds the ranks itself when they are to be near their NIC.
    environ = mpiexec.kind.environ(oversubscribed=crowded, unbound="--ranks-per-nic" in options)
    with system.caught_signals() as caught:
        process = system.spawn(argv, text=plan.text, environ=environ)
        watch = _Watch([row.rounds for row in plan.rows], plan.ranks)
        try:
            overdue = _follow(system, progress, process, watch, caught, engine.path)
        finally:
            process.kill()
    launched = (output / "zarr.json").exists()
    return _outcome(
        mpiexec, process.poll() or 0, watch, launched=launched, overdue=overdue, stopped_by=next(iter(caught), None)
    )


def _follow(
    system: System, progress: Progress, process: Process, watch: _Watch, caught: Sequence[int], program: Path
) -> str:
    """Read until the end. What a deadline ended it for, empty where it ended by itself."""
    passed_on = 0
    deadline: float | None = None
    patience = START_S + START_S_PER_RANK * watch.ranks
    start = system.monotonic() + patience
    while True:
        try:
            line = process.read_line(_GLANCE_S)
        except EOFError:
            return "" if process.wait(LOST_S) is not None else NO_END
        now = system.monotonic()
        if line is not None:
            watch.take(line, progress)
        if (watch.lost or watch.stuck) and deadline is None:
            deadline = now + LOST_S
        if len(caught) > passed_on:
            if passed_on:
                return NO_END
            passed_on = len(caught)
            deadline = now + STOP_S
            progress.note("fablint: stopping after the round under way; once more to stop now")
            process.signal_program(program, signal.SIGINT)
        if deadline is not None and now > deadline:
            return NO_END
        if not watch.started and now > start:
            return f"the ranks did not start within {patience:.0f} s: {watch.said() or 'the launcher says nothing'}"


def _outcome(
    mpiexec: Mpiexec, status: int, watch: _Watch, *, launched: bool, overdue: str, stopped_by: int | None
) -> Outcome:
    """What the exit status and the messages say together.

    The engine's own words count most. A launcher's report of a death is taken only where there are none, for a
    launcher also reports survivors that gave up as dead. Its exit status may be its own.
    """
    lost = tuple(watch.lost) or tuple(filter(None, [watch.silent()]))
    if lost:
        return Outcome(INCOMPLETE, str(lost[0]), lost)
    if watch.errors:
        return Outcome(status if status in (DAMAGED, USAGE, INTERNAL) else INCOMPLETE, watch.errors[0])
    if stopped_by is not None:
        return Outcome(INCOMPLETE, f"interrupted by {signal.Signals(stopped_by).name}", stopped_by=stopped_by)
    if overdue:
        return Outcome(INCOMPLETE, overdue)
    if status == DONE or (status in (DAMAGED, INCOMPLETE) and launched and not watch.deaths(mpiexec)):
        return Outcome(status)
    deaths = watch.deaths(mpiexec)
    if deaths:
        return Outcome(INCOMPLETE, deaths[0].reason, deaths=tuple(deaths))
    return Outcome(INCOMPLETE, f"{mpiexec.path} failed: {watch.said() or f'exit status {status}'}")
