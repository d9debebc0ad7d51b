"""Findings from outside the measurement: of discovery and of launches, and levels that were never begun."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fablint.analyse.decide import amended
from fablint.model import Diagnosis, Finding, State, Verdict


def with_additional(diagnosis: Diagnosis, findings: Sequence[Finding], known: Verdict | None = None) -> Diagnosis:
    """The diagnosis that says these as well, and whose verdict counts the findings; with the notes of `known`.

    An additional finding replaces the finding of the measurement that the host failed. Hosts that stalled only with
    a faulty partner are not reported.
    """
    verdict = diagnosis.verdict
    if known is not None and (known.notes or known.network):
        verdict = amended(
            verdict,
            notes=(*verdict.notes, *known.notes),
            network=(*verdict.network, *known.network),
        )
        diagnosis = replace(diagnosis, verdict=verdict)
    if not findings:
        return diagnosis
    reported = {finding.components for finding in findings}
    faulty = {
        host
        for finding in findings
        if finding.state is State.FAULT and finding.component == "host"
        for host in finding.hosts
    }
    kept = [
        finding
        for finding in verdict.findings
        if finding.state is not State.SUSPECT
        or (finding.components not in reported and not (finding.component == "host" and faulty & _partners(finding)))
    ]
    return replace(diagnosis, verdict=amended(verdict, [*findings, *kept]))


def _partners(finding: Finding) -> set[str]:
    """Hosts in the ambiguity group of a finding."""
    return {host for one in finding.ambiguity_group if one.kind == "host" and not one.title for host in one.hosts}


def with_missing_levels(diagnosis: Diagnosis, names: Sequence[str]) -> Diagnosis:
    """The diagnosis of a check whose levels of these names were planned and never begun: no pass."""
    if not names:
        return diagnosis
    note = f"levels planned and never begun: {', '.join(names)}: not judged (fablint resume measures them)"
    notes = (note, *diagnosis.verdict.notes)
    return replace(diagnosis, verdict=amended(diagnosis.verdict, complete=False, notes=notes))
