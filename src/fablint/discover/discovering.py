"""Entry point of discovery: query, read and merge all sources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fablint.discover.adapter_guids import with_names_of_snapshots
from fablint.discover.answers import read_snapshots
from fablint.discover.cable_findings import judge_bundles, judge_cables
from fablint.discover.facts import Facts, SourceReport, gather, report_on
from fablint.discover.merge import Merged, merge
from fablint.discover.name_blocks import name_blocks
from fablint.discover.sources import SOURCES, SavedOutput, read_saved
from fablint.errors import UsageError
from fablint.model import ComponentRef, Finding, State, Topology
from fablint.snapshot import CollectedSnapshots, NicFact
from fablint.system import System
from fablint.text import actions as advise, evidence as seen

QUERY_LIMIT_S = 20.0  # for a program on this machine
MAX_FILE_BYTES = 1 << 28
NO_SNAPSHOTS = CollectedSnapshots()
_NOISE = re.compile(r"^ib(warn|panic|error): (\[\d+\] )?(\w+: )?")


@dataclass(frozen=True)
class DiscoveredFabric:
    """Result of discovery: topology, NICs, findings, and a report on each source."""

    topology: Topology | None  # None if no source gives the switch of a host
    nics: tuple[NicFact, ...] = ()
    findings: tuple[Finding, ...] = ()
    sources: tuple[SourceReport, ...] = ()
    missing: tuple[str, ...] = ()  # hosts whose switch no source gives

    @property
    def exit_code(self) -> int:
        """Exit code: 1 for a fault, 3 for a contradiction or an unknown topology, else 0."""
        states = {finding.state for finding in self.findings}
        if State.FAULT in states:
            return 1
        return 3 if self.topology is None or State.SUSPECT in states else 0


def read_files(names: Sequence[str]) -> tuple[SavedOutput, ...]:
    """Read saved outputs, each `FILE` or `NAME=FILE` (NAME: its device). Raises UsageError for an unreadable file."""
    return tuple(map(_read_file, names))


def _read_file(name: str) -> SavedOutput:
    device, _, rest = name.partition("=")
    given = Path(name)
    path, device = (Path(rest), device) if rest and device and not given.exists() else (given, "")
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise UsageError(f"{path}: {path.stat().st_size} bytes, too large for the output of a tool")
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        hint = "pass the saved output of a tool or a topology file to --from"
        raise UsageError(f"{path}: cannot be read: {error.strerror}", hint) from error
    if not text.strip():
        raise UsageError(f"{path}: the file is empty", "save the output of the tool again")
    return SavedOutput(str(path), text, device, path)


def discover(
    system: System,
    collected: CollectedSnapshots = NO_SNAPSHOTS,
    texts: Sequence[SavedOutput] = (),
    hosts: Sequence[str] = (),
    blocks: int | None = None,
) -> DiscoveredFabric:
    """Discover the fabric of hosts from every source.

    Parameters
    ----------
    system
        This machine, whose fabric tools are run as well.
    collected
        Snapshots of hosts.
    texts
        Saved outputs of tools.
    hosts
        The hosts whose fabric is returned; empty: all that a source names.
    blocks
        Number of consecutive hosts per switch, used if no source gives the switch of a host.

    Raises
    ------
    UsageError
        A text has an unknown format. Every other failure is in a finding or in the report of a source.
    """
    outputs = [(*read_saved(saved), saved) for saved in texts]
    reports = [report_on(f"{source.name}, {saved.name}", facts) for source, facts, saved in outputs]
    of_hosts = read_snapshots(collected)
    of_tools, more = _query_tools(system)
    of_blocks = _blocks(hosts, of_hosts.facts, blocks)
    gathered = gather([*(facts for _, facts, _ in outputs), of_hosts.facts, *of_tools, of_blocks])
    gathered = with_names_of_snapshots(gathered, collected.snapshots)
    merged = merge(gathered, of_hosts.nics, hosts)
    findings = (
        *of_hosts.findings,
        *judge_cables(dict.fromkeys(gathered.trained)),
        *merged.findings,
        *judge_bundles(merged.topology),
        *_missing(merged, hosts),
    )
    reports += [*of_hosts.reports, *more]
    return DiscoveredFabric(merged.topology, of_hosts.nics, findings, tuple(reports), merged.missing)


def _blocks(hosts: Sequence[str], facts: Facts, size: int | None) -> Facts:
    if size is None:
        return Facts()
    return name_blocks(hosts or sorted({place.host for place in facts.attachments}), size)


def _query_tools(system: System) -> tuple[list[Facts], list[SourceReport]]:
    """Run the fabric tools of this machine. Return their facts, and a report on each tool."""
    facts_of_tools: list[Facts] = []
    reports: list[SourceReport] = []
    for source in SOURCES:
        if not source.command:
            continue
        name = source.command[0]
        if system.which(name) is None:
            reports.append(SourceReport(name, silent="not installed here"))
            continue
        done = system.run(source.command, timeout_s=QUERY_LIMIT_S)
        if done.status != 0 or not source.recognises(done.output):
            why = _reason(done.status, done.errors or done.output) if done.status else "the output names no switch"
            reports.append(SourceReport(name, silent=why))
            continue
        try:
            facts = source.read(SavedOutput(name, done.output))
        except UsageError as error:
            reports.append(SourceReport(name, silent=error.message.removeprefix(f"{name}: ")))
            continue
        facts_of_tools.append(facts)
        reports.append(report_on(name, facts))
    return facts_of_tools, reports


def _reason(status: int, text: str) -> str:
    """Return why a program failed: its first line, else its exit status."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return _NOISE.sub("", lines[0])[:100] if lines else f"exit status {status}"


def _missing(merged: Merged, hosts: Iterable[str]) -> list[Finding]:
    """Return a finding about the hosts whose switch no source gives."""
    if not merged.missing or merged.topology is None:
        return []
    count, total = len(merged.missing), len(list(hosts))
    return [
        Finding(
            state=State.SUSPECT,
            components=(ComponentRef.of("config", merged.missing),),
            evidence=(seen.switch_unknown(missing=count, hosts=total),),
            next_step=advise.report_switches(),
        )
    ]
