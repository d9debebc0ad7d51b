"""The verdict of a run and the exit code, from its findings: the one place where both are decided."""

from __future__ import annotations

from collections.abc import Sequence

from fablint.model import Finding, State, Verdict, VerdictWord

EXIT_CODES: dict[VerdictWord, int] = {"pass": 0, "fault": 1, "incomplete": 3}


def decide(findings: Sequence[Finding], *, complete: bool) -> VerdictWord:
    """`fault` where a component is at fault; `pass` only where all are OK and nothing is missing.

    Parameters
    ----------
    findings
        All findings about the run.
    complete
        Was everything that was planned measured and judged?
    """
    states = {finding.state for finding in findings}
    if State.FAULT in states:
        return "fault"
    return "pass" if complete and states <= {State.OK} else "incomplete"


def redecided(verdict: Verdict, findings: Sequence[Finding], *, complete: bool = True) -> Verdict:
    """The verdict with these findings instead of its own; never a better one."""
    word: VerdictWord = "fault"
    if verdict.verdict != "fault":
        word = decide(findings, complete=complete and verdict.verdict == "pass")
    return verdict.model_copy(update={"findings": tuple(findings), "verdict": word, "exit_code": EXIT_CODES[word]})
