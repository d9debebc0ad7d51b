"""A verdict for CI servers: a test case for the run, and one for each component with a finding."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from fablint.model import Finding, State, VerdictWord
from fablint.report import finding_order
from fablint.report.exports.finding_subjects import subjects
from fablint.report.exports.junit_suites import SuiteCase, junit_xml
from fablint.text.actions import advice
from fablint.text.evidence_sentences import sentences

if TYPE_CHECKING:
    from fablint.model import Diagnosis, Run

Child = Literal["failure", "error", "skipped"]
_OF_VERDICTS: Mapping[VerdictWord, Child] = {"fault": "failure", "incomplete": "error"}
_OF_STATES: Mapping[State, Child] = {
    State.FAULT: "failure",
    State.SUSPECT: "error",
    State.CONFOUNDED: "error",
    State.SUPPRESSED: "skipped",
    State.NOT_JUDGED: "skipped",
}
_RANKS: tuple[Child | None, ...] = ("failure", "error", "skipped", None)  # of several findings the gravest counts


def verdict_junit(run: Run, diagnosis: Diagnosis) -> str:
    """Return an XML document with a failure or an error if and only if the exit code is not 0.

    A FAULT is a failure, an undecided finding an error, a component that was not judged or is a known fault a skipped
    test.
    """
    verdict = diagnosis.verdict
    word, headline = finding_order.word(verdict), finding_order.headline(verdict)
    name = run.path.name if run.path is not None else "run"
    suites = {"fablint.verdict": [_case_of(name, _OF_VERDICTS.get(verdict.verdict), f"{word}: {headline}")]}
    cases: dict[tuple[str, str], list[SuiteCase]] = defaultdict(list)
    for finding in verdict.findings:
        for kind, subject in subjects(finding):
            cases[f"fablint.{kind}", subject].append(_case(finding, subject))
    for (suite, _), component_cases in sorted(cases.items()):
        suites.setdefault(suite, []).append(_joined(component_cases))
    return junit_xml("fablint", suites)


def _joined(cases: list[SuiteCase]) -> SuiteCase:
    """Return the gravest case of a component, whose text ends with what the others say."""
    first, *others = sorted(cases, key=lambda case: _RANKS.index(case.child))
    return first._replace(text="\n".join(filter(None, (first.text, *(one.message or one.text for one in others)))))


def _case(finding: Finding, subject: str) -> SuiteCase:
    suppression = finding.suppressed.words if finding.suppressed else ""
    what = (str(finding.state), finding.direction or "", finding_order.effect(finding), suppression)
    next_step = f"next: {advice(finding.next_step)}" if finding.next_step else ""
    text = "\n".join(filter(None, (sentences(finding.evidence), next_step)))
    return _case_of(subject, _OF_STATES.get(finding.state), " ".join(filter(None, what)), text)


def _case_of(name: str, child: Child | None, message: str, text: str = "") -> SuiteCase:
    """Return a case; one that passed has no message, and writes it as its output."""
    return SuiteCase(name, child, message, text) if child else SuiteCase(name, text=message)
