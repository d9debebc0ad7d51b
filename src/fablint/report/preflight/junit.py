"""What preflight found, for CI servers: a test suite for each check, a test case for each part of each host."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from xml.etree import ElementTree as Tree

from fablint.model.preflight_results import Fitness, Outcome, Result
from fablint.model.verdict import advise
from fablint.text.action_sentences import advice

ANSWERS = "host.answers"  # the suite of hosts that gave a snapshot, and of those that did not
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in XML 1.0
_CHILDREN = {
    Outcome.FAIL: "failure",
    Outcome.ERROR: "error",
    Outcome.SKIP: "skipped",
    Outcome.SUPPRESSED: "skipped",
}
_COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def junit_text(fitness: Fitness) -> str:
    """An XML document. A warning is a test that passes and says something."""
    root = Tree.Element("testsuites", name="fablint preflight")
    _add_suite(root, ANSWERS, [_answer(fitness, host) for host in fitness.hosts], advice(advise("log_in")))
    found: dict[str, list[Result]] = defaultdict(list)
    for one in fitness.results:
        found[one.check].append(one)
    for check, results in found.items():
        _add_suite(root, check, results, fitness.rules[check].remedy)
    _count(root, list(root))
    Tree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Tree.tostring(root, encoding="unicode") + "\n"


def _answer(fitness: Fitness, host: str) -> Result:
    """A host that is silent is a test that failed: one that is missing would look as if all were well."""
    why = fitness.silent.get(host)
    return Result(ANSWERS, host, "", Outcome.PASS if why is None else Outcome.FAIL, f"no answer: {why or ''}")


def _add_suite(root: Tree.Element, name: str, results: list[Result], remedy: str) -> None:
    suite = Tree.SubElement(root, "testsuite", name=_plain(name))
    for one in results:
        case = Tree.SubElement(suite, "testcase", classname=_plain(one.check), name=_plain(one.name))
        if child := _CHILDREN.get(one.outcome):
            words = f"{one.message} ({one.suppressed.words})" if one.suppressed else one.message
            Tree.SubElement(case, child, message=_plain(words))
            case[0].text = f"remedy: {_plain(remedy)}" if one.outcome is Outcome.FAIL else None
        elif one.outcome is Outcome.WARN:
            Tree.SubElement(case, "system-out").text = f"WARN: {_plain(one.message)}\nremedy: {_plain(remedy)}"
    _count(suite, [suite])


def _count(element: Tree.Element, suites: list[Tree.Element]) -> None:
    """Numbers of test cases as attributes."""
    counts = Counter(child.tag for suite in suites for case in suite for child in case)
    element.set("tests", str(sum(len(suite) for suite in suites)))
    for attribute, tag in _COUNTED.items():
        element.set(attribute, str(counts[tag]))


def _plain(words: str) -> str:
    """Without what no XML document may contain, however it is escaped."""
    return _FORBIDDEN.sub("?", words)
