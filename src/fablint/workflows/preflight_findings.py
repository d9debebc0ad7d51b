"""Warnings of preflight in the verdict of a check: routes are findings, other warnings are notes.

A setting that differs from the expected one leaves a host fit to be measured, and would keep most fabrics from a pass.
A route without an answer is a defect of the network that is to be judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from fablint.model import Finding
from fablint.model.preflight_results import NETWORK, PING, Fitness, Outcome, Result, findings, suppressed_findings
from fablint.text.names import fold, plural

_LOSS = "net.ping.loss"  # measured just now between hosts, as routes without an answer are


def route_findings(fitness: Fitness) -> list[Finding]:
    """Return warnings about routes between hosts: pings without an answer, and lost pings."""
    results = [one for one in fitness.results if one.outcome is Outcome.WARN and _is_of_a_route(one, fitness)]
    return findings(replace(fitness, results=results, silent={}))


def warning_notes(fitness: Fitness) -> list[str]:
    """Return a sentence for each other check that warns: `preflight warns: cpu.governor: ... (n[01-04])`.

    Then one for each check whose answer was not understood. Networks that were not examined are not among them.
    """
    results: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for one in fitness.results:
        if one.outcome is Outcome.WARN and not _is_of_a_route(one, fitness):
            results["warns", one.check].append(one)
        elif one.outcome is Outcome.ERROR and one.check != NETWORK:
            results["does not understand", one.check].append(one)
    return [
        f"preflight {verb}: {check}: {_summary(results[verb, check])}"
        for verb, check in sorted(results, key=lambda key: key[0] != "warns")
    ]


def site_notes(fitness: Fitness) -> list[str]:
    """Return a sentence for each finding that the site file suppresses, and for each suppression that has expired."""
    quiet = [
        f"preflight: {one.check}: {one.name}: {one.message} ({one.suppressed.words})"
        for one in suppressed_findings(fitness)
    ]
    return [*fitness.notes, *quiet]


def _is_of_a_route(one: Result, fitness: Fitness) -> bool:
    is_split = one.check == PING and one.value is not None  # hosts that do not reach others; else ICMP may be filtered
    return is_split or one.check == _LOSS or fitness.rules[one.check].component == "route"


def _summary(results: Sequence[Result]) -> str:
    """Return the most frequent message with its hosts, and how many hosts have other messages."""
    messages: dict[str, list[str]] = defaultdict(list)
    for one in results:
        messages[f"{one.target} {one.message}".strip()].append(one.host)
    message, hosts = max(messages.items(), key=lambda item: len(item[1]))
    others = {one.host for one in results} - set(hosts)
    more = f", and {plural(len(others), 'host')} with other values" if others else ""
    return f"{message} ({fold(hosts)}{more})"
