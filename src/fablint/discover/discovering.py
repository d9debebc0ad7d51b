"""All sources asked, read and merged: the entry point of this stage."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fablint.discover.answers import read_answers
from fablint.discover.cable_findings import judge_cables
from fablint.discover.facts import Facts, SourceReport, gather, report_on
from fablint.discover.merge import Merged, merge
from fablint.discover.name_blocks import name_blocks
from fablint.discover.sources import SOURCES, Saved, read_saved
from fablint.errors import UsageError
from fablint.model import Finding, State, Topology
from fablint.snapshot import Heard, NicFact
from fablint.system import System
from fablint.text.names import fold, plural

ASK_S = 20.0  # for a program that is asked on this machine
MOST_BYTES = 1 << 28
NOBODY = Heard()
_NOISE = re.compile(r"^ib(warn|panic|error): (\[\d+\] )?(\w+: )?")


@dataclass(frozen=True)
class Discovered:
    """What was found out."""

    topology: Topology | None  # None where no source places a host
    nics: tuple[NicFact, ...] = ()
    findings: tuple[Finding, ...] = ()
    sources: tuple[SourceReport, ...] = ()
    missing: tuple[str, ...] = ()  # hosts that no source places

    @property
    def exit_code(self) -> int:
        """1 where something is at fault, 3 where something is contradictory or unknown, else 0."""
        states = {finding.state for finding in self.findings}
        if State.FAULT in states:
            return 1
        return 3 if self.topology is None or State.SUSPECT in states else 0


def read_files(names: Sequence[str]) -> tuple[Saved, ...]:
    """Saved outputs, each `FILE` or `NAME=FILE` (whose output it is). Raises UsageError where one cannot be read."""
    return tuple(map(_read_file, names))


def _read_file(name: str) -> Saved:
    device, _, rest = name.partition("=")
    given = Path(name)
    path, device = (Path(rest), device) if rest and device and not given.exists() else (given, "")
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UsageError(f"{path}: {path.stat().st_size} bytes: too large for an output of a tool")
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        hint = "give --from the saved output of a tool, or a topology file"
        raise UsageError(f"{path}: cannot be read: {error.strerror}", hint) from error
    if not text.strip():
        raise UsageError(f"{path}: is empty", "save the output of the tool once more")
    return Saved(str(path), text, device, path)


def discover(
    system: System,
    heard: Heard = NOBODY,
    texts: Sequence[Saved] = (),
    hosts: Sequence[str] = (),
    blocks: int | None = None,
) -> Discovered:
    """The fabric of `hosts` (of all that are named where there is none), from every source.

    `heard` is what hosts say of themselves; `texts` are outputs that somebody saved. Programs that know the fabric are
    asked on this machine. Raises UsageError for a text that is of no known format; nothing else can go wrong that is
    not told by a finding or a source's report.
    """
    said = [(*read_saved(saved), saved) for saved in texts]
    reports = [report_on(f"{source.name}, {saved.name}", facts) for source, facts, saved in said]
    answers = read_answers(heard)
    asked, more = _ask(system)
    every = gather([*(facts for _, facts, _ in said), answers.facts, *asked, _blocks(hosts, answers.facts, blocks)])
    merged = merge(every, answers.nics, hosts)
    findings = (
        *answers.findings,
        *judge_cables(dict.fromkeys(every.trained)),
        *merged.findings,
        *_missing(merged, hosts),
    )
    return Discovered(merged.topology, answers.nics, findings, (*reports, *answers.reports, *more), merged.missing)


def _blocks(hosts: Sequence[str], heard: Facts, size: int | None) -> Facts:
    if size is None:
        return Facts()
    return name_blocks(hosts or sorted({place.host for place in heard.attachments}), size)


def _ask(system: System) -> tuple[list[Facts], list[SourceReport]]:
    """What programs of this machine say of the fabric, and why others say nothing."""
    every: list[Facts] = []
    reports: list[SourceReport] = []
    for source in SOURCES:
        if not source.command:
            continue
        name = source.command[0]
        if system.which(name) is None:
            reports.append(SourceReport(name, silent="not installed here"))
            continue
        done = system.run(source.command, timeout_s=ASK_S)
        if done.status != 0 or not source.recognises(done.output):
            why = _why(done.status, done.errors or done.output) if done.status else "it names no switch"
            reports.append(SourceReport(name, silent=why))
            continue
        try:
            facts = source.read(Saved(name, done.output))
        except UsageError as error:
            reports.append(SourceReport(name, silent=error.message.removeprefix(f"{name}: ")))
            continue
        every.append(facts)
        reports.append(report_on(name, facts))
    return every, reports


def _why(status: int, said: str) -> str:
    """Why a program is of no use: its first words."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return _NOISE.sub("", lines[0])[:100] if lines else f"exit status {status}"


def _missing(merged: Merged, hosts: Iterable[str]) -> list[Finding]:
    """Hosts without a switch."""
    if not merged.missing or merged.topology is None:
        return []
    count, of = len(merged.missing), len(list(hosts))
    much = "; more than half: of little use for a diagnosis" if 2 * count > of else ""
    return [
        Finding(
            state=State.SUSPECT,
            component="config",
            name=fold(merged.missing),
            evidence=f"no source says on which switch {plural(count, 'host')} of {of} hang{much}",
            next_step="start lldpd on them, or give a file with --from",
        )
    ]
