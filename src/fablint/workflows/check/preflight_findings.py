"""Warnings of preflight in the verdict of a check: routes are findings, other warnings are notes.

A setting that differs from the expected one leaves a host fit to be measured, and would keep most fabrics from a pass.
A route without an answer is a defect of the network that is to be judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median_low
from typing import Literal

from fablint.model import OF_HOSTS, Finding, Note
from fablint.model.preflight_results import NETWORK, PING, Fitness, Outcome, Result
from fablint.text import notes as noted
from fablint.text.fitness_findings import finding_of, finding_of_silent, findings, suppressed_findings

SLOW_LOGIN, SLOW_LOGIN_S = 3.0, 2.0  # a login is slow where it takes both: times as long as usual, and seconds longer
_LOSS = "net.ping.loss"  # measured just now between hosts, as routes without an answer are


def first_failures(fitness: Fitness) -> Mapping[str, Finding]:
    """Return the first failed check of every unfit host."""
    failures: dict[str, Finding] = {}
    for host, why in fitness.silent.items():
        failures.setdefault(host, finding_of_silent([host], why))
    for result in fitness.results:
        if result.outcome is Outcome.FAIL:
            failures.setdefault(result.host, finding_of(result, fitness))
    return failures


def other_findings(
    fitness: Fitness, fabric_findings: Collection[Finding], excluded: Collection[Finding]
) -> list[Finding]:
    """Return failed checks, routes without an answer and contradictions in the fabric that exclude no host."""
    faults = [finding_of_silent([host], why) for host, why in fitness.silent.items()]
    failures = [result for result in fitness.results if result.outcome is Outcome.FAIL]
    faults += [finding_of(result, fitness) for result in failures]
    silent = {finding.name for finding in faults if finding.component == "host"}
    others = [finding for finding in fabric_findings if not (finding.component == "host" and finding.name in silent)]
    return [finding for finding in [*faults, *route_findings(fitness), *others] if finding not in excluded]


def route_findings(fitness: Fitness) -> list[Finding]:
    """Return warnings about routes between hosts: pings without an answer, and lost pings."""
    results = [one for one in fitness.results if one.outcome is Outcome.WARN and _is_of_a_route(one, fitness)]
    return findings(replace(fitness, results=results, silent={}))


def faulty_networks(fitness: Fitness) -> list[str]:
    """Hosts that lose pings, and hosts of which a part of the network fails a check."""
    network = {name for name, rule in fitness.rules.items() if rule.component in OF_HOSTS and rule.component != "host"}
    bad = (Outcome.FAIL, Outcome.WARN)
    hosts = [one.host for one in fitness.results if one.check == _LOSS and one.outcome in bad]
    hosts += [one.host for one in fitness.results if one.check in network and one.outcome is Outcome.FAIL]
    return list(dict.fromkeys(hosts))


def warnings(fitness: Fitness) -> list[Result]:
    """Results of all other checks that warn, or whose answer was not understood.

    Networks that were not examined are reported elsewhere.
    """
    return [
        result
        for result in fitness.results
        if (result.outcome is Outcome.WARN and not _is_of_a_route(result, fitness))
        or (result.outcome is Outcome.ERROR and result.check != NETWORK)
    ]


def with_later(before: Sequence[Result], later: Sequence[Result]) -> list[Result]:
    """Return the results of two calls of preflight, each check, host, component and outcome once: the later one."""
    result = {(one.check, one.host, one.target, one.outcome): one for one in (*before, *later)}
    return list(result.values())


def warning_notes(results: Sequence[Result]) -> list[Note]:
    """Return a note on each check that warns, with the hosts: `preflight warns: cpu.governor: ... (n[01-04])`."""
    return [noted.preflight_warning(**_summary(*one)) for one in _by_check(results, Outcome.WARN)]


def not_understood(results: Sequence[Result], *, meanwhile: Literal[True] | None = None) -> list[Note]:
    """Return a note on each check whose answer was not understood; `meanwhile`: while the hosts were measured."""
    by_check = _by_check(results, Outcome.ERROR)
    return [noted.preflight_not_understood(**_summary(*one), meanwhile=meanwhile) for one in by_check]


def slow_logins(login_s: Mapping[str, float]) -> list[Note]:
    """Return a note on hosts whose login takes far longer than that of most hosts; none where there is no such host."""
    if len(login_s) < 2:
        return []
    usual_s = median_low(login_s.values())
    slow = [host for host, seconds in login_s.items() if seconds > max(SLOW_LOGIN * usual_s, usual_s + SLOW_LOGIN_S)]
    if not slow:
        return []
    longest_s = max(login_s[host] for host in slow)
    return [noted.slow_login(hosts=tuple(slow), longest_s=longest_s, usual_s=usual_s)]


def suppressed_notes(fitness: Fitness, *, meanwhile: Literal[True] | None = None) -> list[Note]:
    """Return a note on each finding that the site file suppresses; `meanwhile`: while the hosts were measured."""
    return [
        noted.preflight_suppressed(
            check=suppressed_finding.check,
            component=suppressed_finding.name,
            message=suppressed_finding.message,
            outcome=suppressed_finding.suppressed.outcome.value,
            until=suppressed_finding.suppressed.until,
            reason=suppressed_finding.suppressed.reason,
            meanwhile=meanwhile,
        )
        for suppressed_finding in suppressed_findings(fitness)
    ]


def _is_of_a_route(result: Result, fitness: Fitness) -> bool:
    is_split = (
        result.check == PING and result.value is not None
    )  # hosts that do not reach others; else ICMP may be filtered
    return is_split or result.check == _LOSS or fitness.rules[result.check].component == "route"


def _by_check(results: Sequence[Result], outcome: Outcome) -> Iterable[tuple[str, list[Result]]]:
    """Return the results with an outcome, by their check."""
    by_check: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        if result.outcome is outcome:
            by_check[result.check].append(result)
    return by_check.items()


def _summary(check: str, results: Sequence[Result]) -> noted.PreflightFields:
    """Return the most frequent message of a check with its hosts, and how many hosts have other messages."""
    messages: dict[str, list[str]] = defaultdict(list)
    for result in results:
        messages[f"{result.target} {result.message}".strip()].append(result.host)
    message, hosts = max(messages.items(), key=lambda item: len(item[1]))
    others = {one.host for one in results} - set(hosts)
    return {"check": check, "message": message, "hosts": tuple(hosts), "others": len(others)}
