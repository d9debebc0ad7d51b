"""A check of a cluster, level after level, from near to far; hosts that fail a level are excluded from the next.

The levels are those of published practice: ranks of one host, hosts of one switch, of one group, of different groups. A
slow host would slow every level above its own, and would be found there again with more candidates.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fablint.errors import FullDiskError, UsageError
from fablint.model import OF_HOSTS, Diagnosis, Finding, Note, PlannedLevel, Run, State
from fablint.model.limits.known_faults import first_cover
from fablint.text import evidence as seen, notes as noted
from fablint.workflows import analysis, run_files
from fablint.workflows.check.check_record import CheckRecord, save_check
from fablint.workflows.check.check_run import CheckRun
from fablint.workflows.check.counter_changes import Recount
from fablint.workflows.check.exclusions import Exclusions, not_explained
from fablint.workflows.check.launches import same_hosts
from fablint.workflows.check.refinement import Refinement

if TYPE_CHECKING:
    from fablint.plan.check.check_loop import LoopResult, Step
    from fablint.plan.check.levels import Level
    from fablint.plan.check.plan_input import PlanInput
    from fablint.plan.check.stages import Stage
    from fablint.plan.check.suites import Suite


@dataclass
class LevelRuns(CheckRun):
    """The check of a cluster by a suite of levels."""

    suite: Suite
    known: Sequence[Finding] = ()  # findings from before the measurement
    site: Path | None = None  # the site file
    host_facts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by host and name
    exclusions: Exclusions = field(default_factory=Exclusions)  # of hosts that failed a level
    excluding: Sequence[Finding] = ()  # findings that excluded a host, and that the measurements do not show now
    measured: Diagnosis | None = None  # the last diagnosis without them
    inside: list[Finding] = field(default_factory=list)  # between ranks of one host
    skipped: list[Note] = field(default_factory=list)  # levels that could not be measured, and why
    planned: list[PlannedLevel] = field(default_factory=list)  # all levels of the suite, in order
    preflight_notes: Sequence[Note] = ()  # warnings of preflight
    network: Sequence[str] = ()  # networks that preflight did not examine
    recount: Callable[[Run, Collection[str]], Recount] | None = None  # asks the hosts again after the measurement
    recounted: Recount = field(default_factory=Recount)  # their answers
    refinement: Refinement = field(default_factory=Refinement)
    record: CheckRecord | None = None  # the request, kept in the run so that the check can be resumed
    measuring_s: float = 0.0  # of this call, in addition to the rows of the run; below 0: rows were measured before

    def __post_init__(self) -> None:
        from fablint.plan.check.levels import ranks_within

        super().__post_init__()
        self.launches.need(ranks_within(self.suite.levels))  # the same launch measures the other levels
        if self.record is not None:
            self.exclusions = Exclusions(dict(self.record.exclusions))
            self.refinement = Refinement(self.record.request.until)

    # ------------------------------------------------------------------------------------------------ steps

    def steps(self, run: Run | None) -> Iterable[Step]:
        self.planned = self.planned or [PlannedLevel(level.name) for level in self.suite.levels]
        rows = run.facts.rows if run is not None else ()
        pairs = list(zip(self.suite.levels, self.planned, strict=True))
        begun = [level for level, planned in pairs if not planned.is_missing(rows)]
        self.measuring_s -= 0.0 if run is None else _measuring_s(run)
        self._save()
        steps: list[Step] = [partial(self._finish, begun[-1])] if run is not None else []
        return [*steps, *(partial(self._measure, level) for level in self.suite.levels if level not in begun)]

    def _finish(self, level: Level, run: Run | None) -> tuple[Run, bool]:
        """Measure the rounds that a resumed run lacks of the levels up to this one."""
        from fablint.plan.check.interrupted_stage import begun_stage

        assert run is not None
        path = self.launches.output
        stage = begun_stage(run, self.launches.request.slots, lambda name: (path / name).read_text())
        run, _ = self.launches.finish(stage, run)
        run_files.save_topology(self.launches.request.topology, path)
        run_files.save_site(self.site, path)
        self._exclude_faulty(level, run)
        return run, not self.launches.error

    def _measure(self, level: Level, run: Run | None) -> tuple[Run | None, bool]:
        """Measure a level; it is skipped where an earlier launch was the last one."""
        if self.launches.error:
            self.skipped.append(noted.unmeasured_last_level(level.name))
        elif level.within_hosts:
            self._measure_within_hosts(level)
        else:
            run = self._measure_between_hosts(level, run)
        return run, not self.launches.error

    def _measure_within_hosts(self, level: Level) -> None:
        """Measure a run of its own, with two ranks on each host."""
        from fablint.plan.check.levels import several_each

        request = several_each(self.launches.request)
        folder = self.launches.output / run_files.LAUNCHES
        folder.mkdir(parents=True, exist_ok=True)
        output = folder / f"{level.name}.run"
        shutil.rmtree(output, ignore_errors=True)  # of a check that was ended in this level
        inner = replace(self.launches, options=(), request=request, output=output)
        excluded = set(inner.recovery.failed_hosts)
        run = inner.begin(lambda now: self._stage(level, now, None))
        self.launches.request = same_hosts(self.launches.request, inner.request)
        self.launches.count, self.launches.started = inner.count, inner.started
        self._plan(level, rows=())
        self.measuring_s += _measuring_s(run)
        with self.launches.times.spent_on("judging"):
            findings = analysis.diagnose(run, None).verdict.findings
        host_findings = [
            finding
            for finding in findings
            if finding.state in (State.FAULT, State.SUSPECT) and finding.component in OF_HOSTS
        ]
        failed = {host: one for host, one in inner.recovery.failed_hosts.items() if host not in excluded}
        if any(one.state is State.FAULT for one in failed.values()):  # they explain the ranks that other hosts lost
            host_findings = [one for one in host_findings if not _is_loss(one)]
        host_findings = [
            finding
            for finding in host_findings
            if not (_is_loss(finding) and self.launches.requested_name(finding.name) in failed)
        ]
        self.inside = [_inside(finding) for finding in host_findings]
        known_faults = run_files.load_known_faults(self.site).valid if self.site is not None else ()
        faulty = [one for one in self.inside if one.state is State.FAULT and first_cover(known_faults, one) is None]
        self._exclude(level, [*faulty, *self._below_thresholds(run)])

    def _below_thresholds(self, run: Run) -> list[Finding]:
        """Return hosts whose own ranks miss a threshold of the site: enough to exclude a host, but no proof."""
        if self.site is None:
            return []
        comparison = analysis.compare_within(run, run_files.load_thresholds(self.site))
        return [finding for finding in comparison.findings if finding.component == "host"]

    def _measure_between_hosts(self, level: Level, run: Run | None) -> Run:
        if run is None:
            run = self.begin(partial(self._first_stage, level))
            run_files.save_site(self.site, self.launches.output)
        else:
            stage = self._possible_stage(level, run)
            if stage is None:
                return run
            self._save_plan(level, stage)
            run, _ = self.launches.add(stage, run)
        self._exclude_faulty(level, run)
        return run

    def _possible_stage(self, level: Level, run: Run) -> Stage | None:
        """Return the rows of a level; None, with a note, where the hosts that are left cannot measure it."""
        try:
            stage, why = self._stage(level, self.launches.request, run), "no two of the hosts that are left make a pair"
        except UsageError as error:
            stage, why = None, str(error)
            self.skipped.append(noted.unmeasured_level(level.name, str(error)))
        if stage is None:
            self._plan(level, skipped=why)
            run_files.save_levels(self.planned, self.launches.output)
        return stage

    def _first_stage(self, level: Level, request: PlanInput) -> Stage | None:
        stage = self._stage(level, request, None)
        if stage is not None:
            self._save_plan(level, stage)
        return stage

    def _stage(self, level: Level, request: PlanInput, run: Run | None, only: Collection[str] = ()) -> Stage | None:
        """Return the rows of a level without the ranks of excluded hosts; `only` pairs of these hosts, if there are."""
        from fablint.plan.check.levels import level_stage
        from fablint.plan.check.rate_adaptation import rate_of
        from fablint.plan.check.suites import level_budget

        excluded = [rank for rank, host in enumerate(request.rank_hosts) if host in self._excluded]
        rate = None
        if run is not None:
            rate = rate_of(run)
            request = replace(request, shared_cpus=run.facts.instrument.oversubscribed)
        ranks = [rank for rank, host in enumerate(request.rank_hosts) if host in only]
        budget_s = level_budget(self.suite, request)
        stage = level_stage(level, request, request.placement(), excluded, rate, budget_s, ranks)
        if stage is not None:
            self.announcements.level(level.name, level.what, stage)
        return stage

    def follow_up_request(self, run: Run) -> PlanInput:
        """Return the request with the stream that suits the rate of the network."""
        from fablint.plan.check.check_rows import ROWS
        from fablint.plan.check.levels import STREAM_S
        from fablint.plan.check.rate_adaptation import bandwidth_row, rate_of

        return replace(self.launches.request, rows=(ROWS[0], bandwidth_row(rate_of(run), STREAM_S)))

    # ------------------------------------------------------------------------------------------------ excluded hosts

    @property
    def _excluded(self) -> Collection[str]:
        return self.exclusions.levels.keys() | self.launches.recovery.failed_hosts.keys()

    def _exclude_faulty(self, level: Level, run: Run) -> None:
        diagnosis = self.judge(run)
        self._include_healthy(run)
        additional = self._additional(run)
        findings = [finding for finding in diagnosis.verdict.findings if finding not in additional]
        self._exclude(level, [finding for finding in findings if finding.state is State.FAULT])

    def _include_healthy(self, run: Run) -> None:
        """End the exclusion of the hosts that are healthy by what was measured since."""
        for host in self.exclusions.include(self.measured or self.diagnose(run), run):
            level = self.exclusions.by_host[host].level
            self.context.progress.note(
                f"fablint: {host} failed {level}, but is healthy by later measurements: included"
            )

    def measure_more(self, result: LoopResult) -> Run | None:
        """Measure what excluded hosts missed, then all levels again while losses that were asked for are not named."""
        self._include_healthy(result.run)
        self._save()
        budget_s = self.launches.request.budget_s
        is_over = bool(self.launches.error) or (budget_s is not None and _measuring_s(result.run) >= budget_s)
        missed = None if is_over else self._measure_missed(result.run)
        if missed is None and self.refinement.needs_pass(result.diagnosis.verdict, is_time_over=is_over):
            return self._measure_again(result.run)
        return missed

    def _measure_missed(self, run: Run) -> Run | None:
        """Measure the levels that hosts missed which are healthy by what was measured since; None where no host did."""
        is_measured = False
        for level in self.suite.levels:
            hosts = self.exclusions.waiting(level.name)
            if hosts and (stage := self._stage_again(level, hosts, run)) is not None:
                run, is_complete = self.launches.add(stage, run)
                if not is_complete:
                    return None
                self.exclusions.note_measured(level.name, hosts)
                is_measured = True
        return run if is_measured else None

    def _measure_again(self, run: Run) -> Run | None:
        """Measure all levels between hosts once more, with other rounds; None where a launch failed."""
        row_names, number = {row.name for row in run.rows}, self.refinement.passes + 1
        while any(name.startswith(f"{level.name}-{number}-") for level in self.suite.levels for name in row_names):
            number += 1  # of a check that was resumed
        request = replace(self.launches.request, seed=self.launches.request.seed + number)
        for level in self.suite.levels:
            if level.within_hosts or level.pairs == "near and far":
                continue
            stage = self._possible(replace(level, name=f"{level.name}-{number}"), request, run)
            if stage is not None:
                run, is_complete = self.launches.add(stage, run)
                if not is_complete:
                    return None
        return run

    def _possible(self, level: Level, request: PlanInput, run: Run, hosts: Collection[str] = ()) -> Stage | None:
        """Return the rows of a level; None where the hosts that are left make no pair of it."""
        try:
            return self._stage(level, request, run, hosts)
        except UsageError:
            return None

    def _stage_again(self, level: Level, hosts: Sequence[str], run: Run) -> Stage | None:
        """Return the pairs of a level that these hosts take part in; None where the other hosts make none."""
        return self._possible(replace(level, name=f"{level.name}-again"), self.launches.request, run, hosts)

    def _exclude(self, level: Level, findings: Sequence[Finding]) -> None:
        """Exclude the hosts of findings from the further levels."""
        hosts = set(self.launches.request.rank_hosts)
        for finding in findings:
            host = self.launches.requested_name(next(iter(finding.hosts), ""))
            if host in hosts and host not in self._excluded:
                self.exclusions.add(host, level.name, finding)
                self.context.progress.note(f"fablint: {host} fails {level.name} and is excluded from what follows")
        self._save()

    # ------------------------------------------------------------------------------------------------ run directory

    def _save_plan(self, level: Level, stage: Stage) -> None:
        """Write the rows of a level into the run before they are measured: a killed check leaves them behind."""
        self._plan(level, rows=tuple(str(row.spec.name) for row in stage.plan.rows))
        if level.pairs != "near and far":  # its rows look for the rate of the network and judge no host
            self.exclusions.note_level(level.name)
        run_files.save_levels(self.planned, self.launches.output)
        self._save()

    def _plan(self, level: Level, rows: tuple[str, ...] | None = None, skipped: str | None = None) -> None:
        self.planned[self.suite.levels.index(level)] = PlannedLevel(level.name, rows, skipped)

    def _save(self, *, ended: bool = False) -> None:
        """Write into the run what resuming the check takes."""
        if self.record is None:
            return
        failed_hosts, hosts = self.launches.recovery.failed_hosts, set(self.launches.request.rank_hosts)
        outside = [finding for host, finding in failed_hosts.items() if host not in hosts]  # in no launch of the run
        record = replace(
            self.record,
            slots=tuple(self.launches.request.slots),
            findings=(*self.known, *outside),
            inside=tuple(self.inside),
            exclusions=self.exclusions.by_host,
            ended=ended,
        )
        save_check(record, self.launches.output)

    def mark_ended(self) -> None:
        self._save(ended=True)

    # ------------------------------------------------------------------------------------------------ diagnosis

    def diagnose(self, run: Run) -> Diagnosis:
        self.excluding = ()
        with self.launches.times.spent_on("judging"):
            self.measured = self._diagnose_with_additional(run)
            self.excluding = self.exclusions.open_findings(self.measured, run, self.launches.request.topology)
            return self._diagnose_with_additional(run) if self.excluding else self.measured

    def _diagnose_with_additional(self, run: Run) -> Diagnosis:
        """Write what does not follow from the times into the run, and diagnose it with that.

        On a full disk the diagnosis has it as well.
        """
        findings, notes = self._additional(run), [*self.preflight_notes, *self.recounted.notes]
        with suppress(FullDiskError):
            run_files.save_findings(findings, self.launches.output, notes, self.network)
            run_files.save_host_facts(self.host_facts, self.launches.output)
        verdict = run_files.external_verdict(findings, notes, self.network)
        return analysis.diagnose(run, self.launches.request.topology, known_verdict=verdict)

    def _additional(self, run: Run) -> Sequence[Finding]:
        """Return the findings that do not follow from the times of the run, named as it names its hosts."""
        recovery = self.launches.recovery
        grown = self.recounted.findings
        failed = [*not_explained(recovery.failed_hosts.values(), grown), *recovery.failed_pairs.values()]
        earlier_findings = [*self.known, *self.inside, *failed, *self.excluding]
        findings = [*earlier_findings, *(finding for finding in grown if finding not in earlier_findings)]
        return analysis.named_as(run, findings, self.launches.request.rank_hosts)

    def final_diagnosis(self, result: LoopResult) -> Diagnosis:
        """Diagnose the run again with the counters that hosts have after the measurement, which are stored in the run.

        Without counters from before the measurement this is the diagnosis of `result`, with what excluded hosts missed.
        """
        if self.recount is None:
            return self.diagnose(result.run) if self.exclusions.by_host else result.diagnosis
        failed_hosts = self.launches.recovery.failed_hosts
        proven = {host for host, finding in failed_hosts.items() if finding.state is State.FAULT}  # many do not answer
        hosts = {*self.launches.request.rank_hosts, *failed_hosts} - proven
        with self.launches.times.spent_on("asking"):
            self.recounted = self.recount(result.run, hosts)
        run_files.save_counters(self.recounted.counters, self.launches.output)
        return self.diagnose(result.run)

    @property
    def is_bounded(self) -> bool:
        return self.refinement.is_reached

    def notes(self, run: Run) -> Sequence[Note]:
        times = self.launches.times
        duration = noted.duration(
            total_s=times.total_s,
            # A row that was continued has the time of its last launch only.
            measuring_s=max(0.0, self.measuring_s + _measuring_s(run)),
            asking_s=times.seconds["asking"],
            planning_s=times.seconds["planning"],
            starting_s=times.seconds["starting"],
            early_s=self.launches.early_s,
            judging_s=times.seconds["judging"],
            launches=self.launches.started,
        )
        repeated = self.launches.recovery.notes
        return [*self.skipped, *self.exclusions.notes, *repeated, *self.refinement.notes, duration]


def _inside(finding: Finding) -> Finding:
    return finding.model_copy(update={"evidence": (seen.inside_host(), *finding.evidence)})


def _is_loss(finding: Finding) -> bool:
    """Tell whether the finding is about ranks that failed, and not about times."""
    return bool(seen.rank_failed.among(finding.evidence))


def _measuring_s(run: Run) -> float:
    """Return the seconds that the rows of a run took, with the barriers between rounds."""
    return sum(row.facts.result.wall_s or 0.0 for row in run.rows)
