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
    for one in fitness.results:
        suites[one.check].append(_case(one, fitness.remedy(one)))
    return junit_xml("fablint preflight", suites)


def _answer(fitness: Fitness, host: str) -> Result:
    """A host that is silent is a test that failed: one that is missing would look as if all were well."""
    why = fitness.silent.get(host)
    return Result(ANSWERS, host, "", Outcome.PASS if why is None else Outcome.FAIL, f"no answer: {why or ''}")


def _case(one: Result, remedy: str) -> SuiteCase:
    words = f"{one.message} ({one.suppressed.words})" if one.suppressed else one.message
    if one.outcome is Outcome.WARN:
        return SuiteCase(one.name, text=f"WARN: {one.message}\nremedy: {remedy}")
    text = f"remedy: {remedy}" if one.outcome is Outcome.FAIL else ""
    return SuiteCase(one.name, _CHILDREN.get(one.outcome), words, text)
