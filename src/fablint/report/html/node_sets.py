"""Node sets of a verdict: hosts at fault, other hosts behind a component at fault, and healthy hosts behind none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fablint.model import State
from fablint.report import finding_order
from fablint.report.survey.report_source import ReportSource
from fablint.text import units
from fablint.topology.component_pairs import hosts_behind

MOST_LETTERS = 200_000  # of a node set on the page


@dataclass(frozen=True)
class NodeSet:
    """Hosts with something in common, folded."""

    name: str
    meaning: str
    count: int
    nodes: str


def node_sets(source: ReportSource) -> tuple[NodeSet, ...]:
    """The three node sets, each host in one of them at most: others that are suspect or not judged are in none."""
    hosts, findings = frozenset(source.run.hosts), source.diagnosis.verdict.findings
    at_fault = [finding for finding in source.found if finding.state is State.FAULT and finding.component != "route"]
    faulty = hosts & {host for finding in at_fault for host in finding.hosts}
    affected = frozenset(behind(source)) - faulty
    healthy = hosts & {host for finding in findings if finding.state is State.OK for host in finding.hosts}
    return (
        _set("faulty", "named by a fault", faulty),
        _set("affected", "not faulty, but behind a faulty component", affected),
        _set("healthy", "healthy hosts behind none", healthy - affected - faulty),
    )


def behind(source: ReportSource) -> set[str]:
    """Return the hosts at the switches and cables at fault, without those that a finding names."""
    hosts = frozenset(source.run.hosts)
    result: set[str] = set()
    crossings = dict(zip(map(id, source.crossings.findings), source.crossings.crossings, strict=True))
    for finding in finding_order.faulty(source.found):
        if finding.state is State.FAULT and finding.component != "route" and hosts.isdisjoint(finding.hosts):
            codes = hosts_behind(finding, crossings.get(id(finding)), source.placement)
            result.update(source.placement.hosts[code] for code in codes)
    return result


def _set(name: str, meaning: str, hosts: Iterable[str]) -> NodeSet:
    names = sorted(hosts)
    folded = units.fold(names, ",")
    if len(folded) > MOST_LETTERS:
        return NodeSet(name, f"{meaning}; too long for the page: fablint analyse --json has them", len(names), "")
    return NodeSet(name, meaning, len(names), folded)
