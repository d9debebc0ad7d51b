"""What was discovered, as a tree of 80 columns: groups, their switches, their hosts; sources and findings below."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from fablint.discover.discovering import Discovered
from fablint.discover.facts import SourceReport
from fablint.model import Finding, State, Topology
from fablint.text.names import fold, plural

WIDTH = 80


def print_tree(found: Discovered, width: int = WIDTH) -> str:
    """The text for people."""
    parts = [list(_fabric(found.topology, width))] if found.topology else []
    if found.sources:
        parts += [
            ["sources", *(line for text in _sources(found.sources) for line in _wrapped(text, "  ", "    ", width))]
        ]
    if found.findings:
        parts += [["findings", *(line for text in _findings(found) for line in _wrapped(text, "  ", "    ", width))]]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _fabric(topology: Topology, width: int) -> Iterator[str]:
    hosts: dict[str, list[str]] = defaultdict(list)
    for host, seat in topology.host_switch.items():
        hosts[seat].append(host)
    rails: dict[str, set[str]] = defaultdict(set)
    for end, seat in topology.nic_switch.items():
        host, _, nic = end.partition("/")
        rails[seat].add(nic)
        if host not in hosts[seat]:
            hosts[seat].append(host)
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
        "tables": "routes as the forwarding tables say",
        "adaptive": "adaptive routing",
    }
    known = routing.get(topology.routing.kind, f"routing {topology.routing.kind}")
    return f"{', '.join(counts)}; {known}; from {topology.source}"


def _sources(reports: Sequence[SourceReport]) -> Iterator[str]:
    """What each told; those that are silent for the same reason in one line."""
    silent: dict[str, list[str]] = defaultdict(list)
    for report in reports:
        if report.told:
            yield f"{report.name}: {', '.join(plural(count, what) for what, count in report.told.items())}"
        else:
            silent[report.silent].append(report.name)
    yield from (f"{', '.join(names)}: {why}" for why, names in silent.items())


def _findings(found: Discovered) -> Iterator[str]:
    """Worst first; those that say the same of several parts in one."""
    alike: dict[tuple[State, str, str, str], list[Finding]] = defaultdict(list)
    for finding in sorted(found.findings, key=lambda finding: finding.rank):
        _, _, nic = finding.name.rpartition("/")
        alike[finding.state, finding.component, finding.evidence, nic if "/" in finding.name else ""].append(finding)
    for (state, component, evidence, nic), several in alike.items():
        names = fold(finding.name.rpartition("/")[0] or finding.name for finding in several)
        step = f" ({several[0].next_step})" if several[0].next_step else ""
        yield f"{state} {component} {names}{'/' + nic if nic else ''}: {evidence}{step}"


def _wrapped(text: str, first: str, later: str, width: int) -> list[str]:
    """Lines of at most `width` columns; a list of names is broken after a comma."""
    wrapper = textwrap.TextWrapper(width, initial_indent=first, subsequent_indent=later, break_on_hyphens=False)
    return wrapper.wrap(text)
