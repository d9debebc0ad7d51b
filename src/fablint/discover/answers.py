"""What hosts say of themselves: where their NICs hang, and how they are set."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fablint.discover import address_cabling
from fablint.discover.facts import Facts, SourceReport, Told, gather, report_on
from fablint.discover.sources.lldpcli import of_host
from fablint.model import Finding, State
from fablint.snapshot import Heard, NicFact, Snapshot, fabric_nics, nics_of
from fablint.snapshot.neighbours import heard_by, why_unheard
from fablint.snapshot.parsers.lldp import Neighbour
from fablint.text.names import fold


@dataclass(frozen=True)
class HostAnswers:
    """All answers, understood."""

    facts: Facts
    nics: tuple[NicFact, ...]
    findings: tuple[Finding, ...]
    reports: tuple[SourceReport, ...]


def read_answers(heard: Heard) -> HostAnswers:
    """Facts, NICs and findings. A host that gave no snapshot is a finding."""
    said = heard.snapshots
    nics = tuple(nic for snapshot in said.values() for nic in nics_of(snapshot))
    by_end = {(nic.host, nic.name): nic for nic in nics}
    known: dict[str, dict[str, NicFact]] = defaultdict(dict)
    for nic in nics:
        known[nic.host][nic.name] = nic
    every = {host: heard_by(snapshot) for host, snapshot in said.items()}
    lldp = gather(of_host(host, _on_fabric(found, known[host])) for host, found in every.items())
    wrong = address_cabling.mismatches(lldp.attachments, by_end)
    ends = {finding.name for finding in wrong}
    places, switches = address_cabling.attachments(nic for nic in nics if f"{nic.host}/{nic.name}" not in ends)
    algorithmic = Facts(attachments=places, switches=switches)
    reports = [report_on(Told.LLDP, lldp)] if lldp.attachments else [_no_lldp(said, every)] if said else []
    reports += [report_on("algorithmic MAC addresses", algorithmic)] if places else []
    return HostAnswers(gather([lldp, algorithmic]), nics, (*_silent(heard.silent), *wrong), tuple(reports))


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


def _on_fabric(heard: list[Neighbour], known: Mapping[str, NicFact]) -> list[Neighbour]:
    """Neighbours of NICs of the fabric; the switch of the management network is none of it."""
    fast = fabric_nics({one.port for one in heard}, known)
    return [one for one in heard if one.port in fast]


def _no_lldp(said: Mapping[str, Snapshot], every: Mapping[str, Sequence[Neighbour]]) -> SourceReport:
    """Why no host knows a neighbour on the fabric."""
    why: dict[str, list[str]] = defaultdict(list)
    for host, snapshot in said.items():
        why[why_unheard(snapshot, every[host])].append(host)
    worst = max(why, key=lambda reason: len(why[reason]))
    return SourceReport(Told.LLDP, silent=f"{worst} ({fold(why[worst])})")
