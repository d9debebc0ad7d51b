"""Counters of the hosts of a check before and after it: what grew while the hosts were measured."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fablint.model import Allocation, Finding, Note, Run
from fablint.model.host_name import HostNames
from fablint.model.preflight_results import Outcome
from fablint.text import evidence as seen, notes as noted
from fablint.text.fitness_findings import findings
from fablint.workflows import fabric_discovery
from fablint.workflows.check.preflight_findings import not_understood, suppressed_notes, warnings

if TYPE_CHECKING:
    from fablint.model.preflight_results import Fitness, Result
    from fablint.preflight.site.expectations import Site
    from fablint.snapshot import Snapshot
    from fablint.system import System


@dataclass(frozen=True)
class Recount:
    """What the counters of the hosts show after the measurement.

    `counters` are those of NICs as the run's attribute of that name has them: `before` and `after`, by host, NIC and
    counter.
    """

    findings: Sequence[Finding] = ()
    counters: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[Note] = ()  # why there is nothing; what was not understood, or is suppressed


@dataclass(frozen=True)
class HostCounters:
    """Snapshots of the hosts before the first launch, and how to take further ones."""

    system: System
    allocation: Allocation
    before: Mapping[str, Snapshot]
    known: Collection[Result] = ()  # of preflight: a result that has not changed is not reported again
    site: Site | None = None  # what the site expects of its hosts

    def recount(self, run: Run, hosts: Collection[str]) -> Recount:
        """Read the counters of `hosts` again.

        Parameters
        ----------
        run
            The run, whose NICs' counters are returned.
        hosts
            Names as in the allocation.

        Returns
        -------
        Recount
            A finding for each component whose counters grew. A host without an answer is a FAULT, unless no host
            answers.
        """
        present = replace(self.allocation, hosts=tuple(host for host in self.allocation.hosts if host in hosts))
        if not present.hosts:
            return Recount()
        collected = fabric_discovery.collect_snapshots(self.system, present, "counters")
        if not collected.snapshots:
            why = next(iter(collected.silent.values()), "no answer")
            return Recount(notes=[noted.counters_not_read(why)])
        spans = _spans(self.before, collected.snapshots)
        earlier_keys = {(one.check, one.name, one.message) for one in self.known}
        fitness = judge_growth(spans, collected.silent, self.site)
        new = [one for one in fitness.results if (one.check, one.name, one.message) not in earlier_keys]
        fitness = replace(fitness, results=new)
        return Recount(_grown(fitness), nic_counters(run, spans), _notes(fitness))


def _spans(before: Mapping[str, Snapshot], after: Mapping[str, Snapshot]) -> dict[str, Snapshot]:
    from fablint.preflight.after_measuring import spanning

    pairs = {host: spanning(before[host], one) for host, one in after.items() if host in before}
    return {host: span for host, span in pairs.items() if span is not None}


def judge_growth(spans: Mapping[str, Snapshot], silent: Mapping[str, str], site: Site | None = None) -> Fitness:
    """Judge counters and links over the time between two readings."""
    from fablint.preflight import Fleet, Host, judge
    from fablint.preflight.after_measuring import GROWTH

    return judge(Fleet([Host(one) for one in spans.values()], silent), GROWTH, site)


def _grown(fitness: Fitness) -> list[Finding]:
    bad = [one for one in fitness.results if one.outcome in (Outcome.FAIL, Outcome.WARN)]
    return [
        finding.model_copy(update={"evidence": (seen.meanwhile(), *finding.evidence)})
        for finding in findings(replace(fitness, results=bad))
    ]


def _notes(fitness: Fitness) -> list[Note]:
    """Return what is not a finding: what the site file suppresses, and answers that were not understood."""
    return [*suppressed_notes(fitness, meanwhile=True), *not_understood(warnings(fitness), meanwhile=True)]


def nic_counters(run: Run, spans: Mapping[str, Snapshot]) -> Mapping[str, Any]:
    """Return the counters of a run's NICs that were read both times: `before` and `after`, by host, NIC and name."""
    nics_of = run.facts.nics
    hosts = HostNames(spans, complete=True).matched(nics_of)
    counters: dict[str, dict[str, dict[str, dict[str, int]]]] = {"before": {}, "after": {}}
    for host, span_host in hosts.items():
        span = spans[span_host]
        for nic in nics_of[host]:
            for folder in _folders(nic.name, nic.netdevs or ()):
                _copy(span, folder, counters, host, nic.name)
    return counters


def _folders(nic: str, interfaces: Sequence[str]) -> list[str]:
    """Return the folders with the counters of a NIC such as `cxi0`, `mlx5_0/1`, `hsn0`."""
    from fablint.snapshot.host_snapshot import CXI, INFINIBAND, NET

    device, _, port = nic.partition("/")
    folders = [f"{NET}/{name}{part}" for name in interfaces[:1] for part in ("", "/statistics")]
    folders += [f"{CXI}/{nic}/device/telemetry"] if not port else []
    at = f"{INFINIBAND}/{device}/ports/{port}"
    return folders + ([f"{at}/counters", f"{at}/hw_counters"] if port else [])


def _copy(
    span: Snapshot, folder: str, counters: dict[str, dict[str, dict[str, dict[str, int]]]], host: str, nic: str
) -> None:
    """Copy the counters of a folder that were read both before and after."""
    for name in span.names(folder):
        at = f"{folder}/{name}"
        figures = [_figure(text) for text in (span.read_first(at), span.read_later(at))]
        for when, figure in zip(("before", "after"), figures, strict=True):
            if figure is not None and None not in figures:
                counters[when].setdefault(host, {}).setdefault(nic, {})[name] = figure


def _figure(text: str | None) -> int | None:
    """Parse the value of a counter; Slingshot's telemetry appends `@SECONDS`."""
    number = (text or "").partition("@")[0].strip()
    return int(number) if number.isascii() and number.isdigit() and len(number) <= 20 else None
