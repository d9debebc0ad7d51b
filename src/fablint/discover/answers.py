"""What hosts say of themselves: where their NICs hang, and how they are set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fablint.discover import addresses
from fablint.discover.facts import Facts, SourceReport, Told, gather, report_on
from fablint.discover.sources.lldpcli import of_host
from fablint.model import Finding, State
from fablint.names import fold
from fablint.snapshot import Heard, NicFact, Snapshot, nics_of
from fablint.snapshot.neighbours import heard_by


@dataclass(frozen=True)
class Answers:
    """All answers, understood."""

    facts: Facts
    nics: tuple[NicFact, ...]
    findings: tuple[Finding, ...]
    reports: tuple[SourceReport, ...]


def read_answers(heard: Heard) -> Answers:
    """Facts, NICs and findings. A host that gave no snapshot is a finding."""
    said = heard.snapshots
    nics = tuple(nic for snapshot in said.values() for nic in nics_of(snapshot))
    lldp = gather(of_host(host, heard_by(snapshot)) for host, snapshot in said.items())
    by_end = {(nic.host, nic.name): nic for nic in nics}
    wrong = addresses.mismatches(lldp.attachments, by_end)
    ends = {finding.name for finding in wrong}
    places, switches = addresses.attachments(nic for nic in nics if f"{nic.host}/{nic.name}" not in ends)
    algorithmic = Facts(attachments=places, switches=switches)
    reports = [report_on(Told.LLDP, lldp)] if lldp.attachments else [_no_lldp(said)] if said else []
    reports += [report_on("algorithmic MAC addresses", algorithmic)] if places else []
    return Answers(gather([lldp, algorithmic]), nics, (*_silent(heard.silent), *wrong), tuple(reports))


def _silent(silent: Mapping[str, str]) -> list[Finding]:
    return [
        Finding(
            state=State.FAULT,
            component="host",
            name=host,
            evidence=f"no answer: {why}",
            next_step="log in to it; leave it out with -x till then",
        )
        for host, why in silent.items()
    ]


def _no_lldp(said: Mapping[str, Snapshot]) -> SourceReport:
    """Why no host knows a neighbour."""
    why: dict[str, list[str]] = {}
    for host, snapshot in said.items():
        why.setdefault(snapshot.command("lldpcli").error or "no neighbour is heard", []).append(host)
    worst = max(why, key=lambda reason: len(why[reason]))
    return SourceReport(Told.LLDP, silent=f"{worst} ({fold(why[worst])})")
