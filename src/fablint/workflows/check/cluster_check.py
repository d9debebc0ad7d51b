"""The check of a cluster: preflight of the hosts, discovery of the topology, then level after level."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fablint.errors import IncompleteError, PreflightError, UsageError
from fablint.model import Allocation, Finding, Medium, Note, PlannedLevel, Run, Slots, Topology
from fablint.model.facts.run_attributes import RunFacts
from fablint.model.preflight_results import Fitness
from fablint.text.evidence_sentences import sentences
from fablint.text.fitness_findings import unseen_network
from fablint.text.notes import note_text
from fablint.workflows import fabric_discovery, host_preflight, measurement, programs, run_files, run_formats
from fablint.workflows.check.check_record import CheckRecord
from fablint.workflows.check.check_run import CheckOutcome
from fablint.workflows.check.connectivity import Connectivity, connectivity_of
from fablint.workflows.check.counter_changes import HostCounters
from fablint.workflows.check.launches import Launches, without
from fablint.workflows.check.level_runs import LevelRuns
from fablint.workflows.check.local_check import hosts_input
from fablint.workflows.check.preflight_findings import (
    faulty_networks,
    first_failures,
    not_understood,
    other_findings,
    slow_logins,
    suppressed_notes,
    warning_notes,
    warnings,
    with_later,
)
from fablint.workflows.check.request import CheckRequest, UnfitPolicy
from fablint.workflows.check.stage_times import StageTimes
from fablint.workflows.context import Context
from fablint.workflows.recovery.host_exclusion import HostExclusion
from fablint.workflows.recovery.host_triage import HostTriage
from fablint.workflows.recovery.pair_trials import PairTrials
from fablint.workflows.recovery.start_trials import StartTrials
from fablint.workflows.shared_folder import refuse_unshared

if TYPE_CHECKING:
    from fablint.discover import DiscoveredFabric
    from fablint.plan.check.plan_input import PlanInput
    from fablint.snapshot import NicFact


class UnfitError(PreflightError):
    """Preflight rejected hosts, without --exclude-unfit and --include-unfit. `fitness` holds the reasons."""

    def __init__(self, fitness: Fitness, message: str, hint: str) -> None:
        super().__init__(message, hint)
        self.fitness = fitness


@dataclass(frozen=True)
class _Hosts:
    """The hosts of a check as preflight saw them before the first launch, and how to ask them again."""

    context: Context
    allocation: Allocation
    nics: Sequence[str]  # that the user names as those of the fabric
    declared: host_preflight.SiteDeclaration
    preflight: host_preflight.PreflightResult
    connectivity: Connectivity
    times: StageTimes  # of the check

    @property
    def fitness(self) -> Fitness:
        return self.connectivity.fitness

    def look(self, hosts: Collection[str]) -> Mapping[str, Finding]:
        """Ask hosts again: a finding for each one that does not answer, or of which a NIC has failed since."""
        present = replace(self.allocation, hosts=tuple(host for host in self.allocation.hosts if host in hosts))
        if not present.hosts:
            return {}
        now = host_preflight.preflight_hosts(
            self.context.system, present, ping=False, keep=False, nics=self.nics, declared=self.declared
        )
        failures_before = first_failures(self.fitness)
        return {
            host: finding
            for host, finding in first_failures(now.fitness).items()
            if finding.component in ("host", "nic") and failures_before.get(host) != finding
        }

    def level_runs(
        self,
        request: PlanInput,
        output: Path,
        record: CheckRecord,
        excluded: Mapping[str, Finding],
        findings: Sequence[Finding],
        site: Path | None,
        planned: Sequence[PlannedLevel] = (),
    ) -> LevelRuns:
        """Return the check of these hosts, begun or resumed.

        Parameters
        ----------
        request
            Ranks, hosts, topology, budget.
        output
            Run directory.
        record
            The request as the run keeps it, with the state of a check that is resumed.
        excluded
            Hosts that are not measured, and why.
        findings
            What else is known before the measurement.
        site
            Site file.
        planned
            Levels of a check that is resumed.
        """
        from fablint.snapshot import host_facts

        media, ranks_per_nic = record.request.media, record.request.ranks_per_nic
        trials = PairTrials(self.context, media)
        triage = HostTriage(trials, self.look, failed_hosts=dict(excluded))
        trials_of_starts = start_trials_of(self.context, self.preflight, media)
        recovery = HostExclusion(triage, trials_of_starts, self.connectivity.unconnected)
        options = () if ranks_per_nic is None else ("--ranks-per-nic", str(ranks_per_nic))
        snapshots = self.preflight.collected.snapshots
        counters = HostCounters(
            self.context.system, self.allocation, snapshots, self.fitness.results, self.declared.site
        )
        return LevelRuns(
            Launches(self.context, request, output, recovery, options, times=self.times),
            record.request.planned_suite,
            findings,
            site,
            {host: host_facts(snapshot) for host, snapshot in snapshots.items()},
            inside=list(record.inside),
            planned=list(planned),
            preflight_notes=[*record.notes, *warning_notes(record.warnings), *not_understood(record.warnings)],
            network=record.network,
            recount=counters.recount,
            record=record,
        )


def check_cluster(context: Context, request: CheckRequest, output: Path) -> CheckOutcome:
    """Preflight all hosts, measure level after level, diagnose, report.

    Hosts that do not answer are excluded and named, and with `unfit="exclude"` those that preflight rejects.

    Parameters
    ----------
    context
        Machine, progress, MPI.
    request
        Hosts and suite.
    output
        Run directory to write.

    Raises
    ------
    UsageError
        There are no hosts to measure, the request contradicts itself, a compiler or launcher that the user chose is not
        for it, the host of rank 0 does not see the folder of the run, or a host not the engine.
    PreflightError
        No compiler was found. UnfitError: preflight rejected hosts, and `unfit` is "refuse".
    IncompleteError
        Fewer than two hosts can be measured.
    """
    from fablint.discover import add_assumed_cables, discover, read_files

    system, note = context.system, context.progress.note
    times = StageTimes(system.monotonic)
    # Files are read first: nothing is asked or measured with a file that cannot be read.
    declared = host_preflight.SiteDeclaration(site=run_files.load_site(request.site, system))
    texts = read_files(request.sources)
    allocation, unusable = fabric_discovery.usable_hosts(system, request, idle_only=True)
    context = programs.with_programs(context, request.media)
    with _starting(context, request, allocation.hosts) as context:
        note("fablint: asking the hosts whether they are fit, and which switch they are connected to")
        with times.spent_on("asking"):
            preflight = host_preflight.preflight_hosts(system, allocation, nics=request.nics, declared=declared)
        for words in unseen_network(preflight.fitness):
            note(f"fablint: network: {words}")
        logins = slow_logins(preflight.collected.login_s)
        for login in logins:
            note(f"fablint: {note_text(login)}")
        with times.spent_on("planning"):
            fabric = discover(system, preflight.collected, texts, allocation.hosts, request.blocks)
            connectivity = connectivity_of(preflight, fabric.topology)
        hosts = _Hosts(context, allocation, request.nics, declared, preflight, connectivity, times)
        for finding in connectivity.paths:
            note(f"fablint: {finding.component} {finding.name}: {sentences(finding.evidence)}")
        unfit = _unfit_hosts(connectivity, request.unfit)
        for name, finding in unfit.items():
            note(f"fablint: {name} is excluded: {finding.component} {finding.name}: {sentences(finding.evidence)}")
        topology = add_assumed_cables(fabric.topology) if fabric.topology is not None else None
        if topology is not fabric.topology:
            note("fablint: no source says which cables join the switches: one path between each two is assumed")
        each = ranks_each(request, fabric, [host for host in allocation.hosts if host not in unfit])
        ranks = _plan_input(request, topology, each)
        refuse_unshared(system, output.parent, ranks.slots)
        with times.spent_on("planning"):
            _note_plan(context, request, ranks, len(each))
        findings = [*unusable, *other_findings(hosts.fitness, fabric.findings, unfit.values()), *connectivity.paths]
        record = _record(request, topology, hosts.fitness, logins)
        levels = hosts.level_runs(ranks, output, record, unfit, findings, request.site)
        with times.spent_on("planning"):
            programs.build_first(context)
        return levels.check()


def _record(request: CheckRequest, topology: Topology | None, fitness: Fitness, logins: Sequence[Note]) -> CheckRecord:
    """Return what the run keeps of a check, so that it can be resumed."""
    from fablint.discover import write_topology

    return CheckRecord(
        request.in_any_folder(),
        topology=write_topology(topology) if topology is not None else "",
        site=request.site.read_text(encoding="utf-8") if request.site is not None else "",
        warnings=tuple(warnings(fitness)),
        notes=(*fitness.notes, *suppressed_notes(fitness), *logins),
        network=tuple(unseen_network(fitness)),
    )


def _with_later(record: CheckRecord, fitness: Fitness) -> CheckRecord:
    """Return the record with the preflight results of the hosts when the check is resumed."""
    notes = [*fitness.notes, *suppressed_notes(fitness)]
    return replace(
        record,
        warnings=tuple(with_later(record.warnings, warnings(fitness))),
        notes=(*record.notes, *(note for note in notes if note not in record.notes)),
        network=tuple(dict.fromkeys([*record.network, *unseen_network(fitness)])),
    )


def resume_check(context: Context, path: Path, record: CheckRecord) -> CheckOutcome | None:
    """Resume a check that was ended early: measure the rounds, levels and follow-ups that it lacks, then report.

    The hosts are those of the run, in the same job or another one. Hosts that do not answer, or are drained now, are
    excluded and named; no host is refused any more.

    Parameters
    ----------
    context
        Machine, progress, MPI.
    path
        Run directory.
    record
        The check that the run directory keeps.

    Returns
    -------
    CheckOutcome or None
        None where nothing is missing.

    Raises
    ------
    UsageError
        The job has none of the hosts, or the record is of another version.
    IncompleteError
        Fewer than two hosts can be measured.
    """
    from fablint.plan.check.plan_input import PlanInput

    system, request = context.system, record.request
    times = StageTimes(system.monotonic)
    measurement.restore(path)
    run = run_formats.read(path) if (path / "zarr.json").exists() else None
    if record.ended and run is not None and not measurement.has_missing_rounds(run):
        return None
    context = programs.with_programs(context, request.media)
    names = fabric_discovery.FabricRequest(",".join(slot.host for slot in record.slots))
    allocation, unusable = fabric_discovery.usable_hosts(system, names, idle_only=True)
    with _starting(context, request, allocation.hosts) as context:
        context.progress.note("fablint: asking the hosts whether they are fit to go on")
        site = run_files.site_of(record.site, path)
        declared = host_preflight.SiteDeclaration(site=run_files.load_site(site, system))
        with times.spent_on("asking"):
            preflight = host_preflight.preflight_hosts(system, allocation, nics=request.nics, declared=declared)
        record = _with_later(record, preflight.fitness)
        topology = run_files.topology_of(record.topology, path)
        connectivity = connectivity_of(preflight, topology)
        hosts = _Hosts(context, allocation, request.nics, declared, preflight, connectivity, times)
        unfit = _unfit_hosts(connectivity, request.unfit, is_resumed=True)
        excluded = {**{finding.name: finding for finding in unusable}, **unfit}
        ranks = sum(slot.ranks for slot in record.slots)
        complete_input = PlanInput(ranks, record.slots, topology, budget_s=request.budget, media=request.media)
        left = without(complete_input, excluded)
        refuse_unshared(system, path, left.slots)
        planned_ranks = complete_input if run is not None else left  # a run belongs to its ranks
        findings = [*other_findings(hosts.fitness, (), excluded.values()), *connectivity.paths]
        named = {(finding.component, finding.name) for finding in (*findings, *excluded.values())}
        findings += [finding for finding in record.findings if (finding.component, finding.name) not in named]
        planned = run_files.load_levels(run or Run(path, RunFacts(), ()))
        levels = hosts.level_runs(planned_ranks, path, record, excluded, findings, site, planned)
        programs.build_first(context)
        return levels.check(run)


def _starting(context: Context, request: CheckRequest, hosts: Sequence[str]) -> AbstractContextManager[Context]:
    """Start the ranks of a check while the hosts are asked; their number must not depend on what the hosts answer."""
    from fablint.plan.check.levels import ranks_within

    slots = [Slots(host, request.ppn or 1) for host in hosts] if request.ranks_per_nic is None else []
    return programs.starting(context, request.media, slots, ranks_within(request.planned_suite.levels))


def ranks_each(request: CheckRequest, fabric: DiscoveredFabric, hosts: Sequence[str]) -> Mapping[str, int]:
    """Return the number of ranks on each host.

    Raises UsageError where it is a number for each NIC, and hosts have different numbers of NICs.
    """
    from fablint.model.names import plural
    from fablint.snapshot import adapters

    if request.ranks_per_nic is None:
        return dict.fromkeys(hosts, request.ppn or 1)
    nics: dict[str, list[NicFact]] = {host: [] for host in hosts}
    for nic in fabric.nics:
        if nic.host in nics:
            nics[nic.host].append(nic)
    counts = {host: len(adapters(nics_of_host)) for host, nics_of_host in nics.items()}
    few, many = min(counts, key=counts.__getitem__), max(counts, key=counts.__getitem__)
    if counts[few] != counts[many] or not counts[few]:
        difference = f"{few} has {plural(counts[few], 'NIC')}, {many} {counts[many]}"
        raise UsageError(f"--ranks-per-nic: {difference}", "exclude the odd hosts with -x, or give --ppn")
    return dict.fromkeys(hosts, request.ranks_per_nic * counts[few])


def start_trials_of(
    context: Context, preflight: host_preflight.PreflightResult, media: Sequence[Medium] = (Medium(),)
) -> StartTrials:
    """Return the search for hosts that prevent launches, with what preflight knows of addresses and routes.

    The launches of the search start MPI if those of a check of these `media` do.
    """
    from fablint.preflight import Host, unanswered

    hosts = [Host(snapshot) for snapshot in preflight.collected.snapshots.values()]
    owners: dict[str, set[str]] = defaultdict(set)
    for host in hosts:
        for nic in host.nics:
            for text in nic.addresses:
                owners[text.partition("/")[0]].add(host.name)
    addresses = {address: next(iter(names)) for address, names in owners.items() if len(names) == 1}
    needs_mpi = not context.launcher or any(medium.transport == "mpi" for medium in media)
    transport = "mpi" if needs_mpi else "tcp"
    return StartTrials(context, transport, addresses, unanswered(hosts), faulty_networks(preflight.fitness))


def _note_plan(context: Context, request: CheckRequest, ranks: PlanInput, hosts: int) -> None:
    """Print what will be measured. Raises UsageError where the suite does not fit the fabric."""
    from fablint.plan.check.suites import plan_summary

    planned = plan_summary(request.planned_suite, ranks)
    rounds, minutes = sum(level.rounds for level in planned.levels), planned.predicted_s / 60
    names = ", ".join(level.name for level in planned.levels if level.rows)
    context.progress.note(
        f"fablint: {hosts} hosts: {names}: {rounds} rounds, {minutes:.1f} min"
        f" on a fast network (a job would ask for {planned.walltime_s / 60:.0f} min)"
    )
    if request.budget is not None or request.until is not None:
        from fablint.workflows.check.expected_losses import expected_losses, in_words

        context.progress.note(f"fablint: {in_words(expected_losses(request.planned_suite, ranks))}")


def _unfit_hosts(connectivity: Connectivity, policy: UnfitPolicy, *, is_resumed: bool = False) -> Mapping[str, Finding]:
    """Return the hosts to exclude, and why: those that are not connected with the others unless `policy` is measure.

    Raises UnfitError where preflight rejected hosts and `policy` is refuse, but not of a check that is resumed.
    """
    from fablint.model.names import fold

    fitness = connectivity.fitness
    if fitness.unfit and policy == "refuse" and not is_resumed:
        count = len(fitness.unfit)
        what = f"{fold(fitness.unfit)} {'is' if count == 1 else 'are'} not fit to be measured"
        hint = "repair what is said above; --exclude-unfit goes on without, --include-unfit measures all that answer"
        raise UnfitError(fitness, what, hint)
    failures = first_failures(fitness)
    unconnected = {} if policy == "measure" else connectivity.unconnected
    return {**unconnected, **(failures if policy == "exclude" else {host: failures[host] for host in fitness.silent})}


def _plan_input(request: CheckRequest, topology: Topology | None, each: Mapping[str, int]) -> PlanInput:
    if len(each) < 2:
        left = next(iter(each), "no host")
        raise IncompleteError(f"{left} is left: at least 2 hosts are required", "see above why others are excluded")
    ranks = hosts_input([Slots(host, count) for host, count in each.items()])
    return replace(ranks, topology=topology, budget_s=request.budget, media=request.media)
