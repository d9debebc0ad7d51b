"""JUnit's XML: test suites of test cases, as CI servers read it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple
from xml.etree import ElementTree as Tree

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in XML 1.0
_COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


class SuiteCase(NamedTuple):
    """One component, and what was found about it."""

    name: str
    child: Literal["failure", "error", "skipped"] | None = None  # None: passed
    message: str = ""
    text: str = ""  # of the child; of a case that passed, its output


def junit_xml(name: str, suites: Mapping[str, Sequence[SuiteCase]]) -> str:
    """Return an XML document: the suites by their name, which is also the class name of their cases."""
    root = Tree.Element("testsuites", name=name)
    for suite_name, cases in suites.items():
        suite = Tree.SubElement(root, "testsuite", name=_plain(suite_name))
        for case in cases:
            _add(suite, suite_name, case)
        _count(suite, [suite])
    _count(root, list(root))
    Tree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Tree.tostring(root, encoding="unicode") + "\n"


def _add(suite: Tree.Element, suite_name: str, case: SuiteCase) -> None:
    element = Tree.SubElement(suite, "testcase", classname=_plain(suite_name), name=_plain(case.name))
    if case.child:
        Tree.SubElement(element, case.child, message=_plain(case.message)).text = _plain(case.text) or None
    elif case.text:
        Tree.SubElement(element, "system-out").text = _plain(case.text)


def _count(element: Tree.Element, suites: Iterable[Tree.Element]) -> None:
    """Write numbers of test cases as attributes."""
    cases = [case for suite in suites for case in suite]
    counts = Counter(child.tag for case in cases for child in case)
    element.set("tests", str(len(cases)))
    for attribute, tag in _COUNTED.items():
        element.set(attribute, str(counts[tag]))


def _plain(words: str) -> str:
    """Replace what no XML document may contain, however it is escaped."""
    return _FORBIDDEN.sub("?", words)
