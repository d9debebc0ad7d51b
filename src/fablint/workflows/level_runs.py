"""A check of a cluster, level after level, from near to far: hosts that fail a level are left out of the next.

As the references prescribe it: ranks of one host, hosts of one switch, of one group, of different groups. A slow host
would slow every level above its own, and be found there again with more suspects than it has partners.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fablint.errors import UsageError
from fablint.model import OF_HOSTS, Diagnosis, Finding, PlannedLevel, Run, State, host_of
from fablint.workflows import flow
from fablint.workflows.check_files import KeptCheck, keep_check
from fablint.workflows.counter_changes import Recount
from fablint.workflows.local_check import Checked, with_undecided
from fablint.workflows.recovery.launch_recovery import Launches

if TYPE_CHECKING:
    from fablint.plan.check.check_request import Asked
    from fablint.plan.check.levels import Level
    from fablint.plan.check.stages import Stage
    from fablint.plan.check.suites import Suite

_WAYS_SHOWN = 4


@dataclass
class Elimination:
    """One check. `failed` says of each host that is left out of further levels where it failed."""

    launches: Launches
    suite: Suite
    known: Sequence[Finding] = ()  # what was found before anything was measured
    site: Path | None = None  # the site file
    host_facts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by host and name
    failed: dict[str, str] = field(default_factory=dict)
    inside: list[Finding] = field(default_factory=list)  # found between ranks of one host
    skipped: list[str] = field(default_factory=list)  # levels that could not be measured, and why
    planned: list[PlannedLevel] = field(default_factory=list)  # all levels of the suite, in their order
    notes: Sequence[str] = ()  # what preflight warns of
    network: Sequence[str] = ()  # what of the network preflight did not look at
    recount: Callable[[Run, Collection[str]], Recount] | None = None  # asks hosts again, when all is measured
    recounted: Recount = field(default_factory=Recount)  # what they said then
    kept: KeptCheck | None = None  # what was asked for: kept in the run, so that the check can go on where it ended
    measuring_s: float = 0.0
    asking_s: float = 0.0  # spent before: hosts were asked what they are

    @property
    def around(self) -> flow.Surroundings:
        return self.launches.around

    def check(self, run: Run | None = None) -> Checked:
        """Measure the levels, judge after each, ask again what is open, report.

        With `run` a check goes on that was ended early: `planned` then has its levels.
        """
        from fablint.plan.check.stages import asked_again

        clock = self.around.system.monotonic
        begun = clock()
        self.planned = self.planned or [PlannedLevel(level.name) for level in self.suite.levels]
        missing = [level.is_missing(run.attributes["rows"] if run is not None else ()) for level in self.planned]
        self._save()
        begun_levels = [level for level, lacks in zip(self.suite.levels, missing, strict=True) if not lacks]
        if run is not None:
            run = self._finished(run, begun_levels[-1])
        for level in (level for level in self.suite.levels if level not in begun_levels):
            if self.launches.error:
                self.skipped.append(f"{level.name} was not measured: the launches came to an end before")
            elif level.within_hosts:
                self._within_hosts(level)
            else:
                run = self._between_hosts(level, run)
        assert run is not None  # every suite has a level between hosts
        if self.launches.error:
            return self._reported(run, self._judged_at_last(run), clock() - begun)
        done = asked_again(self._asked_at(run), run, self._more, self.judge, lambda: clock() - begun)
        diagnosis = with_undecided(self._judged_at_last(done.run), done.undecided, done.ended)
        return self._reported(done.run, _without_open_ways(diagnosis), clock() - begun)

    def _judged_at_last(self, run: Run) -> Diagnosis:
        """The diagnosis with what the hosts say after the measurement."""
        if self.recount is not None:
            present = set(self.launches.asked.rank_hosts) - self.launches.crew.lost.keys()
            self.recounted = self.recount(run, present)
            flow.keep_counters(self.recounted.counters, self.launches.output)
        return self.judge(run)

    def _finished(self, run: Run, level: Level) -> Run:
        """The run with the rounds that it lacks of the levels up to this one; who fails them is in no further one."""
        from fablint.plan.check.interrupted_stage import begun_stage

        path = self.launches.output
        stage = begun_stage(run, self.launches.asked.slots, lambda name: (path / name).read_text())
        run, _ = self.launches.finish(stage, run)
        flow.keep_topology(self.launches.asked.topology, path)
        flow.keep_site(self.site, path)
        self._eliminate_judged(level, run)
        return run

    def _save(self, *, ended: bool = False) -> None:
        """Keep in the run directory what a check needs to go on."""
        if self.kept is not None:
            gone = {host: self.launches.crew.lost[host] for host in self._not_of_the_run()}
            now = replace(
                self.kept,
                slots=self.launches.asked.slots,
                findings=[*self.known, *gone.values()],
                inside=self.inside,
                failed=self.failed,
                ended=ended,
            )
            keep_check(now, self.launches.output)

    def _not_of_the_run(self) -> list[str]:
        """Lost hosts that were in no launch of the run: they do not come back when it goes on."""
        hosts = set(self.launches.asked.rank_hosts)
        return [host for host in self.launches.crew.lost if host not in hosts]

    def judge(self, run: Run) -> Diagnosis:
        """The diagnosis of all that was measured, with what is known besides."""
        notes = [*self.notes, *self.recounted.notes]
        flow.keep_findings(self._besides(), self.launches.output, notes, self.network)
        flow.keep_host_facts(self.host_facts, self.launches.output)
        return flow.diagnose(run, self.launches.asked.topology)

    def _besides(self) -> list[Finding]:
        known = [*self.known, *self.inside, *self.launches.crew.findings]
        return [*known, *(one for one in self.recounted.findings if one not in known)]

    # ------------------------------------------------------------------------------------------------ levels

    def _within_hosts(self, level: Level) -> None:
        """A run of its own, with two ranks on each host."""
        from fablint.plan.check.levels import several_each

        asked = several_each(self.launches.asked)
        folder = self.launches.output / flow.LAUNCHES
        folder.mkdir(parents=True, exist_ok=True)
        output = folder / f"{level.name}.run"
        shutil.rmtree(output, ignore_errors=True)  # of a check that ended in this level
        inner = replace(self.launches, options=(), asked=asked, output=output)
        run = inner.begin(lambda now: self._stage(level, now, None))
        self.launches.asked = same_hosts(self.launches.asked, inner.asked)
        self.launches.launches = inner.launches
        self._plan(level, rows=())
        self.measuring_s += _measuring_s(run)
        found = flow.diagnose(run, None).verdict.findings
        slow = (State.FAULT, State.SUSPECT)
        self.inside = [_inside(one) for one in found if one.state in slow and one.component in OF_HOSTS]
        faulty = [one for one in self.inside if one.state is State.FAULT]
        self._eliminate(level, [*faulty, *self._below_within(run)])

    def _below_within(self, run: Run) -> list[Finding]:
        """Hosts whose own ranks miss what the site promises of them: one figure of a host accuses, but is no proof."""
        if self.site is None:
            return []
        comparison = flow.compare_within(run, flow.load_thresholds(self.site))
        return [one for one in comparison.findings if one.component == "host"]

    def _between_hosts(self, level: Level, run: Run | None) -> Run:
        if run is None:
            run = self.launches.begin(lambda now: self._first_stage(level, now))
            flow.keep_topology(self.launches.asked.topology, self.launches.output)
            flow.keep_site(self.site, self.launches.output)
        else:
            stage = self._possible_stage(level, run)
            if stage is None:
                return run
            self._keep(level, stage)
            run, _ = self.launches.add(stage, run)
        self._eliminate_judged(level, run)
        return run

    def _eliminate_judged(self, level: Level, run: Run) -> None:
        besides = self._besides()
        found = [one for one in self.judge(run).verdict.findings if one not in besides]
        self._eliminate(level, [one for one in found if one.state is State.FAULT])

    def _possible_stage(self, level: Level, run: Run) -> Stage | None:
        """The rows of a level; none, and a note, where those who are left cannot do it: halves of unequal size."""
        try:
            stage, why = self._stage(level, self.launches.asked, run), "no two of the hosts that are left make a pair"
        except UsageError as error:
            stage, why = None, str(error)
            self.skipped.append(f"{level.name} was not measured: {error}")
        if stage is None:
            self._plan(level, skipped=why)
            flow.keep_levels(self.planned, self.launches.output)
        return stage

    def _first_stage(self, level: Level, asked: Asked) -> Stage | None:
        stage = self._stage(level, asked, None)
        if stage is not None:
            self._keep(level, stage)
        return stage

    def _keep(self, level: Level, stage: Stage) -> None:
        """Write into the run what is planned, before it is measured: a check that is killed leaves it behind."""
        from fablint.plan.rows.grammar import split_row

        names = [str(split_row(row.options.split())[1]["name"]) for row in stage.plan.rows]
        self._plan(level, rows=tuple(names))
        flow.keep_levels(self.planned, self.launches.output)
        self._save()

    def _plan(self, level: Level, rows: tuple[str, ...] | None = None, skipped: str | None = None) -> None:
        place = self.suite.levels.index(level)
        self.planned[place] = PlannedLevel(level.name, rows, skipped)

    def _stage(self, level: Level, asked: Asked, run: Run | None) -> Stage | None:
        """The rows of a level, without the ranks of hosts that failed."""
        from fablint.plan.check.levels import level_stage
        from fablint.plan.check.rate_adaptation import rate_of
        from fablint.plan.check.suites import level_budget

        left_out = [rank for rank, host in enumerate(asked.rank_hosts) if host in self._left_out]
        rate = None
        if run is not None:
            rate = rate_of(run)
            asked = replace(asked, shared_cpus=bool(run.attributes.get("instrument", {}).get("oversubscribed")))
        return level_stage(level, asked, asked.seats(), left_out, rate, level_budget(self.suite, asked))

    @property
    def _left_out(self) -> Collection[str]:
        return self.failed.keys() | self.launches.crew.lost.keys()

    def _eliminate(self, level: Level, findings: Sequence[Finding]) -> None:
        hosts = set(self.launches.asked.rank_hosts)
        for finding in findings:
            host = self.launches.planned(host_of(finding))
            if host in hosts and host not in self._left_out:
                self.failed[host] = level.name
                self.around.progress.note(f"fablint: {host} fails {level.name} and is left out of what follows")
        self._save()

    def _more(self, stage: Stage, run: Run | None) -> tuple[Run, bool]:
        assert run is not None
        return self.launches.add(stage, run)

    def _asked_at(self, run: Run) -> Asked:
        """What questions are asked with: the stream that suits the network."""
        from fablint.plan.check.default_rows import ROWS
        from fablint.plan.check.levels import STREAM_S
        from fablint.plan.check.rate_adaptation import bandwidth_line, rate_of

        return replace(self.launches.asked, lines=(ROWS[0], bandwidth_line(rate_of(run), STREAM_S)))

    # ------------------------------------------------------------------------------------------------ the end

    def _reported(self, run: Run, diagnosis: Diagnosis, seconds: float) -> Checked:
        measured = self.measuring_s + _measuring_s(run)
        seconds += self.asking_s
        note = (
            f"{seconds:.0f} s in all: {measured:.0f} s measuring, {seconds - measured:.0f} s for"
            f" {self.launches.launches} launches, asking hosts, planning and judging"
        )
        ended = [f"not all was measured: {self.launches.error}"] if self.launches.error else []
        notes = [*diagnosis.verdict.notes, *ended, *self.skipped, *self._eliminated(), note]
        diagnosis = replace(diagnosis, verdict=diagnosis.verdict.model_copy(update={"notes": tuple(notes)}))
        page = flow.page_of(self.launches.output)
        flow.write_report(run, diagnosis, page)
        self._save(ended=True)
        error = f"{self.launches.error}: go on with fablint resume {run.path}" if self.launches.error else ""
        return Checked(run, diagnosis, page, error)

    def _eliminated(self) -> list[str]:
        levels = dict.fromkeys(self.failed.values())
        return [
            f"left out after {level}: {', '.join(host for host, at in self.failed.items() if at == level)}"
            for level in levels
        ]


def _without_open_ways(diagnosis: Diagnosis) -> Diagnosis:
    """No pass where streams between switches were slow among others, and there was no time to measure them alone."""
    from fablint.analyse import redecided

    ways = [question.name for question in diagnosis.distances]
    if not ways:
        return diagnosis
    shown = ", ".join(ways[:_WAYS_SHOWN]) + (f" and {len(ways) - _WAYS_SHOWN} more" if len(ways) > _WAYS_SHOWN else "")
    verdict = redecided(diagnosis.verdict, diagnosis.verdict.findings, complete=False)
    note = f"undecided: {shown}: slower than streams on a switch, and not measured alone (a larger --budget does)"
    return replace(diagnosis, verdict=verdict.model_copy(update={"notes": (*verdict.notes, note)}))


def same_hosts(asked: Asked, inner: Asked) -> Asked:
    """The same hosts as a launch with several ranks on each could start."""
    hosts = set(inner.rank_hosts)
    slots = tuple(slot for slot in asked.slots if slot.host in hosts)
    return replace(asked, slots=slots, ranks=sum(slot.ranks for slot in slots))


def _inside(finding: Finding) -> Finding:
    return finding.model_copy(update={"evidence": f"between ranks of the host itself: {finding.evidence}"})


def _measuring_s(run: Run) -> float:
    """Seconds that the rows of a run took, the meetings of all ranks between rounds included."""
    return sum(float(row.attributes.get("wall_s", 0.0)) for row in run.rows)
