"""Facts in the snapshots of hosts: the switch ports of their NICs, and the properties of the NICs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fablint.discover import address_cabling
from fablint.discover.facts import Facts, Origin, SourceReport, gather, report_on
from fablint.discover.sources.lldpcli import of_host
from fablint.model import ComponentRef, Finding, State
from fablint.model.host_name import NicRef
from fablint.model.names import fold
from fablint.snapshot import CollectedSnapshots, NicFact, Snapshot, fabric_nics, nics_of
from fablint.snapshot.neighbours import neighbours_of, why_no_neighbour
from fablint.snapshot.parsers.lldp import Neighbour
from fablint.text import actions as advise, evidence as seen


@dataclass(frozen=True)
class SnapshotFacts:
    """Facts, NICs, findings and source reports of all snapshots."""

    facts: Facts
    nics: tuple[NicFact, ...]
    findings: tuple[Finding, ...]
    reports: tuple[SourceReport, ...]


def read_snapshots(collected: CollectedSnapshots) -> SnapshotFacts:
    """Return the facts, NICs and findings of all snapshots. A host without a snapshot is a finding."""
    snapshots = collected.snapshots
    nics = tuple(nic for snapshot in snapshots.values() for nic in nics_of(snapshot))
    by_end = {(nic.host, nic.name): nic for nic in nics}
    by_host: dict[str, dict[str, NicFact]] = defaultdict(dict)
    for nic in nics:
        by_host[nic.host][nic.name] = nic
    neighbours = {host: neighbours_of(snapshot) for host, snapshot in snapshots.items()}
    lldp = gather(of_host(host, _on_fabric(entries, by_host[host])) for host, entries in neighbours.items())
    wrong = address_cabling.mismatches(lldp.attachments, by_end)
    ends = {finding.name for finding in wrong}
    places, switches = address_cabling.attachments(nic for nic in nics if NicRef.of(nic.host, nic.name) not in ends)
    algorithmic = Facts(attachments=places, switches=switches)
    reports = (
        [report_on(Origin.LLDP, lldp)] if lldp.attachments else [_no_lldp(snapshots, neighbours)] if snapshots else []
    )
    reports += [report_on("algorithmic MAC addresses", algorithmic)] if places else []
    return SnapshotFacts(gather([lldp, algorithmic]), nics, (*_silent(collected.silent), *wrong), tuple(reports))


def _silent(silent: Mapping[str, str]) -> list[Finding]:
    return [
        Finding(
            state=State.FAULT,
            components=(ComponentRef.of("host", host),),
            evidence=(seen.no_answer(hosts=1, reason=why),),
            next_step=advise.log_in(),
        )
        for host, why in silent.items()
    ]


def _on_fabric(neighbours: list[Neighbour], nics: Mapping[str, NicFact]) -> list[Neighbour]:
    """Return the neighbours of the fabric's NICs; the switch of the management network is not part of the fabric."""
    fast = fabric_nics({neighbour.port for neighbour in neighbours}, nics)
    return [neighbour for neighbour in neighbours if neighbour.port in fast]


def _no_lldp(snapshots: Mapping[str, Snapshot], neighbours: Mapping[str, Sequence[Neighbour]]) -> SourceReport:
    """Report why no host has a neighbour on the fabric: the reason of most hosts."""
    reasons: dict[str, list[str]] = defaultdict(list)
    for host, snapshot in snapshots.items():
        reasons[why_no_neighbour(snapshot, neighbours[host])].append(host)
    reason = max(reasons, key=lambda text: len(reasons[text]))
    return SourceReport(Origin.LLDP, silent=f"{reason} ({fold(reasons[reason])})")
