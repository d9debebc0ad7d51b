"""`fablint check` of a cluster: who is there, what hangs where, and then level after level."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fablint.errors import IncompleteError, PreflightError, UsageError
from fablint.model import Allocation, Finding, Run, Slots, Topology
from fablint.model.preflight_results import Fitness, Outcome, finding_of, finding_of_silent
from fablint.workflows import fabric_discovery, flow, host_preflight
from fablint.workflows.check_files import KeptCheck, Unfit
from fablint.workflows.counter_changes import HostCounters
from fablint.workflows.level_runs import Elimination
from fablint.workflows.local_check import Checked, asked_hosts
from fablint.workflows.preflight_findings import (
    faulty_networks,
    site_notes,
    suspects,
    warning_notes,
    warnings,
    with_later,
)
from fablint.workflows.recovery.host_triage import Crew
from fablint.workflows.recovery.launch_recovery import Launches, without
from fablint.workflows.recovery.start_trials import StartTrials
from fablint.workflows.shared_folder import refuse_unshared

if TYPE_CHECKING:
    from fablint.discover import Discovered
    from fablint.plan.check.check_request import Asked
    from fablint.plan.check.suites import Suite
    from fablint.snapshot import NicFact


@dataclass(frozen=True)
class Wanted:
    """What is to be measured, on which hosts."""

    fabric: fabric_discovery.FabricRequest
    suite: Suite
    ranks_each: int = 1
    ranks_per_nic: int | None = None  # in the place of `ranks_each`
    budget_s: float | None = None
    site: Path | None = None  # the site file
    unfit: Unfit = "refuse"  # what becomes of hosts that preflight finds unfit


class UnfitError(PreflightError):
    """Hosts are unfit, and nobody said what shall become of them. `fitness` says why."""

    def __init__(self, fitness: Fitness, message: str, hint: str) -> None:
        super().__init__(message, hint)
        self.fitness = fitness


def check_cluster(around: flow.Surroundings, wanted: Wanted, output: Path) -> Checked:
    """Ask every host whether it is fit, measure level after level, judge, report.

    Hosts that do not answer are left out and named, and so are unfit ones where that is wanted.

    Raises:
        UsageError: there are no hosts to measure, what is wanted contradicts itself, or the host of rank 0 does not
            see the folder of the run.
        UnfitError: hosts are unfit, and shall neither be left out nor measured all the same.
        IncompleteError: fewer than two hosts can be measured.
    """
    from fablint.discover import discover, read_files, with_presumed_cables
    from fablint.snapshot import host_facts

    system, note = around.system, around.progress.note
    begun = system.monotonic()
    declared = host_preflight.Declared(
        site=flow.load_site(wanted.site, system)
    )  # now, so that nothing is measured with a file that cannot be read
    texts = read_files(wanted.fabric.files)  # nor asks anybody with one of these
    allocation, left_out = fabric_discovery.usable_hosts(system, wanted.fabric, idle_only=True)
    note("fablint: asking the hosts whether they are fit, and where they hang")
    looked = host_preflight.look_at(system, allocation, nics=wanted.fabric.nics, declared=declared)
    network = looked.fitness.unseen_network()
    for words in network:
        note(f"fablint: network: {words}")
    fabric = discover(system, looked.heard, texts, allocation.hosts, wanted.fabric.blocks)
    unfit = _without_unfit(looked.fitness, wanted.unfit)
    for name, finding in unfit.items():
        note(f"fablint: {name} is left out: {finding.component} {finding.name}: {finding.evidence}")
    known = fabric.topology
    topology = with_presumed_cables(known) if known is not None else None
    if topology is not known:
        note("fablint: no source tells which cables join the switches: one way between two is presumed")
    each = ranks_each(wanted, fabric, [host for host in allocation.hosts if host not in unfit])
    asked = _asked(wanted, topology, each)
    refuse_unshared(system, output.parent, asked.slots)
    _say_plan(around, wanted, asked, len(each))
    nics = wanted.fabric.nics
    crew = Crew(
        around, lambda hosts: _look(around, allocation, looked.fitness, hosts, nics, declared), lost=dict(unfit)
    )
    others = [*left_out, *_also_found(looked.fitness, fabric.findings, unfit.values())]
    trials = trials_of(around, looked)
    launches = Launches(around, asked, output, crew, trials, _options(wanted.ranks_per_nic))
    kept = _kept(wanted, topology, looked.fitness)
    return Elimination(
        launches,
        wanted.suite,
        others,
        wanted.site,
        {host: host_facts(one) for host, one in looked.heard.snapshots.items()},
        asking_s=system.monotonic() - begun,
        notes=_notes(kept),
        network=network,
        recount=HostCounters(system, allocation, looked.heard.snapshots, looked.fitness.results, declared.site).recount,
        kept=kept,
    ).check()


def _kept(wanted: Wanted, topology: Topology | None, fitness: Fitness) -> KeptCheck:
    """What the run keeps of it."""
    from fablint.discover import write_topology

    return KeptCheck(
        suite=wanted.suite.name,
        unequal=any(level.unequal for level in wanted.suite.levels),
        ranks_per_nic=wanted.ranks_per_nic,
        budget_s=wanted.budget_s,
        unfit=wanted.unfit,
        nics=wanted.fabric.nics,
        topology=write_topology(topology) if topology is not None else "",
        site=wanted.site.read_text(encoding="utf-8") if wanted.site is not None else "",
        warnings=warnings(fitness),
        notes=site_notes(fitness),
        network=fitness.unseen_network(),
    )


def _with_later(kept: KeptCheck, fitness: Fitness) -> KeptCheck:
    """What was kept, with what preflight says of the hosts when the check goes on."""
    return replace(
        kept,
        warnings=with_later(kept.warnings, warnings(fitness)),
        notes=list(dict.fromkeys([*kept.notes, *site_notes(fitness)])),
        network=list(dict.fromkeys([*kept.network, *fitness.unseen_network()])),
    )


def _notes(kept: KeptCheck) -> list[str]:
    """Notes of the verdict about what preflight says."""
    return [*kept.notes, *warning_notes(kept.warnings)]


def resume_check(around: flow.Surroundings, path: Path, kept: KeptCheck) -> Checked | None:
    """Go on with a check that was ended early: rounds, levels and follow-ups that it lacks, verdict and report.

    The hosts are those of the run, in the same job or another one. Who does not answer, or is drained now, is left
    out and named; nothing is refused any more. None where nothing is missing.

    Raises:
        UsageError: this job has none of the hosts, or what is kept is of another version.
        IncompleteError: fewer than two hosts can be measured.
    """
    from fablint.plan.check.check_request import Asked
    from fablint.plan.check.suites import find_suite
    from fablint.snapshot import host_facts

    system = around.system
    begun = system.monotonic()
    flow.take_in_launches(path)
    run = flow.read(path) if (path / "zarr.json").exists() else None
    if kept.ended and run is not None and not flow.lacks_rounds(run):
        return None
    request = fabric_discovery.FabricRequest(",".join(slot.host for slot in kept.slots))
    allocation, left_out = fabric_discovery.usable_hosts(system, request, idle_only=True)
    around.progress.note("fablint: asking the hosts whether they are fit to go on")
    site_path = flow.site_of(kept.site, path)
    declared = host_preflight.Declared(site=flow.load_site(site_path, system))
    looked = host_preflight.look_at(system, allocation, nics=kept.nics, declared=declared)
    kept = _with_later(kept, looked.fitness)
    excluded = _without_unfit(looked.fitness, "exclude" if kept.unfit == "exclude" else "measure")
    lost = {**{one.name: one for one in left_out}, **excluded}
    topology = flow.topology_of(kept.topology, path)
    asked = Asked(sum(slot.ranks for slot in kept.slots), tuple(kept.slots), topology, budget_s=kept.budget_s)
    left = without(asked, lost)
    refuse_unshared(system, path, left.slots)
    asked = asked if run is not None else left  # a run belongs to its ranks
    crew = Crew(around, lambda hosts: _look(around, allocation, looked.fitness, hosts, kept.nics, declared), lost=lost)
    now = _also_found(looked.fitness, (), lost.values())
    named = {(one.component, one.name) for one in (*now, *lost.values())}
    return Elimination(
        Launches(around, asked, path, crew, trials_of(around, looked), _options(kept.ranks_per_nic)),
        find_suite(kept.suite, unequal=kept.unequal),
        [*now, *(one for one in kept.findings if (one.component, one.name) not in named)],
        site_path,
        {host: host_facts(one) for host, one in looked.heard.snapshots.items()},
        failed=dict(kept.failed),
        inside=list(kept.inside),
        planned=list(flow.load_levels(run or Run(path, {}, ()))),
        asking_s=system.monotonic() - begun,
        notes=_notes(kept),
        network=kept.network,
        recount=HostCounters(system, allocation, looked.heard.snapshots, looked.fitness.results, declared.site).recount,
        kept=kept,
    ).check(run)


def ranks_each(wanted: Wanted, fabric: Discovered, hosts: Sequence[str]) -> Mapping[str, int]:
    """Ranks on each host. Raises UsageError where they shall be so many for each NIC, and hosts have unlike NICs."""
    from fablint.snapshot import adapters

    if wanted.ranks_per_nic is None:
        return dict.fromkeys(hosts, wanted.ranks_each)
    nics: dict[str, list[NicFact]] = {host: [] for host in hosts}
    for nic in fabric.nics:
        if nic.host in nics:
            nics[nic.host].append(nic)
    counts = {host: len(adapters(known)) for host, known in nics.items()}
    few, many = min(counts, key=counts.__getitem__), max(counts, key=counts.__getitem__)
    if counts[few] != counts[many] or not counts[few]:
        told = f"{few} has {counts[few]} NICs, {many} {counts[many]}"
        raise UsageError(f"--ranks-per-nic: {told}", "leave the odd hosts out with -x, or give --ppn")
    return dict.fromkeys(hosts, wanted.ranks_per_nic * counts[few])


def trials_of(around: flow.Surroundings, looked: host_preflight.Looked) -> StartTrials:
    """What searches for hosts that keep launches from starting, with what preflight knows of addresses and routes."""
    from fablint.preflight import Host, unanswered

    hosts = [Host(one) for one in looked.heard.snapshots.values()]
    owners: dict[str, set[str]] = defaultdict(set)
    for host in hosts:
        for nic in host.nics:
            for text in nic.addresses:
                owners[text.partition("/")[0]].add(host.name)
    addresses = {address: next(iter(names)) for address, names in owners.items() if len(names) == 1}
    return StartTrials(around, addresses, unanswered(hosts), faulty_networks(looked.fitness))


def _options(ranks_per_nic: int | None) -> tuple[str, ...]:
    """Run options of the engine."""
    return () if ranks_per_nic is None else ("--ranks-per-nic", str(ranks_per_nic))


def _say_plan(around: flow.Surroundings, wanted: Wanted, asked: Asked, hosts: int) -> None:
    """What will be measured, before it is. Raises UsageError where the suite does not fit the fabric."""
    from fablint.plan.check.suites import plan_summary

    planned = plan_summary(wanted.suite, asked)
    rounds, minutes = sum(level.rounds for level in planned.levels), planned.predicted_s / 60
    names = ", ".join(level.name for level in planned.levels if level.rows)
    around.progress.note(
        f"fablint: {hosts} hosts: {names}: {rounds} rounds, {minutes:.1f} min"
        f" on a fast network (a job would ask for {planned.walltime_s / 60:.0f} min)"
    )


def _without_unfit(fitness: Fitness, wanted: str) -> Mapping[str, Finding]:
    """Hosts to leave out, and why. Raises UnfitError where nobody said what shall become of unfit ones."""
    from fablint.text.names import fold

    if fitness.unfit and wanted == "refuse":
        count = len(fitness.unfit)
        what = f"{fold(fitness.unfit)} {'is' if count == 1 else 'are'} not fit to be measured"
        hint = "mend what is said above; --exclude-unfit goes on without, --force measures all that answer"
        raise UnfitError(fitness, what, hint)
    every = _by_host(fitness)
    return every if wanted == "exclude" else {host: every[host] for host in fitness.silent}


def _by_host(fitness: Fitness) -> Mapping[str, Finding]:
    """Of every unfit host the first thing that makes it so."""
    found: dict[str, Finding] = {}
    for host, why in fitness.silent.items():
        found.setdefault(host, finding_of_silent([host], why))
    for one in fitness.results:
        if one.outcome is Outcome.FAIL:
            found.setdefault(one.host, finding_of(one, fitness.rules[one.check]))
    return found


def _also_found(fitness: Fitness, of_the_fabric: Collection[Finding], told: Collection[Finding]) -> list[Finding]:
    """What is wrong besides: what makes hosts unfit, and what is contradictory, suspect or at fault in the fabric."""
    faults = [finding_of_silent([host], why) for host, why in fitness.silent.items()]
    faults += [finding_of(one, fitness.rules[one.check]) for one in fitness.results if one.outcome is Outcome.FAIL]
    silent = {one.name for one in faults if one.component == "host"}
    others = [one for one in of_the_fabric if not (one.component == "host" and one.name in silent)]
    return [one for one in [*faults, *suspects(fitness), *others] if one not in told]


def _look(
    around: flow.Surroundings,
    allocation: Allocation,
    before: Fitness,
    hosts: Collection[str],
    nics: Sequence[str],
    declared: host_preflight.Declared,
) -> Mapping[str, Finding]:
    """Which of these hosts cannot be measured any more: they do not answer, or a NIC of theirs has failed."""
    present = replace(allocation, hosts=tuple(host for host in allocation.hosts if host in hosts))
    if not present.hosts:
        return {}
    fitness = host_preflight.look_at(
        around.system, present, ping=False, keep=False, nics=nics, declared=declared
    ).fitness
    found = _by_host(fitness)
    known = _by_host(before)
    return {
        host: finding
        for host, finding in found.items()
        if finding.component in ("host", "nic") and known.get(host) != finding
    }


def _asked(wanted: Wanted, topology: Topology | None, each: Mapping[str, int]) -> Asked:
    if len(each) < 2:
        left = next(iter(each), "no host")
        raise IncompleteError(f"{left} is left: nobody to talk to", "see above what the others have")
    asked = asked_hosts([Slots(host, ranks) for host, ranks in each.items()])
    return replace(asked, topology=topology, budget_s=wanted.budget_s)
