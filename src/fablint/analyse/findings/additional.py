"""What is known besides the measurement: findings of discovery and of the launches, levels that were never begun."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fablint.analyse.decide import redecided
from fablint.model import Diagnosis, Finding, State, Verdict


def with_additional(diagnosis: Diagnosis, findings: Sequence[Finding], known: Verdict | None = None) -> Diagnosis:
    """The diagnosis that says these as well, and whose verdict counts the findings; with the notes of `known`.

    Of a host that was lost the measurement only knows that it was: what is known besides takes its place. Who hung
    with a host that is sick is its victim, and not told.
    """
    verdict = diagnosis.verdict
    if known is not None and (known.notes or known.network):
        said = {"notes": (*verdict.notes, *known.notes), "network": (*verdict.network, *known.network)}
        verdict = verdict.model_copy(update=said)
        diagnosis = replace(diagnosis, verdict=verdict)
    if not findings:
        return diagnosis
    told = {(finding.component, finding.name) for finding in findings}
    sick = {f"host {one.name}" for one in findings if one.state is State.FAULT and one.component == "host"}
    kept = [
        one
        for one in verdict.findings
        if one.state is not State.SUSPECT
        or ((one.component, one.name) not in told and not (one.component == "host" and sick & {*one.alternatives}))
    ]
    every = sorted([*findings, *kept], key=lambda finding: finding.rank)
    return replace(diagnosis, verdict=redecided(verdict, every))


def with_missing_levels(diagnosis: Diagnosis, names: Sequence[str]) -> Diagnosis:
    """The diagnosis of a check whose levels of these names were planned and never begun: no pass."""
    if not names:
        return diagnosis
    verdict = redecided(diagnosis.verdict, diagnosis.verdict.findings, complete=False)
    note = f"levels planned and never begun: {', '.join(names)}: not judged (fablint resume measures them)"
    return replace(diagnosis, verdict=verdict.model_copy(update={"notes": (note, *verdict.notes)}))
