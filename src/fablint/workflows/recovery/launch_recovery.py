"""Launches of a check that outlive their hosts: who is lost is left out, and the rest is measured without it.

A host that dies, hangs or cannot be reached ends the launch of all. What was measured is kept; then it is found out
which host it was, and a launch of the others measures the rounds that are missing. That launch writes a run of its
own, `launches/N.run`, since a run belongs to its ranks; its cells become part of the run when it is over. Where a
launch does not start although all hosts answer, launches of fewer hosts show which of them keep it from starting.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fablint.errors import IncompleteError, NotStartedError, StoppedError
from fablint.model import Run
from fablint.workflows import flow, local_check
from fablint.workflows.recovery.host_triage import Crew, Entry
from fablint.workflows.recovery.start_trials import MOST_SEARCHES, StartTrials, findings_of

if TYPE_CHECKING:
    from fablint.plan.check.check_request import Asked
    from fablint.plan.check.stages import Stage
    from fablint.plan.schedule.seats import Pairs

WATCHDOG_S = 20.0  # a rank without progress for so long is lost: the rounds of a check last a second or two
MOST_LAUNCHES = 8  # of one stage


@dataclass(frozen=True)
class _Ended:
    """How a launch ended: all of the run so far, and what ended it early."""

    run: Run
    lost: Sequence[Entry] = ()
    error: str = ""


@dataclass
class Launches:
    """The launches that one run is made of. `asked` shrinks only before there is a run."""

    around: flow.Surroundings
    asked: Asked
    output: Path
    crew: Crew
    trials: StartTrials
    options: tuple[str, ...] = ()  # run options of the engine
    launches: int = 0
    error: str = ""  # why the run is not complete
    _not_started: NotStartedError | None = field(
        default=None, init=False
    )  # how the last launch ended, where its ranks did not start

    def begin(self, make: Callable[[Asked], Stage | None]) -> Run:
        """Measure the first stage. Hosts that prevent the launch are left out of `asked`, and so of the run.

        Raises:
            IncompleteError: nothing was measured, and nobody knows on account of which host.
        """
        for _ in range(MOST_LAUNCHES):
            stage = make(self.asked)
            if stage is None:
                raise IncompleteError("no two hosts make a pair", "name more hosts")
            try:
                ended = self._whole(stage, None)
            except IncompleteError as error:
                if not self._find_out((), _reason(error)):
                    raise
                self.asked = without(self.asked, self.crew.lost)
                continue
            return self._to_the_end(stage, ended)[0]
        raise IncompleteError(f"no launch of {MOST_LAUNCHES} measured anything", "fablint doctor looks at the set-up")

    def add(self, stage: Stage, run: Run) -> tuple[Run, bool]:
        """Measure a further stage; returns all of the run, and whether there is sense in going on."""
        ended = _Ended(run)
        if not self._short:
            try:
                ended = self._whole(stage, run)
            except IncompleteError as error:
                ended = _Ended(run, error=_reason(error))
        return self._to_the_end(stage, ended)

    def finish(self, stage: Stage, run: Run) -> tuple[Run, bool]:
        """Measure what a run lacks that was ended early; `stage` is all that it was to have. Returns as `add`."""
        ended = _Ended(run)
        if not self._short:
            known = len(run.attributes.get("lost", ()))
            try:
                with self._launch():
                    measured = flow.resume(self.around, self.output, self._engine_options)
                if measured is not None:
                    ended = _Ended(measured.run, measured.run.attributes.get("lost", ())[known:], _why(measured))
            except IncompleteError as error:
                ended = _Ended(run, error=_reason(error))
        return self._to_the_end(stage, ended)

    @property
    def _short(self) -> bool:
        """Are hosts of the run lost, or kept apart?"""
        return bool(self.crew.apart) or not self.crew.lost.keys().isdisjoint(self.asked.rank_hosts)

    def _to_the_end(self, stage: Stage, ended: _Ended) -> tuple[Run, bool]:
        """Find out whom a launch lost and measure what is missing without them, till nothing more can be had."""
        for _ in range(MOST_LAUNCHES):
            try:
                if ended.error and not self._find_out(ended.lost, ended.error):
                    break
            except IncompleteError as error:
                ended = replace(ended, error=error.message)
                break
            rest = self._rest(stage, ended.run) if self._short or ended.error else None
            if rest is None:
                return _sealed(ended.run), True
            ended = self._part(stage, rest, ended.run)
        self.error = ended.error
        return ended.run, False

    def _whole(self, stage: Stage, run: Run | None) -> _Ended:
        """A launch of all hosts, into the run itself."""
        known = len(run.attributes.get("lost", ())) if run is not None else 0
        measured = self._measured(stage, self.output, run)
        return _Ended(measured.run, measured.run.attributes.get("lost", ())[known:], _why(measured))

    def _part(self, stage: Stage, rest: Stage, run: Run) -> _Ended:
        """A launch of those who are left, into a run of its own that is then part of the run.

        The run gets the rounds of the whole `stage`, so that it can be resumed when the lost hosts are back.
        """
        from fablint.store import absorb, read_run, set_state

        local_check.write_rounds(stage, self.output)
        folder = self.output / flow.LAUNCHES
        folder.mkdir(exist_ok=True)
        part = folder / f"{self.launches}.run"
        try:
            measured = self._measured(rest, part, None)
        except IncompleteError as error:
            return _Ended(run, error=_reason(error))
        lost = [_of_the_run(entry, run, measured.run) for entry in measured.run.attributes.get("lost", ())]
        absorb(self.output, part, _as_planned(stage))
        if lost:
            set_state(self.output, "interrupted", lost)
        return _Ended(read_run(self.output), lost, _why(measured))

    def _measured(self, stage: Stage, output: Path, run: Run | None) -> flow.Measured:
        with self._launch():
            return local_check.measure_stage(self.around, stage, output, run, self._engine_options)

    @contextmanager
    def _launch(self) -> Iterator[None]:
        """Count a launch, and keep how it ended where its ranks did not start."""
        self.launches += 1
        self._not_started = None
        try:
            yield
        except NotStartedError as error:
            self._not_started = error
            raise

    @property
    def _engine_options(self) -> list[str]:
        return ["--watchdog", f"{WATCHDOG_S:g}", *self.options]

    def _find_out(self, entries: Sequence[Entry], why: str) -> bool:
        hosts = self.asked.rank_hosts
        partners = [
            hosts[entry["partner"]] if isinstance(entry.get("partner"), int) else ""
            for entry in entries
            if entry["host"]
        ]
        present = [host for host in dict.fromkeys(hosts) if host not in self.crew.lost]
        named = [{**entry, "host": self.planned(entry["host"])} for entry in entries if entry["host"]]
        if not present:
            return False
        if self.crew.find_out(present, named, partners, why):
            return True
        return self._not_started is not None and self._find_by_launches(present, self._not_started)

    def _find_by_launches(self, present: Sequence[str], error: NotStartedError) -> bool:
        """Leave out hosts that keep a launch from starting; False where there is no sense in another launch.

        Raises IncompleteError where no two hosts start.
        """
        if self.trials.searches == MOST_SEARCHES:
            return False
        result = self.trials.search(present, error)
        hosts, paths = findings_of(result, error.message)
        self.crew.leave_out(hosts, paths)
        if hosts:
            return True
        self.around.progress.note("fablint: all hosts start when the launch is repeated: it is repeated once")
        again, self.trials.repeated = not self.trials.repeated, True
        return again

    def planned(self, host: str) -> str:
        """A host by the name that was asked for: it may call itself by a longer or a shorter one."""
        names = {name.partition(".")[0]: name for name in self.asked.rank_hosts}
        return names.get(host.partition(".")[0], host)

    def _rest(self, stage: Stage, run: Run) -> Stage | None:
        """What is missing of the stage and can be measured without those who are lost."""
        from fablint.plan.check.surviving_ranks import narrowed
        from fablint.plan.rows.grammar import split_row

        begun = {row.name for row in run.rows}
        wanted: dict[str, Sequence[int]] = {}
        for row in stage.plan.rows:
            texts = split_row(row.options.split())[1]
            name, rounds = str(texts["name"]), stage.rounds[str(texts["rounds-file"])]
            wanted[name] = self._missing(name, rounds, run) if name in begun else range(len(rounds))
        return narrowed(stage, self.asked.slots, self.crew.lost, self.crew.apart, wanted)

    def _missing(self, name: str, rounds: Sequence[Pairs], run: Run) -> list[int]:
        """Rounds of a row that lack a pair which can be measured."""
        import numpy as np

        row, hosts = run.row(name), [self.planned(host) for host in run.rank_host]
        count = np.asarray(row.arrays["count"][:]).min(axis=-1)

        def wanted(a: int, b: int, index: int) -> bool:
            ends = frozenset((hosts[a], hosts[b]))
            return (
                not (count[a, index] or count[b, index])
                and not ends & set(self.crew.lost)
                and (ends not in self.crew.apart)
            )

        return [index for index, pairs in enumerate(rounds) if any(wanted(a, b, index) for a, b in pairs.tolist())]


def without(asked: Asked, lost: Collection[str]) -> Asked:
    """The same with fewer hosts. Raises IncompleteError where nobody has a partner left."""
    slots = tuple(slot for slot in asked.slots if slot.host not in lost)
    if len({slot.host for slot in slots}) < 2:
        left = f"{slots[0].host} alone is" if slots else "no host is"
        raise IncompleteError(f"{left} left to be measured", "see above what the others have, and mend them")
    return replace(asked, slots=slots, ranks=sum(slot.ranks for slot in slots))


def _as_planned(stage: Stage) -> dict[str, tuple[str, list[int]]]:
    """Plan line and cells of every round of the rows of a stage, by name."""
    from fablint.plan.rows.grammar import split_row

    found = {}
    for row in stage.plan.rows:
        texts = split_row(row.options.split())[1]
        found[str(texts["name"])] = row.options, [2 * len(pairs) for pairs in stage.rounds[str(texts["rounds-file"])]]
    return found


def _reason(error: IncompleteError) -> str:
    """Why a launch failed. Raises StoppedError where a signal ended it: nothing is looked for, nothing else begun."""
    if isinstance(error, StoppedError):
        raise error
    return str(error)


def _why(measured: flow.Measured) -> str:
    """Why a launch ended early; empty where it came to its end."""
    if measured.error:
        return measured.error
    return "" if measured.run.state == "complete" else "the launch ended early"


def _of_the_run(entry: Entry, run: Run, part: Run) -> Entry:
    """What a part says of a lost rank, in the ranks of the run."""
    hosts = run.rank_host
    partner = entry.get("partner")
    other = part.rank_host[partner] if isinstance(partner, int) and 0 <= partner < part.ranks else None
    return {
        **entry,
        "rank": hosts.index(entry["host"]) if entry["host"] in hosts else None,
        "partner": hosts.index(other) if other in hosts else None,
    }


def _sealed(run: Run) -> Run:
    """The run as complete: what it lacks belongs to hosts that are lost, and it says so."""
    from fablint.store import read_run, set_state

    if run.state == "complete" or run.path is None:
        return run
    set_state(run.path, "complete")
    return read_run(run.path)
