"""Discovered fabric as text: a tree of groups, switches and hosts, then sources and findings."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from fablint.discover.discovering import DiscoveredFabric
from fablint.discover.facts import SourceReport
from fablint.model import Finding, State, Topology
from fablint.model.component import label_of
from fablint.model.names import fold, plural
from fablint.text.actions import advice
from fablint.text.evidence_sentences import sentences

WIDTH = 80


def format_tree(fabric: DiscoveredFabric, width: int = WIDTH) -> str:
    """Format the fabric, its sources and findings with lines of at most `width` columns."""
    sections = [list(_fabric(fabric.topology, width))] if fabric.topology else []
    for title, texts in (("sources", _sources(fabric.sources)), ("findings", _findings(fabric))):
        lines = [line for text in texts for line in _wrapped(text, "  ", "    ", width)]
        sections += [[title, *lines]] if lines else []
    return "\n\n".join("\n".join(section) for section in sections) + "\n"


def _fabric(topology: Topology, width: int) -> Iterator[str]:
    hosts: dict[str, list[str]] = defaultdict(list)
    for host, name in topology.host_switch.items():
        hosts[name].append(host)
    rails: dict[str, set[str]] = defaultdict(set)
    for end, name in topology.nic_switch.items():
        rails[name].add(end.device)
        if end.host not in hosts[name]:
            hosts[name].append(end.host)
    groups: dict[str, list[str]] = defaultdict(list)
    for name, switch in topology.switches.items():
        groups[switch.group].append(name)
    yield from _wrapped(_headline(topology, groups), "", "  ", width)
    longest = min(max(map(len, topology.switches)), width // 2)
    for group, switches in groups.items():
        yield group or "(no group)"
        bare = [name for name in switches if not hosts.get(name)]
        for name in switches:
            if there := hosts.get(name):
                nics = f" {fold(rails[name])}" if rails[name] else ""
                text = f"{name:{longest}}  {fold(there)}{nics} ({len(there)})"
                yield from _wrapped(text, "  ", " " * (longest + 4), width)
        if bare:
            yield from _wrapped(f"without hosts: {fold(bare)} ({len(bare)})", "  ", "    ", width)


def _headline(topology: Topology, groups: Mapping[str, object]) -> str:
    counts = [
        plural(len([name for name in groups if name]), "group"),
        plural(len(topology.switches), "switch"),
        plural(len(topology.host_switch), "host"),
        plural(len(topology.cables), "cable") + " between switches",
    ]
    routing = {
        "shortest": "routing unknown",
        "tables": "routes from the forwarding tables",
        "adaptive": "adaptive routing",
    }
    words = routing.get(topology.routing.kind, f"routing {topology.routing.kind}")
    return f"{', '.join(counts)}; {words}; from {topology.source}"


def _sources(reports: Sequence[SourceReport]) -> Iterator[str]:
    """Yield one line per source with its counts; sources without facts for the same reason share a line."""
    silent: dict[str, list[str]] = defaultdict(list)
    for report in reports:
        if report.counts:
            yield f"{report.name}: {', '.join(plural(count, item) for item, count in report.counts.items())}"
        else:
            silent[report.silent].append(report.name)
    yield from (f"{', '.join(names)}: {why}" for why, names in silent.items())


def _findings(fabric: DiscoveredFabric) -> Iterator[str]:
    """Yield the findings, worst first; findings that differ by the component only share a line."""
    groups: dict[tuple[State, str, str], list[Finding]] = defaultdict(list)
    for finding in sorted(fabric.findings, key=lambda finding: finding.rank):
        groups[finding.state, finding.component, sentences(finding.evidence)].append(finding)
    for (state, component, evidence), several in groups.items():
        names = label_of([component for finding in several for component in finding.components])
        step = f" ({advice(several[0].next_step)})" if several[0].next_step else ""
        yield f"{state} {component} {names}: {evidence}{step}"


def _wrapped(text: str, first: str, later: str, width: int) -> list[str]:
    """Wrap a text to lines of at most `width` columns; a list of names is broken after a comma."""
    wrapper = textwrap.TextWrapper(width, initial_indent=first, subsequent_indent=later, break_on_hyphens=False)
    return wrapper.wrap(text)
