"""What preflight found, for CI servers: a test suite for each check, a test case for each part of each host."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Literal

from fablint.model.preflight_results import Fitness, Outcome, Result
from fablint.report.exports.junit_suites import SuiteCase, junit_xml
from fablint.text import actions as advise
from fablint.text.actions import advice

ANSWERS = "host.answers"  # the suite of hosts that gave a snapshot, and of those that did not
_CHILDREN: Mapping[Outcome, Literal["failure", "error", "skipped"]] = {
    Outcome.FAIL: "failure",
    Outcome.ERROR: "error",
    Outcome.SKIP: "skipped",
    Outcome.SUPPRESSED: "skipped",
}


def junit_text(fitness: Fitness) -> str:
    """An XML document. A warning is a test that passes and says something."""
    log_in = advice(advise.log_in())
    suites: dict[str, list[SuiteCase]] = defaultdict(list)
    suites[ANSWERS] = [_case(_answer(fitness, host), log_in) for host in fitness.hosts]
    for result in fitness.results:
        suites[result.check].append(_case(result, fitness.remedy(result)))
    return junit_xml("fablint preflight", suites)


def _answer(fitness: Fitness, host: str) -> Result:
    """A host that is silent is a test that failed: one that is missing would look as if all were well."""
    why = fitness.silent.get(host)
    return Result(ANSWERS, host, "", Outcome.PASS if why is None else Outcome.FAIL, f"no answer: {why or ''}")


def _case(result: Result, remedy: str) -> SuiteCase:
    words = f"{result.message} ({result.suppressed.words})" if result.suppressed else result.message
    if result.outcome is Outcome.WARN:
        return SuiteCase(result.name, text=f"WARN: {result.message}\nremedy: {remedy}")
    text = f"remedy: {remedy}" if result.outcome is Outcome.FAIL else ""
    return SuiteCase(result.name, _CHILDREN.get(result.outcome), words, text)
