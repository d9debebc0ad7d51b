"""The verdict of a run and the exit code, from its findings: the one place where both are decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fablint.analyse.concerned import ConcernedComponents, restricted
from fablint.model import Coverage, Finding, Note, State, Verdict, VerdictWord

EXIT_CODES: dict[VerdictWord, int] = {"pass": 0, "fault": 1, "incomplete": 3, "local": 0}
_PASSED = frozenset({State.OK, State.SUPPRESSED})


def verdict_of(
    findings: Sequence[Finding], coverage: Coverage, *, complete: bool, known_fault: bool = False, **more: Any
) -> Verdict:
    """The verdict on a run.

    Each component is in one state: what a finding names, or lists as an alternative, is not OK, and a host at fault is
    judged. The verdict is `fault` where a component is at fault, and `pass` only where all findings are OK or
    suppressed and nothing is missing. Where all ranks ran on one host it is `local` in place of `pass`: findings about
    the run as a whole remain.

    Parameters
    ----------
    findings
        All findings about the run.
    coverage
        What was measured.
    complete
        True if all that was planned was measured and judged.
    known_fault
        True if the verdict was `fault` before.
    more
        Other fields of the verdict: limits, notes, network, thresholds.
    """
    states = {finding.state for finding in findings}
    word: VerdictWord = "pass" if complete and states <= _PASSED else "incomplete"
    if complete and _is_local(findings):
        word = "local"
    if known_fault or State.FAULT in states:
        word = "fault"
    concerned = ConcernedComponents.of(findings)
    faulty = frozenset(
        host
        for finding in findings
        if (finding.state, finding.component) == (State.FAULT, "host")
        for host in finding.hosts
    )
    kept = [left for finding in findings if (left := restricted(finding, concerned, faulty)) is not None]
    ranked = tuple(sorted(kept, key=lambda finding: finding.rank))
    return Verdict(
        verdict=word, exit_code=EXIT_CODES[word], findings=ranked, coverage=coverage, complete=complete, **more
    )


def _is_local(findings: Sequence[Finding]) -> bool:
    """Tell whether all ranks ran on one host, and no component of it is reported."""
    kinds = {evidence.kind for finding in findings for evidence in finding.evidence if finding.component == "config"}
    return "one_host" in kinds and all(
        finding.component == "config" for finding in findings if finding.state not in _PASSED
    )


def amended(
    verdict: Verdict, findings: Sequence[Finding] | None = None, *, complete: bool = True, **more: Any
) -> Verdict:
    """A verdict with other findings, notes or thresholds; it does not become better.

    Parameters
    ----------
    verdict
        The verdict before.
    findings
        All findings; None: those of the verdict.
    complete
        False if something that was planned is known to be missing.
    more
        Other fields of the verdict: limits, notes, network, thresholds.
    """
    return verdict_of(
        verdict.findings if findings is None else findings,
        verdict.coverage,
        complete=complete and verdict.complete and (findings is None or verdict.verdict != "incomplete"),
        known_fault=verdict.verdict == "fault",
        **{**_kept(verdict), **more},
    )


def with_suppressed(verdict: Verdict, findings: Sequence[Finding], notes: Sequence[Note]) -> Verdict:
    """A verdict whose findings are suppressed in part: those count no more. What is missing is still missing."""
    more = {**_kept(verdict), "notes": (*verdict.notes, *notes)}
    return verdict_of(findings, verdict.coverage, complete=verdict.complete, **more)


def _kept(verdict: Verdict) -> dict[str, Any]:
    """Fields of a verdict that do not depend on its findings."""
    return {name: getattr(verdict, name) for name in ("limits", "notes", "network", "not_judged", "thresholds")}
