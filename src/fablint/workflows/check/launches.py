"""The launches that the run of a check is made of, and what is measured when one of them fails.

A host that dies, stalls or cannot be reached ends the launch of all hosts. What was measured is kept; then the recovery
finds out which host it was, and a launch of the other hosts measures the rounds that are missing. That launch writes a
run of its own, `launches/N.run`, since a run belongs to its ranks; its cells are copied into the run afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fablint.errors import FullDiskError, IncompleteError, NotStartedError, StoppedError
from fablint.model import Run
from fablint.model.facts.failed_rank import FailedRank
from fablint.model.host_name import HostNames
from fablint.workflows import measurement
from fablint.workflows.check.stage_times import StageTimes
from fablint.workflows.context import Context
from fablint.workflows.recovery.launch_recovery import LaunchFailure, LaunchRecovery, NoRecovery
from fablint.workflows.run_files import LAUNCHES, reported_full_disk

if TYPE_CHECKING:
    from fablint.model.arrays import RankPairs
    from fablint.model.facts.run_attributes import RunState
    from fablint.plan.check.plan_input import PlanInput
    from fablint.plan.check.stages import Stage

MOST_LAUNCHES = 8  # of one stage


@dataclass(frozen=True)
class _LaunchEnd:
    """How a launch ended: all of the run so far, and what ended the launch early."""

    run: Run
    failed: Sequence[FailedRank] = ()
    error: str = ""


@dataclass
class Launches:
    """The launches that one run is made of. Hosts are taken out of `request` only before there is a run."""

    context: Context
    request: PlanInput
    output: Path
    recovery: LaunchRecovery = field(default_factory=NoRecovery)
    options: tuple[str, ...] = ()  # run options of the engine
    count: int = 0  # of measurements: stages, and what is measured again after a failure
    started: int = 0  # times that ranks were started for them
    times: StageTimes = field(default_factory=StageTimes)  # of the check
    error: str = ""  # why the run is not complete
    _not_started: NotStartedError | None = field(default=None, init=False)  # where ranks of the last launch did not

    def __post_init__(self) -> None:
        from fablint.measure import ServedLaunch

        if self.context.served is None:
            self.context = replace(self.context, served=ServedLaunch())

    @property
    def early_s(self) -> float:
        """Return the seconds by which ranks were started before their first plan was made."""
        return self.context.served.early_s if self.context.served is not None else 0.0

    def need(self, ranks_each: int) -> None:
        """Announce stages with so many ranks on each host, so that the launch of another stage has them as well."""
        if self.context.served is not None:
            most = max((slot.ranks for slot in self.request.slots), default=1)
            self.context.served.fewest_each = max(ranks_each, most)

    def release(self) -> None:
        """Tell the ranks that nothing more is measured: they end while the run is judged."""
        if self.context.served is not None:
            self.context.served.release()

    def close(self) -> None:
        """Wait until the ranks have ended."""
        from fablint.measure.served_launch import HELD

        if self.context.served is not None and not self.context.served.close():
            self.context.progress.note(HELD)

    def begin(self, make: Callable[[PlanInput], Stage | None]) -> Run:
        """Measure the first stage. Hosts that prevent the launch are taken out of `request`, and so out of the run.

        Parameters
        ----------
        make
            Makes the stage for the hosts that are left; None where no two of them make a pair.

        Raises
        ------
        IncompleteError
            Nothing was measured, and it is not known which host is the cause.
        """
        for _ in range(MOST_LAUNCHES):
            self.request = without(self.request, self.recovery.failed_hosts)  # also those of an earlier run
            stage = make(self.request)
            if stage is None:
                raise IncompleteError("no two hosts make a pair", "name more hosts")
            try:
                ended = self._whole(stage, None)
            except IncompleteError as error:
                if not self._exclude_causes((), _reason(error)):
                    raise
                continue
            return self._completed(stage, ended)[0]
        raise IncompleteError(f"no launch of {MOST_LAUNCHES} measured anything", "fablint doctor looks at the set-up")

    def add(self, stage: Stage, run: Run) -> tuple[Run, bool]:
        """Measure a further stage; return all of the run, and whether further launches are possible."""
        ended = _LaunchEnd(run)
        if not self._has_failures:
            try:
                ended = self._whole(stage, run)
            except IncompleteError as error:
                ended = _LaunchEnd(run, error=_reason(error))
        return self._completed(stage, ended)

    def finish(self, stage: Stage, run: Run) -> tuple[Run, bool]:
        """Measure what an interrupted run lacks of `stage`, which is all of its plan; return the same as `add`."""
        ended = _LaunchEnd(run)
        if not self._has_failures:
            lost_before = len(run.facts.lost)
            try:
                with self._launch():
                    result = measurement.resume(self.context, self.output, self._engine_options)
                if result is not None:
                    self._note_start(result)
                    ended = _LaunchEnd(result.run, result.run.facts.lost[lost_before:], _why_ended(result))
            except IncompleteError as error:
                ended = _LaunchEnd(run, error=_reason(error))
        return self._completed(stage, ended)

    @property
    def _has_failures(self) -> bool:
        """True if hosts of the run, or pairs of them, are excluded."""
        failed = self.recovery.failed_hosts.keys()
        return bool(self.recovery.failed_pairs) or not failed.isdisjoint(self.request.rank_hosts)

    def _completed(self, stage: Stage, ended: _LaunchEnd) -> tuple[Run, bool]:
        """Exclude the hosts that ended a launch and measure what is missing without them, until no pair is missing."""
        for _ in range(MOST_LAUNCHES):
            try:
                if ended.error and not self._exclude_causes(ended.failed, ended.error):
                    break
            except (StoppedError, FullDiskError):
                raise
            except IncompleteError as error:
                ended = replace(ended, error=error.message)
                break
            rest = self._rest(stage, ended.run) if self._has_failures or ended.error else None
            if rest is None:
                return _marked(ended.run, "complete"), True
            ended = self._part(stage, rest, ended.run)
        self.error = ended.error
        return _marked(ended.run, "interrupted"), False

    def _whole(self, stage: Stage, run: Run | None) -> _LaunchEnd:
        """Launch all hosts; the cells go into the run itself."""
        lost_before = len(run.facts.lost) if run is not None else 0
        result = self._measure(stage, self.output, run)
        return _LaunchEnd(result.run, result.run.facts.lost[lost_before:], _why_ended(result))

    def _part(self, stage: Stage, rest: Stage, run: Run) -> _LaunchEnd:
        """Launch the hosts that are left into a run of its own, and copy its cells into the run.

        The run gets the rounds of the whole `stage`, so that it can be resumed when the failed hosts are back.
        """
        from fablint.store import absorb, read_run, set_state

        measurement.write_rounds(stage, self.output)
        folder = self.output / LAUNCHES
        folder.mkdir(exist_ok=True)
        part = folder / f"{self.count}.run"
        try:
            result = self._measure(rest, part, None)
        except IncompleteError as error:
            return _LaunchEnd(run, error=_reason(error))
        failed = [_in_ranks_of(run, entry, result.run) for entry in result.run.facts.lost]
        absorb(self.output, part, _plan_of_rows(stage))
        if failed:
            set_state(self.output, "interrupted", failed)
        return _LaunchEnd(read_run(self.output), failed, _why_ended(result))

    def _measure(self, stage: Stage, output: Path, run: Run | None) -> measurement.MeasurementResult:
        with self._launch():
            result = measurement.measure_stage(self.context, stage, output, run, self._engine_options)
        self._note_start(result)
        return result

    def _note_start(self, result: measurement.MeasurementResult) -> None:
        self.started += result.is_new_launch
        self.times.seconds["starting"] += result.start_s

    @contextmanager
    def _launch(self) -> Iterator[None]:
        """Count a measurement, and keep the error where its ranks did not start."""
        self.count += 1
        self._not_started = None
        try:
            yield
        except NotStartedError as error:
            self._not_started = error
            self.started += 1
            raise

    @property
    def _engine_options(self) -> list[str]:
        return [*self.recovery.engine_options, *self.options]

    def _exclude_causes(self, entries: Sequence[FailedRank], reason: str) -> bool:
        """Exclude the hosts that ended the last launch; False where a further launch would end for the same reason.

        Raises IncompleteError where no two hosts can be launched together.
        """
        hosts = self.request.rank_hosts
        entries = [entry for entry in entries if entry.host]
        partners = ["" if entry.partner is None else hosts[entry.partner] for entry in entries]
        present = [host for host in dict.fromkeys(hosts) if host not in self.recovery.failed_hosts]
        names = HostNames(hosts, complete=True)
        named = [replace(entry, host=names.find(entry.host or "") or entry.host) for entry in entries]
        failure = LaunchFailure(present, named, partners, reason, self._not_started)
        return bool(present) and self.recovery.exclude_causes(failure)

    def requested_name(self, host: str) -> str:
        """Return the name of a host in the request: a host may call itself by a longer or a shorter name."""
        return HostNames(self.request.rank_hosts, complete=True).find(host) or host

    def _rest(self, stage: Stage, run: Run) -> Stage | None:
        """Return what is missing of the stage and can be measured without the failed hosts; None where nothing is."""
        from fablint.plan.check.surviving_ranks import narrowed

        begun = {row.name for row in run.rows}
        rounds_left: dict[str, Sequence[int]] = {}
        for row in stage.plan.rows:
            name, rounds = str(row.spec.name), stage.rounds[str(row.spec.rounds_file)]
            rounds_left[name] = self._missing(name, rounds, run) if name in begun else range(len(rounds))
        return narrowed(stage, self.request.slots, self.recovery.failed_hosts, self.recovery.failed_pairs, rounds_left)

    def _missing(self, name: str, rounds: Sequence[RankPairs], run: Run) -> list[int]:
        """Return the rounds of a row that lack a pair which can be measured."""
        import numpy as np

        requested = HostNames(self.request.rank_hosts, complete=True).matched(run.hosts)
        row, hosts = run.row(name), [requested.get(host, host) for host in run.rank_host]
        count = np.asarray(row.arrays["count"][:]).min(axis=-1)

        def is_missing(a: int, b: int, index: int) -> bool:
            ends = frozenset((hosts[a], hosts[b]))
            return (
                not (count[a, index] or count[b, index])
                and not ends & set(self.recovery.failed_hosts)
                and (ends not in self.recovery.failed_pairs)
            )

        return [index for index, pairs in enumerate(rounds) if any(is_missing(a, b, index) for a, b in pairs.tolist())]


def without(request: PlanInput, failed: Collection[str]) -> PlanInput:
    """Return the request without the failed hosts. Raises IncompleteError where fewer than two hosts are left."""
    slots = tuple(slot for slot in request.slots if slot.host not in failed)
    if slots == request.slots:
        return request
    if len({slot.host for slot in slots}) < 2:
        left = f"{slots[0].host} alone is" if slots else "no host is"
        raise IncompleteError(
            f"{left} left to be measured", "see above why the others cannot be measured, and repair them"
        )
    return replace(request, slots=slots, ranks=sum(slot.ranks for slot in slots))


def same_hosts(request: PlanInput, inner: PlanInput) -> PlanInput:
    """Return the request for those of its hosts that a launch with several ranks on each could start."""
    hosts = set(inner.rank_hosts)
    slots = tuple(slot for slot in request.slots if slot.host in hosts)
    return replace(request, slots=slots, ranks=sum(slot.ranks for slot in slots))


def _plan_of_rows(stage: Stage) -> dict[str, tuple[str, list[int]]]:
    """Return the plan line of each row of a stage and its number of cells in every round, by row name."""
    return {
        str(row.spec.name): (row.spec.text, [2 * len(pairs) for pairs in stage.rounds[str(row.spec.rounds_file)]])
        for row in stage.plan.rows
    }


def _reason(error: IncompleteError) -> str:
    """Return why a launch failed. Raises the error of a signal, the end of the job or a full disk: no launch follows.

    The advice for ranks that did not start is for a launch of its own: here the recovery looks for the cause.
    """
    if isinstance(error, StoppedError | FullDiskError):
        raise error
    return error.message if isinstance(error, NotStartedError) else str(error)


def _why_ended(result: measurement.MeasurementResult) -> str:
    """Return why a launch ended early; empty where it was completed. Raises FullDiskError where the disk is full."""
    if result.run.path is not None and (full := reported_full_disk(result.error, result.run.path)):
        raise full
    if result.error:
        return result.error
    return "" if result.run.state == "complete" else "the launch ended early"


def _in_ranks_of(run: Run, entry: FailedRank, part: Run) -> FailedRank:
    """Translate what a part of a run says of a failed rank to the ranks of the run."""
    hosts = run.rank_host
    partner = entry.partner
    other = part.rank_host[partner] if partner is not None and 0 <= partner < part.ranks else None
    return replace(
        entry,
        rank=hosts.index(entry.host) if entry.host in hosts else None,
        partner=hosts.index(other) if other in hosts else None,
    )


def _marked(run: Run, state: RunState) -> Run:
    """Set the state of the run after its last launch.

    It is complete where it only lacks cells of failed hosts, which its facts name, and interrupted where a launch
    failed, even if that launch added nothing to it.
    """
    from fablint.store import read_run, set_state

    if run.state == state or run.path is None:
        return run
    set_state(run.path, state)
    return read_run(run.path)
