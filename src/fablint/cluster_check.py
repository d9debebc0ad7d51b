"""`fablint check` of a cluster: who is there, what hangs where, and then level after level."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fablint import discovery, flow
from fablint.checks import Checked, asked_hosts
from fablint.crew import Crew
from fablint.elimination import Elimination, host_of
from fablint.errors import IncompleteError, UsageError
from fablint.model import Allocation, Finding, Slots, State, Topology
from fablint.relaunch import Launches

if TYPE_CHECKING:
    from fablint.discover import Discovered
    from fablint.plan.stages import Asked
    from fablint.plan.suites import Suite
    from fablint.snapshot import NicFact


@dataclass(frozen=True)
class Wanted:
    """What is to be measured, on which hosts."""

    fabric: discovery.Asked
    suite: Suite
    ranks_each: int = 1
    ranks_per_nic: int | None = None  # in the place of `ranks_each`
    budget_s: float | None = None
    thresholds: Path | None = None


def check_cluster(around: flow.Surroundings, wanted: Wanted, output: Path) -> Checked:
    """Ask every host, measure level after level, judge, report.

    Hosts that do not answer, or whose link is down, are left out and named.

    Raises:
        UsageError: there are no hosts to measure, or what is wanted contradicts itself.
        IncompleteError: fewer than two hosts can be measured.
    """
    from fablint.discover import read_files, with_presumed_cables

    begun = around.system.monotonic()
    if wanted.thresholds is not None:
        flow.load_thresholds(wanted.thresholds)  # now, so that nobody measures with a file that cannot be read
    read_files(wanted.fabric.files)  # nor asks anybody with one of these
    allocation, left_out = discovery.usable_hosts(around.system, wanted.fabric, idle_only=True)
    around.progress.note("fablint: asking the hosts what they are and where they hang")
    fabric = discovery.discover_hosts(around.system, allocation, wanted.fabric.files, wanted.fabric.blocks)
    unfit = unfit_hosts(fabric)
    for name, finding in unfit.items():
        around.progress.note(f"fablint: {name} is left out: {finding.component} {finding.name}: {finding.evidence}")
    known = fabric.topology
    topology = with_presumed_cables(known) if known is not None else None
    if topology is not known:
        around.progress.note("fablint: no source tells which cables join the switches: one way between two is presumed")
    each = ranks_each(wanted, fabric, [host for host in allocation.hosts if host not in unfit])
    asked = _asked(wanted, topology, each)
    _say_plan(around, wanted, asked, len(each))
    crew = Crew(around, lambda hosts: _look(around, allocation, fabric, hosts), lost=dict(unfit))
    others = [*left_out, *(one for one in fabric.findings if one not in unfit.values())]
    launches = Launches(around, asked, output, crew, _options(wanted))
    return Elimination(
        launches, wanted.suite, others, wanted.thresholds, asking_s=around.system.monotonic() - begun
    ).check()


def ranks_each(wanted: Wanted, fabric: Discovered, hosts: Sequence[str]) -> Mapping[str, int]:
    """Ranks on each host. Raises UsageError where they shall be so many for each NIC, and hosts have unlike NICs."""
    from fablint.snapshot import fabric_nics

    if wanted.ranks_per_nic is None:
        return dict.fromkeys(hosts, wanted.ranks_each)
    nics: dict[str, dict[str, NicFact]] = {host: {} for host in hosts}
    for nic in fabric.nics:
        if nic.host in nics:
            nics[nic.host][nic.name] = nic
    counts = {host: len(fabric_nics(known, known)) for host, known in nics.items()}
    few, many = min(counts, key=counts.__getitem__), max(counts, key=counts.__getitem__)
    if counts[few] != counts[many] or not counts[few]:
        told = f"{few} has {counts[few]} NICs, {many} {counts[many]}"
        raise UsageError(f"--ranks-per-nic: {told}", "leave the odd hosts out with -x, or give --ppn")
    return dict.fromkeys(hosts, wanted.ranks_per_nic * counts[few])


def _options(wanted: Wanted) -> tuple[str, ...]:
    """Run options of the engine."""
    return () if wanted.ranks_per_nic is None else ("--ranks-per-nic", str(wanted.ranks_per_nic))


def _say_plan(around: flow.Surroundings, wanted: Wanted, asked: Asked, hosts: int) -> None:
    """What will be measured, before it is. Raises UsageError where the suite does not fit the fabric."""
    from fablint.plan.suites import plan_summary

    planned = plan_summary(wanted.suite, asked)
    rounds, minutes = sum(level.rounds for level in planned.levels), planned.predicted_s / 60
    names = ", ".join(level.name for level in planned.levels if level.rows)
    around.progress.note(
        f"fablint: {hosts} hosts: {names}: {rounds} rounds, {minutes:.1f} min"
        f" on a fast network (a job would ask for {planned.walltime_s / 60:.0f} min)"
    )


def unfit_hosts(fabric: Discovered) -> Mapping[str, Finding]:
    """Hosts that cannot be measured, and why: they do not answer, or a link of theirs is down."""
    found: dict[str, Finding] = {}
    down = {(nic.host, nic.name) for nic in fabric.nics if nic.state == "down"}
    for finding in fabric.findings:
        host = host_of(finding)
        silent = finding.component == "host" and finding.evidence.startswith("no answer")
        is_down = finding.component == "nic" and (host, finding.name.partition("/")[2]) in down
        if finding.state is State.FAULT and (silent or is_down):
            found.setdefault(host, finding)
    return found


def _look(
    around: flow.Surroundings, allocation: Allocation, before: Discovered, hosts: Collection[str]
) -> Mapping[str, Finding]:
    """Which of these hosts cannot be measured any more."""
    present = replace(allocation, hosts=tuple(host for host in allocation.hosts if host in hosts))
    if not present.hosts:
        return {}
    found = unfit_hosts(discovery.discover_hosts(around.system, present))
    known = unfit_hosts(before)
    return {host: finding for host, finding in found.items() if host in hosts and host not in known}


def _asked(wanted: Wanted, topology: Topology | None, each: Mapping[str, int]) -> Asked:
    if len(each) < 2:
        left = next(iter(each), "no host")
        raise IncompleteError(f"{left} is left: nobody to talk to", "see above what the others have")
    asked = asked_hosts([Slots(host, ranks) for host, ranks in each.items()])
    return replace(asked, topology=topology, budget_s=wanted.budget_s)
