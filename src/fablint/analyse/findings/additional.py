"""What is known besides the measurement: findings of discovery and of the launches, levels that were never begun."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fablint.model import Diagnosis, Finding, State


def with_besides(diagnosis: Diagnosis, findings: Sequence[Finding]) -> Diagnosis:
    """The diagnosis that says these as well, and whose verdict counts them.

    Of a host that was lost the measurement only knows that it was: what is known besides takes its place. Who hung
    with a host that is sick is its victim, and not told.
    """
    if not findings:
        return diagnosis
    verdict = diagnosis.verdict
    told = {(finding.component, finding.name) for finding in findings}
    sick = {f"host {one.name}" for one in findings if one.state is State.FAULT and one.component == "host"}
    kept = [
        one
        for one in verdict.findings
        if one.state is not State.SUSPECT
        or ((one.component, one.name) not in told and not (one.component == "host" and sick & {*one.alternatives}))
    ]
    order = {state: position for position, state in enumerate(State)}
    found = sorted([*findings, *kept], key=lambda one: order[one.state])
    word, code = verdict.verdict, verdict.exit_code
    if any(one.state is State.FAULT for one in findings):
        word, code = "fault", 1
    elif code == 0 and any(one.state is not State.OK for one in findings):
        word, code = "incomplete", 3
    update = {"findings": tuple(found), "verdict": word, "exit_code": code}
    return replace(diagnosis, verdict=verdict.model_copy(update=update))


def with_missing_levels(diagnosis: Diagnosis, names: Sequence[str]) -> Diagnosis:
    """The diagnosis of a check whose levels of these names were planned and never begun: no pass."""
    if not names:
        return diagnosis
    verdict = diagnosis.verdict
    note = f"levels planned and never begun: {', '.join(names)}: what they measure is not judged (run the check again)"
    update: dict[str, object] = {"notes": (note, *verdict.notes)}
    if verdict.exit_code == 0:
        update |= {"verdict": "incomplete", "exit_code": 3}
    return replace(diagnosis, verdict=verdict.model_copy(update=update))
