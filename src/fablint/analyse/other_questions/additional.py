"""What comes from outside the measurement: findings of discovery and launches, missing levels, known faults."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from fablint.analyse.decide import amended, with_suppressed
from fablint.model import ComponentKind, Diagnosis, Finding, Note, State, Verdict
from fablint.model.limits.known_faults import KnownFault, first_cover
from fablint.text import evidence as seen, notes as noted

# Kinds of components whose fault cuts a host off.
_AT_A_HOST: frozenset[ComponentKind] = frozenset({"host", "nic", "cable"})


def with_additional(diagnosis: Diagnosis, findings: Sequence[Finding], earlier: Verdict | None = None) -> Diagnosis:
    """Return the diagnosis with additional findings, which its verdict counts.

    An additional finding about a host, its NIC or its cable replaces the finding of the measurement that the host
    failed. Hosts that stalled only with a faulty partner, or only across reported routes, are not reported. A suspect
    NIC or cable in series with a FAULT of the measurement is evidence of this FAULT, and no finding.

    Parameters
    ----------
    diagnosis
        What the measurement showed.
    findings
        Findings of other stages: hosts that stalled, counters that grew.
    earlier
        A verdict whose notes are kept.
    """
    verdict = diagnosis.verdict
    if earlier is not None and (earlier.notes or earlier.network):
        verdict = amended(
            verdict,
            notes=(*verdict.notes, *earlier.notes),
            network=(*verdict.network, *earlier.network),
        )
        diagnosis = replace(diagnosis, verdict=verdict)
    if not findings:
        return diagnosis
    reported = {finding.components for finding in findings}
    faulty = {
        host
        for finding in findings
        if finding.state is State.FAULT and finding.component in _AT_A_HOST
        for host in finding.hosts
    }
    suspect = {
        host
        for finding in findings
        if (finding.state, finding.component) == (State.SUSPECT, "host")
        for host in finding.hosts
    }
    routes = {finding.nodes for finding in findings if finding.component == "route"}
    kept = [
        finding
        for finding in verdict.findings
        if finding.state is not State.SUSPECT
        or not (
            finding.components in reported
            or _is_explained(finding, faulty, suspect)
            or _has_failed_across(routes, finding)
        )
    ]
    separate = [finding for finding in findings if not any(_is_of_fault(finding, measured) for measured in kept)]
    joined = [_with_evidence(measured, findings) for measured in kept]
    return replace(diagnosis, verdict=amended(verdict, [*separate, *joined]))


def _is_of_fault(finding: Finding, measured: Finding) -> bool:
    """Tell whether a suspect NIC or cable is that of a measured FAULT, or in series with it at the same host."""
    if (finding.state, measured.state) != (State.SUSPECT, State.FAULT) or finding.component not in ("nic", "cable"):
        return False
    is_in_series = measured.component in _AT_A_HOST and measured.component != finding.component
    return finding.components == measured.components or (is_in_series and finding.hosts == measured.hosts)


def _with_evidence(measured: Finding, findings: Sequence[Finding]) -> Finding:
    """Return a finding with the evidence of the suspects that are about it."""
    evidence = tuple(record for finding in findings if _is_of_fault(finding, measured) for record in finding.evidence)
    return measured.model_copy(update={"evidence": (*measured.evidence, *evidence)}) if evidence else measured


def _is_explained(finding: Finding, faulty: Set[str], suspect: Set[str]) -> bool:
    """Tell whether the finding is about a host that failed because this host, or its partner, is faulty.

    A suspect partner explains it as well: of two hosts the launches found this one.
    """
    partners = _partners(finding)
    has_failed = bool(seen.rank_failed.among(finding.evidence))
    causes = faulty | suspect if has_failed else faulty
    is_of_host = has_failed and not faulty.isdisjoint(finding.hosts)
    return finding.component == "host" and (is_of_host or not causes.isdisjoint(partners))


def _has_failed_across(routes: Set[frozenset[str]], finding: Finding) -> bool:
    """Tell whether ranks of a host failed only with hosts at the other ends of these routes."""
    partners = [record.values["partners"] for record in seen.rank_failed.among(finding.evidence)]
    (host,) = finding.hosts if len(finding.hosts) == 1 else ("",)
    return bool(partners) and all(
        frozenset((host, partner)) in routes for named in partners if isinstance(named, tuple) for partner in named
    )


def _partners(finding: Finding) -> set[str]:
    """Hosts in the ambiguity group of a finding."""
    return {host for one in finding.ambiguity_group if one.kind == "host" and not one.title for host in one.hosts}


def with_missing_levels(diagnosis: Diagnosis, names: Sequence[str]) -> Diagnosis:
    """The diagnosis of a check whose levels of these names were planned and never begun: no pass."""
    if not names:
        return diagnosis
    notes = (noted.missing_levels(tuple(names)), *diagnosis.verdict.notes)
    return replace(diagnosis, verdict=amended(diagnosis.verdict, complete=False, notes=notes))


def without_known_faults(
    diagnosis: Diagnosis, valid: Sequence[KnownFault], expired: Sequence[KnownFault] = ()
) -> Diagnosis:
    """Return the diagnosis with findings about known faults SUPPRESSED: they are reported, and do not count.

    Parameters
    ----------
    diagnosis
        The diagnosis with all findings.
    valid
        Known faults.
    expired
        Known faults whose date has passed. Their findings count; a note says so.
    """
    if not valid and not expired:
        return diagnosis
    covers = [first_cover(valid, finding) for finding in diagnosis.verdict.findings]
    findings = [
        finding if cover is None else cover.mark(finding)
        for finding, cover in zip(diagnosis.verdict.findings, covers, strict=True)
    ]
    notes = [_unused(one, diagnosis) for one in valid if one not in covers]
    notes += [
        noted.expired_entry(item.where, item.until.isoformat())
        for item in expired
        if any(map(item.covers, diagnosis.verdict.findings))
    ]
    return replace(diagnosis, verdict=with_suppressed(diagnosis.verdict, findings, notes))


def _unused(known_fault: KnownFault, diagnosis: Diagnosis) -> Note:
    """Return why a known fault suppresses no finding."""
    if known_fault.loss is not None and any(map(known_fault.names, diagnosis.verdict.findings)):
        return noted.exceeded_entry(known_fault.where, known_fault.loss)
    return noted.unused_entry(known_fault.where)
