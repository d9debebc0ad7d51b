"""Hosts that failed a level of a check: excluded from the next levels until the host is healthy by what is known since.

A finding that excluded a host stays in the verdict unless the measurements of other hosts refute it. A host that is
healthy when it is measured again was slow for a time: the finding stays as a SUSPECT. Both are measured again in the
levels that they missed. A host that was not is named with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fablint.model import ComponentRef, Diagnosis, Finding, Note, Run, State, Topology
from fablint.text import actions as advise, evidence as seen, notes as noted

_REPORTED = frozenset({State.FAULT, State.SUSPECT, State.CONFOUNDED, State.SUPPRESSED})
_OF_LATER_ROWS = frozenset({"follow_up", "retest"})


@dataclass(frozen=True)
class Exclusion:
    """The level that a host failed, the finding about it, and the levels that were measured without the host."""

    level: str
    finding: Finding
    missed: tuple[str, ...] = ()
    included: bool = False  # healthy by later measurements, and measured again
    at_times: bool = False  # later measurements of the host itself show that: it was slow for a time

    @property
    def name(self) -> str:
        """The name that the run has for the host."""
        return self.finding.hosts[0]


@dataclass
class Exclusions:
    """The exclusions of a check, by host as the request names it."""

    by_host: dict[str, Exclusion] = field(default_factory=dict)

    @property
    def levels(self) -> dict[str, str]:
        """The level that each excluded host failed."""
        return {host: one.level for host, one in self.by_host.items() if not one.included}

    @property
    def notes(self) -> list[Note]:
        """Return a note for each level after which hosts were excluded, and for each host that was included again."""
        failures = self.levels
        excluded = [
            noted.excluded_after(level, tuple(host for host, at in failures.items() if at == level))
            for level in dict.fromkeys(failures.values())
        ]
        included = [
            noted.included_again(host, item.level)
            for host, item in self.by_host.items()
            if item.included and not item.missed
        ]
        return [*excluded, *included]

    def add(self, host: str, level: str, finding: Finding) -> None:
        """Exclude a host; a host that was measured again keeps the levels that it still lacks."""
        before = self.by_host.get(host)
        self.by_host[host] = Exclusion(level, finding, before.missed if before else ())

    def note_level(self, level: str) -> None:
        """Keep that a level is measured without the excluded hosts."""
        for host in self.levels:
            self.by_host[host] = replace(self.by_host[host], missed=(*self.by_host[host].missed, level))

    def note_measured(self, level: str, hosts: Sequence[str]) -> None:
        """Keep that a level was measured for hosts that had missed it."""
        for host in hosts:
            missed = tuple(one for one in self.by_host[host].missed if one != level)
            self.by_host[host] = replace(self.by_host[host], missed=missed)

    def waiting(self, level: str) -> list[str]:
        """Return the hosts that are measured again and lack a level."""
        return [host for host, one in self.by_host.items() if one.included and level in one.missed]

    def include(self, diagnosis: Diagnosis, run: Run) -> list[str]:
        """End the exclusion of hosts that a diagnosis without `open_findings` calls healthy, and return these hosts."""
        findings = diagnosis.verdict.findings
        hosts = [host for host in self.levels if _is_healthy(self.by_host[host].name, findings, run)]
        for host in hosts:
            at_times = _is_measured_again(self.by_host[host].name, run)
            self.by_host[host] = replace(self.by_host[host], included=True, at_times=at_times)
        return hosts

    def open_findings(self, diagnosis: Diagnosis, run: Run, topology: Topology | None) -> list[Finding]:
        """Return a finding about each host that was excluded and about which a diagnosis says nothing more.

        The finding that excluded it, as a SUSPECT where the host was measured again since; NOT JUDGED where a switch
        explains it, or where the host lacks levels.
        """
        wiring = topology.named_as(run.hosts) if topology is not None else None
        findings = []
        for exclusion in self.by_host.values():
            name = exclusion.name
            if _is_reported(name, diagnosis.verdict.findings):
                continue
            is_explained = wiring is not None and _has_faulty_switch(wiring.host_switch.get(name, ""), diagnosis)
            if is_explained or (exclusion.included and not exclusion.at_times):
                findings += [_not_judged(name, exclusion)] if exclusion.missed else []
            else:
                findings.append(_kept(exclusion, again=exclusion.included or _is_measured_again(name, run)))
        return findings


def _is_reported(host: str, findings: Iterable[Finding]) -> bool:
    """Return whether a finding other than OK and NOT JUDGED is about the host or about a component at the host."""
    return any(
        finding.state in _REPORTED
        and finding.component != "route"
        and (host in finding.nodes or any(host in member.nodes for member in finding.ambiguity_group))
        for finding in findings
    )


def _is_healthy(host: str, findings: Sequence[Finding], run: Run) -> bool:
    """Return whether a host is OK, or was measured again and is in no finding about a fault: it was slow before."""
    is_ok = any(one.state is State.OK and one.component in ("host", "nic") and host in one.hosts for one in findings)
    return (is_ok or _is_measured_again(host, run)) and not _is_reported(host, findings)


def _has_faulty_switch(switch: str, diagnosis: Diagnosis) -> bool:
    return any(
        finding.state is State.FAULT and finding.component == "switch" and switch in finding.nodes
        for finding in diagnosis.verdict.findings
    )


def _is_measured_again(host: str, run: Run) -> bool:
    """Return whether follow-ups have a measurement of a host."""
    ranks = [rank for rank, name in enumerate(run.rank_host) if name == host]
    return any(
        np.asarray(row.arrays["count"][:])[ranks].any()
        for row in run.rows
        if row.purpose in _OF_LATER_ROWS and row.layout == "list"
    )


def _kept(exclusion: Exclusion, *, again: bool) -> Finding:
    """Return the finding that excluded a host, with the level; a SUSPECT where follow-ups do not repeat it."""
    evidence = [seen.failed_level(exclusion.level), *exclusion.finding.evidence]
    if again:
        evidence.append(seen.not_repeated())
    if exclusion.missed:
        evidence.append(seen.not_in_levels(exclusion.missed))
    state = State.SUSPECT if again else exclusion.finding.state
    return exclusion.finding.model_copy(update={"state": state, "evidence": tuple(evidence)})


def _not_judged(host: str, exclusion: Exclusion) -> Finding:
    component = ComponentRef.of("host", host)
    return Finding(
        state=State.NOT_JUDGED,
        components=(component,),
        evidence=(seen.missed_levels(level=exclusion.level, missed=exclusion.missed),),
        next_step=advise.measure_component(component),
    )


def not_explained(suspects: Iterable[Finding], grown: Iterable[Finding]) -> list[Finding]:
    """Return the findings of `suspects` but those about a host that, or a NIC of which, `grown` proves to be at fault.

    A rank that is killed because its link goes down leaves a suspect host; the counters name the cable.
    """
    at_fault = {host for finding in grown if finding.state is State.FAULT for host in finding.hosts}
    return [one for one in suspects if one.state is State.FAULT or not at_fault.issuperset(one.hosts)]
